package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/nearest"
)

// Spec says what goes wrong, and with which calls.
type Spec struct {
	// DynamoDB strikes requests to the DynamoDB door instead of RPCs.
	DynamoDB bool
	// Method is the RPC's name, as in "MutateRow", with its service if two services
	// have it, as in "BigtableTableAdmin/GetIamPolicy", or the operation of DynamoDB; "*" for all.
	Method string
	Effect Effect

	Err     error         // of FailCall and CutRows, of RPCs
	Applied bool          // of FailCall: the answer is lost, the request is not
	Delay   time.Duration // of DelayCall
	Rows    int           // of CutRows: so many are delivered
	Failure Failure       // of FailCall, of DynamoDB
	As      *Snapshot     // of ReadOld

	// BehindDynamoDB strikes the DynamoDB door's calls instead of the clients'.
	BehindDynamoDB bool
	Table          string // an id, or the name of a DynamoDB table; "" for any
	Row            []byte // of RPCs: nil for any
	// Item limits a fault of DynamoDB to requests that name the item with these
	// attributes, each as the JSON of its value; nil for any.
	Item        map[string]json.RawMessage
	Skip        int     // so many calls that would be struck pass
	Times       int     // so many are struck; Unlimited for all
	Probability float64 // of each, 0 to 1
}

// Unlimited is the number of Times without a bound.
const Unlimited = -1

// Effect is what happens to a call.
type Effect uint8

// The effects.
const (
	FailCall Effect = iota
	DelayCall
	CutRows
	DuplicateCall
	LeaveEntries // of a batch
	ReadOld      // instead of what is there
)

// Fault is what a Spec says, armed.
type Fault struct {
	set  *faults
	id   uint64
	spec Spec
	item map[string]string // Spec.Item as it is compared; nil for any

	mu    sync.Mutex // guards all below
	skip  int
	times int // -1: no bound
	rand  *rand.Rand
	hits  int
}

// holds tells whether the fault is for the row with that key.
func (f *Fault) holds(key []byte) bool { return bytes.Equal(f.spec.Row, key) }

// ID returns the number of the fault among those of its door.
func (f *Fault) ID() uint64 { return f.id }

// Spec returns what the fault was armed with.
func (f *Fault) Spec() Spec { return f.spec }

// Hits returns how many calls the fault has affected.
func (f *Fault) Hits() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hits
}

// Remove ends the fault. Calls under way may still meet it.
func (f *Fault) Remove() { f.set.remove(f) }

// Arm makes what a spec says go wrong, from now on until it is removed. Faults apply in the order in which
// they were armed; a call that one of them has failed does not reach the later ones.
// Errors: a spec that says nothing that can happen.
func (l *Lab) Arm(spec Spec) (*Fault, error) {
	if l.opts.Faultless {
		return nil, errors.New("no faults can be armed here")
	}
	f := &Fault{set: l.faults, spec: spec, skip: spec.Skip, times: spec.Times}
	check := f.checkRPC
	if spec.DynamoDB {
		f.set, check = l.door.faults, f.checkDynamoDB
	}
	if p := spec.Probability; p < 0 || p > 1 || math.IsNaN(p) {
		return nil, fmt.Errorf("a probability of %v: want one from 0 to 1", p)
	}
	if err := check(); err != nil {
		return nil, err
	}
	f.set.add(f)
	return f, nil
}

// Faults returns the faults of both doors that are armed, in their order.
func (l *Lab) Faults() []*Fault { return slices.Concat(l.faults.all(), l.door.faults.all()) }

func (f *Fault) checkRPC() error {
	switch s := f.spec; {
	case s.Effect == FailCall && s.Err == nil:
		return fmt.Errorf("to fail %s: the error is nil", s.Method)
	case s.Effect == CutRows && (s.Err == nil || s.Rows < 0):
		return fmt.Errorf("to cut ReadRows after %d rows: want a number of rows and an error", s.Rows)
	case s.Effect == DelayCall && s.Delay < 0:
		return fmt.Errorf("to delay %s: %v is negative", s.Method, s.Delay)
	case s.Effect == LeaveEntries || s.Effect == ReadOld:
		return fmt.Errorf("a fault of %q: its effect is one of DynamoDB", s.Method)
	case s.Item != nil:
		return errors.New("an item limits faults of DynamoDB only")
	case !knownMethod(s.Method):
		return fmt.Errorf("no RPC is named %q%s", s.Method, near(s.Method, methods()))
	case s.Applied && s.Effect != FailCall:
		return errApplied
	}
	return nil
}

