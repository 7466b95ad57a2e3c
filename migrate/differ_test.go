package migrate

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

// Each damage is also found if the table is sorted in many runs on disk.
func TestCompare_SmallWindow(t *testing.T) {
	t.Parallel()
	files, err := fs.Sub(shippedFiles, "subjects/s2-video")
	if err != nil {
		t.Fatal(err)
	}
	testMutations(t, files, Common{TempDir: t.TempDir(), knobs: table.Knobs{Window: 1}}, allMutants)
}

// Damage to an index and to elements of a list, which no shipped fixture has.
func TestCompare_MutationsOfListsAndIndexes(t *testing.T) {
	t.Parallel()
	const schema = `{"TableName":"Music","KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],
		"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"},{"AttributeName":"year","AttributeType":"N"}],
		"GlobalSecondaryIndexes":[{"IndexName":"ByYear","KeySchema":[{"AttributeName":"year","KeyType":"HASH"}],"Projection":{"ProjectionType":"ALL"}}]}`
	testMutations(t, fstest.MapFS{
		"fixture.yaml":      {Data: []byte("name: music\n")},
		"source/table.json": {Data: []byte(schema)},
		"source/items.jsonl": {Data: []byte(`{"id":{"S":"a"},"year":{"N":"1999"},"list":{"L":[{"S":"x"},{"N":"1"},{"S":"y"}]}}
{"id":{"S":"b"},"year":{"N":"2000"},"tags":{"SS":["p","q"]},"m":{"M":{"k":{"BOOL":true}}}}
{"id":{"S":"c"},"list":{"S":"none"}}`)},
	}, Common{}, allMutants)
}

func TestCompare_TimestampPolicies(t *testing.T) {
	t.Parallel()
	const exp, old = 1715685260608000, 1694363442000000
	type result map[fixtures.TimestampPolicy]string
	views := "\x00\x00\x00\x00\x00\x00\x00\x9c"
	for _, c := range []struct {
		name string
		row  string
		edit func(cells []layout.Cell) []layout.Cell
		want result
	}{
		{"an import time of the server", "0123", func(cells []layout.Cell) []layout.Cell {
			return replaced(cells, "a", "Views", exp, exp+5000, "")
		}, result{fixtures.TimestampsExact: "TimestampDiffers", fixtures.TimestampsOrderOnly: "", fixtures.TimestampsIgnore: ""}},
		{"another value at a time of the server", "0123", func(cells []layout.Cell) []layout.Cell {
			return replaced(cells, "a", "Views", exp, exp+5000, views[:7]+"\x01")
		}, result{fixtures.TimestampsExact: "MissingCell ExtraCell", fixtures.TimestampsOrderOnly: "ValueDiffers", fixtures.TimestampsIgnore: "ValueDiffers"}},
		{"a time that holds a key", "0123", func(cells []layout.Cell) []layout.Cell {
			return replaced(cells, "c", "UserComments", old, old+1000, "")
		}, result{fixtures.TimestampsExact: "TimestampDiffers", fixtures.TimestampsOrderOnly: "TimestampDiffers", fixtures.TimestampsIgnore: ""}},
		{"two versions of the server", "0123", func(cells []layout.Cell) []layout.Cell {
			return append(cells, layout.Cell{Family: "a", Qualifier: []byte("Views"), Timestamp: exp + 1000, Value: []byte(views)})
		}, result{fixtures.TimestampsExact: "ExtraCell", fixtures.TimestampsOrderOnly: "ExtraCell", fixtures.TimestampsIgnore: "ExtraCell"}},
		{"nothing", "0123", func(cells []layout.Cell) []layout.Cell { return cells }, result{fixtures.TimestampsExact: "", fixtures.TimestampsOrderOnly: "", fixtures.TimestampsIgnore: ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for policy, want := range c.want {
				src, o := subject(t, "s2-video")
				conn := newBigtableServer(t)
				if _, err := Load(t.Context(), conn, src, LoadOptions{Common: o}); err != nil {
					t.Fatal(err)
				}
				for row, err := range table.NewBigtable(conn, table.Options{}).TableRows(t.Context(), "videos") {
					if err != nil {
						t.Fatal(err)
					}
					if string(row.Key) == c.row {
						putRow(t, conn, "videos", row.Key, c.edit(row.Cells))
						break
					}
				}
				r, err := Verify(t.Context(), conn, OfSource(src), VerifyOptions{Common: o, Stored: true, Timestamps: policy})
				if err != nil {
					t.Fatal(err)
				}
				if got := kinds(r); got != want {
					t.Errorf("%s: failures %q, want %q\n%s", policy, got, want, r.Text())
				}
			}
		})
	}
}

