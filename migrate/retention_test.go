package migrate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/test/peer"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// newCollected is a Bigtable with garbage collection by a clock that is stopped at now.
func newCollected(t *testing.T, now time.Time) (grpc.ClientConnInterface, VerifyOptions) {
	t.Helper()
	clock := func() time.Time { return now }
	server := peer.Start(t, engine.Options{Now: clock}, emu.Options{})
	return server.Conn(), VerifyOptions{Common: Common{Now: clock}, RunGC: func(ctx context.Context) error {
		_, err := server.RunGC(ctx)
		return err
	}}
}

// comments are five items that are versions of two columns: four of one video, one of another,
// each a day older than the previous one.
var commentsEpoch = time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)

func comments(t *testing.T, gc, accept string) (*source.Source, *mapping.Mapping) {
	t.Helper()
	m, err := mapping.Load("m.yaml", fmt.Appendf(nil, `
apiVersion: migration/v1
source: {table: Comments, key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}, schema: {Text: S}}
target: {table: comments, joiner: "plain('#')", families: {c: {gc: {%s}}}}
timestamps: {default: "2024-05-01T00:00:00Z"}
accept_loss: [%s]
rules: [{name: comment, when: {SK: "C#{t:revms(13)}"}, row: ["{PK}"], put: [{attr: Text, cell: "c:all", ts: "{t}"}]}]
`, gc, accept))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for i := range 5 {
		pk, at := "v1", commentsEpoch.AddDate(0, 0, -i)
		if i == 4 {
			pk = "v2"
		}
		fmt.Fprintf(&text, `{"PK":{"S":%q},"SK":{"S":"C#%013d"},"Text":{"S":"no %d"}}`+"\n", pk, 9999999999999-at.UnixMilli(), i)
	}
	src, err := source.OpenFS(fstest.MapFS{"in": {Data: []byte(text.String())}}, "in", source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return src, m
}

func TestVerify_Retention(t *testing.T) {
	t.Parallel()
	key := func(i int, pk string) string {
		return fmt.Sprintf(`{"PK":{"S":%q},"SK":{"S":"C#%013d"}}`, pk, 9999999999999-commentsEpoch.AddDate(0, 0, -i).UnixMilli())
	}
	const accept = `{rule: comment, what: retention, why: "only the newest count"}`
	for _, c := range []struct {
		name, gc, accept string
		lost             []string // the keys, newest first
		rule             string
		warning          string
	}{
		{"all versions fit", "versions: 4", "", nil, "", ""},
		{"old enough", "maxAge: 240h", "", nil, "", ""},
		{"versions", "versions: 2", "", []string{key(2, "v1"), key(3, "v1")}, "versions: 2", "garbage collection by versions: 2 of family c would remove 2 cells, e.g. of rule comment, item"},
		{"age", "maxAge: 50h", "", []string{key(2, "v1"), key(3, "v1"), key(4, "v2")}, "maxAge: 50h", "garbage collection by maxAge: 50h of family c would remove 3 cells"},
		{"either", "versions: 3, maxAge: 84h", "", []string{key(3, "v1"), key(4, "v2")}, "", "versions: 3"},
		{"accepted", "versions: 2", accept, nil, "", ""},
		{"another loss is accepted", "versions: 3", `{what: types, why: "x"}`, []string{key(3, "v1")}, "versions: 3", "1 cell,"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			src, m := comments(t, c.gc, c.accept)
			conn, o := newCollected(t, commentsEpoch.Add(12*time.Hour))
			o.Mappings = []*mapping.Mapping{m}
			r, err := Verify(t.Context(), conn, OfSource(src), o)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range r.Failures {
				got = append(got, f.ItemKey)
				if f.Kind != report.LossNotAccepted || f.Rule != "comment" || f.Column != "c:all" || f.RowKey == "" || !strings.Contains(f.Detail, c.rule+" of family c would remove 1 cell") && c.rule != "" {
					t.Errorf("failure %s", f)
				}
			}
			if diff := cmp.Diff(c.lost, got); diff != "" || r.Differences != int64(len(c.lost)) {
				t.Errorf("%d differences, lost (-want +got):\n%s", r.Differences, diff)
			}
			if text := r.Text(); strings.Contains(text, "accepted   retention: 2 cells that garbage collection by versions: 2 of family c removes from rule comment") != (c.accept == accept) {
				t.Errorf("text:\n%s", text)
			}
			states := map[string]report.CheckState{}
			for _, check := range r.Checks {
				states[check.Name] = check.State
			}
			if states["garbage collection"] != report.CheckOK { // exactly the predicted cells were removed
				t.Errorf("states %v\n%s", states, r.Text())
			}
			loaded, err := Load(t.Context(), conn, src, LoadOptions{Common: o.Common})
			if err != nil {
				t.Fatal(err)
			}
			if warned := strings.Join(loaded.Warnings, "\n"); (c.warning == "") != (warned == "") || !strings.Contains(warned, c.warning) {
				t.Errorf("load warns %q, want %q", warned, c.warning)
			}
		})
	}
}

