package migrate

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// patternFixture is a fixture of three items and the given access patterns.
func patternFixture(patterns ...string) fstest.MapFS {
	files := fstest.MapFS{
		"fixture.yaml": {Data: []byte("title: Letters\nname: letters\n")},
		"mapping.yaml": {Data: []byte(`
apiVersion: migration/v1
source: {table: Letters, key: {hash: {name: pk, type: S}, range: {name: sk, type: S}}, schema: {n: N, tags: SS}}
target: {table: letters, joiner: "plain('#')", families: {a: {gc: {versions: 1}}, s.tags: {gc: {versions: 1}}, _t: {gc: {versions: 1}}}}
rules: [{name: letter, row: ["{pk:s}", "{sk:s}"], put: [{attr: "*", cell: "a:{attr}"}]}]
`)},
		"source/items.jsonl": {Data: []byte(`{"pk":{"S":"a"},"sk":{"S":"1"},"n":{"N":"1.0"},"tags":{"SS":["x","y"]}}` + "\n" +
			`{"pk":{"S":"a"},"sk":{"S":"2"},"n":{"N":"2"}}` + "\n" + `{"pk":{"S":"b"},"sk":{"S":"1"},"n":{"N":"3"}}` + "\n")},
	}
	for i, p := range patterns {
		files[fmt.Sprintf("access/%d.yaml", i+1)] = &fstest.MapFile{Data: []byte(p)}
	}
	return files
}

const queryA = `dynamodb: {op: Query, request: {KeyConditionExpression: "pk = :p", ExpressionAttributeValues: {":p": {S: a}}}}` + "\n"

