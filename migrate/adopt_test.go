package migrate

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/migrate/internal/exporttest"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// An input that names another table than the mapping may be the wrong one: every run with both
// warns, and a load is refused unless the table was selected. A name derived from the file's is
// ignored.
func TestAdopt_OtherTable(t *testing.T) {
	t.Parallel()
	const text = `apiVersion: migration/v1
source:
  table: Videos
  key: {hash: {name: id, type: S}}
  schema: {n: N, tags: SS}
target: {table: videos, families: {a: {}}}
rules: [{name: item, row: ["{id}"], put: [{attr: "*", cell: "a:{attr}", codec: ddbjson}]}]
`
	m := mappingOf(t, text)
	const item = `{"id":{"S":"a"},"n":{"N":"1"}}`
	schema := func(table string) []byte {
		return []byte(`{"TableName":"` + table + `","KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}]}`)
	}
	const said = "has items of table T, but the mapping is for table Videos (mapping.yaml:3:3)"
	for name, c := range map[string]struct {
		files fstest.MapFS
		open  string
		o     source.Options
		want  string // "": no warning
	}{
		"export of the table's ARN": {exporttest.New([]string{`{"Item":` + item + `}`}), "bucket", source.Options{}, "bucket " + said},
		"batch write":               {fstest.MapFS{"b.json": {Data: []byte(`{"T":[{"PutRequest":{"Item":` + item + `}}]}`)}}, "b.json", source.Options{}, "b.json " + said},
		"batch write of the table":  {fstest.MapFS{"b.json": {Data: []byte(`{"Videos":[{"PutRequest":{"Item":` + item + `}}]}`)}}, "b.json", source.Options{}, ""},
		"lines":                     {fstest.MapFS{"T.jsonl": {Data: []byte(item)}}, "T.jsonl", source.Options{}, ""},
		"lines with a description":  {fstest.MapFS{"x.jsonl": {Data: []byte(item)}}, "x.jsonl", source.Options{TableSchema: schema("T")}, "x.jsonl " + said},
		"lines with its own":        {fstest.MapFS{"x.jsonl": {Data: []byte(item)}}, "x.jsonl", source.Options{TableSchema: schema("Videos")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src, err := source.OpenFS(c.files, c.open, c.o)
			if err != nil {
				t.Fatal(err)
			}
			o := Common{Mappings: []*mapping.Mapping{m}}
			verified, err := Verify(t.Context(), newBigtableServer(t), OfSource(src), VerifyOptions{Common: o})
			if err != nil {
				t.Fatal(err)
			}
			if c.want != "" {
				_, err := Load(t.Context(), newBigtableServer(t), src, LoadOptions{Common: o})
				WantDamage(t, err, source.MappingRefused, said+": to load it nevertheless, select it (--table T)")
				src.Asked = "T" // Options.Table
			}
			loaded, err := Load(t.Context(), newBigtableServer(t), src, LoadOptions{Common: o})
			if err != nil {
				t.Fatal(err)
			}
			plan, err := MakePlan(t.Context(), src, PlanOptions{Common: o})
			if err != nil {
				t.Fatal(err)
			}
			for run, warnings := range map[string][]string{"verify": verified.Warnings, "load": loaded.Warnings, "plan": plan.Warnings} {
				found := strings.Join(warnings, "\n")
				if (c.want == "") != (found == "") || !strings.Contains(found, c.want) {
					t.Errorf("%s warns %q, want %q", run, found, c.want)
				}
			}
		})
	}
}
