package migrate

import (
	"strings"
	"testing"
	"testing/fstest"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// TestVerify_NewerCell: an extra version in the column of an expected cell is reported with its
// effect. A newer one hides the expected cell from readers; an older one hides nothing.
func TestVerify_NewerCell(t *testing.T) {
	t.Parallel()
	const loaded = 1262304000000000 // 2010-01-01, the default time
	for _, c := range []struct {
		name, item string
		mutations  []*btpb.Mutation
		want, not  string
	}{
		{
			"newer", `"n":{"S":"31"}`,
			[]*btpb.Mutation{setCell("a", "n", 1715685260608000, "999")},
			`column a:n: want nothing, got @1715685260608000 = "999"; of items: n: want {"S":"31"}, got {"S":"999"}: a newer cell, of 2024-05-14T11:14:20.608Z, hides the expected "31"; the item now reads "999"`, "",
		},
		{
			"the newest of two", `"n":{"S":"31"}`,
			[]*btpb.Mutation{setCell("a", "n", loaded+1000, "998"), setCell("a", "n", loaded+2000, "999")},
			`of 2010-01-01T00:00:00.002Z, hides the expected "31"; the item now reads "999"`, `reads "998"`,
		},
		{"the same value", `"n":{"S":"31"}`, []*btpb.Mutation{setCell("a", "n", loaded+1000, "31")}, `a newer cell, of 2010-01-01T00:00:00.001Z, hides the expected "31"`, "now reads"},
		{"older", `"n":{"S":"31"}`, []*btpb.Mutation{setCell("a", "n", loaded-1000, "999")}, `want nothing, got @1262303999999000 = "999"`, "hides"},
		{"another column", `"n":{"S":"31"}`, []*btpb.Mutation{setCell("a", "m", loaded+1000, "999")}, `column a:m: want nothing`, "hides"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			src, err := source.OpenFS(fstest.MapFS{"t.jsonl": {Data: []byte(`{"id":{"S":"a"},` + c.item + "}\n")}}, "t.jsonl", source.Options{Key: "id", Table: "things"})
			if err != nil {
				t.Fatal(err)
			}
			conn := newBigtableServer(t)
			if _, err := Load(t.Context(), conn, src, LoadOptions{}); err != nil {
				t.Fatal(err)
			}
			_, err = btpb.NewBigtableClient(conn).MutateRow(t.Context(), &btpb.MutateRowRequest{
				TableName: "projects/tabletop/instances/tabletop/tables/things", RowKey: []byte("a"), Mutations: c.mutations,
			})
			if err != nil {
				t.Fatal(err)
			}
			r, err := Verify(t.Context(), conn, OfSource(src), VerifyOptions{Stored: true})
			if err != nil {
				t.Fatal(err)
			}
			var extra strings.Builder
			for _, f := range r.Failures {
				if f.Kind == report.ExtraCell {
					extra.WriteString(f.String() + "\n")
				}
			}
			if got := extra.String(); !strings.Contains(got, c.want) || c.not != "" && strings.Contains(got, c.not) {
				t.Errorf("the extra cells are\n%swant %q, without %q", got, c.want, c.not)
			}
		})
	}
}