func TestVerify_Patterns(t *testing.T) {
	t.Parallel()
	const itemA1, itemA2 = `{pk: {S: a}, sk: {S: "1"}, n: {N: "1"}, tags: {SS: [y, x]}}`, `{pk: {S: a}, sk: {S: "2"}, n: {N: "2.00"}}`
	for _, c := range []struct {
		name, Pattern string
		want          string // a failure, or ""
	}{
		{"sets unordered, numbers by value", "id: p\n" + queryA + `expect: {items: [` + itemA1 + `, ` + itemA2 + `]}
equal: {as: items, sets: unordered, numbers: by-value, via: inverse-mapping}
bigtable: {read: {prefix: "a#"}, max_ranges: 1}`, ""},
		{"another value", "id: p\n" + queryA + `expect: {items: [` + itemA1 + `, {pk: {S: a}, sk: {S: "2"}, n: {N: "3"}}]}`, `PatternDiffers fixture letters pattern p table letters rule letter item {"pk":{"S":"a"},"sk":{"S":"2"}} row "a#2" hex 612332 column n: want {"N":"3"}, got {"N":"2"}: DynamoDB endpoint: item 2 of 2 has another n (access/1.yaml, mapping.yaml:5)`},
		{"an attribute ignored", "id: p\n" + queryA + `expect: {items: [` + itemA1 + `, {pk: {S: a}, sk: {S: "2"}, n: {N: "3"}}]}
equal: {ignore: [n]}`, ""},
		{"keys alone", "id: p\n" + queryA + `expect: {items: [{pk: {S: a}, sk: {S: "1"}}, {pk: {S: a}, sk: {S: "2"}}]}
equal: {as: keys}`, ""},
		{"the count alone", "id: p\n" + queryA + `expect: {items: [{}, {}]}
equal: {as: count}`, ""},
		{"another count", "id: p\n" + queryA + `expect: {items: [{}]}
equal: {as: count}`, "want 1 item, got 2 items: DynamoDB endpoint: another number of items"},
		{"ranges, in hex too", `{id: p, bigtable: {read: {ranges: [{prefix: "hex:6123"}, {start: "b", end: "c"}]}, max_ranges: 2}, expect: {keys: [[a, "1"], [a, "2"], [b, "1"]]}}`, ""},
		{"too many ranges", `{id: p, bigtable: {read: {keys: ["a#1"], ranges: [{prefix: "b"}]}, max_ranges: 1}, expect: {keys: [[a, "1"], [b, "1"]]}}`, "PatternFullScan fixture letters pattern p table letters: want at most 1, got 2 ranges: the native read needs 2 ranges, at most 1 are declared (access/1.yaml)"},
		{"golden items that are not there", "id: p\n" + queryA + "expect: {items: golden}", "expect/1.items.golden is missing"},
		{"both endpoints agree", "id: p\n" + queryA + `bigtable: {read: {prefix: "a#"}}`, ""},
		{"both endpoints agree on a count", "id: p\n" + queryA + `bigtable: {read: {prefix: "a#"}}
expect: {count: 2, order: by-key}`, ""},
		{"endpoints that disagree", "id: p\n" + queryA + `bigtable: {read: {keys: ["a#1"]}}
expect: {}`, `item {"pk":{"S":"a"},"sk":{"S":"2"}} row "a#2" hex 612332: want {"n":{"N":"2"},"pk":{"S":"a"},"sk":{"S":"2"}}, got nothing: native read: 1 item, want 2; item 2 is missing (access/1.yaml, mapping.yaml:5)`},
		{"another count than both endpoints'", "id: p\n" + queryA + `bigtable: {read: {prefix: "a#"}}
expect: {count: 3}`, "want 3 items, got 2 items: native read: another number of items"},
		{"an order that differs", "id: p\n" + queryA + `bigtable: {read: {prefix: "a#", reversed: true}}`, "native read: item 1 of 2 is"},
		{"nothing, listed", "id: p\n" + queryA + "expect: {items: []}", "DynamoDB endpoint: 2 items, want 0"},
		{"SQL", "id: p\n" + queryA + `bigtable: {sql: {query: "SELECT * FROM letters WHERE STARTS_WITH(_key, @p)", parameters: {p: "hex:6123"}}}`, ""},
		{"SQL with a history", `{id: p, bigtable: {sql: {query: "SELECT * FROM letters(with_history => TRUE) WHERE _key IN UNNEST(@k)", parameters: {k: ["a#2", "b#1"]}}}, expect: {keys: [[a, "2"], [b, "1"]]}}`, ""},
		{
			"SQL that omits an item", "id: p\n" + queryA + `bigtable: {read: {prefix: "a#"}, sql: {query: "SELECT * FROM letters WHERE a['n'] = @n", parameters: {n: "1"}}}`,
			`item {"pk":{"S":"a"},"sk":{"S":"2"}} row "a#2" hex 612332: want {"n":{"N":"2"},"pk":{"S":"a"},"sk":{"S":"2"}}, got nothing: SQL: 1 item, want 2; item 2 is missing (access/1.yaml, mapping.yaml:5)`,
		},
		{"SQL without the row key", "id: p\n" + queryA + `bigtable: {sql: {query: "SELECT a, _t FROM letters"}}`, "got the result has no column _key with the row key of table letters: SQL: the request was refused"},
		{"SQL with another column", "id: p\n" + queryA + `bigtable: {sql: {query: "SELECT _key, 1 AS one FROM letters"}}`, "got column one of the result is neither a family nor of type BYTES, so it is not a column of letters: SQL"},
		{"SQL with a map of other types", "id: p\n" + queryA + `bigtable: {sql: {query: "SELECT _key, MAP_FROM_ARRAY([STRUCT(b'q' AS key, [1] AS value)]) AS f FROM letters"}}`, "got column f of the result is neither a family nor of type BYTES, so it is not a column of letters: SQL"},
		{"SQL that Bigtable refuses", "id: p\n" + queryA + `bigtable: {sql: {query: "SELECT * FROM letters WHERE _key = @x"}}`, "want 2 items, got Query parameter 'x' not found"},
		{"eventual", "id: p\n" + queryA + `expect: {count: 2, keys: [[a, "1"], [a, "2"]]}
consistency: eventual(500ms)`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, err := Verify(t.Context(), newBigtableServer(t), OfFixture(patternFixture(c.Pattern)), VerifyOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" {
				wantEqual(t, r)
			} else if !slices.ContainsFunc(r.Failures, func(f report.Failure) bool { return strings.Contains(f.String(), c.want) }) {
				t.Errorf("failures %v, want %q", r.Failures, c.want)
			}
		})
	}
}

