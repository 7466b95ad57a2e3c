package soak

import (
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/testkit"
)

// asked holds faults, and the code of the errors that clients get only from them.
type asked struct {
	code   string
	faults []*testkit.Fault
	// exact means that clients see the code each time the faults take effect. Otherwise an
	// affected call may succeed, or fail with another error first.
	exact bool
	// unseen counts affected calls whose client may have left. Nil: none.
	unseen *atomic.Int64
}

// The codes of affected Bigtable calls.
const (
	refusedCall = codes.Unavailable        // no effect
	refusedScan = codes.FailedPrecondition // of the long table: no rows delivered
	lostAnswer  = codes.Aborted            // full effect
	cutStream   = codes.ResourceExhausted  // some rows delivered
)

// The codes of affected DynamoDB calls.
const (
	refusedOperation = "ThrottlingException"  // no effect
	lostResponse     = "RequestLimitExceeded" // full effect, unless it failed behind the endpoint
	behindEndpoint   = "ServiceUnavailable"   // full effect, partial effect that will be undone or completed, or none
)

// script arms faults: for a few in a hundred calls, and for many more of the few calls without
// -soak.for.
func (s *soak) script() []asked {
	often := 1.0
	if *soakFor == 0 {
		often = 5
	}
	refused, lost := asked{code: refusedCall.String(), exact: true}, asked{code: lostAnswer.String(), exact: true}
	for _, method := range []string{"MutateRow", "MutateRows", "CheckAndMutateRow", "ReadModifyWriteRow"} {
		refused.faults = append(refused.faults, s.env.Fail(method, status.Error(refusedCall, "refused"), testkit.WithProbability(0.02*often)))
		lost.faults = append(lost.faults, s.env.Fail(method, status.Error(lostAnswer, "lost"), testkit.Applied(), testkit.WithProbability(0.02*often)))
	}
	refused.faults = append(refused.faults, s.env.Fail("ReadRows", status.Error(refusedCall, "refused"), testkit.OnTable(rowsTable), testkit.WithProbability(0.02*often)))
	scan := asked{code: refusedScan.String(), exact: true, unseen: &s.left, faults: []*testkit.Fault{
		s.env.Fail("ReadRows", status.Error(refusedScan, "refused"), testkit.OnTable(longTable), testkit.WithProbability(0.02*often)),
	}}
	// A repeated write of the same value has no further effect.
	s.env.Duplicate("MutateRow", testkit.WithProbability(0.05))
	s.env.Duplicate("MutateRows", testkit.WithProbability(0.05))
	cut := asked{code: cutStream.String(), exact: true, unseen: &s.left, faults: []*testkit.Fault{
		s.env.CutReadRows(100, status.Error(cutStream, "cut"), testkit.OnTable(longTable), testkit.WithProbability(0.1)),
	}}

	throttled, lostToo, behind := asked{code: refusedOperation, exact: true}, asked{code: lostResponse}, asked{code: behindEndpoint}
	throttled.faults = append(throttled.faults, s.env.FailDynamoDB("*", testkit.Throttling, testkit.WithProbability(0.02*often)))
	for _, op := range []string{"PutItem", "UpdateItem", "TransactWriteItems"} {
		lostToo.faults = append(lostToo.faults, s.env.FailDynamoDB(op, testkit.RequestLimitExceeded, testkit.Applied(), testkit.WithProbability(0.02*often)))
	}
	for _, method := range []string{"MutateRow", "CheckAndMutateRow"} {
		behind.faults = append(
			behind.faults,
			s.env.Fail(method, status.Error(codes.Unavailable, "refused"), testkit.BehindDynamoDB(), testkit.WithProbability(0.005*often)),
			s.env.Fail(method, status.Error(codes.Unavailable, "lost"), testkit.BehindDynamoDB(), testkit.Applied(), testkit.WithProbability(0.005*often)),
		)
	}
	return []asked{refused, lost, scan, cut, throttled, lostToo, behind}
}

// check compares the clients' errors with the hits of the faults, which it returns, and
// removes the faults.
func (a asked) check(s *soak) (hits int) {
	s.t.Helper()
	for _, f := range a.faults {
		hits += f.Hits()
		f.Remove()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	unseen := 0
	if a.unseen != nil {
		unseen = int(a.unseen.Load())
	}
	if seen := s.seen[a.code]; seen > hits || a.exact && seen < hits-unseen {
		s.t.Errorf("%s: clients saw %d, faults hit %d times", a.code, seen, hits)
	}
	return hits
}
