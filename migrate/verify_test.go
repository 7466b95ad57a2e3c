package migrate

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/test/peer"
	"github.com/tabletop-emu/tabletop/internal/test/property"
	"github.com/tabletop-emu/tabletop/migrate/infer"
	"github.com/tabletop-emu/tabletop/migrate/internal/endpoints"
	"github.com/tabletop-emu/tabletop/migrate/internal/exporttest"
	"github.com/tabletop-emu/tabletop/migrate/internal/golden"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// newBigtableServer is a Bigtable in this process's memory.
func newBigtableServer(t *testing.T) grpc.ClientConnInterface {
	t.Helper()
	return peer.Start(t, engine.Options{}, emu.Options{}).Conn()
}

func tableIDs(t *testing.T, conn grpc.ClientConnInterface) []string {
	t.Helper()
	resp, err := btapb.NewBigtableTableAdminClient(conn).ListTables(t.Context(), &btapb.ListTablesRequest{Parent: "projects/tabletop/instances/tabletop"})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, table := range resp.GetTables() {
		ids = append(ids, table.GetName()[strings.LastIndexByte(table.GetName(), '/')+1:])
	}
	return ids
}

func wantEqual(t *testing.T, r *report.Report) {
	t.Helper()
	if !r.Equal() {
		t.Errorf("differences:\n%s", r.Text())
	}
}

func TestVerify_Inputs(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]int64{
		"s3-export":                      3,
		"s3-incremental-export":          4,
		"json-lines/members.json.gz":     120,
		"json-lines/member.json":         1,
		"csv/loans.csv":                  4,
		"batch-write/Repairs.json":       5,
		"batch-write/Tools-request.json": 3,
		"workbench/Lending.json":         16,
		"workbench/Club.json":            10,
		"workbench/Notes.json":           5,
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			src, err := source.Open(inputPath(path), source.Options{})
			if err != nil {
				t.Fatal(err)
			}
			r, err := Verify(t.Context(), newBigtableServer(t), OfSource(src), VerifyOptions{})
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, r)
			// Items with only a key: a sidecar cell marks their existence.
			exceptions := map[string]int64{"workbench/Club.json": 6}[path]
			if path == "s3-export" && !strings.Contains(r.Text(), "MD5 and item count of each data file") {
				t.Errorf("the report does not say that MD5 and counts were checked:\n%s", r.Text())
			}
			if r.Items != want || r.Rows != want || r.Exceptions != exceptions {
				t.Errorf("items %d, rows %d, exceptions %d; want %d, %d, %d", r.Items, r.Rows, r.Exceptions, want, want, exceptions)
			}
		})
	}
}