// writeA deletes item a 1, and reads the other items of a.
const writeA = `id: p
dynamodb: {op: DeleteItem, request: {Key: {pk: {S: a}, sk: {S: "1"}}}, then: {op: Query, request: {KeyConditionExpression: "pk = :p", ExpressionAttributeValues: {":p": {S: a}}}}}
`

// The key of a native write may be in hex, like that of a read.
func TestVerify_PatternWritesHex(t *testing.T) {
	t.Parallel()
	for _, write := range []string{`{key: "hex:612331", delete: true}`, `{prefix: "hex:612331", delete: true}`} {
		r, err := Verify(t.Context(), newBigtableServer(t), OfFixture(patternFixture(writeA+"bigtable: {write: "+write+", read: {prefix: 'a#'}}\nexpect: {keys: [[a, '2']]}")), VerifyOptions{})
		if err != nil {
			t.Fatal(err)
		}
		wantEqual(t, r)
	}
}

func TestVerify_InvalidPatterns(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		queryA:                                   "it has no id",
		"id: p\n" + queryA:                       "it uses one endpoint and has no expectation: set expect.items",
		"id: p\n" + queryA + "equal: {as: rows}": `access/1.yaml:3:13: the access pattern cannot be parsed: equal.as: "rows"; expected items, keys, count`,
		"id: p\n" + queryA + "equal: {sets: ordered}":                                                           `access/1.yaml:3:15: the access pattern cannot be parsed: equal.sets: "ordered"; expected unordered`,
		"id: p\n" + queryA + "equal: {numbers: by-text}":                                                        `equal.numbers: "by-text"; expected by-value`,
		"id: p\n" + queryA + "consistency: eventual(soon)":                                                      `consistency: "eventual(soon)"; expected strong, eventual or eventual(500ms)`,
		"id: p\n" + queryA + "consistency: sometimes":                                                           `access/1.yaml:3:14: the access pattern cannot be parsed: consistency: "sometimes"; expected strong, eventual or eventual(500ms)`,
		"id: p\n" + queryA + "expect: {items: silver}":                                                          `expect.items is "silver", want golden or a list of items`,
		"id: p\nbigtable: {read: {prefix: 'hex:6'}}":                                                            `the key "hex:6" is not hex`,
		writeA + "bigtable: {write: {key: 'hex:6', delete: true}, read: {prefix: 'a#'}}\nexpect: {keys: []}":    `the key "hex:6" is not hex`,
		writeA + "bigtable: {write: {prefix: 'hex:x', delete: true}, read: {prefix: 'a#'}}\nexpect: {keys: []}": `the key "hex:x" is not hex`,
		writeA + "bigtable: {write: {key: 'hex:', delete: true}, read: {prefix: 'a#'}}\nexpect: {keys: []}":     "a native write needs a key",
		"id: p\nbigtable: {max_ranges: 1}":                                                                      "its bigtable part has neither a read nor sql",
		"id: p\nbigtable: {sql: {table: letters}}":                                                              `bigtable.sql: "query" is missing`,
		"id: p\nbigtable: {sql: {query: SELECT 1, parameters: {k: 'hex:6'}}}":                                   `the key "hex:6" is not hex`,
		"id: p\nbigtable: {sql: {query: SELECT 1, parameters: {k: {S: a}}}}":                                    "the parameter k is map[S:a]; expected a text, a number, true, false, or a list of texts",
		"id: p\nbigtable: {read: {prefix: 'a', start: 'b'}}":                                                    "a range cannot combine a prefix with a start or an end",
	} {
		_, err := Verify(t.Context(), newBigtableServer(t), OfFixture(patternFixture(pattern)), VerifyOptions{})
		WantDamage(t, err, source.FixtureInvalid, want)
	}
}

// Two patterns with one id could not be distinguished in a report.
func TestVerify_SameID(t *testing.T) {
	t.Parallel()
	_, err := Verify(t.Context(), newBigtableServer(t), OfFixture(patternFixture("id: p\n"+queryA+"expect: {count: 2}", "id: p\n"+queryA+"expect: {count: 2}")), VerifyOptions{})
	WantDamage(t, err, source.FixtureInvalid, "access/2.yaml: id p is already used by access/1.yaml")
}

