package layout

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/edge"
)

// drawn has the drawn values of an attribute, as JSON, for items that the mapping accepts and
// for those that it rejects, and the codes of errors.
type drawn struct{ taken, refused, codes map[string]bool }

func draw(t *testing.T, m *Mapping, name string, n int) drawn {
	t.Helper()
	d := drawn{map[string]bool{}, map[string]bool{}, map[string]bool{}}
	for _, item := range m.Generate(rand.New(rand.NewPCG(1, 0)), n) {
		v, ok := item[name]
		_, err := m.Place(item, 0)
		var bad *maperr.Error
		switch {
		case errors.As(err, &bad):
			d.codes[string(bad.Code)] = true
			if ok {
				d.refused[string(attr.AppendJSON(nil, v))] = true
			}
		case err != nil:
			t.Fatal(err)
		case ok:
			d.taken[string(attr.AppendJSON(nil, v))] = true
		}
	}
	return d
}

const (
	digits38   = "99999999999999999999999999999999999999"
	minInt64   = "-9223372036854775808"
	maxInt64   = "9223372036854775807"
	overInt64  = "9223372036854775808"
	zeroByte   = `\u0000`
	emptyText  = `{"S":""}`
	emptyMap   = `{"M":{}}`
	emptyList  = `{"L":[]}`
	emptyBytes = `{"B":""}`
)

// numberJSON returns the canonical JSON of a number.
func numberJSON(text string) string {
	canonical, err := attr.ParseNumber(text)
	if err != nil {
		return text // a drawn text may not be a number
	}
	return `{"N":"` + canonical + `"}`
}

// The values drawn for a codec are on both sides of the limits of its domain.
func TestGenerate_Codecs(t *testing.T) {
	t.Parallel()
	large := `{"S":"` + strings.Repeat("x", edge.LargeMember) + `"}`
	for name, c := range map[string]struct {
		schema         string
		taken, refused []string
	}{
		"s":       {"S", []string{emptyText, large}, []string{numberJSON("0"), emptyMap}},
		"n":       {"N", []string{numberJSON(digits38), numberJSON("1E-130"), numberJSON("0")}, []string{emptyText}},
		"b":       {"B", []string{emptyBytes, `{"B":"AA=="}`}, []string{emptyText}},
		"bool":    {"BOOL", []string{`{"BOOL":true}`, `{"BOOL":false}`}, []string{`{"NULL":true}`}},
		"text":    {"BOOL", []string{`{"BOOL":true}`}, []string{`{"NULL":true}`}},
		"b64":     {"B", []string{emptyBytes, `{"B":"AA=="}`}, []string{emptyText}},
		"i64be":   {"N", []string{numberJSON(minInt64), numberJSON(maxInt64)}, []string{numberJSON(overInt64), numberJSON("0.5"), numberJSON(digits38)}},
		"f64be":   {"N", []string{numberJSON("0.5"), numberJSON("1E-130"), numberJSON("0")}, []string{numberJSON(digits38), numberJSON(maxInt64)}},
		"nord":    {"N", []string{numberJSON(digits38), numberJSON("-" + digits38), numberJSON("1E-130"), numberJSON("9.99E+125")}, []string{emptyText}},
		"json":    {"{M: S}", []string{emptyMap}, []string{emptyBytes}},
		"ddbjson": {"{M: S}", []string{emptyMap, emptyList, emptyText, `{"NULL":true}`}, nil},
		"proto(user.binpb, acme.User)": {"{M: {tags: SS}}", []string{
			`{"M":{"int64":` + numberJSON(minInt64) + `}}`, `{"M":{"uint64":` + numberJSON("18446744073709551615") + `}}`, `{"M":{"int32":` + numberJSON("2147483647") + `}}`,
			emptyMap, `{"M":{"color":{"S":"RED"}}}`, `{"M":{"friend":` + emptyMap + `}}`,
		}, []string{
			`{"M":{"int64":` + numberJSON(overInt64) + `}}`, `{"M":{"uint64":` + numberJSON("18446744073709551616") + `}}`, `{"M":{"int32":` + numberJSON("2147483648") + `}}`,
			`{"M":{"names":` + emptyList + `}}`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := Load("m.yaml", fmt.Appendf(nil, `apiVersion: migration/v1
source: {table: T, key: {hash: {name: id, type: S}}, schema: {v: %s}}
target: {table: t, families: {a: {gc: {versions: 1}}}}
fidelity: idiomatic
rules: [{name: item, row: ["{id}"], put: [{attr: v, cell: "a:v", codec: %q}]}]
`, c.schema, name), fstest.MapFS{"user.binpb": {Data: userDescriptors(t)}})
			if err != nil {
				t.Fatal(err)
			}
			d := draw(t, m, "v", 4000)
			for _, v := range c.taken {
				if !d.taken[v] {
					t.Errorf("%.60s was not drawn, or not taken", v)
				}
			}
			for _, v := range c.refused {
				if !d.refused[v] {
					t.Errorf("%.60s was not drawn, or not refused", v)
				}
			}
		})
	}
}