// The item of all ten types as rows: the types reference row.
func TestVerify_TypesReferenceRow(t *testing.T) {
	t.Parallel()
	src, err := source.Open(inputPath("s3-export"), source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	conn := newBigtableServer(t)
	if _, err := Verify(t.Context(), conn, OfSource(src), VerifyOptions{}); err != nil {
		t.Fatal(err)
	}
	const want = `all-types [616c6c2d7479706573]
  a:a @1767607200125000 = 00
  a:b @1767607200125000 = ""
  a:j @1767607200125000 = "hello"
  l:e @1262304000001000 = "Stwo"
  l:e @1262304000000000 = "N1"
  m.f:g @1767607200125000 = "9"
  m.f:h @1767607200125000 = ""
  m.f:i @1767607200125000 = 01
  s.c:drill @1767607200125000 = 00
  s.c:saw @1767607200125000 = 00
  s.d:5 @1767607200125000 = 00
  s.d:7 @1767607200125000 = 00
  s.k:glue @1767607200125000 = 00
  s.k:nails @1767607200125000 = 00
`
	if diff := cmp.Diff(want, rowText(t, conn, "Things", "all-types")); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
}

func rowText(t *testing.T, conn grpc.ClientConnInterface, id, key string) string {
	t.Helper()
	b := table.NewBigtable(conn, table.Options{})
	var out []byte
	for row, err := range b.TableRows(t.Context(), id) {
		if err != nil {
			t.Fatal(err)
		}
		if string(row.Key) == key {
			out = golden.AppendRow(out, row)
		}
	}
	return string(out)
}

func TestVerify_DelimiterInKeys(t *testing.T) {
	t.Parallel()
	src, err := source.Open(inputPath("workbench/Club.json"), source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	in, err := infer.Table(t.Context(), src.Tables[0], infer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := (*layout.Mapping)(in.Mapping).WithJoiner("plain('#')")
	if err != nil {
		t.Fatal(err)
	}
	conn := newBigtableServer(t)
	_, err = Load(t.Context(), conn, src, LoadOptions{Common: Common{Mappings: []*mapping.Mapping{(*mapping.Mapping)(plain)}}})
	var broken *maperr.Error
	if !errors.As(err, &broken) || broken.Code != maperr.CodeDelim || !strings.Contains(err.Error(), "m#17") {
		t.Errorf("plain joiner: error %v, want %s with the key", err, maperr.CodeDelim)
	}
	if ids := tableIDs(t, conn); len(ids) > 0 {
		t.Errorf("tables %v after a refused load, want none", ids)
	}

	r, err := Verify(t.Context(), conn, OfSource(src), VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, r)
	plan, err := (*layout.Mapping)(in.Mapping).PlanQuery(attr.KeyRange{Hash: attr.String("m#17")})
	if err != nil || len(plan.Spans) != 1 {
		t.Fatalf("plan %v, error %v; want one span", plan, err)
	}
	b := table.NewBigtable(conn, table.Options{})
	rows := 0
	for row, err := range b.TableRows(t.Context(), in.Mapping.TargetTable(), layout.Span{Start: plan.Spans[0].Start}) {
		if err != nil {
			t.Fatal(err)
		}
		if end := plan.Spans[0].End; len(end) > 0 && bytes.Compare(row.Key, end) >= 0 {
			break
		}
		rows++
	}
	if rows != 2 {
		t.Errorf("partition m#17 has %d rows, want 2", rows)
	}
}

func TestVerify_DamageLoadsNothing(t *testing.T) {
	t.Parallel()
	for _, c := range exporttest.Damages {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			fsys := exporttest.Sample()
			c.Spoil(fsys)
			conn := newBigtableServer(t)
			src, err := source.OpenFS(fsys, "bucket", source.Options{Key: "id"})
			if err == nil {
				_, err = Load(t.Context(), conn, src, LoadOptions{})
			}
			WantDamage(t, err, source.Damage(c.Damage), c.Text)
			if ids := tableIDs(t, conn); len(ids) > 0 {
				t.Errorf("tables %v after a refused load, want none", ids)
			}
		})
	}
}

// subject opens the data and mapping of a shipped fixture.
func subject(t *testing.T, name string) (*source.Source, Common) {
	t.Helper()
	files, err := fs.Sub(shippedFiles, "subjects/"+name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := table.OpenFixture(files, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f.Data, Common{Mappings: []*mapping.Mapping{f.Mapping}}
}

func setCell(family, qualifier string, us int64, value string) *btpb.Mutation {
	return &btpb.Mutation{Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{
		FamilyName: family, ColumnQualifier: []byte(qualifier), TimestampMicros: us, Value: []byte(value),
	}}}
}

func deleteCell(family, qualifier string, us int64) *btpb.Mutation {
	return &btpb.Mutation{Mutation: &btpb.Mutation_DeleteFromColumn_{DeleteFromColumn: &btpb.Mutation_DeleteFromColumn{
		FamilyName: family, ColumnQualifier: []byte(qualifier), TimeRange: &btpb.TimestampRange{StartTimestampMicros: us, EndTimestampMicros: us + 1000},
	}}}
}

func deleteRow() *btpb.Mutation {
	return &btpb.Mutation{Mutation: &btpb.Mutation_DeleteFromRow_{DeleteFromRow: &btpb.Mutation_DeleteFromRow{}}}
}

// Each injected damage is found by exactly one failure, of the right kind.
func TestCompare_InjectedDamage(t *testing.T) {
	t.Parallel()
	const exp = 1715685260608000
	for _, c := range []struct {
		name, row string
		mutations []*btpb.Mutation
		kind      report.Kind
		text      string
	}{
		{
			"drop a cell", "0123",
			[]*btpb.Mutation{deleteCell("a", "Likes", exp)},
			report.MissingCell,
			`MissingCell table videos rule likes item {"PK":{"S":"0123"},"SK":{"S":"VideoStatsLikes"}} row "0123" hex 30313233 column a:Likes: want @1715685260608000 = 0000000000000003, got nothing`,
		},
		{"drop a version", "0123", []*btpb.Mutation{deleteCell("c", "UserComments", 1694363442000000)}, report.MissingCell, "column c:UserComments"},
		{"add a version", "0123", []*btpb.Mutation{setCell("c", "UserComments", 1694372476000000, "x")}, report.ExtraCell, `column c:UserComments: want nothing, got @1694372476000000 = "x" (mapping.yaml:`},
		{"add a cell", "0123", []*btpb.Mutation{setCell("a", "Other", exp, "x")}, report.ExtraCell, `rule video item {"PK":{"S":"0123"},"SK":{"S":"Video"}} row "0123" hex 30313233 column a:Other: want nothing, got @1715685260608000 = "x"`},
		{
			"change a timestamp", "0123",
			[]*btpb.Mutation{deleteCell("a", "Likes", exp), setCell("a", "Likes", exp+1000, "\x00\x00\x00\x00\x00\x00\x00\x03")},
			report.TimestampDiffers,
			"want @1715685260608000 = 0000000000000003, got @1715685260609000 = 0000000000000003",
		},
		{"change a value", "0123", []*btpb.Mutation{setCell("a", "Likes", exp, "\x00\x00\x00\x00\x00\x00\x00\x04")}, report.ValueDiffers, `column a:Likes: want @1715685260608000 = 0000000000000003, got @1715685260608000 = 0000000000000004; of items: Count: want {"N":"3"}, got {"N":"4"} (mapping.yaml:`},
		{"swap versions", "0123", []*btpb.Mutation{
			setCell("c", "UserComments", 1694372475000000, "There seems to be an audio glitch at 1:05."),
			setCell("c", "UserComments", 1694363442000000, "I like this a lot. The special effects are incredible."),
		}, report.OrderDiffers, "column c:UserComments"},
		{"flip a type", "0123", []*btpb.Mutation{setCell("_t", "c/a:Formats", exp, "B")}, report.TypeDiffers, "column _t:c/a:Formats"},
		{"drop a row", "0124", []*btpb.Mutation{deleteRow()}, report.MissingRow, `row "0124" hex 30313234`},
		{"add a row", "0125", []*btpb.Mutation{setCell("a", "Likes", exp, "\x00\x00\x00\x00\x00\x00\x00\x01")}, report.ExtraRow, `rule likes item {"PK":{"S":"0125"},"SK":{"S":"VideoStatsLikes"}} row "0125" hex 30313235`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			conn := newBigtableServer(t)
			src, o := subject(t, "s2-video")
			if _, err := Load(t.Context(), conn, src, LoadOptions{Common: o}); err != nil {
				t.Fatal(err)
			}
			r, err := Verify(t.Context(), conn, OfSource(src), VerifyOptions{Common: o, Stored: true})
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, r)
			_, err = btpb.NewBigtableClient(conn).MutateRow(t.Context(), &btpb.MutateRowRequest{
				TableName: "projects/tabletop/instances/tabletop/tables/videos", RowKey: []byte(c.row), Mutations: c.mutations,
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, window := range []int{0, 1} { // in one window, and row by row
				o.knobs.Window = window
				r, err = Verify(t.Context(), conn, OfSource(src), VerifyOptions{Common: o, Stored: true})
				if err != nil {
					t.Fatal(err)
				}
				if r.Differences != 1 || len(r.Failures) != 1 || r.Failures[0].Kind != c.kind || !strings.Contains(r.Failures[0].String(), c.text) {
					t.Errorf("window %d: failures %v, want one %s with %q", window, r.Failures, c.kind, c.text)
				}
			}
		})
	}
}

func TestVerify_GoldenAndPatternsNoticeFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, file, from, to string
		kind                 report.Kind
		text                 string
	}{
		{"golden value", "expect/rows.golden", `= "30"`, `= "31"`, report.ValueDiffers, `column SKU:Price: want @1715685260608000 = "31", got @1715685260608000 = "30"`},
		{"golden time", "expect/rows.golden", `@1715685260608000 = "30"`, `@1715685260609000 = "30"`, report.TimestampDiffers, "SKU:Price"},
		{"golden row too many", "expect/rows.golden", "hats#fedoras#brandA [68617473236665646f726173236272616e6441]", "a [61]\n  SKU:x @1000 = 00\nhats#fedoras#brandA [68617473236665646f726173236272616e6441]", report.MissingRow, "hex 61"},
		{"pattern order", "access/3-subcategory.yaml", `keys: [[hats, "fedoras#brandA"], [hats, "fedoras#brandB"]]`, `keys: [[hats, "fedoras#brandB"], [hats, "fedoras#brandA"]]`, report.PatternDiffers, "S1-subcategory"},
		{"pattern native", "access/3-subcategory.yaml", `prefix: "hats#fedoras"`, `prefix: "hats#"`, report.PatternDiffers, "native read: 3 items, want 2; item 3 should not be there"},
		{"pattern scan", "access/3-subcategory.yaml", `{prefix: "hats#fedoras"}`, `{}`, report.PatternFullScan, "S1-subcategory"},
		{"pattern request", "access/3-subcategory.yaml", "begins_with(SK, :s)", "begins_with(SK, :t)", report.PatternDiffers, "got HTTP 400"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			files := fstest.MapFS{}
			subjects, err := fixtures.Subjects()
			if err != nil {
				t.Fatal(err)
			}
			first := subjects[0]
			err = fs.WalkDir(first.Files, ".", func(p string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				data, err := fs.ReadFile(first.Files, p)
				files[p] = &fstest.MapFile{Data: data}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			text := string(files[c.file].Data)
			if !strings.Contains(text, c.from) {
				t.Fatalf("%s has no %q", c.file, c.from)
			}
			files[c.file] = &fstest.MapFile{Data: []byte(strings.Replace(text, c.from, c.to, 1))}
			r, err := Verify(t.Context(), newBigtableServer(t), OfFixture(files), VerifyOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if r.Equal() || !slices.ContainsFunc(r.Failures, func(f report.Failure) bool {
				return f.Kind == c.kind && strings.Contains(f.String(), c.text) && f.Fixture == first.Name
			}) {
				t.Errorf("failures %v, want %s with %q", r.Failures, c.kind, c.text)
			}
		})
	}
}

// TestLoad_OtherGC loads into a table that keeps less than the mapping expects.
func TestLoad_OtherGC(t *testing.T) {
	t.Parallel()
	conn := newBigtableServer(t)
	_, err := btapb.NewBigtableTableAdminClient(conn).CreateTable(t.Context(), &btapb.CreateTableRequest{
		Parent: "projects/tabletop/instances/tabletop", TableId: "videos",
		Table: &btapb.Table{ColumnFamilies: map[string]*btapb.ColumnFamily{"a": {GcRule: btclient.GCRule(layout.GC{Versions: 7})}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	src, o := subject(t, "s2-video")
	_, err = Load(t.Context(), conn, src, LoadOptions{Common: o})
	var refused *source.Error
	if !errors.As(err, &refused) || refused.Damage != source.MappingRefused || !strings.Contains(err.Error(), "family a of Bigtable table videos") {
		t.Errorf("got %v", err)
	}
}

// TestLoad_SharedTarget loads a table whose rows would be among the entries of another table's
// index.
func TestLoad_SharedTarget(t *testing.T) {
	t.Parallel()
	model := strings.Replace(indexedModel, `"DataModel":[`,
		`"DataModel":[{"TableName":"Orders__ByState","KeyAttributes":{"PartitionKey":{"AttributeName":"id","AttributeType":"S"}},"TableData":[{"id":{"S":"a"}}]},`, 1)
	src, err := source.OpenFS(fstest.MapFS{"in": {Data: []byte(model)}}, "in", source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	conn := newBigtableServer(t)
	_, err = Load(t.Context(), conn, src, LoadOptions{})
	var refused *source.Error
	if !errors.As(err, &refused) || refused.Damage != source.MappingRefused || !strings.Contains(err.Error(), "would both be written to Bigtable table Orders__ByState") {
		t.Errorf("got %v", err)
	}
	if ids := tableIDs(t, conn); len(ids) != 0 {
		t.Errorf("tables %v were made", ids)
	}
}

func TestLoad_Collisions(t *testing.T) {
	t.Parallel()
	lines := func(items ...string) fstest.MapFS {
		return fstest.MapFS{"in": {Data: []byte(strings.Join(items, "\n"))}}
	}
	t.Run("one key twice", func(t *testing.T) {
		t.Parallel()
		src, err := source.OpenFS(lines(`{"id":{"S":"a"}}`, `{"id":{"S":"b"}}`, `{"id":{"S":"a"},"x":{"N":"1"}}`), "in", source.Options{Key: "id"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = Load(t.Context(), newBigtableServer(t), src, LoadOptions{})
		WantDamage(t, err, source.KeyDuplicate, `in:3: the item has the same key as the item at in:1: {"id":{"S":"a"}}`)
	})
	t.Run("the first of many", func(t *testing.T) {
		t.Parallel()
		// The item that comes first in the file is reported, whatever the hashes.
		var text []string
		for i := range 50 {
			text = append(text, fmt.Sprintf(`{"id":{"S":"%d"},"n":{"N":"1"}}`, i))
		}
		for i := range 50 {
			text = append(text, fmt.Sprintf(`{"id":{"S":"%d"},"n":{"N":"1"}}`, 49-i))
		}
		for _, c := range []struct{ key, want string }{
			{"id", `in:51: the item has the same key as the item at in:50: {"id":{"S":"49"}}`},
			{"", `("n" has the same value at in:1 and in:2; "id" has the same value at in:50 and in:51)`},
		} {
			src, err := source.OpenFS(lines(text...), "in", source.Options{Key: c.key})
			if err != nil {
				t.Fatal(err)
			}
			_, err = Load(t.Context(), newBigtableServer(t), src, LoadOptions{})
			WantDamage(t, err, map[bool]source.Damage{true: source.KeyUnknown, false: source.KeyDuplicate}[c.key == ""], c.want)
		}
	})
	t.Run("no key to infer", func(t *testing.T) {
		t.Parallel()
		src, err := source.OpenFS(lines(`{"id":{"S":"a"}}`, `{"id":{"S":"a"}}`), "in", source.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = Load(t.Context(), newBigtableServer(t), src, LoadOptions{})
		WantDamage(t, err, source.KeyUnknown, `in:2: the input declares no key, and none can be inferred ("id" has the same value at in:1 and in:2): name the key (--key PK[,SK])`)
	})
	t.Run("an item that no rule takes", func(t *testing.T) {
		t.Parallel()
		src, err := source.OpenFS(lines(`{"PK":{"S":"0123"},"SK":{"S":"Video"}}`, `{"PK":{"S":"0123"},"SK":{"S":"Other"}}`), "in", source.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, o := subject(t, "s2-video")
		_, err = Load(t.Context(), newBigtableServer(t), src, LoadOptions{Common: o})
		WantDamage(t, err, source.ItemUnmatched, `in:2: the mapping cannot hold the item: E-UNMATCHED: table Videos: item {"PK":{"S":"0123"},"SK":{"S":"Other"}}`)
	})
	t.Run("a key that is too long", func(t *testing.T) {
		t.Parallel()
		src, err := source.OpenFS(lines(`{"id":{"S":"`+strings.Repeat("x", 5000)+`"}}`), "in", source.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = Load(t.Context(), newBigtableServer(t), src, LoadOptions{})
		WantDamage(t, err, source.ItemBeyondLimit, "E-KEYSIZE")
	})
	t.Run("two items on a cell", func(t *testing.T) {
		t.Parallel()
		const text = `
apiVersion: migration/v1
source: {table: in, key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}, schema: {A: S}}
target: {table: t, joiner: "plain('#')", families: {a: {gc: {versions: 1}}, _t: {gc: {versions: 1}}}}
timestamps: {default: export-time}
rules:
- {name: one, when: {SK: "x"}, row: ["{PK:s}"], put: [{attr: A, cell: "a:A"}]}
- {name: two, when: {SK: "y"}, row: ["{PK:s}"], put: [{attr: A, cell: "a:A"}], tag: true}
`
		m, err := mapping.Load("m.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		src, err := source.OpenFS(lines(`{"PK":{"S":"a"},"SK":{"S":"x"},"A":{"S":"1"}}`, `{"PK":{"S":"a"},"SK":{"S":"y"},"A":{"S":"2"}}`), "in", source.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = Load(t.Context(), newBigtableServer(t), src, LoadOptions{Common: Common{Mappings: []*mapping.Mapping{m}}})
		WantDamage(t, err, source.CellCollision, "in:2: the mapping puts the item in a cell of the item at in:1")
		var dead strings.Builder
		r, err := Verify(t.Context(), newBigtableServer(t), OfSource(src), VerifyOptions{Common: Common{Mappings: []*mapping.Mapping{m}}, DeadLetter: &dead})
		if err != nil {
			t.Fatal(err)
		}
		if r.Items != 1 || r.Differences != 1 || !strings.Contains(dead.String(), "in:2: the mapping puts the item in a cell of the item at in:1") {
			t.Errorf("%s\ndead letters: %s", r.Text(), dead.String())
		}
	})
}

func TestReport_Writers(t *testing.T) {
	t.Parallel()
	conn := newBigtableServer(t)
	src, o := subject(t, "s2-video")
	if _, err := Load(t.Context(), conn, src, LoadOptions{Common: o}); err != nil {
		t.Fatal(err)
	}
	_, err := btpb.NewBigtableClient(conn).MutateRow(t.Context(), &btpb.MutateRowRequest{
		TableName: "projects/tabletop/instances/tabletop/tables/videos", RowKey: []byte("\x00\x01"), Mutations: []*btpb.Mutation{setCell("a", "x", 1000, "\x01")},
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := Verify(t.Context(), conn, OfSource(src), VerifyOptions{Common: o, Stored: true})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := r.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	var top map[string]any
	if err := json.Unmarshal(out.Bytes(), &top); err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	for _, name := range []string{"items", "rows", "differences", "exceptions"} {
		got[name] = top[name]
	}
	if failure, ok := top["failures"].([]any)[0].(map[string]any); !ok || failure["check"] != "round trip" {
		t.Errorf("the failure does not say which check found it: %v", top["failures"])
	}
	if diff := cmp.Diff(map[string]any{"items": 9.0, "rows": 3.0, "differences": 1.0, "exceptions": 1.0}, got); diff != "" {
		t.Errorf("totals (-want +got):\n%s", diff)
	}
	if text := r.Text(); !strings.Contains(text, "FAIL round trip, table videos") || !strings.HasSuffix(text, "\n9 items, 3 rows, 1 difference, 1 sidecar cell\n") {
		t.Errorf("text:\n%s", text)
	}
	out.Reset()
	if err := report.WriteJUnit(&out, r); err != nil {
		t.Fatal(err)
	}
	var suites struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Suites   []struct {
			Cases []struct {
				Failure struct {
					Text string `xml:",chardata"`
				} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(out.Bytes(), &suites); err != nil {
		t.Fatal(err)
	}
	if suites.Failures != 1 || suites.Tests != 6 || !strings.Contains(suites.Suites[0].Cases[2].Failure.Text, "ExtraRow") {
		t.Errorf("JUnit:\n%s", out.String())
	}
}

// Any items survive the inferred mapping.
func TestVerify_AnyItems(t *testing.T) {
	t.Parallel()
	name := rapid.OneOf(rapid.SampledFrom([]string{"a", "b", "c d", "e.f", "ü", "_t", "x:y"}), rapid.StringN(1, 8, -1))
	var value func(depth int) *rapid.Generator[attr.Value]
	value = func(depth int) *rapid.Generator[attr.Value] {
		number := rapid.Custom(func(t *rapid.T) attr.Value {
			v, err := attr.Number(fmt.Sprintf("%dE%d", rapid.Int64().Draw(t, "digits"), rapid.IntRange(-100, 100).Draw(t, "exponent")))
			if err != nil {
				t.Fatal(err)
			}
			return v
		})
		kinds := []*rapid.Generator[attr.Value]{
			rapid.Map(rapid.String(), attr.String),
			number,
			rapid.Map(rapid.SliceOf(rapid.Byte()), attr.Binary),
			rapid.Map(rapid.Bool(), attr.Boolean),
			rapid.Just(attr.Null()),
			rapid.Map(rapid.SliceOfN(rapid.String(), 1, 4), func(m []string) attr.Value { return attr.SetOf(attr.SS, m...) }),
			rapid.Map(rapid.SliceOfN(number, 1, 4), func(m []attr.Value) attr.Value {
				var texts []string
				for _, v := range m {
					texts = append(texts, v.Str)
				}
				return attr.SetOf(attr.NS, texts...)
			}),
			rapid.Map(rapid.SliceOfN(rapid.String(), 1, 4), func(m []string) attr.Value { return attr.SetOf(attr.BS, m...) }),
		}
		if depth > 0 {
			kinds = append(kinds,
				rapid.Map(rapid.SliceOfN(value(depth-1), 0, 4), func(v []attr.Value) attr.Value { return attr.ListOf(v...) }),
				rapid.Map(rapid.MapOfN(rapid.StringN(1, 6, -1), value(depth-1), 0, 4), attr.MapOf))
		}
		return rapid.OneOf(kinds...)
	}
	conn := newBigtableServer(t)
	n := 0
	rapid.Check(t, property.First(30, func(rt *rapid.T) {
		items := rapid.SliceOfN(rapid.MapOfN(name, value(2), 0, 5), 1, 6).Draw(rt, "items")
		var text []byte
		for i, attrs := range items {
			item := attr.Item(maps.Clone(attrs))
			item["PK"] = attr.String(rapid.SampledFrom([]string{"a", "a#", "a#b", "a\x00", "ü", "$"}).Draw(rt, "PK"))
			item["SK"] = attr.Int(int64(i))
			text = append(attr.AppendItemJSON(text, item), '\n')
		}
		n++
		src, err := source.OpenFS(fstest.MapFS{"in": {Data: text}}, "in", source.Options{Key: "PK,SK", Table: "any"})
		if err != nil {
			rt.Fatal(err)
		}
		r, err := Verify(context.Background(), conn, OfSource(src), VerifyOptions{Common: Common{Instance: fmt.Sprintf("any-%d", n)}})
		if err != nil {
			rt.Fatalf("%v\n%s", err, text)
		}
		if !r.Equal() {
			rt.Fatalf("%s\n%s", r.Text(), text)
		}
	}))
}

const indexedModel = `{"ModelName":"m","DataModel":[{"TableName":"Orders",
 "KeyAttributes":{"PartitionKey":{"AttributeName":"PK","AttributeType":"S"},"SortKey":{"AttributeName":"SK","AttributeType":"N"}},
 "GlobalSecondaryIndexes":[{"IndexName":"ByState","KeyAttributes":{"PartitionKey":{"AttributeName":"State","AttributeType":"S"}},"Projection":{"ProjectionType":"ALL"}}],
 "TableData":[
  {"PK":{"S":"o1"},"SK":{"N":"1"},"State":{"S":"open"},"Sum":{"N":"3"}},
  {"PK":{"S":"o1"},"SK":{"N":"2"},"State":{"S":"done"}},
  {"PK":{"S":"o2"},"SK":{"N":"-1"}}]}]}`

func TestCompare_Index(t *testing.T) {
	t.Parallel()
	src, err := source.OpenFS(fstest.MapFS{"model": {Data: []byte(indexedModel)}}, "model", source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := Verify(t.Context(), newBigtableServer(t), OfSource(src), VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, r)
	conn := newBigtableServer(t)
	if _, err := Load(t.Context(), conn, src, LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	if r.Rows != 3 || r.Tables[0].IndexRows != 2 {
		t.Errorf("rows %d, index rows %d; want 3, 2: index rows are not base rows", r.Rows, r.Tables[0].IndexRows)
	}
	_, err = btapb.NewBigtableTableAdminClient(conn).DropRowRange(t.Context(), &btapb.DropRowRangeRequest{
		Name:   "projects/tabletop/instances/tabletop/tables/Orders__ByState",
		Target: &btapb.DropRowRangeRequest_RowKeyPrefix{RowKeyPrefix: []byte("open")},
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err = Verify(t.Context(), conn, OfSource(src), VerifyOptions{Stored: true})
	if err != nil {
		t.Fatal(err)
	}
	if r.Differences != 1 || r.Failures[0].Kind != report.IndexStale || r.Failures[0].Detail != string(report.MissingRow) {
		t.Errorf("failures %v, want one %s of a missing row", r.Failures, report.IndexStale)
	}
}

// Bookkeeping that the DynamoDB endpoint leaves in place of an index entry is not a row.
func TestCompare_IndexTombstone(t *testing.T) {
	t.Parallel()
	src, err := source.OpenFS(fstest.MapFS{"model": {Data: []byte(indexedModel)}}, "model", source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	conn := newBigtableServer(t)
	p, err := Prepare(t.Context(), src, LoadOptions{})
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
	defer func() { _ = server.Close() }()
	b := p.run.B
	d := endpoints.Open(b, server, p.run.Jobs[0], r)
	for _, one := range [][2]string{{"PutItem", `"Item":{"PK":{"S":"o3"},"SK":{"N":"1"},"State":{"S":"lost"}}`}, {"DeleteItem", `"Key":{"PK":{"S":"o3"},"SK":{"N":"1"}}`}} {
		if _, err := d.Call(t.Context(), one[0], []byte(`{"TableName":"Orders",`+one[1]+`}`)); err != nil {
			t.Fatal(err)
		}
	}
	if r, err = Verify(t.Context(), conn, OfSource(src), VerifyOptions{Stored: true}); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, r)
	tombstones := 0
	for row, err := range b.Rows(t.Context(), btclient.Read{Table: "Orders__ByState", Spans: []layout.Span{{}}}) {
		if err != nil {
			t.Fatal(err)
		}
		if len(row.Cells) == 1 && row.Cells[0].Family == lens.FamilyTombstone {
			tombstones++
		}
	}
	if tombstones != 1 {
		t.Errorf("%d rows hold a tombstone alone, want 1", tombstones)
	}
}

func TestVerify_InvalidFixture(t *testing.T) {
	t.Parallel()
	item := &fstest.MapFile{Data: []byte(`{"Item":{"id":{"S":"a"}}}`)}
	for _, c := range []struct {
		name  string
		files fstest.MapFS
		text  string
	}{
		{"no data", fstest.MapFS{"fixture.yaml": {}}, "the fixture has no data: add source/"},
		{"no fixture", fstest.MapFS{"README": {}}, "the folder is not a fixture: a fixture has its data in source/, mapping.yaml, and usually fixture.yaml, access/ and expect/; no folder below it is one"},
		{"a folder of fixtures", fstest.MapFS{
			"b/source/items.jsonl": item, "b/mapping.yaml": {}, "a/fixture.yaml": {}, "deep/er/mapping.yaml": {}, "none/README": {}, "a/b/c/d/e/mapping.yaml": {},
		}, "; fixtures below it are a, b, deep/er"},
		{"unknown member", fstest.MapFS{"fixture.yaml": {Data: []byte("titel: x\n")}, "source/items.jsonl": item}, "fixture.yaml:1:1: the file cannot be parsed: titel: unknown key, nearest to title; expected checks, clock, csv, description"},
		{"mapping", fstest.MapFS{"mapping.yaml": {Data: []byte("apiVersion: x\n")}, "source/items.jsonl": item}, "mapping.yaml: the mapping cannot be used"},
		{"golden", fstest.MapFS{"expect/rows.golden": {Data: []byte("a [61]\n  a:b = 1\n")}, "source/items.jsonl": item}, "expect/rows.golden:2: this is neither"},
		{"pattern without id", fstest.MapFS{"access/a.yaml": {Data: []byte("title: x\n")}, "source/items.jsonl": item}, "access/a.yaml: the access pattern cannot be run: it has no id"},
		{"pattern of nothing", fstest.MapFS{"access/a.yaml": {Data: []byte("id: x\n")}, "source/items.jsonl": item}, "neither a dynamodb nor a bigtable part"},
		{"pattern of an unknown item", fstest.MapFS{
			"access/a.yaml":      {Data: []byte("id: x\nbigtable: {read: {keys: [a]}}\nexpect: {keys: [[b]]}\n")},
			"source/items.jsonl": item,
		}, `access/a.yaml: expect.keys[0] ["b"]: the source has no such item`},
		{"pattern of a wrong count", fstest.MapFS{
			"access/a.yaml":      {Data: []byte("id: x\nbigtable: {read: {keys: [a]}}\nexpect: {count: 2, keys: [[a]]}\n")},
			"source/items.jsonl": item,
		}, "access/a.yaml: count is 2, but 1 items are listed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := Verify(t.Context(), newBigtableServer(t), OfFixture(c.files), VerifyOptions{})
			WantDamage(t, err, source.FixtureInvalid, c.text)
		})
	}
}