// A read whose filter drops nearly all scanned rows causes a warning.
func TestVerify_PatternCost(t *testing.T) {
	t.Parallel()
	files := patternFixture(`{id: p, bigtable: {read: {prefix: "a#", filter: {column: "m"}}, max_ranges: 1}, expect: {keys: []}}`)
	var lines strings.Builder
	for i := range 30 {
		fmt.Fprintf(&lines, `{"pk":{"S":"a"},"sk":{"S":"%02d"},"n":{"N":"1"}}`+"\n", i)
	}
	files["source/items.jsonl"] = &fstest.MapFile{Data: []byte(lines.String())}
	r, err := Verify(t.Context(), newBigtableServer(t), OfFixture(files), VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, r)
	want := "pattern p: the native read scans 30 rows and returns 0: replace its filter with a narrower range"
	if !slices.Contains(r.Warnings, want) {
		t.Errorf("warnings %q, want %q", r.Warnings, want)
	}
	if p := r.Patterns[0]; p.Ranges != 1 || p.RowsScanned != 30 || p.RowsReturned != 0 {
		t.Errorf("%d ranges, %d rows scanned, %d returned; want 1, 30, 0", p.Ranges, p.RowsScanned, p.RowsReturned)
	}
}

// An unreadable row is one failure, however often it is read, and a refused read is a
// difference.
func TestVerify_StoredRefusedReads(t *testing.T) {
	t.Parallel()
	files := patternFixture(`{id: p, bigtable: {read: {prefix: "a#"}}, expect: {keys: [[a, "1"], [a, "2"]]}, consistency: eventual(60ms)}`,
		`{id: q, bigtable: {read: {prefix: "a#", filter: {family: "("}}}, expect: {count: 0}}`)
	conn := newBigtableServer(t)
	loadFixture(t, conn, files)
	change(t, conn, "letters", "a#1", setCell("a", "n", 1262304000000000, "no number"))
	waits := 0
	r, err := Verify(t.Context(), conn, OfFixture(files), VerifyOptions{Common: Common{Sleep: func(context.Context, time.Duration) error {
		waits++
		return nil
	}}, Stored: true})
	if err != nil {
		t.Fatal(err)
	}
	if waits != 3 {
		t.Errorf("%d waits, want 3", waits)
	}
	var found []string
	for _, f := range r.Failures {
		if f.Pattern == "" {
			continue
		}
		found = append(found, string(f.Kind))
		if f.Check != "pattern "+f.Pattern || f.File == "" || f.Want == "" || f.Got == "" || f.Pattern == "p" && (f.Rule == "" || f.ItemKey == "" || f.RowHex == "" || f.Mapping == "") {
			t.Errorf("the failure has no complete cause and place: %+v", f)
		}
	}
	if got := strings.Join(found, " "); got != "RowUnreadable PatternDiffers PatternDiffers" {
		t.Errorf("failures %q, want RowUnreadable PatternDiffers PatternDiffers\n%s", got, r.Text())
	}
	for i, id := range []string{"p", "q"} {
		if n := len(r.FailuresOfPattern(id)); n != 2-i || r.Patterns[i].Differences != int64(n) {
			t.Errorf("pattern %s: %d failures of %d", id, n, r.Patterns[i].Differences)
		}
	}
}