// The keys drawn for an encoder are inside its domain and, if the domain has limits, also
// outside.
func TestGenerate_Encoders(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind, encoder string
		limited       bool
	}{
		{"S", "s", false},
		{"S", "revdigits", true},
		{"S", "revdomain", false},
		{"S", "strip(user-)", true},
		{"S", "const(k)", true},
		{"S", "iso(s)", true},
		{"S", "iso(ms,Z)", true},
		{"S", "epoch(ms)", true},
		{"N", "n", false},
		{"N", "nord", false},
		{"N", "pad(5)", true},
		{"N", "i64", true},
		{"N", "ocint", true},
		{"N", "revmax", true},
		{"N", "revms(13)", true},
		{"N", "epoch(s)", true},
		{"B", "b", false},
		{"B", "hex", false},
		{"B", "b64u", false},
	} {
		t.Run(c.encoder, func(t *testing.T) {
			t.Parallel()
			m, err := Load("m.yaml", fmt.Appendf(nil, `apiVersion: migration/v1
source: {table: T, key: {hash: {name: h, type: %s}, range: {name: r, type: S}}}
target: {table: t, joiner: "escaped('#')", families: {a: {gc: {versions: 1}}, _t: {gc: {versions: 1}}}}
rules: [{name: item, row: ["{h:%s}", "{r}"], put: [{attr: "*", cell: "a:{attr}"}]}]
`, c.kind, c.encoder))
			if err != nil {
				t.Fatal(err)
			}
			d := draw(t, m, "h", 500)
			if len(d.taken) == 0 {
				t.Error("no key is in the domain")
			}
			if c.limited != d.codes[string(maperr.CodeDomain)] {
				t.Errorf("a key is outside of the domain: %v", d.codes)
			}
			if c.kind == "S" && !c.limited && !slices.ContainsFunc(slices.Collect(maps.Keys(d.taken)), func(v string) bool { return strings.Contains(v, zeroByte) && strings.Contains(v, "#") }) {
				t.Error("no key has a zero byte and the delimiter")
			}
		})
	}
}

// A mapping is attacked with its own delimiter, with the literals of its templates, and with
// instants of the same millisecond.
func TestGenerate_Marks(t *testing.T) {
	t.Parallel()
	m, err := Load("m.yaml", []byte(`apiVersion: migration/v1
source: {table: T, key: {hash: {name: h, type: S}, range: {name: r, type: S}}, schema: {text: S}}
target: {table: t, joiner: "plain('!')", families: {a: {}}}
fidelity: idiomatic
rules: [{name: comment, when: {h: "video<>{v}", r: "{who}@@{t:epoch(ms)}"}, row: ["{v}", "x"], put: [{attr: text, cell: "a:c.{who}", codec: s, ts: "{t}"}]}]
`))
	if err != nil {
		t.Fatal(err)
	}
	d := draw(t, m, "h", 500)
	if !d.codes[string(maperr.CodeDelim)] {
		t.Errorf("no key has the delimiter: %v", d.codes)
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(d.taken)), func(v string) bool { return strings.Count(v, "video<>") > 1 || strings.Contains(v, "@@") }) {
		t.Error("no key has the literals of the templates")
	}
	cells := map[string]int{}
	for _, item := range m.Generate(rand.New(rand.NewPCG(1, 0)), 1000) {
		if p, err := m.Place(item, 0); err == nil {
			for _, c := range p.Cells {
				cells[fmt.Sprint(string(p.Row), c.Timestamp)]++
			}
		}
	}
	same := 0
	for _, n := range cells {
		if n > 1 {
			same++
		}
	}
	if same == 0 {
		t.Error("no two items are of one row and millisecond")
	}
}
