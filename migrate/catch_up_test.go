package migrate

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/migrate/internal/endpoints"
	"github.com/tabletop-emu/tabletop/migrate/internal/exporttest"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// The mappings of the caught-up tables. One has a row per item, an index of the default layout,
// and an index whose rows do not identify their items. The other has rows of many items, with
// columns by time and a column shared by two rules.
const (
	caughtUpItems = `apiVersion: migration/v1
source:
  table: T
  key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}
  schema: {G: S, GS: S, H: S, n: N, m: {M: S}, tags: SS}
  gsis:
  - {name: G, hash: G, range: GS, projection: ALL, as: table}
  - {name: H, hash: H, projection: [n], as: table, row: [H, PK]}
target: {table: t, families: {a: {gc: {versions: 1}}, tags: {gc: {versions: 1}}, _t: {gc: {versions: 1}}}}
on: {unknown-attribute: sidecar}
rules: [{name: entity, row: ["{PK}", "{SK}"], put: [{attr: tags, cell: "tags:{member}"}, {attr: "*", cell: "a:{attr}"}]}]
`
	caughtUpRows = `apiVersion: migration/v1
source: {table: T, key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}, schema: {c: S, n: N, m: N}}
target: {table: t, families: {v: {gc: {versions: 100}}, _t: {gc: {versions: 1}}}}
rules:
- {name: comment, when: {SK: "c{t:revms(13)}"}, row: ["{PK:s}"], put: [{attr: c, cell: "v:~Comments", ts: "{t}"}]}
- {name: views, when: {SK: "views"}, row: ["{PK:s}"], put: [{attr: n, cell: "v:Views", codec: i64be}]}
- {name: views2, when: {SK: "views2"}, row: ["{PK:s}"], put: [{attr: m, cell: "v:Views", codec: i64be}], tag: true}
`
)

// itemsAt holds the items of a table at one time, as JSON, by key.
type itemsAt map[string]string

// drawItems draws items of caughtUpItems or, with shared rows, of caughtUpRows.
func drawItems(r *rand.Rand, shared bool) itemsAt {
	items := itemsAt{}
	swapped := r.IntN(2) // the entries of two items in H
	for i := range 10 {
		if r.IntN(3) == 0 {
			continue
		}
		if !shared {
			key := fmt.Sprintf(`"PK":{"S":"p%s%d"},"SK":{"S":"s%d"}`, strings.Repeat("#", i/8), i/2, i%2) // one holds the delimiter
			text := key
			for _, attr := range []string{
				fmt.Sprintf(`,"G":{"S":"g%d"}`, r.IntN(2)), fmt.Sprintf(`,"GS":{"S":"t%d"}`, r.IntN(2)), fmt.Sprintf(`,"H":{"S":"h%d"}`, swapped^i%2),
				fmt.Sprintf(`,"n":{"N":"%d"}`, r.IntN(2)), fmt.Sprintf(`,"m":{"M":{"k%d":{"S":"v"}}}`, r.IntN(2)), fmt.Sprintf(`,"tags":{"SS":["x%d","y%d"]}`, r.IntN(2), r.IntN(2)),
				`,"n2":{"S":"other"}`,
			} {
				if r.IntN(2) == 0 {
					text += attr
				}
			}
			items["{"+key+"}"] = "{" + text + "}"
			continue
		}
		sk, value := fmt.Sprintf("c%d", 1700000000000+int64(i)), fmt.Sprintf(`"c":{"S":"text %d"}`, r.IntN(2))
		if i%5 == 0 { // one of the two that share a column
			sk, value = "views", fmt.Sprintf(`"n":{"N":"%d"}`, r.IntN(3))
			if r.IntN(2) == 0 {
				sk, value = "views2", fmt.Sprintf(`"m":{"N":"%d"}`, r.IntN(3))
			}
		}
		key := fmt.Sprintf(`"PK":{"S":"p%d"},"SK":{"S":"%s"}`, i/5, sk)
		items["{"+key+"}"] = "{" + key + "," + value + "}"
	}
	return items
}