// loadFixture loads the data of a fixture, as another loader would.
func loadFixture(t *testing.T, conn grpc.ClientConnInterface, files fs.FS) {
	t.Helper()
	f, err := table.OpenFixture(files, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Load(t.Context(), conn, f.Data, LoadOptions{Common: Common{Mappings: []*mapping.Mapping{f.Mapping}}}); err != nil {
		t.Fatal(err)
	}
}

// Stored rows are checked as another loader's, and nothing is written.
func TestVerify_Stored(t *testing.T) {
	t.Parallel()
	files := patternFixture("id: p\n" + queryA + `expect: {keys: [[a, "1"], [a, "2"]]}
bigtable: {read: {prefix: "a#"}, max_ranges: 1}`)
	conn := newBigtableServer(t)
	loadFixture(t, conn, files)
	before := tableText(t, conn, "letters")
	r, err := Verify(t.Context(), conn, OfFixture(files), VerifyOptions{Stored: true})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, r)
	if after := tableText(t, conn, "letters"); after != before || len(tableIDs(t, conn)) != 2 { // with layout.SchemaTable
		t.Errorf("tables %v, rows\n%s\nwant them as they were:\n%s", tableIDs(t, conn), after, before)
	}
	if len(r.Patterns) != 1 || !slices.Equal(r.Patterns[0].Endpoints, []string{"bigtable"}) {
		t.Errorf("patterns %+v, want one, by its native read", r.Patterns)
	}
	change(t, conn, "letters", "a#2", deleteCell("a", "n", 1262304000000000))
	if r, err = Verify(t.Context(), conn, OfFixture(files), VerifyOptions{Stored: true}); err != nil {
		t.Fatal(err)
	}
	if got := kinds(r); got != "MissingRow PatternDiffers" {
		t.Errorf("failures %q, want MissingRow PatternDiffers\n%s", got, r.Text())
	}
	if f := r.Failures[0]; f.Mapping != "mapping.yaml:5" || f.Rule != "letter" {
		t.Errorf("the failure points at rule %q, %q; want letter, mapping.yaml:5", f.Rule, f.Mapping)
	}
}

// A loader that does not know indexes omits their tables: these are differences of the indexes,
// and of the patterns that read them.
func TestVerify_StoredNoIndexTable(t *testing.T) {
	t.Parallel()
	files, err := fs.Sub(shippedFiles, "subjects/s5-order-entry")
	if err != nil {
		t.Fatal(err)
	}
	src, o := subject(t, "s5-order-entry")
	conn := newBigtableServer(t)
	if _, err := Load(t.Context(), conn, src, LoadOptions{Common: o}); err != nil {
		t.Fatal(err)
	}
	b := table.NewBigtable(conn, table.Options{})
	if err := b.DropTable(t.Context(), "orders__GSI2"); err != nil {
		t.Fatal(err)
	}
	r, err := Verify(t.Context(), conn, OfFixture(files), VerifyOptions{Stored: true})
	if err != nil {
		t.Fatal(err)
	}
	found := map[report.Kind]int{}
	for _, f := range r.Failures {
		if f.Table == "orders__GSI2" || f.Pattern == "P5" { // which reads all shards
			found[f.Kind]++
		}
	}
	if want := map[report.Kind]int{report.MissingRow: 6, report.IndexStale: 1, report.PatternDiffers: 1}; !maps.Equal(found, want) || r.Differences != 8 {
		t.Errorf("%d differences, %v; want 8, %v\n%s", r.Differences, found, want, r.Text())
	}
}

// A missing items' table is a difference, and so are missing golden rows and patterns.
func TestVerify_StoredNoTable(t *testing.T) {
	t.Parallel()
	files, err := fs.Sub(shippedFiles, "subjects/s1-catalog")
	if err != nil {
		t.Fatal(err)
	}
	conn := newBigtableServer(t)
	for _, want := range []string{"projects/tabletop/instances/tabletop has no tables", "projects/tabletop/instances/tabletop has other"} {
		r, err := Verify(t.Context(), conn, OfFixture(files), VerifyOptions{Stored: true})
		if err != nil {
			t.Fatal(err)
		}
		found := map[report.Kind]int{}
		for _, f := range r.Failures {
			found[f.Kind]++
			if f.Kind == report.MissingTable && (f.Detail != want || f.Table != "products" || f.Want != "5 items, 15 cells") {
				t.Errorf("%s, want %q", f, want)
			}
		}
		if want := map[report.Kind]int{report.MissingTable: 1, report.MissingRow: 5, report.PatternDiffers: 5}; !maps.Equal(found, want) {
			t.Errorf("failures %v, want %v\n%s", found, want, r.Text())
		}
		if _, err := table.NewBigtable(conn, table.Options{}).MakeTable(t.Context(), "other", nil); err != nil {
			t.Fatal(err)
		}
	}
}

