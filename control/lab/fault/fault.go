// Package fault describes faults, stores the armed ones, and selects the calls that they affect. It
// does not depend on servers: package lab applies faults to RPCs, and lab/dynamodb applies them to
// requests.
package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/nearest"
)

// Spec describes a fault, and selects the calls that it affects.
type Spec struct {
	// DynamoDB applies the fault to requests to the DynamoDB endpoint instead of RPCs.
	DynamoDB bool
	// Method is the name of an RPC, such as "MutateRow", or of a DynamoDB operation, or "*" for
	// all. If two services have the RPC, it includes the service, as in
	// "BigtableTableAdmin/GetIamPolicy".
	Method string
	Effect Effect

	Err     error            // for FailCall and CutRows of RPCs
	Applied bool             // for FailCall: the request takes effect, but its response is lost
	Delay   time.Duration    // for DelayCall
	Rows    int              // for CutRows: the number of delivered rows
	Failure Failure          // for FailCall of DynamoDB operations
	As      *engine.Snapshot // for ReadOld

	// BehindDynamoDB applies the fault to the DynamoDB endpoint's calls instead of clients' calls.
	BehindDynamoDB bool
	Table          string // a table id, or the name of a DynamoDB table; "" for any table
	RowsTable      string // set by the lab for RPCs: the Bigtable table with the items of the DynamoDB table Table; "" for none
	Row            []byte // for RPCs; nil for any row
	// Item limits a DynamoDB fault to requests that name the item with these attributes, each in
	// JSON; nil for any item.
	Item        map[string]json.RawMessage
	Skip        int     // number of calls, of those that match and that Probability selects, before the first affected one
	Times       int     // number of affected calls; Unlimited for all
	Probability float64 // probability for each matching call, 0 to 1
}

// Failure describes a DynamoDB error.
type Failure struct {
	Code    string   // with or without "Exception"
	Message string   // "" for the service's text
	Reasons []string // for TransactionCanceled: the codes of the actions, in order
}

// Unlimited is the value of Spec.Times for a fault without a limit.
const Unlimited = -1

// Effect is the effect of a fault on a call.
type Effect uint8

// These are the effects.
const (
	FailCall Effect = iota
	DelayCall
	CutRows
	DuplicateCall
	LeaveEntries // leave entries of a batch unprocessed
	ReadOld      // return old data instead of current data
)

// Fault is an armed fault.
type Fault struct {
	set  *Set
	id   uint64
	spec Spec

	mu    sync.Mutex // guards all below
	skip  int
	times int // Unlimited: no limit
	rand  *rand.Rand
	hits  int
}

// ID returns the number that identifies the fault in its set.
func (f *Fault) ID() uint64 { return f.id }

// Spec returns the spec of the fault. It is shared; callers must not change it.
func (f *Fault) Spec() *Spec { return &f.spec }

// Hits returns the number of calls that the fault has affected.
func (f *Fault) Hits() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hits
}

type answerKey struct{}

// With returns a context for the report of a request that f answered.
func With(ctx context.Context, f *Fault) context.Context {
	return context.WithValue(ctx, answerKey{}, f)
}

// Of returns the fault that answered the request of a report; nil if the server did.
func Of(ctx context.Context) *Fault {
	f, _ := ctx.Value(answerKey{}).(*Fault)
	return f
}

// Remove ends the fault. It may still affect running calls.
func (f *Fault) Remove() { f.set.remove(f) }

// Strike reports whether the fault affects a call that matches its spec, and counts the call.
func (f *Fault) Strike() bool {
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

// Set holds the armed faults of a server, in the order in which they were armed. It can be read
// without a lock.
type Set struct {
	seed uint64

	mu     sync.Mutex // serializes changes of active
	made   uint64     // the number of faults ever armed; guarded by mu
	active atomic.Pointer[[]*Fault]
}

// NewSet returns an empty set. seed seeds the random numbers of each of its faults.
func NewSet(seed uint64) *Set { return &Set{seed: seed} }

// Arm adds a fault. It returns an error if the probability is not from 0 to 1; the caller checks
// the rest of the spec.
func (s *Set) Arm(spec Spec) (*Fault, error) {
	if p := spec.Probability; p < 0 || p > 1 || math.IsNaN(p) {
		return nil, fmt.Errorf("the probability is %v, want 0 to 1", p)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &Fault{set: s, spec: spec, skip: spec.Skip, times: spec.Times, rand: rand.New(rand.NewPCG(s.seed, s.made))}
	s.made++
	f.id = s.made
	s.store(append(slices.Clone(s.All()), f))
	return f, nil
}

// All returns the armed faults. The slice is shared; callers must not change it.
func (s *Set) All() []*Fault {
	if p := s.active.Load(); p != nil {
		return *p
	}
	return nil
}

// Clear removes all faults.
func (s *Set) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store(nil)
}

func (s *Set) remove(f *Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store(slices.DeleteFunc(slices.Clone(s.All()), func(other *Fault) bool { return other == f }))
}

func (s *Set) store(active []*Fault) { s.active.Store(&active) }

// ErrApplied is returned for a spec that sets Applied with an effect other than FailCall.
var ErrApplied = errors.New("applied works only with failures of calls, not with other effects")

// Near returns text that suggests the known name closest to a wrong name, or "" if no name is
// close.
func Near(name string, known []string) string {
	if found := nearest.To(name, known); found != "" {
		return ", nearest to " + found
	}
	return ""
}
