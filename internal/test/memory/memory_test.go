package memory

import (
	"os"
	"runtime"
	"testing"
)

func (p *peak) seen() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.most - p.before
}

const (
	size = 8 << 20
	// The runtime frees a little of its own memory meanwhile.
	least = size * 7 / 8
)

var kept []byte

func TestAlone_Peak(t *testing.T) { //nolint:paralleltest // Alone makes it parallel
	Alone(t, func(t *testing.T) {
		if os.Getenv(aloneVariable) == "" {
			t.Error("the body runs in the process of the other tests")
		}
		p := watch()
		kept = make([]byte, size)
		kept[0] = 1
		runtime.GC()
		for p.seen() < least { // until the collection was observed
			runtime.Gosched()
		}
		kept = nil
		runtime.GC()
		if got := p.end(); got < least || got > 2*size {
			t.Errorf("the peak of 8 MiB that are dropped is %d, want about %d", got, size)
		}
		if got := Peak(func() { kept = make([]byte, size) }); got < least || got > 2*size {
			t.Errorf("the peak of 8 MiB that are kept is %d, want about %d", got, size)
		}
		kept = nil
		if got := Peak(func() {
			for range 1000 {
				kept = make([]byte, size>>8)
			}
			kept = nil
		}); got > size/2 {
			t.Errorf("the peak of 32 MiB in pieces that are dropped is %d, want at most %d", got, size/2)
		}
	})
}

func TestAlone_Live(t *testing.T) { //nolint:paralleltest // Alone makes it parallel
	Alone(t, func(t *testing.T) {
		before := Live()
		if got := Allocated(func() { kept = make([]byte, size) }); got < least || got > 2*size {
			t.Errorf("Allocated is %d, want about %d", got, size)
		}
		if got := Live() - before; got < least || got > 2*size {
			t.Errorf("Live has grown by %d, want about %d", got, size)
		}
		kept = nil
		if got := int64(Live() - before); got > size/2 {
			t.Errorf("Live has grown by %d after the memory was dropped", got)
		}
	})
}
