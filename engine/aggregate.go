package engine

import (
	"encoding/binary"
	"fmt"

	"github.com/tabletop-emu/tabletop/internal/hllpp"
)

// checkAggregate rejects an AddToCell or MergeToCell that does not fit its family.
func checkAggregate(f *Family, m *Mutation) error {
	if f.Aggregate == NoAggregate {
		return fmt.Errorf("%w: family %q is not an aggregate", ErrAggregate, f.Name)
	}
	if f.Aggregate == AggregateHLL || m.Value == nil {
		return nil
	}
	if m.Kind == AddToCell {
		return fmt.Errorf("%w: family %q takes int64 inputs, not bytes", ErrAggregate, f.Name)
	}
	if len(m.Value) != stateBytes {
		return fmt.Errorf("%w: the state for family %[3]q has %[2]d bytes, want %[4]d", ErrInvalid, len(m.Value), f.Name, stateBytes)
	}
	return nil
}

// stateBytes is the size of a state that is an int64.
const stateBytes = 8

// aggregateState is the state accumulated in a cell of an aggregate family.
type aggregateState struct {
	kind   Aggregate
	some   bool // there was an input; an empty state is never stored
	number int64
	sketch *hllpp.Sketch
}

// apply accumulates the input or the state of m. checkAggregate must have accepted m.
func (s *aggregateState) apply(m *Mutation) error {
	if m.Kind == MergeToCell {
		return s.merge(m.Value)
	}
	if s.kind != AggregateHLL {
		s.addNumber(m.Input)
		return nil
	}
	sketch := s.sketch
	if sketch == nil {
		sketch = hllpp.New(hllpp.Int64)
		if m.Value != nil {
			sketch = hllpp.New(hllpp.Bytes)
		}
	}
	var err error
	if m.Value != nil {
		err = sketch.AddBytes(m.Value)
	} else {
		err = sketch.AddInt64(m.Input)
	}
	if err != nil {
		return fmt.Errorf("%w: column %q of family %q: %w", ErrAggregate, m.Qualifier, m.Family, err)
	}
	s.some, s.sketch = true, sketch
	return nil
}

// Accumulate returns the state of a cell after an AddToCell or MergeToCell in a family of the given
// kind. A nil state means an empty cell. Errors: ErrAggregate, ErrInvalid.
func Accumulate(kind Aggregate, state []byte, m *Mutation) ([]byte, error) {
	s := &aggregateState{kind: kind}
	if state != nil {
		if err := s.merge(state); err != nil {
			return nil, err
		}
	}
	if err := s.apply(m); err != nil {
		return nil, err
	}
	return s.value(), nil
}

// merge accumulates a stored state.
func (s *aggregateState) merge(state []byte) error {
	if s.kind != AggregateHLL {
		n, ok := counterValue(state)
		if !ok {
			return fmt.Errorf("%w: the aggregate state has %d bytes, want %d", ErrInvalid, len(state), stateBytes)
		}
		s.addNumber(n)
		return nil
	}
	sketch, err := hllpp.Unmarshal(state)
	if err == nil && s.sketch != nil {
		err = s.sketch.Merge(sketch)
		sketch = s.sketch
	}
	if err != nil {
		return fmt.Errorf("%w: aggregate state: %w", ErrInvalid, err)
	}
	s.some, s.sketch = true, sketch
	return nil
}

// addNumber accumulates the input n or the state n: numeric kinds treat both alike.
func (s *aggregateState) addNumber(n int64) {
	switch {
	case !s.some:
		s.number = n
	case s.kind == AggregateMin:
		s.number = min(s.number, n)
	case s.kind == AggregateMax:
		s.number = max(s.number, n)
	default:
		s.number += n
	}
	s.some = true
}

// value returns the state in its stored form.
func (s *aggregateState) value() []byte {
	if s.kind == AggregateHLL {
		return s.sketch.Marshal()
	}
	return binary.BigEndian.AppendUint64(nil, uint64(s.number))
}