// A fixture lists the permitted deviations of another loader.
func TestVerify_StoredTolerances(t *testing.T) {
	t.Parallel()
	const at = 1262304000000000
	for _, c := range []struct{ tolerances, want string }{
		{"", "MissingRow ExtraCell ValueDiffers TimestampDiffers"},
		{"extra_columns: ['a:loaded']", "ValueDiffers TimestampDiffers"},
		{"extra_columns: ['a:loaded'], lenient_sets: true", "TimestampDiffers"},
		{"extra_columns: ['a:loaded'], lenient_sets: true, timestamps: order-only", ""},
	} {
		t.Run(c.tolerances, func(t *testing.T) {
			t.Parallel()
			files := patternFixture(`{id: p, bigtable: {read: {prefix: "a#"}}, expect: {keys: [[a, "1"], [a, "2"]]}}`)
			conn := newBigtableServer(t)
			loadFixture(t, conn, files)
			change(t, conn, "letters", "a#1", setCell("s.tags", "x", at, ""))
			change(t, conn, "letters", "a#2", deleteCell("a", "n", at), setCell("a", "n", at+1000, "2"))
			change(t, conn, "letters", "b#1", setCell("a", "loaded", at, "now"))
			files["fixture.yaml"] = &fstest.MapFile{Data: []byte("tolerances: {" + c.tolerances + "}\n")}
			r, err := Verify(t.Context(), conn, OfFixture(files), VerifyOptions{Stored: true})
			if err != nil {
				t.Fatal(err)
			}
			if c.tolerances == "" {
				if len(r.Failures) != 3 {
					t.Errorf("without tolerances:\n%s", r.Text())
				}
			} else if got := kinds(r); got != c.want {
				t.Errorf("failures %q, want %q\n%s", got, c.want, r.Text())
			}
		})
	}
	for text, want := range map[string]string{
		"timestamps: soon":      `fixture.yaml:1:26: the file cannot be parsed: tolerances.timestamps: "soon"; expected exact, order-only, ignore`,
		"extra_columns: [meta]": `fixture.yaml: the tolerances cannot be used: extra_columns has "meta", want FAMILY:QUALIFIER or FAMILY:*`,
	} {
		files := patternFixture()
		files["fixture.yaml"] = &fstest.MapFile{Data: []byte("tolerances: {" + text + "}\n")}
		_, err := Verify(t.Context(), newBigtableServer(t), OfFixture(files), VerifyOptions{Stored: true})
		WantDamage(t, err, source.FixtureInvalid, want)
	}
}

