package migrate

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/internal/test/memory"
	"github.com/tabletop-emu/tabletop/internal/test/race"
	"github.com/tabletop-emu/tabletop/migrate/internal/exporttest"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// The cost of a dead letter does not depend on earlier ones.
func TestLoad_DeadLettersCost(t *testing.T) { //nolint:paralleltest // memory.Alone makes it parallel
	if race.Enabled {
		t.Skip("the race detector allocates too")
	}
	memory.Alone(t, func(t *testing.T) {
		cost := func(letters int) uint64 {
			text := `{"id":{"S":"a"}}` + "\n" + strings.Repeat(`{"id":{"S":"b"},"n":{"N":"x"}}`+"\n", letters)
			src, conn := open(t, text), newBigtableServer(t)
			return memory.Allocated(func() {
				r, err := Load(t.Context(), conn, src, LoadOptions{DeadLetter: io.Discard})
				if err != nil {
					t.Fatal(err)
				}
				if got := r.Tables[0].DeadLetters; got != int64(letters) {
					t.Errorf("%d dead letters, want %d", got, letters)
				}
			})
		}
		const few, times = 500, 8
		if one, many := cost(few), cost(times*few); many > times*3/2*one {
			t.Errorf("%d dead letters allocate %d bytes, %d of them %d: want in proportion", few, one, times*few, many)
		}
	})
}

// If a change is missing, the whole table is unknown: that is not a dead letter, which would
// stand for all of it.
func TestLoad_BadChangeIsNoDeadLetter(t *testing.T) {
	t.Parallel()
	t1 := exporttest.Time.Add(time.Hour)
	for _, line := range []string{`{"Keys":{"id"`, exporttest.Change(t1, exporttest.Key("b"), "", exporttest.Item("c", 2)), exporttest.Change(t1, exporttest.Key("b"), "", `{"id":{"X":"b"}}`)} {
		fsys := exporttest.Sample()
		exporttest.AddIncremental(fsys, "01", exporttest.Time, t1, line)
		src, err := source.OpenFS(fsys, "bucket", source.Options{Key: "id"})
		if err != nil {
			t.Fatal(err)
		}
		conn := newBigtableServer(t)
		var dead strings.Builder
		r, err := Load(t.Context(), conn, src, LoadOptions{DeadLetter: &dead})
		if ids := tableIDs(t, conn); err == nil || !strings.Contains(err.Error(), "01-0.json.gz:1: ") || dead.Len() > 0 || len(ids) > 0 {
			t.Errorf("%s: error %v, dead letters %s, tables %v, report %+v; want the line refused", line, err, dead.String(), ids, r)
		}
	}
}
