package btkit

import (
	"fmt"

	"github.com/tabletop-emu/tabletop/control/lab/fault"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/testkit/internal/server"
)

// Package testkit runs a DynamoDB endpoint over the server of an Env. Only it can call the
// functions below: their parameters have internal types.

// Over returns an environment that uses the server s. It is only for package testkit.
func Over(s *server.Server) *Env { return &Env{Clusters: Clusters{s}, server: s} }

// Arm starts a fault in the lab of s, or in an endpoint of the lab. The options select the affected
// calls. It is only for package testkit.
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
	tb := s.TB()
	tb.Cleanup(func() {
		if armed.Hits() == 0 {
			tb.Logf("testkit: the fault %s was never used", faultText(armed.Spec()))
		}
	})
	return &Fault{armed}
}

// faultText describes the calls that a fault selects.
func faultText(s *fault.Spec) string {
	text := "of " + s.Method
	if s.Table != "" {
		text += " on table " + s.Table
	}
	if s.Row != nil {
		text += fmt.Sprintf(" on row %q", s.Row)
	}
	if s.BehindDynamoDB {
		text += " behind DynamoDB"
	}
	return text
}

// Taken returns the store's snapshot, or nil for a nil Snapshot. It is only for package testkit.
func Taken(_ *server.Server, snapshot *Snapshot) *engine.Snapshot {
	if snapshot == nil {
		return nil
	}
	return snapshot.taken
}
