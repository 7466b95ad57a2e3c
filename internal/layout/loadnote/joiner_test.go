package loadnote_test

import (
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/loadnote"
)

// Rows with unescaped last segments do not match a mapping whose joiner auto escapes them: the
// difference is reported, with the moved items. Between plain and escaped, rows are the same.
func TestJoinedKeys_NotedJoiner(t *testing.T) {
	t.Parallel()
	load := func(joiner, org string) *layout.Mapping {
		m, err := layout.Load("m.yaml", []byte(strings.NewReplacer("JOINER", joiner, "ORG", org).Replace(`apiVersion: migration/v1
source: {table: T, key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}, schema: {v: S}}
target: {table: t, joiner: JOINER, families: {o: {}, u: {}, _t: {}}}
rules:
- {name: org, when: {SK: org}, row: [ORG], put: [{attr: "*", cell: "o:{attr}"}]}
- {name: user, when: {SK: "USER#{u}"}, row: ["{PK}", u, "{u}"], put: [{attr: "*", cell: "u:{attr}"}]}
`)))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	proven := func(m *layout.Mapping, joiner string) *layout.Mapping {
		m, err := m.Proven(joiner)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	const apart, same = `"{PK}"`, `"{PK}", o, x` // rules with two numbers of segments, and with one
	for _, c := range []struct {
		name     string
		was, now *layout.Mapping
		want     string
	}{
		{"apart as before", proven(load("auto", apart), "escaped-all('#')"), load("auto", apart), ""},
		{"apart, and was not", proven(load("auto", apart), "escaped('#')"), load("auto", apart), "the joiner was escaped('#'), and is escaped-all('#')"},
		{"plain", proven(load("auto", same), "plain('#')"), load("auto", same), ""},
		{"escaped", proven(load("auto", same), "escaped('#')"), load("auto", same), ""},
		{"open", load("auto", same), load("auto", same), ""},
		{"apart and open", load("auto", apart), load("auto", apart), ""},
	} {
		rows, err := c.was.SchemaRows(0)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(loadnote.Changes(rows, c.now), "; "); got != c.want {
			t.Errorf("%s: changes %q, want %q", c.name, got, c.want)
		}
		moves, err := loadnote.NewMoves(c.was, c.now)
		if err != nil {
			t.Fatal(err)
		}
		hostile := attr.Item{"PK": attr.String("acme#u#bob"), "SK": attr.String("org"), "v": attr.String("x")}
		if got := moves.Of(hostile); (got != "") != (c.want != "") {
			t.Errorf("%s: the item %q lies elsewhere: %q", c.name, hostile["PK"].Str, got)
		}
	}
}
