package migrate

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/migrate/internal/differential"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

// The effects of time.
const (
	expiringMapping = `apiVersion: migration/v1
source: {table: Sessions, key: {hash: {name: id, type: S}}, schema: {until: N, note: S}, ttl: {attribute: until, mode: attribute}, gsis: [{name: ByNote, hash: {name: note, type: S}, projection: ALL, as: table}]}
target: {table: sessions, families: {a: {gc: {versions: 1}}, _t: {gc: {versions: 1}}}}
timestamps: {default: "2024-01-01T00:00:00Z"}
rules: [{name: session, row: ["{id:s}"], put: [{attr: "*", cell: "a:{attr}"}]}]
`
	versionsMapping = `apiVersion: migration/v1
source: {table: States, key: {hash: {name: id, type: S}, range: {name: t, type: N}}, schema: {s: S, n: N}}
target: {table: states, families: {v: {gc: {versions: 2}}, _t: {gc: {versions: 2}}}}
accept_loss: [{what: retention, why: "two are enough"}]
timestamps: {default: "2024-01-01T00:00:00Z"}
rules: [{name: state, row: ["{id:s}"], put: [{attr: "*", cell: "v:{attr}", ts: {attr: t, as: epoch(ms)}}]}]
`
)

func timedFixture(mapping string) fstest.MapFS {
	item := `{"id":{"S":"a"},"note":{"S":"x"},"until":{"N":"1"}}`
	if mapping == versionsMapping {
		item = `{"id":{"S":"a"},"t":{"N":"1709251200000"},"s":{"S":"on"}}`
	}
	return fstest.MapFS{"mapping.yaml": {Data: []byte(mapping)}, "source/items.jsonl": {Data: []byte(item)}}
}

// Expired items, and garbage-collected versions, disappear from the endpoint and the rows at
// the same time, and nothing else does.
func TestDifferential_TimePasses(t *testing.T) {
	t.Parallel()
	n := 60 // items, and requests
	if long.Enabled() {
		n = 400
	}
	for name, text := range map[string]string{"expiring items": expiringMapping, "versions": versionsMapping} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, o := newCollected(t, time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
			o.Differential, o.Seed = n, 5
			r, err := Verify(t.Context(), conn, OfFixture(timedFixture(text)), o)
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, r)
			if c := checkNamed(t, r, "differential requests"); c.State != report.CheckOK || !strings.Contains(c.Detail, " ticks") {
				t.Errorf("%+v", c)
			}
		})
	}
}

// The same for the shipped mappings.
func TestDifferential_TimePassesOfSubjects(t *testing.T) {
	t.Parallel()
	n := 15 // requests
	if long.Enabled() {
		n = 80
	}
	for _, s := range subjectsAnd(t, long.Enabled()) {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			conn, o := newCollected(t, time.Date(2024, 6, 1, 0, 0, 0, 0, time.UTC))
			o.Differential, o.Seed = n, 11
			_, r, err := prepare(t.Context(), conn, OfFixture(s.Files), o.options())
			if err != nil {
				t.Fatal(err)
			}
			if err := differential.Requests(t.Context(), r, r.Jobs[0], nil); err != nil {
				t.Fatal(err)
			}
			if !r.Report.Equal() {
				t.Error(r.Report.Text())
			}
		})
	}
}

// Items that survive their expiry, or are deleted early, are found. The failing case shrinks to
// little more than a tick, and is saved.
func TestDifferential_TimeStandsStill(t *testing.T) {
	t.Parallel()
	n := 120 // items, and requests
	if long.Enabled() {
		n = 400
	}
	for _, c := range []struct {
		name, mapping string
		broken        func(conn btpb.BigtableClient, runGC func(context.Context) error) func(context.Context) error
	}{
		{"garbage stays", versionsMapping, func(btpb.BigtableClient, func(context.Context) error) func(context.Context) error {
			return func(context.Context) error { return nil }
		}},
		{"an item goes", expiringMapping, func(client btpb.BigtableClient, runGC func(context.Context) error) func(context.Context) error {
			return func(ctx context.Context) error {
				table := "projects/tabletop/instances/tabletop/tables/" + differential.Table
				stream, err := client.ReadRows(ctx, &btpb.ReadRowsRequest{TableName: table, RowsLimit: 1})
				if err != nil {
					return err
				}
				resp, err := stream.Recv()
				if err != nil || len(resp.GetChunks()) == 0 {
					return runGC(ctx) // the table or row does not exist
				}
				_, err = client.MutateRow(ctx, &btpb.MutateRowRequest{TableName: table, RowKey: resp.GetChunks()[0].GetRowKey(), Mutations: []*btpb.Mutation{deleteRow()}})
				return err
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			conn, o := newCollected(t, time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
			broken := o
			broken.RunGC = c.broken(btpb.NewBigtableClient(conn), o.RunGC)
			broken.Differential, broken.Seed, broken.Regress = n, 5, dir
			files := timedFixture(c.mapping)
			files["fixture.yaml"] = &fstest.MapFile{Data: []byte("name: timed\nchecks: {garbage_collection: false}\n")}
			r, err := Verify(t.Context(), conn, OfFixture(files), broken)
			if err != nil {
				t.Fatal(err)
			}
			if check := checkNamed(t, r, "differential requests"); check.State != report.CheckFailed {
				t.Fatalf("%+v", check)
			}
			saved := filepath.Join(dir, "5-requests")
			text, err := os.ReadFile(filepath.Join(saved, fixtures.RequestsFile))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Count(string(text), "Tick") != 1 {
				t.Errorf("not shrunk to one tick:\n%s", text)
			}
			for _, again := range []struct {
				name  string
				o     VerifyOptions
				state report.CheckState
			}{
				{"broken", VerifyOptions{Common: Common{Now: o.Now}, RunGC: broken.RunGC}, report.CheckFailed},
				{"repaired, much later", VerifyOptions{Common: Common{Now: func() time.Time { return o.Now().AddDate(20, 0, 0) }}, RunGC: o.RunGC}, report.CheckOK},
				{"on another's Bigtable", VerifyOptions{Common: Common{Now: o.Now}}, report.CheckSkipped},
			} {
				r, err := Verify(t.Context(), conn, OfFixture(os.DirFS(saved)), again.o)
				if err != nil {
					t.Fatal(err)
				}
				if check := checkNamed(t, r, "differential requests"); check.State != again.state {
					t.Errorf("%s: %+v, want %s\n%s", again.name, check, again.state, r.Text())
				}
			}
		})
	}
}