// exports returns a full export of the first state, and incremental ones to the others, with
// old images if old is set.
func exports(t *testing.T, old bool, states ...itemsAt) *source.Source {
	t.Helper()
	var full [2][]string // files
	for i, key := range slices.Sorted(maps.Keys(states[0])) {
		full[i%2] = append(full[i%2], `{"Item":`+states[0][key]+`}`)
	}
	files := exporttest.New(full[:]...)
	for i := 1; i < len(states); i++ {
		before, after := states[i-1], states[i]
		keys := maps.Clone(before)
		maps.Copy(keys, after)
		from, to := exporttest.Time.Add(time.Duration(i-1)*time.Hour), exporttest.Time.Add(time.Duration(i)*time.Hour)
		var lines []string
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			was := before[key]
			if before[key] == after[key] {
				continue
			}
			if !old {
				was = ""
			}
			lines = append(lines, exporttest.Change(from.Add(time.Minute), key, was, after[key]))
		}
		exporttest.AddIncremental(files, fmt.Sprintf("%02d", i), from, to, lines...)
	}
	src, err := source.OpenFS(files, "bucket", source.Options{Key: "PK,SK", Table: "T"})
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// recorded returns a full export of the first state, and the change records that lead to the
// others. They are delivered twice.
func recorded(t *testing.T, states ...itemsAt) *source.Source {
	t.Helper()
	var full []string
	for _, key := range slices.Sorted(maps.Keys(states[0])) {
		full = append(full, `{"Item":`+states[0][key]+`}`)
	}
	var records strings.Builder
	for i := 1; i < len(states); i++ {
		keys := maps.Clone(states[i-1])
		maps.Copy(keys, states[i])
		for key := range keys {
			was, is, event := states[i-1][key], states[i][key], "MODIFY"
			images := `"Keys":` + key
			switch {
			case was == is:
				continue
			case was == "":
				event = "INSERT"
			case is == "":
				event = "REMOVE"
			}
			if was != "" {
				images += `,"OldImage":` + was
			}
			if is != "" {
				images += `,"NewImage":` + is
			}
			fmt.Fprintf(&records, `{"eventID":"%d %s","eventName":"%s","tableName":"T","dynamodb":{"ApproximateCreationDateTime":%d,%s}}`+"\n",
				i, strings.ReplaceAll(key, `"`, ""), event, exporttest.Time.Add(time.Duration(i)*time.Hour).UnixMilli(), images)
		}
	}
	files := exporttest.New(full)
	files["bucket/records/1.jsonl"] = &fstest.MapFile{Data: []byte(records.String())}
	files["bucket/records/2.jsonl"] = files["bucket/records/1.jsonl"]
	if records.Len() == 0 {
		delete(files, "bucket/records/1.jsonl")
		delete(files, "bucket/records/2.jsonl")
	}
	src, err := source.OpenFS(files, "bucket", source.Options{Key: "PK,SK", Table: "T"})
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// allTables returns the text of all tables.
func allTables(t *testing.T, conn grpc.ClientConnInterface) string {
	t.Helper()
	var out strings.Builder
	for _, id := range slices.Sorted(slices.Values(tableIDs(t, conn))) {
		fmt.Fprintf(&out, "table %s\n%s", id, tableText(t, conn, id))
	}
	return out.String()
}

// caughtUp runs the cases of the tests below.
func caughtUp(t *testing.T, yield func(t *testing.T, o Common, shared bool)) {
	t.Helper()
	for name, text := range map[string]string{"items": caughtUpItems, "rows of many": caughtUpRows, "inferred": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var o Common
			if text != "" {
				m, err := mapping.Load("mapping.yaml", []byte(text))
				if err != nil {
					t.Fatal(err)
				}
				o.Mappings = []*mapping.Mapping{m}
			}
			yield(t, o, text == caughtUpRows)
		})
	}
}