// The elements of a list are compared by order if their times are not: a reordered list is
// another value.
func TestCompare_TimestampPoliciesOfLists(t *testing.T) {
	t.Parallel()
	const first = layout.ListEpochMillis * 1000
	for _, c := range []struct {
		name   string
		values []string
		later  int64 // milliseconds
		want   map[fixtures.TimestampPolicy]string
	}{
		{"in order", []string{"Sx", "N1", "Sy"}, 50, map[fixtures.TimestampPolicy]string{fixtures.TimestampsExact: "TimestampDiffers TimestampDiffers TimestampDiffers", fixtures.TimestampsOrderOnly: "", fixtures.TimestampsIgnore: ""}},
		{"out of order", []string{"N1", "Sx", "Sy"}, 50, map[fixtures.TimestampPolicy]string{fixtures.TimestampsOrderOnly: "OrderDiffers", fixtures.TimestampsIgnore: "OrderDiffers"}},
		{"reversed at the same times", []string{"Sy", "N1", "Sx"}, 0, map[fixtures.TimestampPolicy]string{fixtures.TimestampsExact: "OrderDiffers", fixtures.TimestampsOrderOnly: "OrderDiffers", fixtures.TimestampsIgnore: "OrderDiffers"}},
		{"one later", []string{"Sz", "Sx", "N1", "Sy"}, -1, map[fixtures.TimestampPolicy]string{fixtures.TimestampsIgnore: "ExtraCell"}},
		{"one moved to the end", []string{"", "N1", "Sy", "Sx"}, 0, map[fixtures.TimestampPolicy]string{fixtures.TimestampsOrderOnly: "OrderDiffers", fixtures.TimestampsIgnore: "OrderDiffers"}},
		{"one missing", []string{"Sx", "N1"}, 50, map[fixtures.TimestampPolicy]string{fixtures.TimestampsIgnore: "MissingCell"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for policy, want := range c.want {
				src := open(t, `{"id":{"S":"a"},"list":{"L":[{"S":"x"},{"N":"1"},{"S":"y"}]}}`)
				conn := newBigtableServer(t)
				if _, err := Load(t.Context(), conn, src, LoadOptions{}); err != nil {
					t.Fatal(err)
				}
				var cells []layout.Cell
				for i, v := range c.values {
					if v != "" {
						cells = append(cells, layout.Cell{Family: "l", Qualifier: []byte("list"), Timestamp: first + (int64(i)+c.later)*1000, Value: []byte(v)})
					}
				}
				putRow(t, conn, "items", []byte("a"), cells)
				r, err := Verify(t.Context(), conn, OfSource(src), VerifyOptions{Stored: true, Timestamps: policy})
				if err != nil {
					t.Fatal(err)
				}
				if got := kinds(r); got != want {
					t.Errorf("%s: failures %q, want %q\n%s", policy, got, want, r.Text())
				}
			}
		})
	}
}

// A failure of a list shows the contents of the column and the effect on the item, and nothing
// about an equal item.
func TestCompare_TextsOfLists(t *testing.T) {
	t.Parallel()
	const first = layout.ListEpochMillis * 1000
	for _, c := range []struct {
		name   string
		values []string
		later  int64 // milliseconds
		want   []report.Failure
	}{
		{"in order at other times", []string{"Sx", "N1", "Sy"}, 1, []report.Failure{
			{Kind: report.TimestampDiffers, Want: `@1262304000002000 = "Sy"`, Got: `@1262304000003000 = "Sy"`},
			{Kind: report.TimestampDiffers, Want: `@1262304000001000 = "N1"`, Got: `@1262304000002000 = "N1"`},
			{Kind: report.TimestampDiffers, Want: `@1262304000000000 = "Sx"`, Got: `@1262304000001000 = "Sx"`},
		}},
		{"in another order", []string{"Sx", "Sy", "N1"}, 0, []report.Failure{{
			Kind: report.OrderDiffers, Want: `@1262304000001000 = "N1", @1262304000002000 = "Sy"`, Got: `@1262304000001000 = "Sy", @1262304000002000 = "N1"`,
			Decoded: `list: want {"L":[{"S":"x"},{"N":"1"},{"S":"y"}]}, got {"L":[{"S":"x"},{"S":"y"},{"N":"1"}]}`,
		}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			src := open(t, `{"id":{"S":"a"},"list":{"L":[{"S":"x"},{"N":"1"},{"S":"y"}]}}`)
			conn := newBigtableServer(t)
			if _, err := Load(t.Context(), conn, src, LoadOptions{}); err != nil {
				t.Fatal(err)
			}
			var cells []layout.Cell
			for i, v := range c.values {
				cells = append(cells, layout.Cell{Family: "l", Qualifier: []byte("list"), Timestamp: first + (int64(i)+c.later)*1000, Value: []byte(v)})
			}
			putRow(t, conn, "items", []byte("a"), cells)
			r, err := Verify(t.Context(), conn, OfSource(src), VerifyOptions{Stored: true})
			if err != nil {
				t.Fatal(err)
			}
			var got []report.Failure
			for _, f := range r.Failures {
				got = append(got, report.Failure{Kind: f.Kind, Want: f.Want, Got: f.Got, Decoded: f.Decoded})
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("failures %+v, want %+v", got, c.want)
			}
		})
	}
}

// kinds lists the kinds of a report's failures, except those of retention.
func kinds(r *report.Report) string {
	var out []string
	for _, f := range r.Failures {
		if f.Kind != report.LossNotAccepted {
			out = append(out, string(f.Kind))
		}
	}
	return strings.Join(out, " ")
}

// replaced moves a cell to another time, and replaces its value unless that is "".
func replaced(cells []layout.Cell, family, qualifier string, from, to int64, value string) []layout.Cell {
	for i, c := range cells {
		if c.Family == family && string(c.Qualifier) == qualifier && c.Timestamp == from {
			cells[i].Timestamp = to
			if value != "" {
				cells[i].Value = []byte(value)
			}
			return cells
		}
	}
	panic(fmt.Sprintf("no cell %s:%s @%d", family, qualifier, from))
}
