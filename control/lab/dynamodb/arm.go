package dynamodb

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/control/lab"
	"github.com/tabletop-emu/tabletop/control/lab/fault"
	"github.com/tabletop-emu/tabletop/facade"
)

// Arm starts the fault that a spec describes, which affects requests until it is removed; see
// lab.Lab.Arm. It returns an error if the spec cannot affect any request.
func (e *Endpoint) Arm(spec fault.Spec) (*fault.Fault, error) {
	if e.lab.Options().Faultless {
		return nil, lab.ErrFaultless
	}
	spec.DynamoDB = true
	err := check(&spec)
	if err == nil {
		spec.Item, err = canonical(spec.Item)
	}
	if err != nil {
		return nil, err
	}
	return e.faults.Arm(spec)
}

// Faults returns the armed faults of requests, in the order in which they were armed.
func (e *Endpoint) Faults() []*fault.Fault { return e.faults.All() }

// Reset implements lab.Endpoint. It also drops the layouts that Map added, because a server creates
// the tables of its layouts.
func (e *Endpoint) Reset() {
	e.faults.Clear()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.opts.Mappings = e.given
}

func check(s *fault.Spec) error {
	known := s.Method == "*" || slices.Contains(operations(), s.Method)
	switch {
	case s.Effect == fault.LeaveEntries && s.Method != "BatchWriteItem" && s.Method != "BatchGetItem":
		return fmt.Errorf("unprocessed entries need BatchWriteItem or BatchGetItem, not %q", s.Method)
	case s.Effect == fault.ReadOld && s.As == nil:
		return fmt.Errorf("stale reads of %s need a snapshot, which is nil", s.Method)
	case s.Effect == fault.ReadOld && s.Method != "*" && !slices.Contains(stale, s.Method):
		return fmt.Errorf("stale reads are not possible for %q, want one of %s", s.Method, strings.Join(stale, ", "))
	case s.Effect == fault.DelayCall && s.Delay < 0:
		return fmt.Errorf("cannot delay %s by %v, which is negative", s.Method, s.Delay)
	case s.Effect == fault.CutRows || s.Effect == fault.DuplicateCall:
		return fmt.Errorf("the effect chosen for %q applies only to RPCs", s.Method)
	case !known:
		return fmt.Errorf("unknown DynamoDB operation %q%s", s.Method, fault.Near(s.Method, operations()))
	case s.Row != nil || s.BehindDynamoDB:
		return errors.New("OnRow and BehindDynamoDB select RPCs of Bigtable; a DynamoDB fault can only be limited to a table or an item")
	case s.Applied && s.Effect != fault.FailCall:
		return fault.ErrApplied
	case s.Effect == fault.FailCall:
		return checkFailure(s.Method, s.Failure)
	case s.Failure.Code != "" || s.Failure.Message != "" || s.Failure.Reasons != nil:
		return errors.New("a code, a message and reasons apply only to failures of requests")
	}
	return nil
}

// canonical returns an item in the form that comparisons use: each value as json.Marshal
// writes it.
func canonical(item map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	if item == nil {
		return nil, nil
	}
	out := make(map[string]json.RawMessage, len(item))
	for name, v := range item {
		var value any
		err := json.Unmarshal(v, &value)
		if err == nil {
			out[name], err = json.Marshal(value)
		}
		if err != nil {
			return nil, fmt.Errorf("attribute %q of the item is not JSON: %w", name, err)
		}
	}
	return out, nil
}

// operations returns the names of DynamoDB's operations.
func operations() (all []string) {
	for _, op := range facade.Operations() {
		all = append(all, op.Name)
	}
	return all
}
