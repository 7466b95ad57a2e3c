package layout

import (
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// An error shows the rejected value, and proposes only remedies that help: no acceptance that
// exists, or that covers other values.
func TestPlace_RefusedValue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		accept, item, want string // want: "" for an accepted item
	}{
		"inexact":          {"", `{"id":{"S":"1"},"f":{"N":"9007199254740993"}}`, `attribute "f": the value is {"N":"9007199254740993"}; expected a number that a 64-bit float represents exactly (codec f64be), or accept_loss: [{what: precision}], or a family _t for exceptions`},
		"exact":            {"", `{"id":{"S":"1"},"f":{"N":"0.5"}}`, ""},
		"accepted":         {"accept_loss: [{what: precision, why: x}]", `{"id":{"S":"1"},"f":{"N":"9007199254740993"}}`, ""},
		"no number":        {"", `{"id":{"S":"1"},"f":{"S":"0.5"}}`, `attribute "f": the value is {"S":"0.5"}; expected type N (codec f64be), or a family _t for exceptions`},
		"accepted, a text": {"accept_loss: [{what: precision, why: x}]", `{"id":{"S":"1"},"f":{"S":"x"}}`, `attribute "f": the value is {"S":"x"}; expected type N (codec f64be), or a family _t for exceptions`},
		"type":             {"", `{"id":{"S":"1"},"s":{"N":"5"}}`, `attribute "s": the value is {"N":"5"}; expected type S, or a family _t for exceptions`},
		"inside a map":     {"", `{"id":{"S":"1"},"m":{"M":{"k":{"BOOL":true}}}}`, `attribute "m.k": the value is {"BOOL":true}; expected type S`},
		"set":              {"", `{"id":{"S":"1"},"s":{"SS":["a","b"]}}`, `attribute "s": the value is {"SS":["a","b"]}; expected type S`},
		"empty":            {"", `{"id":{"S":"1"},"m":{"M":{}}}`, `attribute "m": the value is an empty M; expected a map or list that is not empty, or a family _t for exceptions`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := Load("domain.yaml", []byte(`apiVersion: migration/v1
source: {table: T, key: {hash: {name: id, type: S}}, schema: {f: N, s: S, m: {M: S}}}
target: {table: t, families: {a: {}, m.m: {}}}
fidelity: idiomatic
`+c.accept+`
rules: [{name: item, row: ["{id}"], put: [{attr: f, cell: "a:f", codec: f64be}, {attr: "*", cell: "a:{attr}"}]}]
`))
			if err != nil {
				t.Fatal(err)
			}
			item, err := attr.UnmarshalItem([]byte(c.item))
			if err != nil {
				t.Fatal(err)
			}
			_, err = m.Place(item, 1000)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}