// A load of a full export with its increments gives the same rows on an empty target as after
// earlier loads of some of these exports: deleted items, removed attributes and former index
// entries are deleted. It verifies, and a second load writes nothing.
func TestCatchUp(t *testing.T) {
	t.Parallel()
	seeds := uint64(3)
	if long.Enabled() {
		seeds = 12
	}
	caughtUp(t, func(t *testing.T, o Common, shared bool) {
		t.Helper()
		deleted := int64(0)
		for seed := range seeds {
			r := rand.New(rand.NewPCG(seed, 1))
			states := []itemsAt{drawItems(r, shared), drawItems(r, shared), drawItems(r, shared)}
			of := func(states ...itemsAt) *source.Source { return exports(t, seed%3 == 0, states...) }
			if seed%3 == 2 {
				of = func(states ...itemsAt) *source.Source { return recorded(t, states...) }
			}
			o := o
			if len(o.Mappings) == 0 { // one for all states, otherwise each is loaded by another
				all := itemsAt{}
				for _, state := range states {
					maps.Copy(all, state)
				}
				p, err := Prepare(t.Context(), of(all), LoadOptions{})
				if err != nil {
					t.Fatal(err)
				}
				o.Mappings = []*mapping.Mapping{(*mapping.Mapping)(p.run.Jobs[0].Mapping)}
			}
			o.knobs.Batch = 1 + int(seed)*200
			fresh := newBigtableServer(t)
			if _, err := Load(t.Context(), fresh, of(states...), LoadOptions{Common: o}); err != nil {
				t.Fatal(err)
			}
			want := allTables(t, fresh)
			conn := &failing{ClientConnInterface: newBigtableServer(t)}
			for n := 1 + int(seed)%2; n <= len(states); n++ {
				report, err := Load(t.Context(), conn, of(states[:n]...), LoadOptions{Common: o})
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				deleted += report.Tables[0].CellsDeleted
			}
			if got := allTables(t, conn); got != want {
				t.Errorf("seed %d: after a load of\n%v\nand of its increments\n%v\nthe tables hold\n%s\nwant\n%s", seed, states[0], states[len(states)-1], got, want)
			}
			verified, err := Verify(t.Context(), conn, OfSource(of(states...)), VerifyOptions{Common: o, Stored: true})
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, verified)
			conn.calls = 0
			again, err := Load(t.Context(), conn, of(states...), LoadOptions{Common: o})
			if err != nil {
				t.Fatal(err)
			}
			if r := again.Tables[0]; conn.calls > 0 || r.CellsWritten+r.CellsDeleted > 0 || r.CellsUnchanged == 0 {
				t.Errorf("seed %d: a second load makes %d calls\n%s", seed, conn.calls, again.Text())
			}
		}
		if deleted < int64(10*seeds/3) {
			t.Errorf("%d cells are deleted after %d seeds, want more", deleted, seeds)
		}
	})
}

