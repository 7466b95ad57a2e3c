package btkit

import (
	"time"

	"github.com/tabletop-emu/tabletop/control/lab/fault"
)

// Fault makes some of the calls of an RPC fail or behave badly, from the call of [Env.Fail],
// [Env.Latency], [Env.CutReadRows] or [Env.Duplicate] that returned it until Remove or the end
// of the environment. Package testkit also has faults of DynamoDB operations.
//
// By default it applies to every call of Bigtable clients, in this process or through a port;
// a [FaultOption] narrows that. Faults apply in the order of their creation; a call that one
// of them has failed does not reach the later ones.
type Fault struct{ armed *fault.Fault }

// Hits returns the number of affected calls.
func (f *Fault) Hits() int { return f.armed.Hits() }

// Remove ends the fault. Running calls may still meet it.
func (f *Fault) Remove() { f.armed.Remove() }

// FaultOption narrows the calls that a fault affects, or its effect.
type FaultOption func(*fault.Spec)

// OnTable limits a fault to calls on the Bigtable table with that id, or on
// the DynamoDB table with that name.
func OnTable(id string) FaultOption { return func(s *fault.Spec) { s.Table = id } }

// OnRow limits a fault to calls that name the row with that key: calls that write it, or read
// a set of rows that contains it. Env.Fail of MutateRows fails the entries of the row and
// accepts the others.
func OnRow(key string) FaultOption {
	return func(s *fault.Spec) { s.Row = []byte(key) }
}

// Times limits a fault to n calls. Default: no limit.
func Times(n int) FaultOption { return func(s *fault.Spec) { s.Times = n } }

// Skip excludes the first n calls that a fault would affect.
func Skip(n int) FaultOption { return func(s *fault.Spec) { s.Skip = n } }

// WithProbability applies a fault to each call with probability p, from 0 to 1.
// The draws begin at [WithSeed] for every fault separately: the same calls in
// the same order meet the same faults.
func WithProbability(p float64) FaultOption { return func(s *fault.Spec) { s.Probability = p } }

// Applied makes Env.Fail lose the response instead of the request: the call takes effect, and
// the client gets the error. This simulates a write whose connection broke too late.
func Applied() FaultOption { return func(s *fault.Spec) { s.Applied = true } }

// Fail makes calls of an RPC fail with err, usually a gRPC status, before they take effect.
// method is the RPC's name, as in "MutateRow", with its service if two services have it, as in
// "BigtableTableAdmin/GetIamPolicy", or "*" for all.
//
// Official clients retry some codes, such as Unavailable, for as long as their context allows:
// limit such a fault with [Times], or remove it.
func (e *Env) Fail(method string, err error, opts ...FaultOption) *Fault {
	e.server.TB().Helper()
	return e.arm(fault.Spec{Method: method, Effect: fault.FailCall, Err: err}, opts)
}

// Latency makes calls of an RPC, named as for [Env.Fail], take d longer, on the environment's
// clock: the clock is advanced by d before the request is served, and no caller waits. A call
// whose deadline is less than d away fails with DeadlineExceeded at that moment, unserved.
// This does not collect garbage.
//
// Official clients then retry reads and idempotent writes until their context ends, in real
// time. With [Times], the first attempts are late and a later attempt succeeds; without it,
// the call fails when its context ends.
func (e *Env) Latency(method string, d time.Duration, opts ...FaultOption) *Fault {
	e.server.TB().Helper()
	return e.arm(fault.Spec{Method: method, Effect: fault.DelayCall, Delay: d}, opts)
}

// CutReadRows ends the stream of a ReadRows call with err after the given number of complete
// rows, if there are more. Only such calls count for [Times] and [Skip].
func (e *Env) CutReadRows(rows int, err error, opts ...FaultOption) *Fault {
	e.server.TB().Helper()
	return e.arm(fault.Spec{Method: "ReadRows", Effect: fault.CutRows, Rows: rows, Err: err}, opts)
}

// Duplicate delivers the request of calls of an RPC, named as for [Env.Fail], twice, one after
// the other: the client gets the second response. This simulates a request that a client or a
// network has repeated. Streams from the client are not duplicated.
func (e *Env) Duplicate(method string, opts ...FaultOption) *Fault {
	e.server.TB().Helper()
	return e.arm(fault.Spec{Method: method, Effect: fault.DuplicateCall}, opts)
}

// arm adds a fault with the options' limits; by default it affects every call.
func (e *Env) arm(spec fault.Spec, opts []FaultOption) *Fault {
	e.server.TB().Helper()
	return Arm(e.server, e.server.Lab(), spec, opts)
}
