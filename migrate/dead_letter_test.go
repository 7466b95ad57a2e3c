package migrate

import (
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/internal/race"
)

// What a dead letter costs does not grow with those before it. The test is not
// parallel: bytes are counted in the whole process.
func TestLoad_DeadLettersCost(t *testing.T) { //nolint:paralleltest // see above
	if race.Enabled {
		t.Skip("the race detector allocates too")
	}
	cost := func(letters int) uint64 {
		text := `{"id":{"S":"a"}}` + "\n" + strings.Repeat(`{"id":{"S":"b"},"n":{"N":"x"}}`+"\n", letters)
		src, conn := open(t, text), newBigtableServer(t)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := Load(t.Context(), conn, src, Options{DeadLetter: io.Discard})
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Tables[0].DeadLetters; got != int64(letters) {
			t.Errorf("%d dead letters, want %d", got, letters)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	const few, times = 2000, 8
	if one, many := cost(few), cost(times*few); many > times*3/2*one {
		t.Errorf("%d dead letters allocate %d bytes, %d of them %d: want in proportion", few, one, times*few, many)
	}
}