// Unchanged cells are not rewritten only for their time.
func TestCatchUp_TimesStay(t *testing.T) {
	t.Parallel()
	a, b := `{"PK":{"S":"a"},"SK":{"S":"x"}}`, `{"PK":{"S":"b"},"SK":{"S":"x"}}`
	before := itemsAt{a: `{"PK":{"S":"a"},"SK":{"S":"x"},"n":{"N":"1"}}`, b: `{"PK":{"S":"b"},"SK":{"S":"x"},"n":{"N":"1"}}`}
	after := itemsAt{a: before[a], b: `{"PK":{"S":"b"},"SK":{"S":"x"},"n":{"N":"2"}}`}
	conn := newBigtableServer(t)
	for i, src := range []*source.Source{exports(t, true, before), exports(t, true, before, after)} {
		r, err := Load(t.Context(), conn, src, LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := r.Tables[0].CellsWritten, []int64{2, 1}[i]; got != want {
			t.Errorf("load %d writes %d cells, want %d\n%s", i, got, want, r.Text())
		}
	}
	want := fmt.Sprintf("@%d", exporttest.Time.UnixMilli()*1000)
	if text := tableText(t, conn, "T"); strings.Count(text, want) != 2 {
		t.Errorf("want two cells at the time of the full export (%s):\n%s", want, text)
	}
}

// A later full export does not show deletions since the loaded one. It is refused unless the
// two may mix; then the report warns with the times of both.
func TestCatchUp_AnotherExport(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Common{
		"by the time of exports": {},
		"by the mapping's":       {Mappings: []*mapping.Mapping{mustLoad(t, nullsMapping)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := newBigtableServer(t)
			for i, c := range []struct {
				at   time.Time
				mix  bool
				want string // "": it is loaded
			}{
				{at: exporttest.Time},
				{at: exporttest.Time},
				{at: exporttest.Time.Add(time.Hour), want: "was loaded from another source, with cells at "},
				{at: exporttest.Time.Add(time.Hour), mix: true},
			} {
				src := open(t, nullItems)
				src.Tables[0].ExportTime = c.at
				r, err := Load(t.Context(), conn, src, LoadOptions{Common: o, Mix: c.mix})
				if c.want != "" {
					WantDamage(t, err, source.TargetNewer, c.want)
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if got := strings.Join(r.Warnings, "\n"); strings.Contains(got, "another source") != c.mix {
					t.Errorf("load %d: warnings %q", i, got)
				}
			}
		})
	}
}

// A catch-up killed at any of its writes is finished by the next one, with and without a
// checkpoint.
func TestCatchUpResumes(t *testing.T) {
	t.Parallel()
	killed := errors.New("killed")
	caughtUp(t, func(t *testing.T, o Common, shared bool) {
		t.Helper()
		if len(o.Mappings) == 0 {
			t.Skip("a mapping is inferred for each source")
		}
		r := rand.New(rand.NewPCG(3, 3))
		states := []itemsAt{drawItems(r, shared), drawItems(r, shared)}
		o.knobs = table.Knobs{Batch: 1, CheckpointBytes: 1}
		fresh := newBigtableServer(t)
		if _, err := Load(t.Context(), fresh, exports(t, false, states...), LoadOptions{Common: o}); err != nil {
			t.Fatal(err)
		}
		want, deaths := allTables(t, fresh), 0
		step := 3 // an odd one, so that both have a checkpoint and none
		if long.Enabled() {
			step = 1
		}
		for at := 1; ; at += step {
			conn := &failing{ClientConnInterface: newBigtableServer(t)}
			if _, err := Load(t.Context(), conn, exports(t, false, states[0]), LoadOptions{Common: o}); err != nil {
				t.Fatal(err)
			}
			options := LoadOptions{Common: o}
			if at%2 == 0 {
				options.Checkpoint = filepath.Join(t.TempDir(), "checkpoint")
			}
			conn.calls = 0
			conn.fail = func(call int, _ *btpb.MutateRowsRequest) error {
				if call >= at {
					return killed
				}
				return nil
			}
			_, err := Load(t.Context(), conn, exports(t, false, states...), options)
			if err == nil {
				break
			}
			deaths++
			conn.fail = nil
			if _, err := Load(t.Context(), conn, exports(t, false, states...), options); err != nil {
				t.Fatal(err)
			}
			if got := allTables(t, conn); got != want {
				t.Errorf("killed at write %d, the tables hold\n%s\nwant\n%s", at, got, want)
			}
		}
		if deaths*step < 5 {
			t.Errorf("killed %d times, want more", deaths)
		}
	})
}

// One value changes to the schema's type, and another away from it: the type mark is removed
// with the old value, and a load killed between its writes leaves both items readable.
func TestCatchUpResumesTypes(t *testing.T) {
	t.Parallel()
	const key, other = `"PK":{"S":"a"},"SK":{"S":"x"}`, `"PK":{"S":"b"},"SK":{"S":"x"}`
	states := []itemsAt{
		{"{" + key + "}": "{" + key + `,"n":{"L":[{"S":"x"}]},"G":{"S":"g"}}`, "{" + other + "}": "{" + other + `,"n":{"N":"7"}}`},
		{"{" + key + "}": "{" + key + `,"n":{"N":"7"},"G":{"S":"g"}}`, "{" + other + "}": "{" + other + `,"n":{"L":[{"S":"x"}]}}`},
	}
	m, err := mapping.Load("m.yaml", []byte(caughtUpItems))
	if err != nil {
		t.Fatal(err)
	}
	o := LoadOptions{Common: Common{Mappings: []*mapping.Mapping{m}}}
	o.knobs = table.Knobs{Batch: 1}
	killed := errors.New("killed")
	for at := 1; ; at++ {
		conn := &failing{ClientConnInterface: newBigtableServer(t)}
		if _, err := Load(t.Context(), conn, exports(t, false, states[0]), o); err != nil {
			t.Fatal(err)
		}
		conn.calls = 0
		conn.fail = func(call int, _ *btpb.MutateRowsRequest) error {
			if call >= at {
				return killed
			}
			return nil
		}
		_, err := Load(t.Context(), conn, exports(t, false, states...), o)
		if err == nil {
			if at < 5 {
				t.Errorf("killed %d times, want more", at-1)
			}
			return
		}
		conn.fail = nil
		r, err := Load(t.Context(), conn, exports(t, false, states...), o)
		if err != nil || len(r.Failures) > 0 {
			t.Errorf("killed at write %d: %v, %v", at, r, err)
		}
	}
}

// An index entry is deleted although garbage collection has removed its item, by means of the
// old image.
func TestCatchUp_EntryWithoutItem(t *testing.T) {
	t.Parallel()
	const key = `{"PK":{"S":"a"},"SK":{"S":"x"}}`
	m, err := mapping.Load("mapping.yaml", []byte(caughtUpItems))
	if err != nil {
		t.Fatal(err)
	}
	o := Common{Mappings: []*mapping.Mapping{m}}
	conn := newBigtableServer(t)
	before := itemsAt{key: `{"PK":{"S":"a"},"SK":{"S":"x"},"G":{"S":"g"},"GS":{"S":"t"}}`, `{"PK":{"S":"b"},"SK":{"S":"x"}}`: `{"PK":{"S":"b"},"SK":{"S":"x"},"n":{"N":"1"}}`}
	after := maps.Clone(before)
	delete(after, key)
	if _, err := Load(t.Context(), conn, exports(t, true, before), LoadOptions{Common: o}); err != nil {
		t.Fatal(err)
	}
	change(t, conn, "t", "a#x", btclient.DeleteRow())
	if _, err := Load(t.Context(), conn, exports(t, true, before, after), LoadOptions{Common: o}); err != nil {
		t.Fatal(err)
	}
	r, err := Verify(t.Context(), conn, OfSource(exports(t, true, before, after)), VerifyOptions{Common: o, Stored: true})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, r)
}

// Writes of a DynamoDB endpoint since the load are newer than the increments: the load is
// refused with their number, and nothing is written.
func TestCatchUp_WrittenByAnEndpoint(t *testing.T) {
	t.Parallel()
	const item = `{"PK":{"S":"p%d"},"SK":{"S":"s0"},"G":{"S":"g"},"GS":{"S":"t"}}`
	key := func(i int) string { return fmt.Sprintf(`{"PK":{"S":"p%d"},"SK":{"S":"s0"}}`, i) }
	before := itemsAt{}
	for i := range 4 {
		before[key(i)] = fmt.Sprintf(item, i)
	}
	after := maps.Clone(before)
	delete(after, key(3))
	for name, c := range map[string]struct {
		calls [][2]string
		want  string // "" if the load succeeds
	}{
		"reads": {[][2]string{{"GetItem", `"Key":` + key(1)}, {"Scan", `"Limit":5`}}, ""},
		"puts and updates": {[][2]string{
			{"PutItem", `"Item":` + fmt.Sprintf(item, 9)},
			{"PutItem", `"Item":` + fmt.Sprintf(item, 9)},
			{"UpdateItem", `"Key":` + key(0) + `,"UpdateExpression":"SET n = :n","ExpressionAttributeValues":{":n":{"N":"1"}}`},
		}, `Bigtable table t: a DynamoDB endpoint has written 2 items since the load, e.g. in row "p0#s0"`},
		"a delete": {
			[][2]string{{"DeleteItem", `"Key":` + key(2)}},
			"Bigtable table t: a DynamoDB endpoint has removed 1 index row since the load, e.g. in row ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := mapping.Load("mapping.yaml", []byte(strings.Replace(caughtUpItems, "table: T\n", "table: Things\n", 1)))
			if err != nil {
				t.Fatal(err)
			}
			o := Common{Mappings: []*mapping.Mapping{m}}
			conn := newBigtableServer(t)
			p, err := Prepare(t.Context(), exports(t, true, before), LoadOptions{Common: o})
			if err != nil {
				t.Fatal(err)
			}
			r, err := p.Load(t.Context(), conn)
			if err != nil {
				t.Fatal(err)
			}
			server, err := endpoints.NewServer(t.Context(), conn, p.run.Options, p.run.Jobs...)
			if err != nil {
				t.Fatal(err)
			}
			d := endpoints.Open(p.run.B, server, p.run.Jobs[0], r)
			for _, call := range c.calls {
				if _, err := d.Call(t.Context(), call[0], []byte(`{"TableName":"Things",`+call[1]+`}`)); err != nil {
					t.Fatal(err)
				}
			}
			if err := server.Close(); err != nil {
				t.Fatal(err)
			}
			there := allTables(t, conn)
			_, err = Load(t.Context(), conn, exports(t, true, before, after), LoadOptions{Common: o})
			if c.want == "" {
				if err != nil || strings.Contains(tableText(t, conn, "t"), "p3#s0") {
					t.Errorf("error %v; want the deleted item gone:\n%s", err, tableText(t, conn, "t"))
				}
				return
			}
			WantDamage(t, err, source.TargetWritten, c.want)
			if now := allTables(t, conn); now != there {
				t.Errorf("the tables hold\n%s\nwant\n%s", now, there)
			}
		})
	}
}

