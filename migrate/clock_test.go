package migrate

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// agingFixture is a fixture with one item of 2024-05-01, whose cells expire after two days.
func agingFixture(about string) fstest.MapFS {
	return fstest.MapFS{
		"fixture.yaml": {Data: []byte(about)},
		"mapping.yaml": {Data: []byte(`
apiVersion: migration/v1
source: {table: Comments, key: {hash: {name: PK, type: S}}, schema: {Text: S}}
target: {table: comments, families: {c: {gc: {maxAge: 48h}}}}
timestamps: {default: "2024-05-01T00:00:00Z"}
rules: [{name: comment, row: ["{PK}"], put: [{attr: Text, cell: "c:text"}]}]
`)},
		"source/items.jsonl": {Data: []byte(`{"PK":{"S":"v1"},"Text":{"S":"x"}}` + "\n")},
	}
}

// The clock of a target may be ahead: garbage collection there removes cells that this machine
// expects. A warning says so beside the missing rows.
func TestVerify_ClockAhead(t *testing.T) {
	t.Parallel()
	files := agingFixture("name: x")
	m := mappingOf(t, string(files["mapping.yaml"].Data))
	src, err := source.OpenFS(files, "source/items.jsonl", source.Options{Key: "PK"})
	if err != nil {
		t.Fatal(err)
	}
	conn, o := newCollected(t, commentsEpoch.AddDate(1, 0, 0))
	o.Mappings = []*mapping.Mapping{m}
	if _, err := Load(t.Context(), conn, src, LoadOptions{Common: o.Common}); err != nil {
		t.Fatal(err)
	}
	if err := o.RunGC(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.Stored, o.RunGC = true, nil
	o.Now = func() time.Time { return commentsEpoch.AddDate(0, 0, 1) }
	r, err := Verify(t.Context(), conn, OfSource(src), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Failures) == 0 || r.Failures[0].Kind != report.MissingRow {
		t.Fatalf("want a missing row:\n%s", r.Text())
	}
	if text := strings.Join(r.Warnings, "\n"); !strings.Contains(text, "table comments: families with a maxAge (c) lack 1 cell") {
		t.Errorf("warnings %q", text)
	}
}

// The clock of a fixture overrides the current time.
func TestVerify_Clock(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, about string
		store       time.Time // the clock of the Bigtable and of the options
		differences int64
	}{
		{"young by the clock of the fixture", "clock: 2024-05-02T00:00:00Z", commentsEpoch.AddDate(0, 0, 1), 0},
		{"old by the clock of the fixture", "clock: 2024-05-04T00:00:00+02:00", commentsEpoch.AddDate(0, 0, 1), 1},
		{"no clock, young", "name: x", commentsEpoch.AddDate(0, 0, 1), 0},
		{"no clock, old", "name: x", commentsEpoch.AddDate(1, 0, 0), 1},
	} {
		files := agingFixture(c.about)
		at, err := fixtures.Clock(files)
		if err != nil {
			t.Fatal(err)
		}
		if at.IsZero() {
			at = c.store
		}
		conn, o := newCollected(t, at)
		o.Now = func() time.Time { return c.store } // the fixture overrides it
		r, err := Verify(t.Context(), conn, OfFixture(files), o)
		if err != nil {
			t.Fatal(err)
		}
		if r.Differences != c.differences {
			t.Errorf("%s: %d differences, want %d:\n%s", c.name, r.Differences, c.differences, r.Text())
		}
		for _, f := range r.Failures {
			if f.Kind != report.LossNotAccepted {
				t.Errorf("%s: %s", c.name, f)
			}
		}
	}
}
