package migrate

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

const leftOutMapping = `apiVersion: migration/v1
source:
  table: orders
  key: {hash: {name: id, type: S}}
  schema: {g: S, exp: N}
  gsis:
  - {name: kept, hash: g, projection: ALL}
  - {name: none, hash: g, projection: ALL, as: none}
  - {name: view, hash: g, projection: ALL, as: view}
target: {table: orders, joiner: oc, families: {a: {gc: {versions: 1}}}}
rules: [{name: item, row: ["{id}"], put: [{attr: "*", cell: "a:{attr}"}]}]
`

// Every verb reports the parts that a mapping does not lay out, in a separate check that is not
// ok. Without such parts there is no report.
func TestInfer_NotLaidOutIsTold(t *testing.T) {
	t.Parallel()
	index := func(name string) string {
		more := ""
		if name == "multi" {
			more = `,{"AttributeName":"id","KeyType":"HASH"}`
		}
		return `{"IndexName":"` + name + `","KeySchema":[{"AttributeName":"g","KeyType":"HASH"}` + more + `],"Projection":{"ProjectionType":"ALL"}}`
	}
	schema := func(more string, indexes ...string) []byte {
		for i, name := range indexes {
			indexes[i] = index(name)
		}
		return []byte(`{"Table":{"TableName":"orders","KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"},{"AttributeName":"g","AttributeType":"S"}],
			"GlobalSecondaryIndexes":[` + strings.Join(indexes, ",") + `]}}` + more)
	}
	const ttl = "\n" + `{"TimeToLiveDescription":{"TimeToLiveStatus":"ENABLED","AttributeName":"exp"}}`
	whole := strings.NewReplacer(", as: none", "", ", as: view", "", "  gsis:", "  ttl: {attribute: exp}\n  gsis:").Replace(leftOutMapping)
	for name, c := range map[string]struct {
		mapping string
		schema  []byte
		want    string
	}{
		"all that can be": {leftOutMapping, schema(ttl, "kept", "none", "view", "unknown"), "index none|index unknown|time to live by exp"},
		"no description":  {leftOutMapping, nil, "index none"},
		"nothing":         {whole, schema(ttl, "kept", "none", "view"), ""},
		"other key":       {strings.Replace(whole, "kept, hash: g", "kept, hash: id", 1), schema(ttl, "kept", "none", "view"), "index kept"},
		"other type":      {strings.NewReplacer("g: S", "g: N", "families: {", "families: {_t: {gc: {versions: 1}}, ").Replace(whole), schema(ttl, "kept"), "index kept"},
		"other expiry":    {strings.Replace(whole, "attribute: exp", "attribute: end", 1), schema(ttl, "kept", "none", "view"), "time to live by exp"},
		"less projected":  {strings.Replace(whole, "kept, hash: g, projection: ALL", "kept, hash: g, projection: KEYS_ONLY", 1), schema(ttl, "kept", "none", "view"), "index kept"},
		"a view of keys":  {strings.Replace(leftOutMapping, "view, hash: g, projection: ALL", "view, hash: g, projection: KEYS_ONLY", 1), schema(ttl, "view"), "index none|index view|time to live by exp"},
		"some projected":  {strings.Replace(whole, "kept, hash: g, projection: ALL", "kept, hash: g, projection: [exp]", 1), schema(ttl, "kept", "none", "view"), "index kept"},
		"many attributes": {strings.Replace(whole, "kept", "multi", 1), schema(ttl, "multi", "none", "view"), "index multi"},
		"inferred, many":  {"", schema(ttl, "kept", "multi"), "index multi"},
		"inferred":        {"", schema(ttl, "kept", strings.Repeat("long", 30)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src, err := source.OpenFS(fstest.MapFS{"orders.jsonl": {Data: []byte(`{"id":{"S":"1"},"g":{"S":"x"},"exp":{"N":"4102444800"}}`)}}, "orders.jsonl", source.Options{TableSchema: c.schema, Key: "id"})
			if err != nil {
				t.Fatal(err)
			}
			var o Common
			if c.mapping != "" {
				o.Mappings = []*mapping.Mapping{mappingOf(t, c.mapping)}
			}
			loaded := newBigtableServer(t)
			verbs := map[string]func() (*report.Report, error){
				"load": func() (*report.Report, error) { return Load(t.Context(), loaded, src, LoadOptions{Common: o}) },
				"verify": func() (*report.Report, error) {
					return Verify(t.Context(), newBigtableServer(t), OfSource(src), VerifyOptions{Common: o})
				},
				"verify stored": func() (*report.Report, error) {
					return Verify(t.Context(), loaded, OfSource(src), VerifyOptions{Common: o, Stored: true})
				},
				"diff": func() (*report.Report, error) {
					rows := Side{Name: "rows", Conn: loaded, Table: "orders", Mapping: storedMapping(t, loaded)}
					return Diff(t.Context(), Side{Name: "items", Source: src, Mapping: rows.Mapping}, rows, DiffOptions{})
				},
				"lint": func() (*report.Report, error) { return Lint(t.Context(), OfSource(src), LintOptions{Common: o}) },
			}
			for _, verb := range []string{"load", "verify", "verify stored", "diff", "lint"} {
				r, err := verbs[verb]()
				if err != nil {
					t.Fatalf("%s: %v", verb, err)
				}
				if verb == "verify" && !r.Equal() {
					t.Errorf("%s: %v", verb, r.Failures)
				}
				wantLeftOut(t, verb, r.NotLaidOut, r.Warnings, c.want)
				i := slices.IndexFunc(r.Checks, func(k report.Check) bool { return k.Name == report.NotLaidOutCheck })
				switch {
				case (i >= 0) != (c.want != ""):
					t.Errorf("%s: the checks are %+v", verb, r.Checks)
				case i >= 0 && (r.Checks[i].State == report.CheckOK || r.Checks[i].Table != "orders"):
					t.Errorf("%s: the check is %+v", verb, r.Checks[i])
				}
			}
			plan, err := MakePlan(t.Context(), src, PlanOptions{Common: o})
			if err != nil {
				t.Fatal(err)
			}
			wantLeftOut(t, "plan", plan.NotLaidOut, plan.Warnings, c.want)
			// Rows do not contain a table's description.
			want := ""
			switch {
			case strings.Contains(c.mapping, "as: none"):
				want = "index none"
			case c.mapping == "": // an inferred mapping reports it itself
				want = c.want
			}
			m := storedMapping(t, loaded)
			rows := Side{Name: "rows", Conn: loaded, Table: "orders", Mapping: m}
			diff, err := Diff(t.Context(), rows, rows, DiffOptions{})
			if err != nil {
				t.Fatal(err)
			}
			wantLeftOut(t, "diff of rows", diff.NotLaidOut, diff.Warnings, want)
			back, err := Reverse(t.Context(), loaded, m, t.TempDir(), ReverseOptions{ExportTime: time.Unix(1715685260, 0)})
			if err != nil {
				t.Fatal(err)
			}
			wantLeftOut(t, "reverse", back.NotLaidOut, back.Warnings, want)
		})
	}
}

// storedMapping returns the mapping recorded by the load of a table.
func storedMapping(t *testing.T, conn grpc.ClientConnInterface) *mapping.Mapping {
	t.Helper()
	all, err := StoredMappings(t.Context(), conn, Common{})
	if err != nil || len(all) != 1 {
		t.Fatalf("%d mappings are noted, error %v", len(all), err)
	}
	return all[0]
}

func wantLeftOut(t *testing.T, verb string, left []report.NotLaidOut, warnings []string, want string) {
	t.Helper()
	var got []string
	for _, n := range left {
		got = append(got, n.What)
		if !slices.Contains(warnings, n.String()) {
			t.Errorf("%s does not warn that %s: %q", verb, n, warnings)
		}
	}
	if text := strings.Join(got, "|"); text != want {
		t.Errorf("%s: not laid out is %q, want %q", verb, text, want)
	}
	if left == nil {
		t.Errorf("%s: the list is absent where it is empty", verb)
	}
}
