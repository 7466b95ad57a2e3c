package migrate

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/migrate/infer"
	"github.com/tabletop-emu/tabletop/migrate/internal/exporttest"
	"github.com/tabletop-emu/tabletop/migrate/internal/golden"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

func TestDamagedExports(t *testing.T) {
	t.Parallel()
	found := map[string]string{}
	for _, c := range exporttest.Damages {
		if !slices.Contains([]string{"corrupt gzip", "wrong count of a file", "missing data file", "extra data file"}, c.Name) {
			continue
		}
		if other := found[c.Damage]; other != "" {
			t.Errorf("%s has the same message as %s: %s", c.Name, other, c.Damage)
		}
		found[c.Damage] = c.Name
	}
	if len(found) != 4 {
		t.Errorf("kinds of damage %v, want 4", found)
	}
}

// designRows are rows as the designs describe them, by subject. Those of S5 lack the index
// keys, as in the description.
var designRows = map[string]string{
	"s1-catalog": `
hats#fedoras#brandA [68617473236665646f726173236272616e6441]
  SKU:Description @1715685260608000 = "Made from premium wool"
  SKU:Price       @1715685260608000 = "30"
  SKU:Thumbnail   @1715685260608000 = "https://storage/a"
hats#newsboy#brandB [68617473236e657773626f79236272616e6442]
shoes#sneakers#brandA [73686f657323736e65616b657273236272616e6441]
`,
	"s2-video": `
0123 [30313233]
  a:Formats @1694359308000000 = {"1080p":"https://s/1080p","480":"https://s/480","720":"https://s/720"}
  a:Likes   @1715685260608000 = 0000000000000003
  a:Views   @1715685260608000 = 000000000000009c
  c:UserComments @1694372475000000 = "I like this a lot. The special effects are incredible."
  c:UserComments @1694363442000000 = "There seems to be an audio glitch at 1:05."
0124 [30313234]
  a:Formats @1694365401000000 = {"480":"https://s/480","720":"https://s/720"}
  a:Views   @1715685260608000 = 000000000000002d
  c:UserComments @1697094531000000 = "The style reminds me of a movie director."
  c:UserComments @1697014800000000 = "I shared this with all my friends."
  _t:r/a:Views @1715685260608000 = "views2"
`,
	"s3-adjacency": `
0123 [30313233]
  Invoice:Details @1694359308000000 = {"discount":0.1,"due_date":"2023-10-03","sales_tax_usd":"8"}
  Payment:0680    @1694359300000000 = {"amount_usd":120,"bill_to":"John"}
  Payment:0789    @1694359291000000 = {"amount_usd":120,"bill_to":"Jane"}
0124 [30313234]
  Invoice:Details @1694254288000000 = {"discount":0.2,"due_date":"2023-10-03","sales_tax_usd":"11"}
  Payment:0275    @1694254263000000 = {"amount_usd":70,"bill_to":"Kate"}
  Payment:0327    @1694254270000000 = {"amount_usd":180,"bill_to":"Bob"}
`,
	"s4-versions": `
Equipment#1 [45717569706d656e742331]
  v:State @3000 = "OK"
  v:State @2000 = "WARNING1"
  v:State @1000 = "OK"
  v:Time  @3000 = "2020-11-03T10:00:00"
  v:Time  @2000 = "2020-11-02T10:00:00"
  v:Time  @1000 = "2020-11-01T10:00:00"
`,
	"s5-order-entry": `
OE-ORDER1#CUSTOMER1 [4f452d4f524445523123435553544f4d455231]
  a:Date   @1715685260608000 = "2023-09-10"
  a:Rep    @1715685260608000 = "ACCOUNT-REP1"
  a:Status @1715685260608000 = "OPEN"
HR-EMPLOYEE1#EMPLOYEE1 [48522d454d504c4f5945453123454d504c4f59454531]
HR-EMPLOYEE1#v0#JOB1 [48522d454d504c4f59454531237630234a4f4231]
OE-ORDER1#PRODUCT1 [4f452d4f52444552312350524f4455435431]
OE-PRODUCT1#PRODUCT1 [4f452d50524f44554354312350524f4455435431]
OE-PRODUCT1#WAREHOUSE1 [4f452d50524f44554354312357415245484f55534531]
table orders__GSI1
CUSTOMER1 | OPEN#2023-09-10 | OE-ORDER1 | CUSTOMER1 [435553544f4d455231` + `0001` + `4f50454e23323032332d30392d3130` + `0001` + `4f452d4f5244455231` + `0001` + `435553544f4d455231]
table orders__GSI2
03#OPEN#2023-09-10#OE-ORDER3 [3033234f50454e23323032332d30392d3130234f452d4f5244455233]
04#OPEN#2023-09-10#OE-ORDER2 [3034234f50454e23323032332d30392d3130234f452d4f5244455232]
05#OPEN#2023-09-10#OE-ORDER1 [3035234f50454e23323032332d30392d3130234f452d4f5244455231]
`,
	"s6-row-keys": `
pad#03 [706164233033]
pad#20 [706164233230]
revmax#9223370611524018122 [7265766d61782339323233333730363131353234303138313232]
nord#O [6e6f7264234f]
nord#P3003 [6e6f7264235033303033]
nord#P3012 [6e6f7264235033303132]
nord#P2995 [6e6f7264235032393935]
nord#N69987~ [6e6f7264234e36393938377e]
nord#N699876~ [6e6f7264234e3639393837367e]
nord#P1701 [6e6f7264235031373031]
revms#8305627524999 [7265766d732338333035363237353234393939]
revdigits#54321 [726576646967697473233534333231]
revdomain#com.google.maps [726576646f6d61696e23636f6d2e676f6f676c652e6d617073]
3#u1 [33237531]
6#u2 [36237532]
1#u3 [31237533]
`,
	"s6-anti-raw-bytes": `
i64#-1 [69363423` + `7fffffffffffffff]
i64#20 [69363423` + `8000000000000014]
`,
	"s6-tenants": `
altostrat#phone#4c410523#20190501 [616c746f73747261742370686f6e65233463343130353233233230313930353031]
`,
	"s7-time-series": `
4c410523#memusage#1423523569918 [3463343130353233236d656d75736167652331343233353233353639393138]
  m:v @1423523569918000 = "0.72"
4c410523#memusage#1423523570918 [3463343130353233236d656d75736167652331343233353233353730393138]
  m:v @1423523570918000 = "0.75"
`,
	"s7-friends": `
Jose [4a6f7365]
  friends:Fred    @1715685260608000 = "book-club"
  friends:Gabriel @1715685260608000 = "work"
  friends:Hiroshi @1715685260608000 = "tennis"
Sofia [536f666961]
  friends:Hiroshi  @1715685260608000 = "work"
  friends:Jakob    @1715685260608000 = "chess-club"
  friends:Seo Yoon @1715685260608000 = "school"
`,
	"s8-hot-keys": `
6#clicks#000000007 [3623636c69636b7323303030303030303037]
`,
}