func (f *Fault) checkDynamoDB() error {
	s := f.spec
	known := s.Method == "*" || slices.Contains(operations(), s.Method)
	switch {
	case s.Effect == FailCall && failureAnswers[s.Failure].code == "":
		return fmt.Errorf("to fail %s: no failure has the number %d", s.Method, s.Failure)
	case s.Effect == LeaveEntries && s.Method != "BatchWriteItem" && s.Method != "BatchGetItem":
		return fmt.Errorf("to leave entries unprocessed: %q is neither BatchWriteItem nor BatchGetItem", s.Method)
	case s.Effect == ReadOld && s.As == nil:
		return fmt.Errorf("to make %s stale: the snapshot is nil", s.Method)
	case s.Effect == ReadOld && s.Method != "*" && !slices.Contains(stale, s.Method):
		return fmt.Errorf("to make reads stale: %q is none of %s", s.Method, strings.Join(stale, ", "))
	case s.Effect == DelayCall || s.Effect == CutRows || s.Effect == DuplicateCall:
		return fmt.Errorf("a fault of %q: its effect is one of RPCs", s.Method)
	case !known:
		return fmt.Errorf("no DynamoDB operation is named %q%s", s.Method, near(s.Method, operations()))
	case s.Effect == FailCall && s.Method != "*" && !s.Failure.meets(s.Method):
		return fmt.Errorf("%s never meets a %s", s.Method, failureAnswers[s.Failure].code)
	case s.Row != nil || s.BehindDynamoDB:
		return errors.New("neither a row nor calls behind the door limit faults of DynamoDB")
	case s.Applied && s.Effect != FailCall:
		return errApplied
	}
	if s.Item == nil {
		return nil
	}
	f.item = map[string]string{}
	for name, v := range s.Item {
		var value any
		if err := json.Unmarshal(v, &value); err != nil {
			return fmt.Errorf("attribute %q of the item is not JSON: %w", name, err)
		}
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		f.item[name] = string(text)
	}
	return nil
}

var errApplied = errors.New("applied says how a call fails, and nothing of other effects")

// knownMethod tells whether a method is one of the server's.
func knownMethod(method string) bool {
	return method == "*" || slices.ContainsFunc(emu.Support(), func(row emu.Feature) bool {
		return !inMessage[row.Group] && (row.Name == method || row.Group+"/"+row.Name == method)
	})
}

// methods are the names of the RPCs, without their services.
func methods() (all []string) {
	for _, row := range emu.Support() {
		if !inMessage[row.Group] {
			all = append(all, row.Name)
		}
	}
	return all
}

// operations are the names of DynamoDB's operations.
func operations() (all []string) {
	for _, op := range facade.Operations() {
		all = append(all, op.Name)
	}
	return all
}

// near names the name that is nearest, where one is near.
func near(name string, known []string) string {
	if found := nearest.To(name, known); found != "" {
		return ", nearest to " + found
	}
	return ""
}

// inMessage are the groups of the support table that are no services.
var inMessage = map[string]bool{"RowFilter": true, "Mutation": true, "GcRule": true}

// faults are those of a door.
type faults struct {
	clock *clock.Clock
	seed  uint64

	mu     sync.Mutex // serializes changes of active
	made   uint64     // how many there ever were; guarded by mu
	active atomic.Pointer[[]*Fault]
}

func newFaults(o Options) *faults { return &faults{clock: o.Clock, seed: o.Seed} }

func (s *faults) add(f *Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.rand = rand.New(rand.NewPCG(s.seed, s.made))
	s.made++
	f.id = s.made
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
		if f.spec.BehindDynamoDB == behind && (f.spec.Method == "*" || strings.HasSuffix(fullMethod, "/"+f.spec.Method) ||
			strings.HasSuffix(fullMethod, "."+f.spec.Method)) {
			out = append(out, f)
		}
	}
	return out
}

// matches tells whether the fault's table and row are those of a request.
func (f *Fault) matches(req any) bool {
	if f.spec.Table != "" && !isOnTable(req, f.spec.Table) {
		return false
	}
	if f.spec.Row == nil {
		return true
	}
	switch req := req.(type) {
	case *btpb.ReadRowsRequest:
		set := req.GetRows()
		return len(set.GetRowKeys())+len(set.GetRowRanges()) == 0 ||
			slices.ContainsFunc(set.GetRowKeys(), f.holds) ||
			slices.ContainsFunc(set.GetRowRanges(), func(r *btpb.RowRange) bool { return rangeHolds(r, f.spec.Row) })
	case *btpb.MutateRowsRequest:
		return slices.ContainsFunc(req.GetEntries(), func(e *btpb.MutateRowsRequest_Entry) bool { return f.holds(e.GetRowKey()) })
	case interface{ GetRowKey() []byte }:
		return f.holds(req.GetRowKey())
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
	if f.times == 0 || f.spec.Probability < 1 && f.rand.Float64() >= f.spec.Probability {
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

// wait lets d pass on the clock, or what is left of the call's
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
