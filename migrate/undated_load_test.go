package migrate

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/loadnote"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// undated returns a source of these items without a time.
func undated(t *testing.T, items itemsAt) *source.Source {
	t.Helper()
	text := strings.Join(slices.Sorted(maps.Values(items)), "\n")
	src, err := source.OpenFS(fstest.MapFS{"items.jsonl": {Data: []byte(text)}}, "items.jsonl", source.Options{Key: "PK,SK"})
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// timedMapping is plainMapping with a default time of cells.
func timedMapping(t *testing.T, at string) Common {
	t.Helper()
	text := strings.Replace(plainMapping, "rules:", "timestamps: {default: \""+at+"\"}\nrules:", 1)
	return Common{Mappings: []*mapping.Mapping{mappingOf(t, text)}}
}

// loaded loads a source; if the load is refused, it checks that the tables are unchanged.
func loaded(t *testing.T, conn grpc.ClientConnInterface, src *source.Source, o Common) (warnings string, err error) {
	t.Helper()
	return loadedBy(t, conn, src, LoadOptions{Common: o})
}

// mixed is loaded for loads that may mix with earlier ones.
func mixed(t *testing.T, conn grpc.ClientConnInterface, src *source.Source, o Common) (warnings string, err error) {
	t.Helper()
	return loadedBy(t, conn, src, LoadOptions{Common: o, Mix: true})
}

func loadedBy(t *testing.T, conn grpc.ClientConnInterface, src *source.Source, o LoadOptions) (warnings string, err error) {
	t.Helper()
	there := allTables(t, conn)
	r, err := Load(t.Context(), conn, src, o)
	if err == nil {
		return strings.Join(r.Warnings, "\n"), nil
	}
	if source.DamageOf(err) != "" {
		if got := allTables(t, conn); got != there {
			t.Errorf("a load that is refused (%v) leaves\n%s\nwant\n%s", err, got, there)
		}
	}
	return "", err
}

// Cells of a source without a time would be older than those of loaded exports, and invisible:
// the load is refused, and the records of the exports stay. It is refused each time.
func TestCatchUp_UndatedBelowAnExport(t *testing.T) {
	t.Parallel()
	before, after := plainStates()
	o := Common{Mappings: []*mapping.Mapping{mappingOf(t, plainMapping)}}
	for name, states := range map[string][]itemsAt{"a full export": {before}, "with increments": {before, after}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := newBigtableServer(t)
			if _, err := loaded(t, conn, exports(t, true, states...), o); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				_, err := loaded(t, conn, undated(t, after), o)
				WantDamage(t, err, source.TargetNewer, "Bigtable table t has cells at 2024-05-27T06:11:47.109Z from an earlier load, and reads would not return the older cells of the source, which has no time, at 2010-01-01T00:00:00Z")
			}
			// A table without rows hides nothing.
			if err := table.NewBigtable(conn, table.Options{}).DropTable(t.Context(), "t"); err != nil {
				t.Fatal(err)
			}
			if _, err := loaded(t, conn, undated(t, after), o); err != nil {
				t.Error(err)
			}
			// Records of an earlier table do not apply to this one.
			if at := notedMoment(t, conn, loadnote.Until); at != "2010-01-01T00:00:00Z" {
				t.Errorf("a table that only a source without a time is in is noted to be of %s", at)
			}
		})
	}
}