// The rows of a load include those of the designs.
func TestDesigns_Rows(t *testing.T) {
	t.Parallel()
	for name, text := range designRows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := newBigtableServer(t)
			src, o := subject(t, name)
			if _, err := Load(t.Context(), conn, src, LoadOptions{Common: o}); err != nil {
				t.Fatal(err)
			}
			tables, err := golden.Parse("design", o.Mappings[0].TargetTable(), []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			for _, table := range tables {
				for key, want := range table.Rows {
					lines := strings.Split(rowText(t, conn, table.ID, key), "\n")
					if lines[0] == "" {
						t.Errorf("table %s has no row %x", table.ID, key)
					}
					var got []string
					for _, line := range lines[1:] {
						if c, err := golden.ParseCell(line); err == nil {
							got = append(got, fmt.Sprint(c))
						}
					}
					exact := name != "s5-order-entry" && len(want.Cells) > 0
					if exact && len(got) != len(want.Cells) {
						t.Errorf("row %q has %d cells, want %d", key, len(got), len(want.Cells))
					}
					for _, c := range want.Cells {
						if !slices.Contains(got, fmt.Sprint(c)) {
							t.Errorf("row %q has no cell %s:%s @%d = %s; it has\n%s", key, c.Family, c.Qualifier, c.Timestamp, c.Value, strings.Join(lines, "\n"))
						}
					}
				}
			}
		})
	}
}

