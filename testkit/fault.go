package testkit

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/internal/clock"
)

// Fault is something that goes wrong with some of the calls of an RPC, from
// the call of [Env.Fail], [Env.Latency], [Env.CutReadRows] or [Env.Duplicate]
// that returned it until Remove or the end of the environment; or with those of
// a DynamoDB operation, from [Env.FailDynamoDB], [Env.Unprocessed] or
// [Env.StaleReads] on.
//
// By default it applies to every call that Bigtable clients make, whether in
// this process or through a port; a [FaultOption] narrows that. Faults apply
// in the order in which they were made; a call that one of them has failed
// does not reach the later ones.
type Fault struct {
	set    *faults
	method string // "ReadRows", "Bigtable/ReadRows" or "*"
	behind bool   // strikes the DynamoDB door's calls instead of the clients'
	table  string // "" for any
	row    func(key []byte) bool
	span   func(*btpb.RowRange) bool // whether a range that is read holds such a row

	effect  effect
	err     error
	applied bool          // the answer is lost, the request is not
	delay   time.Duration // effect latency
	rows    int           // effect cut: that many are delivered

	// Of faults of DynamoDB. Their method is the operation.
	failure DynamoDBFailure   // effect failCall
	old     *Snapshot         // effect readOld
	item    map[string]string // nil for any

	mu          sync.Mutex // guards all below
	skip        int
	times       int // -1: no bound
	probability float64
	rand        *rand.Rand
	hits        int
}

type effect uint8

const (
	failCall effect = iota
	delayCall
	cutRows
	duplicateCall
	leaveEntries // of a batch
	readOld      // instead of what is there
)

// FaultOption narrows which calls a fault affects, or says how.
type FaultOption func(*Fault)

// OnTable limits a fault to calls on the Bigtable table with that id, or on
// the DynamoDB table with that name.
func OnTable(id string) FaultOption { return func(f *Fault) { f.table = id } }

// OnRow limits a fault to calls that name the row with that key: that write
// it, or read a set of rows that contains it. Env.Fail of MutateRows fails the
// entries of the row and lets the others through.
func OnRow(key string) FaultOption {
	return func(f *Fault) {
		k := []byte(key)
		f.row = func(other []byte) bool { return bytes.Equal(k, other) }
		f.span = func(r *btpb.RowRange) bool { return rangeHolds(r, k) }
	}
}

// Times limits a fault to n calls. Default: no limit.
func Times(n int) FaultOption { return func(f *Fault) { f.times = n } }

// Skip lets the first n calls that a fault would affect pass.
func Skip(n int) FaultOption { return func(f *Fault) { f.skip = n } }

// WithProbability applies a fault to each call with probability p, from 0 to 1.
// The draws begin at [WithSeed] for every fault separately: the same calls in
// the same order meet the same faults.
func WithProbability(p float64) FaultOption { return func(f *Fault) { f.probability = p } }

// Applied makes Env.Fail lose the response instead of the request: the call is
// carried out, and the client gets the error. This simulates a write whose
// connection broke too late.
func Applied() FaultOption { return func(f *Fault) { f.applied = true } }

// BehindDynamoDB applies a fault to the calls that the DynamoDB door makes to
// the Bigtable behind it, and not to those of Bigtable clients.
func BehindDynamoDB() FaultOption { return func(f *Fault) { f.behind = true } }

// Fail makes calls of an RPC fail with err, usually a gRPC status, before they
// do anything. method is the RPC's name, as in "MutateRow", with its service
// if two services have it, as in "BigtableTableAdmin/GetIamPolicy", or "*" for
// all.
//
// Official clients retry some codes, such as Unavailable, for as long as their
// context allows: limit such a fault with [Times], or remove it.
func (e *Env) Fail(method string, err error, opts ...FaultOption) *Fault {
	e.tb.Helper()
	if err == nil {
		e.tb.Fatalf("testkit: Fail(%q): the error is nil", method)
	}
	return e.addFault(&Fault{method: method, effect: failCall, err: err}, opts)
}

