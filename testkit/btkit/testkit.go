package btkit

import (
	"github.com/tabletop-emu/tabletop/control/lab/fault"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/testkit/internal/server"
)

// The functions below are for package testkit, which runs a DynamoDB endpoint over the same
// server. Nobody else has the types of their parameters.

// Over returns the environment of a server.
func Over(s *server.Server) *Env { return &Env{Clusters: Clusters{s}, server: s} }

// Arm arms a fault that strikes every call, narrowed by options, at the lab of s or at an
// endpoint of the lab.
func Arm(s *server.Server, at interface {
	Arm(spec fault.Spec) (*fault.Fault, error)
}, spec fault.Spec, opts []FaultOption,
) *Fault {
	s.TB().Helper()
	spec.Times, spec.Probability = fault.Unlimited, 1
	for _, o := range opts {
		o(&spec)
	}
	armed, err := at.Arm(spec)
	if err != nil {
		s.TB().Fatalf("testkit: %v", err)
	}
	return &Fault{armed}
}

// Taken returns what a snapshot saved from s or from another server.
func Taken(_ *server.Server, snapshot *Snapshot) *engine.Snapshot {
	if snapshot == nil {
		return nil
	}
	return snapshot.taken
}
