package btkit

import (
	"github.com/tabletop-emu/tabletop/control/lab/fault"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/testkit/internal/server"
)

// Package testkit runs a DynamoDB endpoint over the server of an Env. Only it can call the
// functions below: their parameters have internal types.

// Over is for package testkit. It returns the environment of a server.
func Over(s *server.Server) *Env { return &Env{Clusters: Clusters{s}, server: s} }

// Arm is for package testkit. It arms a fault at the lab of s, or at an endpoint of the lab.
// The options select the affected calls.
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

// Taken is for package testkit. It returns the store's snapshot, nil for a nil Snapshot.
func Taken(_ *server.Server, snapshot *Snapshot) *engine.Snapshot {
	if snapshot == nil {
		return nil
	}
	return snapshot.taken
}
