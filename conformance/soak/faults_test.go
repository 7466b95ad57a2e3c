package soak

import (
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/testkit"
)

// asked are faults, and the code of the errors that clients see of them and of
// no others.
type asked struct {
	code   string
	faults []*testkit.Fault
	// exact tells that each time the faults strike a client sees the code. Else
	// a call that is struck may succeed, or fail with something else first.
	exact bool
	// unseen is how many of the calls that were struck may have had nobody left
	// to see it. Nil: none.
	unseen *atomic.Int64
}

// The codes of Bigtable calls that are struck.
const (
	refusedCall = codes.Unavailable        // nothing was done
	refusedScan = codes.FailedPrecondition // of the long table: nothing came
	lostAnswer  = codes.Aborted            // all was done
	cutStream   = codes.ResourceExhausted  // some rows came
)

// The codes of DynamoDB calls that are struck.
const (
	refusedOperation = "ThrottlingException"  // nothing was done
	lostResponse     = "RequestLimitExceeded" // it was done, if it did not fail behind the endpoint
	behindEndpoint   = "ServiceUnavailable"   // it was done, is half done and will be undone or finished, or was not done
)

// script lets faults strike: a few in a hundred calls, and many more of the few calls
// without -soak.for.
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
	// A write of a value is the same when it is made twice.
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

// check compares what clients saw with how often the faults struck, which it
// returns, and ends the faults.
func (a asked) check(s *soak) (struck int) {
	s.t.Helper()
	for _, f := range a.faults {
		struck += f.Hits()
		f.Remove()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	unseen := 0
	if a.unseen != nil {
		unseen = int(a.unseen.Load())
	}
	if seen := s.seen[a.code]; seen > struck || a.exact && seen < struck-unseen {
		s.t.Errorf("%s: clients saw %d, faults struck %d times", a.code, seen, struck)
	}
	return struck
}
