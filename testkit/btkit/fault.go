package btkit

import (
	"time"

	"github.com/tabletop-emu/tabletop/control/lab/fault"
)

// Fault makes some calls of an RPC fail or misbehave. [Env.Fail], [Env.Latency], [Env.CutReadRows]
// and [Env.Duplicate] start a fault; it lasts until Remove or the end of the environment. Package
// testkit adds faults of DynamoDB operations.
//
// By default a fault applies to every call of Bigtable clients, in this process or through a port;
// a [FaultOption] narrows this. Faults apply in the order of their creation. If one of them fails a
// call, later ones are skipped. The log of the test names each fault that affected no call.
type Fault struct{ armed *fault.Fault }

// Hits returns the number of calls that the fault has affected.
func (f *Fault) Hits() int { return f.armed.Hits() }

// Remove ends the fault. It may still affect running calls.
func (f *Fault) Remove() { f.armed.Remove() }

// FaultOption restricts the calls that a fault affects, or changes its effect.
type FaultOption func(*fault.Spec)

// OnTable limits a fault to calls on the table or materialized view of Bigtable with the given id, or
// on the DynamoDB table with the given name. For a fault of an RPC, that name selects the Bigtable table
// with the items, if the DynamoDB table exists when the fault starts and no Bigtable table has that id.
func OnTable(id string) FaultOption { return func(s *fault.Spec) { s.Table = id } }

// OnRow limits a fault to calls that name the row with the given key: calls that write the row, and
// calls that read a set of rows that contains it. When Env.Fail applies to MutateRows, only the
// entries of this row fail.
func OnRow(key string) FaultOption {
	return func(s *fault.Spec) { s.Row = []byte(key) }
}

// Times limits a fault to n calls. Default: no limit.
func Times(n int) FaultOption { return func(s *fault.Spec) { s.Times = n } }

// Skip makes a fault ignore the first n calls that it would affect.
func Skip(n int) FaultOption { return func(s *fault.Spec) { s.Skip = n } }

// WithProbability applies a fault to each call with probability p, from 0 to 1. [WithSeed] seeds
// each fault separately, so the same calls in the same order meet the same faults.
func WithProbability(p float64) FaultOption { return func(s *fault.Spec) { s.Probability = p } }

// Applied makes Env.Fail drop the response instead of the request: the call takes effect, but the
// client gets the error. It simulates a connection that breaks after a write was applied.
func Applied() FaultOption { return func(s *fault.Spec) { s.Applied = true } }

// Fail makes calls of an RPC fail with err, usually a gRPC status, before they take effect. method
// is the name of the RPC, such as "MutateRow", or "*" for all RPCs. If two services have the RPC,
// include the service, as in "BigtableTableAdmin/GetIamPolicy".
//
// Official clients retry some codes, such as Unavailable, until their context ends. Limit such a
// fault with [Times], or remove it.
func (e *Env) Fail(method string, err error, opts ...FaultOption) *Fault {
	e.server.TB().Helper()
	return e.arm(fault.Spec{Method: method, Effect: fault.FailCall, Err: err}, opts)
}

// Latency makes calls of an RPC, named as for [Env.Fail], take d longer on the environment's clock.
// The clock advances by d before each request is served; callers do not actually wait. A call whose
// deadline is less than d away fails with DeadlineExceeded without being served. Advancing the
// clock in this way does not collect garbage.
//
// Official clients then retry reads and idempotent writes until their context ends, in real time.
// With [Times], a later attempt succeeds; without it, the call fails when its context ends.
func (e *Env) Latency(method string, d time.Duration, opts ...FaultOption) *Fault {
	e.server.TB().Helper()
	return e.arm(fault.Spec{Method: method, Effect: fault.DelayCall, Delay: d}, opts)
}

// CutReadRows ends the stream of a ReadRows call with err after the given number of complete rows
// if more rows would follow. [Times] and [Skip] count only calls with more rows.
func (e *Env) CutReadRows(rows int, err error, opts ...FaultOption) *Fault {
	e.server.TB().Helper()
	return e.arm(fault.Spec{Method: "ReadRows", Effect: fault.CutRows, Rows: rows, Err: err}, opts)
}

// Duplicate handles each request of an RPC, named as for [Env.Fail], twice in sequence and returns
// the second response. It simulates a request that the client or the network has repeated. Client
// streams are not duplicated.
func (e *Env) Duplicate(method string, opts ...FaultOption) *Fault {
	e.server.TB().Helper()
	return e.arm(fault.Spec{Method: method, Effect: fault.DuplicateCall}, opts)
}

// arm adds a fault with the options' limits; by default it affects every call.
func (e *Env) arm(spec fault.Spec, opts []FaultOption) *Fault {
	e.server.TB().Helper()
	return Arm(e.server, e.server.Lab(), spec, opts)
}