// A source that ends before the exports of the last load is refused, and nothing is written,
// since it would undo part of the later changes. The same source, and a later one, are
// accepted.
func TestCatchUp_OlderExport(t *testing.T) {
	t.Parallel()
	caughtUp(t, func(t *testing.T, o Common, shared bool) {
		t.Helper()
		r := rand.New(rand.NewPCG(5, 5))
		states := []itemsAt{drawItems(r, shared), drawItems(r, shared), drawItems(r, shared), drawItems(r, shared)}
		conn := newBigtableServer(t)
		if _, err := Load(t.Context(), conn, exports(t, true, states[:3]...), LoadOptions{Common: o}); err != nil {
			t.Fatal(err)
		}
		there := allTables(t, conn)
		for _, older := range []int{1, 2} {
			_, err := Load(t.Context(), conn, exports(t, true, states[:older]...), LoadOptions{Common: o})
			WantDamage(t, err, source.TargetNewer, "was loaded with exports up to ")
			if got := allTables(t, conn); got != there {
				t.Errorf("a refused load of %d exports left\n%s\nwant\n%s", older, got, there)
			}
		}
		for _, n := range []int{3, 4} {
			if _, err := Load(t.Context(), conn, exports(t, true, states[:n]...), LoadOptions{Common: o}); err != nil {
				t.Errorf("a load of %d exports: %v", n, err)
			}
		}
	})
}