// notedMoment returns a recorded time of table t.
func notedMoment(t *testing.T, conn grpc.ClientConnInterface, moment func(rows []layout.Row, table string) time.Time) string {
	t.Helper()
	rows, err := table.NewBigtable(conn, table.Options{}).SchemaOf(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	return moment(rows, "t").Format(time.RFC3339Nano)
}

// A source without a time does not change the recorded end of the loaded exports, so that an
// older export, and its catch-up, are still refused after it. Its cells are visible, and its
// verification finds no difference.
func TestCatchUp_UndatedKeepsTheExportTime(t *testing.T) {
	t.Parallel()
	before, after := plainStates()
	last := maps.Clone(after)
	c := `{"PK":{"S":"c"},"SK":{"S":"x"}`
	last[c+"}"] = c + `,"n":{"N":"1"}}`
	changed := maps.Clone(last)
	changed[c+"}"] = c + `,"n":{"N":"7"}}`
	for name, x := range map[string]struct {
		export, undated, replaces string // times of cells
	}{
		"at the time of the table":   {"2024-05-01T00:00:00Z", "2024-05-01T00:00:00Z", "yes"},
		"after the time of exports":  {"2024-05-01T00:00:00Z", "2025-05-01T00:00:00Z", ""},
		"after exports by their own": {"export-time", "2025-05-01T00:00:00Z", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := newBigtableServer(t)
			exported, timed := timedMapping(t, x.export), timedMapping(t, x.undated)
			if _, err := loaded(t, conn, exports(t, true, before, after, last), exported); err != nil {
				t.Fatal(err)
			}
			until := notedMoment(t, conn, loadnote.Until)
			_, err := loaded(t, conn, undated(t, changed), timed)
			WantDamage(t, err, source.TargetNewer, "Bigtable table t was loaded from another source, with cells at ")
			for range 2 {
				if _, err := mixed(t, conn, undated(t, changed), timed); err != nil {
					t.Fatal(err)
				}
				if at := notedMoment(t, conn, loadnote.Until); at != until {
					t.Errorf("noted are exports up to %s, want %s", at, until)
				}
			}
			if x.replaces != "" {
				r, err := Verify(t.Context(), conn, OfSource(undated(t, changed)), VerifyOptions{Common: timed, Stored: true})
				if err != nil {
					t.Fatal(err)
				}
				wantEqual(t, r)
			}
			for _, o := range []Common{exported, timed} {
				for _, states := range [][]itemsAt{{before}, {before, after}} {
					_, err := loaded(t, conn, exports(t, true, states...), o)
					WantDamage(t, err, source.TargetNewer, "Bigtable table t was loaded with ")
				}
			}
			if _, err := loaded(t, conn, exports(t, true, before, after, last, before), timed); err != nil {
				t.Errorf("a later export: %v", err)
			}
		})
	}
}

// An interrupted catch-up stays recorded after a load of a source without a time.
func TestCatchUp_UndatedFinishesNoCatchUp(t *testing.T) {
	t.Parallel()
	killed := errors.New("killed")
	before, after := plainStates()
	o := timedMapping(t, "2024-05-01T00:00:00Z")
	conn := &failing{ClientConnInterface: newBigtableServer(t)}
	if _, err := loaded(t, conn, exports(t, true, before), o); err != nil {
		t.Fatal(err)
	}
	first := conn.calls
	conn.fail = func(call int, _ *btpb.MutateRowsRequest) error {
		if call-first > 2 { // the first two are the id of the load, and the note
			return killed
		}
		return nil
	}
	if _, err := loaded(t, conn, exports(t, true, before, after), o); !errors.Is(err, killed) {
		t.Fatalf("error %v, want that of the call", err)
	}
	conn.fail = nil
	unfinished := notedMoment(t, conn, loadnote.Unfinished)
	if _, err := mixed(t, conn, undated(t, before), o); err != nil {
		t.Fatal(err)
	}
	if at := notedMoment(t, conn, loadnote.Unfinished); at != unfinished {
		t.Errorf("noted as unfinished are exports up to %s, want %s", at, unfinished)
	}
	_, err := mixed(t, conn, exports(t, true, before), o)
	WantDamage(t, err, source.TargetNewer, "is partly loaded with exports up to ")
}

// A later export whose cells get an earlier time than the stored ones would also be invisible.
func TestCatchUp_ExportBelowItsCells(t *testing.T) {
	t.Parallel()
	before, after := plainStates()
	conn := newBigtableServer(t)
	if _, err := loaded(t, conn, exports(t, true, before), timedMapping(t, "2024-05-01T00:00:00Z")); err != nil {
		t.Fatal(err)
	}
	_, err := loaded(t, conn, exports(t, true, before, after), timedMapping(t, "2024-04-01T00:00:00Z"))
	WantDamage(t, err, source.TargetNewer, "Bigtable table t has cells at 2024-05-01T00:00:00Z from an earlier load, and reads would not return the older cells of the source, at 2024-04-01T00:00:00Z")
}