// Latency makes calls of an RPC, named as for [Env.Fail], take d longer, on
// the environment's clock: the clock is advanced by d before the request is
// served, and nobody waits. A call whose deadline is less than d away fails
// with DeadlineExceeded at that moment, unserved. This does not collect
// garbage.
//
// Official clients send reads, and writes that may be sent twice, again after that
// until their context ends, in real time. With [Times] the first attempts are late
// and a later one succeeds; without it the call fails when its context ends.
func (e *Env) Latency(method string, d time.Duration, opts ...FaultOption) *Fault {
	e.tb.Helper()
	if d < 0 {
		e.tb.Fatalf("testkit: Latency(%q): %v is negative", method, d)
	}
	return e.addFault(&Fault{method: method, effect: delayCall, delay: d}, opts)
}

// CutReadRows ends the stream of a ReadRows call with err once it has
// delivered this many whole rows, if there are more. Only such calls count for
// [Times] and [Skip].
func (e *Env) CutReadRows(rows int, err error, opts ...FaultOption) *Fault {
	e.tb.Helper()
	if err == nil || rows < 0 {
		e.tb.Fatalf("testkit: CutReadRows(%d, %v): want a number of rows and an error", rows, err)
	}
	return e.addFault(&Fault{method: "ReadRows", effect: cutRows, rows: rows, err: err}, opts)
}

// Duplicate delivers the request of calls of an RPC, named as for [Env.Fail],
// twice, one after the other: the client gets the second response. This
// simulates a request that a client or a network has sent again. Streams from
// the client are not duplicated.
func (e *Env) Duplicate(method string, opts ...FaultOption) *Fault {
	e.tb.Helper()
	return e.addFault(&Fault{method: method, effect: duplicateCall}, opts)
}

// Hits returns how many calls the fault has affected.
func (f *Fault) Hits() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hits
}

// Remove ends the fault. Calls under way may still meet it.
func (f *Fault) Remove() { f.set.remove(f) }

func (e *Env) addFault(f *Fault, opts []FaultOption) *Fault {
	e.tb.Helper()
	f.set = e.faults
	e.apply(opts, f)
	if f.item != nil {
		e.tb.Fatalf("testkit: OnItem is an option of faults of DynamoDB")
	}
	if !knownMethod(f.method) {
		e.tb.Fatalf("testkit: no RPC is named %q", f.method)
	}
	if f.applied && f.effect != failCall {
		e.tb.Fatalf("testkit: Applied is an option of Fail")
	}
	e.faults.add(f)
	return f
}

// apply lets the options narrow a fault that strikes every call.
func (e *Env) apply(opts []FaultOption, f *Fault) {
	e.tb.Helper()
	f.times, f.probability = -1, 1
	for _, o := range opts {
		o(f)
	}
	if p := f.probability; p < 0 || p > 1 || math.IsNaN(p) {
		e.tb.Fatalf("testkit: WithProbability(%v): want a probability from 0 to 1", p)
	}
}

// knownMethod tells whether a method is one of the server's.
func knownMethod(method string) bool {
	return method == "*" || slices.ContainsFunc(emu.Support(), func(row emu.Feature) bool {
		return !inMessage[row.Group] && (row.Name == method || row.Group+"/"+row.Name == method)
	})
}

// inMessage are the groups of the support table that are no services.
var inMessage = map[string]bool{"RowFilter": true, "Mutation": true, "GcRule": true}

// faults are those of an environment.
type faults struct {
	clock *clock.Clock
	seed  uint64

	mu     sync.Mutex // serializes changes of active
	made   uint64     // how many there ever were; guarded by mu
	active atomic.Pointer[[]*Fault]
}

func (s *faults) add(f *Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.rand = rand.New(rand.NewPCG(s.seed, s.made))
	s.made++
	s.store(append(slices.Clone(s.all()), f))
}

func (s *faults) remove(f *Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store(slices.DeleteFunc(slices.Clone(s.all()), func(other *Fault) bool { return other == f }))
}

