package linear

import (
	"flag"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"

	"github.com/anishathalye/porcupine"
	"go.uber.org/goleak"
)

var (
	seed  = flag.Uint64("linear.seed", 1, "begins the random sequences of the clients and of the faults")
	calls = flag.Int("linear.calls", 60, "how many calls each client makes")
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// The Bigtable client's metrics library starts one on import.
		goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}

// clients is the number of concurrent clients.
const clients = 5

// run runs the steps of the clients, each with a random sequence of its own.
func run(step func(client int, rng *rand.Rand)) {
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

// check fails the test if the history has no sequential order.
func check(t *testing.T, h *History, m porcupine.Model) {
	t.Helper()
	all, unanswered := h.Count(Unknown)
	_, lost := h.Count(Lost)
	t.Logf("seed %d: %d operations, of them %d with a lost answer or a copy, %d unknown", *seed, all, lost, unanswered)
	if err := h.Check(m, filepath.Join(t.ArtifactDir(), "history.html")); err != nil {
		t.Errorf("seed %d: %v (kept with -artifacts)", *seed, err)
	}
}