// Garbage collection that removes cells against its rules is a difference.
func TestVerify_CollectsTooMuch(t *testing.T) {
	t.Parallel()
	src, m := comments(t, "versions: 2", `{what: retention, why: "x"}`)
	conn, o := newCollected(t, commentsEpoch)
	o.Mappings = []*mapping.Mapping{m}
	collect := o.RunGC
	o.RunGC = func(ctx context.Context) error {
		change(t, conn, "comments", "v2", deleteRow())
		return collect(ctx)
	}
	r, err := Verify(t.Context(), conn, OfSource(src), o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Differences != 1 || r.Failures[0].Kind != report.MissingRow || r.Failures[0].RowKey != `"v2"` {
		t.Errorf("%s", r.Text())
	}
}

func TestVerify_RetentionWithoutClock(t *testing.T) {
	t.Parallel()
	src, m := comments(t, "maxAge: 1h", "")
	r, err := Verify(t.Context(), newBigtableServer(t), OfSource(src), VerifyOptions{Common: Common{Mappings: []*mapping.Mapping{m}}})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, r)
	for _, want := range []string{"skip retention by age, table comments: the maxAge of c cannot be checked without a clock\n", "skip garbage collection, table comments: it cannot be run on this Bigtable from here\n"} {
		if !strings.Contains(r.Text(), want) {
			t.Errorf("%q is not in\n%s", want, r.Text())
		}
	}
}

// change mutates one row of a table.
func change(t *testing.T, conn grpc.ClientConnInterface, table, row string, mutations ...*btpb.Mutation) {
	t.Helper()
	_, err := btpb.NewBigtableClient(conn).MutateRow(t.Context(), &btpb.MutateRowRequest{
		TableName: "projects/tabletop/instances/tabletop/tables/" + table, RowKey: []byte(row), Mutations: mutations,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Losses by garbage collection are grouped by rule and family, with an example of each group
// however few differences are listed.
func TestReport_RetentionByRuleAndFamily(t *testing.T) {
	t.Parallel()
	m := mappingOf(t, `apiVersion: migration/v1
source: {table: items, key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}, schema: {t: S}}
target: {table: items, joiner: oc, families: {c: {gc: {versions: 1}}, d: {gc: {versions: 1}}, _t: {gc: {versions: 1}}}}
rules:
- {name: comment, when: {SK: "c#{at:epoch(s)}"}, row: ["{PK}"], put: [{attr: t, cell: "c:all", ts: "{at}"}]}
- {name: note, when: {SK: "n#{at:epoch(s)}"}, row: ["{PK}"], put: [{attr: t, cell: "d:all", ts: "{at}"}]}
`)
	var lines strings.Builder
	for row := range 30 {
		for i := range 3 {
			fmt.Fprintf(&lines, `{"PK":{"S":"%02d"},"SK":{"S":"c#%d"},"t":{"S":"x"}}`+"\n", row, 1700000000+i)
		}
	}
	for i := range 3 {
		fmt.Fprintf(&lines, `{"PK":{"S":"99"},"SK":{"S":"n#%d"},"t":{"S":"x"}}`+"\n", 1700000000+i)
	}
	src, err := source.OpenFS(fstest.MapFS{"items.jsonl": {Data: []byte(lines.String())}}, "items.jsonl", source.Options{Key: "PK,SK"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := Verify(t.Context(), newBigtableServer(t), OfSource(src), VerifyOptions{Common: Common{Mappings: []*mapping.Mapping{m}, MaxDifferences: 2}})
	if err != nil {
		t.Fatal(err)
	}
	var rules []string
	for _, f := range r.FailuresOf(slices.IndexFunc(r.Checks, func(c report.Check) bool { return c.Name == "retention" })) {
		rules = append(rules, f.Rule)
	}
	if !slices.Contains(rules, "comment") || !slices.Contains(rules, "note") {
		t.Errorf("listed are examples of the rules %v:\n%s", rules, r.Text())
	}
	for _, want := range []string{"rule comment, family c by versions: 1: 60 cells of ", "rule note, family d by versions: 1: 2 cells of "} {
		if !strings.Contains(r.Text(), want) {
			t.Errorf("no %q in\n%s", want, r.Text())
		}
	}
}