func (s *faults) removeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store(nil)
}

func (s *faults) store(active []*Fault) { s.active.Store(&active) }

func (s *faults) all() []*Fault {
	if p := s.active.Load(); p != nil {
		return *p
	}
	return nil
}

// of returns the faults that may strike calls of a method, by its full name,
// "/google.bigtable.v2.Bigtable/ReadRows".
func (s *faults) of(fullMethod string, behind bool) []*Fault {
	var out []*Fault
	for _, f := range s.all() {
		if f.behind == behind && (f.method == "*" || strings.HasSuffix(fullMethod, "/"+f.method) ||
			strings.HasSuffix(fullMethod, "."+f.method)) {
			out = append(out, f)
		}
	}
	return out
}

// matches tells whether the fault's table and row are those of a request.
func (f *Fault) matches(req any) bool {
	if f.table != "" && !isOnTable(req, f.table) {
		return false
	}
	if f.row == nil {
		return true
	}
	switch req := req.(type) {
	case *btpb.ReadRowsRequest:
		set := req.GetRows()
		return len(set.GetRowKeys())+len(set.GetRowRanges()) == 0 ||
			slices.ContainsFunc(set.GetRowKeys(), f.row) || slices.ContainsFunc(set.GetRowRanges(), f.span)
	case *btpb.MutateRowsRequest:
		return slices.ContainsFunc(req.GetEntries(), func(e *btpb.MutateRowsRequest_Entry) bool { return f.row(e.GetRowKey()) })
	case interface{ GetRowKey() []byte }:
		return f.row(req.GetRowKey())
	}
	return false
}

// isOnTable tells whether a request is on a table, or on something below it.
func isOnTable(req any, id string) bool {
	var name string
	switch req := req.(type) {
	case interface{ GetTableName() string }:
		name = req.GetTableName()
	case interface{ GetTableId() string }:
		return req.GetTableId() == id
	case interface{ GetName() string }:
		name = req.GetName()
	}
	if name == "" {
		if view, ok := req.(interface{ GetAuthorizedViewName() string }); ok {
			name = view.GetAuthorizedViewName()
		}
	}
	_, after, _ := strings.Cut(name, "/tables/")
	got, _, _ := strings.Cut(after, "/")
	return got == id
}

// rangeHolds tells whether a row range holds a key. A bound that is empty is
// none.
func rangeHolds(r *btpb.RowRange, key []byte) bool {
	switch start := r.GetStartKey().(type) {
	case *btpb.RowRange_StartKeyClosed:
		if bytes.Compare(key, start.StartKeyClosed) < 0 {
			return false
		}
	case *btpb.RowRange_StartKeyOpen:
		if bytes.Compare(key, start.StartKeyOpen) <= 0 && len(start.StartKeyOpen) > 0 {
			return false
		}
	}
	switch end := r.GetEndKey().(type) {
	case *btpb.RowRange_EndKeyClosed:
		return len(end.EndKeyClosed) == 0 || bytes.Compare(key, end.EndKeyClosed) <= 0
	case *btpb.RowRange_EndKeyOpen:
		return len(end.EndKeyOpen) == 0 || bytes.Compare(key, end.EndKeyOpen) < 0
	}
	return true
}

// strike decides whether a call that fits is struck, and counts it.
func (f *Fault) strike() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.times == 0 || f.probability < 1 && f.rand.Float64() >= f.probability {
		return false
	}
	if f.skip > 0 {
		f.skip--
		return false
	}
	if f.times > 0 {
		f.times--
	}
	f.hits++
	return true
}

// wait lets d pass on the environment's clock, or what is left of the call's
// time.
func (s *faults) wait(ctx context.Context, d time.Duration) error {
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline) //nolint:forbidigo // deadlines of contexts are wall time
		if left <= d {
			s.clock.Advance(left)
			return status.Error(codes.DeadlineExceeded, context.DeadlineExceeded.Error())
		}
	}
	s.clock.Advance(d)
	return nil
}
