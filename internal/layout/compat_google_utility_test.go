package layout

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/rowtext"
)

const googleMapping = `apiVersion: migration/v1
compat: google-utility
source: {table: Users, key: {hash: {name: Username, type: S}}, schema: {Hobbies: L, Zipcode: N, Preferences: {M: S}, a: NULL, b: B, c: SS, d: BOOL}}
target: {table: users, families: {cf1: {gc: {versions: 1}}}}
`

// TestGoogleUtility_Sample lays out an item as the utility's documentation describes:
// testdata/google_utility has the item and its row.
func TestGoogleUtility_Sample(t *testing.T) {
	t.Parallel()
	read := func(name string, into any) {
		t.Helper()
		b, err := os.ReadFile(filepath.Join("testdata", "google_utility", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, into); err != nil {
			t.Fatal(err)
		}
	}
	var source struct{ Item json.RawMessage }
	read("item.json", &source)
	var want struct {
		RowKey string `json:"row_key"`
		Cells  []struct {
			Family  string `json:"column_family"`
			Column  string
			Payload json.RawMessage
		}
	}
	read("row.json", &want)

	m, err := Load("google.yaml", []byte(googleMapping))
	if err != nil {
		t.Fatal(err)
	}
	item, err := attr.UnmarshalItem(source.Item)
	if err != nil {
		t.Fatal(err)
	}
	placed, err := m.Place(item, expTime)
	if err != nil {
		t.Fatal(err)
	}
	if string(placed.Row) != want.RowKey {
		t.Errorf("row %q, want %q", placed.Row, want.RowKey)
	}
	cells := map[string]any{}
	for _, c := range placed.Cells {
		if c.Timestamp != 0 || c.Family != "cf1" {
			t.Errorf("cell %s:%s @%d", c.Family, c.Qualifier, c.Timestamp)
		}
		cells[string(c.Qualifier)] = payload(c.Value)
	}
	wanted := map[string]any{}
	for _, c := range want.Cells {
		var text string
		if json.Unmarshal(c.Payload, &text) == nil {
			wanted[c.Column] = payload([]byte(text))
		} else {
			wanted[c.Column] = payload(c.Payload)
		}
	}
	if d := cmp.Diff(wanted, cells); d != "" {
		t.Errorf("cells (-want +got):\n%s", d)
	}
	back, err := m.Item(Row{Key: placed.Row, Cells: placed.Cells}, item)
	if err != nil || attr.EqualItems(back, item) || back["Zipcode"].Type != attr.S {
		t.Errorf("the item comes back as %v, %v", back, err)
	}
}

// payload returns a list as JSON, since its spaces do not matter, and other values as text.
func payload(b []byte) any {
	var list []any
	if json.Unmarshal(b, &list) == nil {
		return list
	}
	return string(b)
}

// TestGoogleUtility checks the utility's effect on types, its failures, and the fidelity
// table.
func TestGoogleUtility(t *testing.T) {
	t.Parallel()
	m, err := Load("google.yaml", []byte(googleMapping))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ item, want string }{
		{`{"b":{"B":"aGVsbG8="}}`, "  cf1:b @0 = \"YUdWc2JHOD0=\"\n"},
		{`{"a":{"NULL":true},"s":{"S":""}}`, "  cf1:a @0 = \"\"\n  cf1:s @0 = \"\"\n"},
		{`{"c":{"SS":["y","x"]},"n":{"NS":["2","1"]}}`, "  cf1:c @0 = [\"x\",\"y\"]\n  cf1:n @0 = [1,2]\n"},
		{`{"d":{"BOOL":true},"n":{"N":"0.5"}}`, "  cf1:d @0 = \"true\"\n  cf1:n @0 = \"0.5\"\n"},
		{`{"l":{"L":[{"M":{"k":{"NULL":true},"b":{"B":"aA=="}}},{"BOOL":false},{"L":[]}]}}`, "  cf1:l @0 = [{\"b\":\"YUE9PQ==\",\"k\":null},false,[]]\n"},
		{`{"m":{"M":{"a":{"M":{"b":{"S":"x"}}},"gone":{"M":{}}}}}`, "  cf1:m.a.b @0 = \"x\"\n"},
		{`{"n":{"N":"9223372036854775808"}}`, `E-DOMAIN: table Users: rule google-utility: item {"Username":{"S":"u"}}: attribute "n": the utility fails on 9223372036854775808, which is not a 64-bit integer`},
		{`{"a.b":{"S":"1"},"a":{"M":{"b":{"S":"2"}}}}`, `E-COLLISION: table Users: rule google-utility: item {"Username":{"S":"u"}}: attribute "a.b": two attributes share a column: the utility keeps only one of them; expected names without dots`},
	} {
		item, err := attr.UnmarshalItem([]byte(c.item))
		if err != nil {
			t.Fatal(err)
		}
		item["Username"] = attr.String("u")
		placed, err := m.Place(item, expTime)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = strings.TrimPrefix(string(rowtext.FormatRow(nil, Row{Key: placed.Row, Cells: placed.Cells})), "u [75]\n")
		}
		if got != c.want {
			t.Errorf("%s becomes\n%s\nwant\n%s", c.item, got, c.want)
		}
	}
	var losses []string
	for _, f := range m.Fidelity() {
		losses = append(losses, f.String())
	}
	want := []string{
		"google-utility Username: lossless",
		"google-utility Hobbies: lossy (accepted: the types of its elements are not kept)",
		"google-utility Preferences: lossy (accepted: a dotted name looks like a nested one; an empty map is gone)",
		"google-utility Zipcode: lossy (accepted: its type is not kept; integers of 64 bits and more, and exponents, fail)",
		"google-utility a: lossy (accepted: it looks like an empty string)",
		"google-utility b: lossy (accepted: its type is not kept; base64 of base64)",
		"google-utility c: lossy (accepted: a set looks like a list, in any order)",
		"google-utility d: lossy (accepted: its type is not kept: the text true or false)",
		"google-utility *: lossy (accepted: every timestamp is in 1970: garbage collection by age removes all cells)",
	}
	if d := cmp.Diff(want, losses); d != "" {
		t.Errorf("fidelity (-want +got):\n%s", d)
	}
	// The sort key is an ordinary attribute; a query reads the one row.
	sorted, err := Load("google.yaml", []byte(strings.Replace(googleMapping, "type: S}}", "type: B}, range: {name: at, type: N}}", 1)))
	if err != nil {
		t.Fatal(err)
	}
	item := attr.Item{"Username": attr.Binary([]byte("hello")), "at": attr.Int(7), "v": attr.String("x")}
	placed, err := sorted.Place(item, 0)
	if err != nil || string(placed.Row) != "YUdWc2JHOD0=" {
		t.Fatalf("row %q, %v", placed.Row, err)
	}
	rows := rowsOf([]lens.Placed{placed})
	plan, err := sorted.PlanQuery(attr.KeyRange{Hash: item["Username"], Op: attr.RangeEqual, A: attr.Int(7)})
	if err != nil || len(readPlan(plan, rows)) != 1 {
		t.Errorf("plan %+v, %v", plan, err)
	}
	if back, err := sorted.Item(rows[0], item); err != nil || !attr.EqualItems(back, item) {
		t.Errorf("%v comes back as %v, %v", item, back, err)
	}
}
