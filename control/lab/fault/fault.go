// Package fault describes faults, keeps the armed ones, and selects the calls that they
// affect. It does not know servers: package lab applies faults to RPCs, lab/dynamodb to
// requests.
package fault

import (
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
	// Method is the RPC's name, as in "MutateRow", with its service if two services
	// have it, as in "BigtableTableAdmin/GetIamPolicy", or the operation of DynamoDB; "*" for all.
	Method string
	Effect Effect

	Err     error            // of FailCall and CutRows, of RPCs
	Applied bool             // of FailCall: the request takes effect, but its answer is lost
	Delay   time.Duration    // of DelayCall
	Rows    int              // of CutRows: the number of rows delivered
	Failure Failure          // of FailCall, of DynamoDB
	As      *engine.Snapshot // of ReadOld

	// BehindDynamoDB applies the fault to the DynamoDB endpoint's calls instead of the
	// clients'.
	BehindDynamoDB bool
	Table          string // an id, or the name of a DynamoDB table; "" for any
	Row            []byte // of RPCs: nil for any
	// Item limits a fault of DynamoDB to requests that name the item with these
	// attributes, each as the JSON of its value; nil for any.
	Item        map[string]json.RawMessage
	Skip        int     // number of matching calls that pass before the first affected one
	Times       int     // number of affected calls; Unlimited for all
	Probability float64 // of each, 0 to 1
}

// Failure is an error of DynamoDB.
type Failure struct {
	Code    string   // with or without "Exception"
	Message string   // "" for the text of the service
	Reasons []string // of TransactionCanceled: the codes for the actions, in their order
}

// Unlimited as Times means no limit.
const Unlimited = -1

// Effect is the effect of a fault on a call.
type Effect uint8

// The effects.
const (
	FailCall Effect = iota
	DelayCall
	CutRows
	DuplicateCall
	LeaveEntries // of a batch
	ReadOld      // instead of current data
)

// Fault is the armed fault of a Spec.
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

// ID returns the number of the fault in its set.
func (f *Fault) ID() uint64 { return f.id }

// Spec returns the spec of the fault. It is shared: do not change it.
func (f *Fault) Spec() *Spec { return &f.spec }

// Hits returns the number of affected calls.
func (f *Fault) Hits() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hits
}

// Remove ends the fault. Running calls may still meet it.
func (f *Fault) Remove() { f.set.remove(f) }

// Strike decides whether a call that matches the spec is affected, and counts it.
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

// Set holds the armed faults of a server, in the order in which they were armed. Reading
// it takes no lock.
type Set struct {
	seed uint64

	mu     sync.Mutex // serializes changes of active
	made   uint64     // the number of faults ever armed; guarded by mu
	active atomic.Pointer[[]*Fault]
}

// NewSet returns an empty set. The random sequence of each of its faults begins at seed.
func NewSet(seed uint64) *Set { return &Set{seed: seed} }

// Arm adds a fault. Errors: a probability outside 0 to 1; the caller checks the rest of the
// spec.
func (s *Set) Arm(spec Spec) (*Fault, error) {
	if p := spec.Probability; p < 0 || p > 1 || math.IsNaN(p) {
		return nil, fmt.Errorf("a probability of %v: want one from 0 to 1", p)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &Fault{set: s, spec: spec, skip: spec.Skip, times: spec.Times, rand: rand.New(rand.NewPCG(s.seed, s.made))}
	s.made++
	f.id = s.made
	s.store(append(slices.Clone(s.All()), f))
	return f, nil
}

// All returns the armed faults. The slice is shared: do not change it.
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

// ErrApplied is returned for a spec that is Applied without FailCall.
var ErrApplied = errors.New("applied modifies failures of calls, and has no meaning for other effects")

// Near returns text that suggests the known name nearest to a wrong name, "" if no name is
// near.
func Near(name string, known []string) string {
	if found := nearest.To(name, known); found != "" {
		return ", nearest to " + found
	}
	return ""
}
