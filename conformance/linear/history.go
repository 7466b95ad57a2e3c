package linear

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/anishathalye/porcupine"
)

// Known is a client's knowledge of a call's outcome.
type Known uint8

// The degrees of knowledge about a call.
const (
	Answered Known = iota // it has an answer
	Lost                  // it took effect, but its answer was lost
	Unknown               // it took effect, will take effect, or never will
	Refused               // it had no effect
)

// History records the calls of clients and their outcomes. Its clock counts calls and returns,
// so the order needs no time of day. It is safe for concurrent use.
type History struct {
	clients int
	now     atomic.Int64

	mu  sync.Mutex // guards ops
	ops []porcupine.Operation
}

// New returns an empty history of the given number of clients, which are numbered from 0.
func New(clients int) *History { return &History{clients: clients} }

// Record makes a call and records it. call returns the output, which the model gets with the
// knowledge about it. copies is the number of deliveries of the call; only the last one is
// answered.
func (h *History) Record(client, copies int, input any, call func() (any, Known)) {
	began := h.now.Add(1)
	output, k := call()
	if k == Refused {
		return
	}
	ended := h.now.Add(1)
	if k == Unknown {
		ended = math.MaxInt64
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range copies {
		result := Result{Output: output, Known: k}
		if i > 0 && k == Answered {
			result.Known = Lost
		}
		// A client has one call at a time, so copies belong to other clients.
		h.ops = append(h.ops, porcupine.Operation{ClientId: client + i*h.clients, Input: input, Call: began, Output: result, Return: ended})
	}
}

// Result is the output of an operation in a history.
type Result struct {
	Output any
	Known  Known
}

// Model returns a checker's model of a function do, which applies an input to a state. It
// returns the new state and the client's output. part, if not nil, returns the part of the
// state that an input concerns, which begins as initial: each input concerns one part.
func Model[State comparable](initial State, do func(State, any) (State, any), part func(input any) string) porcupine.Model {
	n := porcupine.NondeterministicModel{
		Init: func() []any { return []any{initial} },
		Step: func(state, input, out any) []any {
			next, want := do(state.(State), input)
			r := out.(Result)
			switch {
			case r.Known == Unknown:
				return []any{state, next}
			case r.Known == Answered && r.Output != want:
				return nil
			}
			return []any{next}
		},
		DescribeOperation: func(input, out any) string { return fmt.Sprintf("%+v: %+v", input, out) },
	}
	m := n.ToModel()
	if part == nil {
		return m
	}
	m.Partition = func(ops []porcupine.Operation) [][]porcupine.Operation {
		parts := map[string][]porcupine.Operation{}
		for _, op := range ops {
			id := part(op.Input)
			parts[id] = append(parts[id], op)
		}
		var out [][]porcupine.Operation
		for _, ops := range parts {
			out = append(out, ops)
		}
		return out
	}
	return m
}

// Count returns the number of all operations, and of those with the knowledge k.
func (h *History) Count(k Known) (all, known int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, op := range h.ops {
		if op.Output.(Result).Known == k {
			known++
		}
	}
	return len(h.ops), known
}

// Check returns an error if the history has no sequential order, and writes a picture of the failure to the file. Each
// call without an answer can double the time of the search.
func (h *History) Check(m porcupine.Model, picture string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	const unlimited = 0
	verdict, info := porcupine.CheckOperationsVerbose(m, h.ops, unlimited)
	if verdict == porcupine.Ok {
		return nil
	}
	if err := porcupine.VisualizePath(m, info, picture); err != nil {
		return fmt.Errorf("a history of %d operations is not linearizable, and its picture could not be written: %w", len(h.ops), err)
	}
	return fmt.Errorf("a history of %d operations is not linearizable; see %s", len(h.ops), picture)
}
