package memory

import (
	"os"
	"testing"
)

const size = 8 << 20

var kept []byte

func TestAlone_Peak(t *testing.T) { //nolint:paralleltest // Alone makes it parallel
	Alone(t, func(t *testing.T) {
		if os.Getenv(aloneVariable) == "" {
			t.Error("the body runs in the process of the other tests")
		}
		if got := Peak(func() {
			for range 3 { // one after the other, so that one is held at a time
				kept = make([]byte, size)
				kept[0] = 1
			}
			kept = nil
		}); got < size || got > 3*size {
			t.Errorf("Peak is %d, want %d to %d", got, size, 3*size)
		}
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
		if got := Allocated(func() { kept = make([]byte, size) }); got < size || got > 2*size {
			t.Errorf("Allocated is %d, want about %d", got, size)
		}
		if got := Live() - before; got < size || got > 2*size {
			t.Errorf("Live has grown by %d, want about %d", got, size)
		}
		kept = nil
		if got := int64(Live() - before); got > size/2 {
			t.Errorf("Live has grown by %d after the memory was dropped", got)
		}
	})
}