// A fixture selects its checks; the others are reported as skipped.
func TestVerify_Checks(t *testing.T) {
	t.Parallel()
	files := patternFixture("id: p\n" + queryA + "expect: {count: 2}")
	files["expect/rows.golden"] = &fstest.MapFile{Data: []byte("# none\n")} // differs
	files["fixture.yaml"] = &fstest.MapFile{Data: []byte("checks: {golden: false, second_load: false, scan: false, patterns: false, garbage_collection: false, restart: false, lint: false}\n")}
	conn := newBigtableServer(t)
	call := func(stored bool) *report.Report {
		t.Helper()
		r, err := Verify(t.Context(), conn, OfFixture(files), VerifyOptions{Stored: stored})
		if err != nil {
			t.Fatal(err)
		}
		wantEqual(t, r)
		off := []string{"golden files", "second load", "scan through the DynamoDB endpoint", "access patterns", "garbage collection", "restart", "lint"}
		for _, c := range r.Checks {
			if turned := c.State == report.CheckSkipped && c.Detail == "fixture.yaml turns it off (checks)"; turned != slices.Contains(off, c.Name) {
				t.Errorf("check %+v", c)
			}
		}
		if len(r.Patterns) > 0 || r.Lint != nil {
			t.Errorf("patterns %v, lint %v: want none", r.Patterns, r.Lint)
		}
		return r
	}
	if n := len(call(false).Checks); n != 12 {
		t.Errorf("%d checks, want 12", n)
	}
	if n := len(call(true).Checks); n != 9 {
		t.Errorf("%d checks against another store, want 9", n)
	}
	files["fixture.yaml"] = &fstest.MapFile{Data: []byte("checks: {golden: true, lint: false}\n")}
	r, err := Verify(t.Context(), newBigtableServer(t), OfFixture(files), VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := kinds(r); got != "ExtraRow ExtraRow ExtraRow" || len(r.Patterns) != 1 {
		t.Errorf("failures %q, %d patterns; want three of ExtraRow, and one", got, len(r.Patterns))
	}
}

// The golden items of a pattern that writes are those after its write.
func TestUpdateGoldens_Writes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, file := range patternFixture(writeA + "bigtable: {write: {key: 'a#1', delete: true}, read: {prefix: 'a#'}}\nexpect: {items: golden}") {
		writeTo(t, dir, name, string(file.Data))
	}
	for _, want := range []int{5, 0} {
		changes, err := UpdateGoldens(t.Context(), newBigtableServer(t), dir, VerifyOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(changes) != want {
			t.Errorf("changes %v, want %d", changes, want)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "expect", "1.items.golden"))
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"n":{"N":"2"},"pk":{"S":"a"},"sk":{"S":"2"}}` + "\n"; string(text) != want {
		t.Errorf("golden items %s, want %s", text, want)
	}
	r, err := Verify(t.Context(), newBigtableServer(t), OfFixture(os.DirFS(dir)), VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, r)
}

// Written golden files agree with the results; writing them again changes nothing, and comments
// stay.
func TestUpdateGoldens(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, file := range patternFixture("id: p\n"+queryA+"expect: {items: golden}", `{id: q, bigtable: {read: {keys: ["b#1"]}}, expect: {items: golden}}`) {
		writeTo(t, dir, name, string(file.Data))
	}
	update := func(conn grpc.ClientConnInterface) string {
		t.Helper()
		changes, err := UpdateGoldens(t.Context(), conn, dir, VerifyOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for _, c := range changes {
			fmt.Fprintln(&text, c)
		}
		return text.String()
	}
	const want = `expect/rows.golden: created, 8 lines
expect/schema.golden: created, 4 lines
expect/fidelity.golden.json: created, 23 lines
mapping.lock.json: created, 23 lines
expect/1.items.golden: created, 2 lines
expect/2.items.golden: created, 1 line
`
	if got := update(newBigtableServer(t)); got != want {
		t.Errorf("changes:\n%s\nwant:\n%s", got, want)
	}
	fsys := os.DirFS(dir)
	rows, err := fs.ReadFile(fsys, "expect/rows.golden")
	if err != nil {
		t.Fatal(err)
	}
	writeTo(t, dir, "expect/rows.golden", "# A comment.\n"+string(rows))
	r, err := Verify(t.Context(), newBigtableServer(t), OfFixture(fsys), VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, r)
	if got := update(newBigtableServer(t)); got != "" {
		t.Errorf("a second update changes:\n%s", got)
	}
	writeTo(t, dir, "expect/schema.golden", "table letters\n")
	if r, err = Verify(t.Context(), newBigtableServer(t), OfFixture(fsys), VerifyOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := kinds(r); got != "GoldenDiffers GoldenDiffers GoldenDiffers" {
		t.Errorf("failures %q, want one GoldenDiffers a line", got)
	}
	if got := update(newBigtableServer(t)); got != "expect/schema.golden: 0 lines removed, 3 added\n" {
		t.Errorf("changes: %s", got)
	}
}

func writeTo(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A failing pattern shows the number of expected items, whether they are listed, counted, or
// from the other endpoint.
func TestProgress_PatternsTellHowManyAreWanted(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		"id: p\n" + queryA + "expect: {items: []}":                                    "2 items, want 0",
		"id: p\n" + queryA + "expect: {items: [{}]}\nequal: {as: count}":              "want 1 item, got 2 items",
		"id: p\n" + queryA + "bigtable: {read: {prefix: \"a#\"}}\nexpect: {count: 3}": "want 3 items, got 2 items",
		"id: p\n" + queryA + "bigtable: {read: {keys: [\"a#1\"]}}\nexpect: {}":        "1 item, want 2",
	} {
		r, err := Verify(t.Context(), newBigtableServer(t), OfFixture(patternFixture(pattern)), VerifyOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(r.Failures, func(f report.Failure) bool {
			return f.Kind == report.PatternDiffers && strings.Contains(f.String(), want)
		}) {
			t.Errorf("%s\ngives %v, want a difference that says %q", pattern, r.Failures, want)
		}
	}
}
