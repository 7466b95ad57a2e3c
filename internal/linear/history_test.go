package linear

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"go.uber.org/goleak"
)

var (
	seed  = flag.Uint64("linear.seed", 1, "begins the random sequences of the clients and of the faults")
	calls = flag.Int("linear.calls", 60, "how many calls each client makes")
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// The Bigtable client's metrics library starts one when it is imported.
		goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}

// clients is how many make calls at the same time.
const clients = 5

// known says what a client knows of a call that it made.
type known uint8

const (
	answered known = iota // it has an answer
	lost                  // it was done, the answer was lost
	unknown               // it was done, will be, or never is
	refused               // it was not done
)

// history is what clients have seen. Its clock counts calls and returns:
// what is before what needs no time of day.
type history struct {
	now atomic.Int64

	mu  sync.Mutex // guards ops
	ops []porcupine.Operation
}

// record makes a call and notes it. call returns the output, which the model
// is given with how much of it is known. copies is how often the call is
// delivered; only the last one is answered.
func (h *history) record(client, copies int, input any, call func() (any, known)) {
	began := h.now.Add(1)
	output, k := call()
	if k == refused {
		return
	}
	ended := h.now.Add(1)
	if k == unknown {
		ended = math.MaxInt64
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range copies {
		result := result{output: output, known: k}
		if i > 0 && k == answered {
			result.known = lost
		}
		// A client has one call at a time, so that the copies are others'.
		h.ops = append(h.ops, porcupine.Operation{ClientId: client + i*clients, Input: input, Call: began, Output: result, Return: ended})
	}
}

// result is the output of an operation of a history.
type result struct {
	output any
	known  known
}

// model makes a checker's model of a function that does input to a state. It
// returns the new state and what the client is to see.
func model[State comparable](initial State, do func(State, any) (State, any)) porcupine.Model {
	n := porcupine.NondeterministicModel{
		Init: func() []any { return []any{initial} },
		Step: func(state, input, out any) []any {
			next, want := do(state.(State), input)
			r := out.(result)
			switch {
			case r.known == unknown:
				return []any{state, next}
			case r.known == answered && r.output != want:
				return nil
			}
			return []any{next}
		},
		DescribeOperation: func(input, out any) string { return fmt.Sprintf("%+v: %+v", input, out) },
	}
	return n.ToModel()
}

// run lets the clients make their calls, each with a random sequence of its
// own.
func (h *history) run(step func(client int, rng *rand.Rand)) {
	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(*seed, uint64(client)))
			for range *calls {
				step(client, rng)
			}
		})
	}
	wg.Wait()
}

// check fails the test if the history could not have happened one after the
// other. A picture of what was found is left in a file.
func (h *history) check(t *testing.T, m porcupine.Model) {
	t.Helper()
	count := map[known]int{}
	for _, op := range h.ops {
		count[op.Output.(result).known]++
	}
	t.Logf("seed %d: %d operations, of them %d with a lost answer or a copy, %d unknown", *seed, len(h.ops), count[lost], count[unknown])
	verdict, info := porcupine.CheckOperationsVerbose(m, h.ops, time.Minute)
	switch verdict {
	case porcupine.Ok:
		return
	case porcupine.Unknown:
		// Each call without an answer doubles what may have been.
		t.Errorf("seed %d: whether the history is linearizable was not found out in a minute: make fewer calls", *seed)
	case porcupine.Illegal:
	}
	picture := filepath.Join(t.ArtifactDir(), "history.html")
	if err := porcupine.VisualizePath(m, info, picture); err != nil {
		t.Error(err)
	}
	t.Errorf("seed %d: the history is not linearizable; see %s (kept with -artifacts)", *seed, picture)
}