// The mapping converts the rows back to the items of the source.
func TestDesigns_Inverse(t *testing.T) {
	t.Parallel()
	for _, s := range shippedSubjects(t) {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			conn := newBigtableServer(t)
			src, o := subject(t, s.Name)
			if _, err := Load(t.Context(), conn, src, LoadOptions{Common: o}); err != nil {
				t.Fatal(err)
			}
			var want, got []string
			for e, err := range src.Tables[0].Entries() {
				if err != nil {
					t.Fatal(err)
				}
				want = append(want, string(attr.AppendItemJSON(nil, e.Item)))
			}
			for row, err := range table.NewBigtable(conn, table.Options{}).TableRows(t.Context(), o.Mappings[0].TargetTable()) {
				if err != nil {
					t.Fatal(err)
				}
				items, err := o.Mappings[0].Items(row)
				if err != nil {
					t.Fatal(err)
				}
				for _, item := range items {
					got = append(got, string(attr.AppendItemJSON(nil, item)))
				}
			}
			slices.Sort(want)
			slices.Sort(got)
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("items (-want +got):\n%s", diff)
			}
		})
	}
}

// Each of the fourteen patterns runs on both endpoints, reports its cost and finds items.
func TestDesigns_FourteenPatterns(t *testing.T) {
	t.Parallel()
	s := shippedSubjects(t)[slices.IndexFunc(subjectCounts, func(s subjectCount) bool { return s.name == "s5-order-entry" })]
	f, err := table.OpenFixture(s.Files, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range f.Patterns {
		if p.ID != fmt.Sprintf("P%d", i+1) || p.DynamoDB == nil || p.Bigtable == nil || p.Bigtable.MaxRanges == 0 || p.Bigtable.FullScan || *p.Expect.Count == 0 {
			t.Errorf("pattern %d is %s: %+v", i+1, p.ID, p)
		}
		if _, index := p.DynamoDB.Request["IndexName"]; index != (p.Consistency == "eventual") {
			t.Errorf("pattern %s: an index is read %s", p.ID, cmp.Or(p.Consistency, "at any time"))
		}
	}
	if len(f.Patterns) != 14 {
		t.Errorf("%d patterns, want 14", len(f.Patterns))
	}
}

// question is one access pattern of a model: the items of the table or an index with a hash key
// and a prefix of the sort key.
type question struct {
	id, index string
	hash      attr.Value
	begins    string
	items     int // in the model; -1: unknown
}

// The facets of models return the same items from both endpoints. Lending names its facets; the
// facets of the other two are the partitions of their table and index.
func TestDesigns_Facets(t *testing.T) {
	t.Parallel()
	t.Run("Lending", func(t *testing.T) {
		t.Parallel()
		model := readModel(t, "workbench/Lending.json")
		table := model["DataModel"].([]any)[0].(map[string]any)
		var questions []question
		facets, _ := table["TableFacets"].([]any)
		if len(facets) != 7 {
			t.Fatalf("%d facets, want 7", len(facets))
		}
		for _, one := range facets {
			facet := one.(map[string]any)
			rows := facet["TableData"].([]any)
			counts := map[[2]string]int{}
			for _, row := range rows {
				hash, sort := textOf(row, "PK"), textOf(row, "SK")
				begins, _, _ := strings.Cut(sort, "#")
				counts[[2]string{hash, begins + "#"}]++
			}
			for key, n := range counts {
				questions = append(questions, question{id: fmt.Sprintf("%s %s", facet["FacetName"], key[0]), hash: attr.String(key[0]), begins: key[1], items: n})
			}
		}
		testQuestions(t, model, questions, 0)
	})
	t.Run("Notes", func(t *testing.T) {
		t.Parallel()
		testQuestions(t, readModel(t, "workbench/Notes.json"), nil, 5)
	})
	t.Run("Club", func(t *testing.T) {
		t.Parallel()
		testQuestions(t, readModel(t, "workbench/Club.json"), nil, 7)
	})
}

func textOf(row any, name string) string {
	return row.(map[string]any)[name].(map[string]any)["S"].(string)
}

func readModel(t *testing.T, name string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(inputPath(name))
	if err != nil {
		t.Fatal(err)
	}
	var model map[string]any
	if err := json.Unmarshal(text, &model); err != nil {
		t.Fatal(err)
	}
	return model
}

// testQuestions runs questions of a model or, without any, one for each of the given number of
// partitions.
func testQuestions(t *testing.T, model map[string]any, questions []question, partitions int) {
	t.Helper()
	text, err := json.Marshal(model)
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{"source/workbench.json": {Data: text}}
	src, err := source.OpenFS(files, "source/workbench.json", source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	in, err := infer.Table(t.Context(), src.Tables[0], infer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var items []attr.Item
	for e, err := range src.Tables[0].Entries() {
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, e.Item)
	}
	if questions == nil {
		questions = partitionsOf((*layout.Mapping)(in.Mapping), items)
		if len(questions) != partitions {
			t.Errorf("%d partitions, want %d", len(questions), partitions)
		}
	}
	for i, q := range questions {
		files[fmt.Sprintf("access/%02d.yaml", i)] = &fstest.MapFile{Data: q.pattern(t, (*layout.Mapping)(in.Mapping), items)}
	}
	r, err := Verify(t.Context(), newBigtableServer(t), OfFixture(files), VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, r)
	for _, p := range r.Patterns {
		if len(p.Endpoints) != 2 || p.Items == 0 || p.RowsScanned != p.RowsReturned {
			t.Errorf("%s: %d items by %v, %d rows scanned for %d", p.ID, p.Items, p.Endpoints, p.RowsScanned, p.RowsReturned)
		}
	}
	if len(r.Patterns) != len(questions) {
		t.Errorf("%d patterns were run, want %d", len(r.Patterns), len(questions))
	}
}

// partitionsOf returns the partitions of the table and of its indexes.
func partitionsOf(m *layout.Mapping, items []attr.Item) []question {
	var all []question
	add := func(index, name string) {
		for _, item := range items {
			if v, ok := item[name]; ok && !slices.ContainsFunc(all, func(q question) bool { return q.index == index && q.hash.Str == v.Str }) {
				all = append(all, question{id: fmt.Sprintf("%s %s", cmp.Or(index, "table"), v.Str), index: index, hash: v, items: -1})
			}
		}
	}
	add("", m.Key().Hash.Name)
	for _, x := range m.Indexes() {
		add(x.Name(), x.Def().Key.Hash.Name)
	}
	return all
}

// pattern returns the file of a question. Its expectation comes from the items, and the ranges
// of the native read from the mapping.
func (q question) pattern(t *testing.T, m *layout.Mapping, items []attr.Item) []byte {
	t.Helper()
	key, table, plan := m.Key(), m.TargetTable(), m.PlanQuery
	if q.index != "" {
		x := m.Index(q.index)
		key, table, plan = x.Def().Key, x.TargetTable(), x.PlanQuery
	}
	condition := attr.KeyRange{Hash: q.hash}
	text := "#h = :h"
	names := map[string]any{"#h": key.Hash.Name}
	values := map[string]any{":h": map[string]any{"S": q.hash.Str}}
	if q.begins != "" {
		condition.Op, condition.A = attr.RangeBeginsWith, attr.String(q.begins)
		text += " AND begins_with(#r, :r)"
		names["#r"], values[":r"] = key.Range.Name, map[string]any{"S": q.begins}
	}
	var found []attr.Item
	for _, item := range items {
		if item[key.Hash.Name].Str == q.hash.Str && strings.HasPrefix(item[key.Range.Name].Str, q.begins) {
			found = append(found, item)
		}
	}
	if q.items >= 0 && len(found) != q.items {
		t.Errorf("%s: %d items, and the model shows %d", q.id, len(found), q.items)
	}
	slices.SortFunc(found, func(a, b attr.Item) int { return strings.Compare(a[key.Range.Name].Str, b[key.Range.Name].Str) })
	var keys [][]string
	for _, item := range found {
		keys = append(keys, []string{item[m.Key().Hash.Name].Str, item[m.Key().Range.Name].Str})
	}
	spans, err := plan(condition)
	if err != nil || spans.Order != lens.SameOrder {
		t.Fatalf("%s: plan %+v, error %v", q.id, spans, err)
	}
	var ranges []map[string]string
	for _, s := range spans.Spans {
		ranges = append(ranges, map[string]string{"start": "hex:" + hex.EncodeToString(s.Start), "end": "hex:" + hex.EncodeToString(s.End)})
	}
	request := map[string]any{"KeyConditionExpression": text, "ExpressionAttributeNames": names, "ExpressionAttributeValues": values}
	if q.index != "" {
		request["IndexName"] = q.index
	}
	file, err := json.Marshal(map[string]any{
		"id":       q.id,
		"dynamodb": map[string]any{"op": "Query", "request": request},
		"bigtable": map[string]any{"read": map[string]any{"table": table, "ranges": ranges}, "max_ranges": 1},
		"expect":   map[string]any{"count": len(keys), "keys": keys, "order": "by-key"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return file
}
