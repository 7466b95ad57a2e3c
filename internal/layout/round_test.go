package layout

import (
	"errors"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
)

const roundedMapping = `apiVersion: migration/v1
source: {table: T, key: {hash: {name: PK, type: S}}, schema: {n: N}}
target: {table: t, families: {a: {}}}
accept_loss: [{what: precision, why: a measurement}]
rules:
- {name: item, row: ["{PK}"], put: [{attr: n, cell: "a:n", codec: f64be}]}
`

// A number whose nearest 64-bit float is not a DynamoDB number is outside the codec's domain,
// whatever loss is accepted: it could not be read back.
func TestUnreadableRows_RoundedBeyondNumbers(t *testing.T) {
	t.Parallel()
	const text = `{"PK":{"S":"p"},"n":{"N":"9.9999999999999999999999999999999999999E+125"}}`
	item, err := attr.UnmarshalItem([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	_, err = mustLoad(t, roundedMapping).Place(item, expTime)
	var e *maperr.Error
	if !errors.As(err, &e) || e.Code != maperr.CodeDomain || e.Attribute != "n" || !strings.Contains(e.Expected, "rounded") {
		t.Errorf("%v, want %s of n", err, maperr.CodeDomain)
	}
	// With a sidecar it is an exact exception.
	comesBack(t, mustLoad(t, strings.Replace(roundedMapping, "{a: {}}", "{a: {}, _t: {}}", 1)), text)
}

// The error for an unreadable attribute names it, with its row.
func TestUnreadableRows_UnreadableIsNamed(t *testing.T) {
	t.Parallel()
	const text = `apiVersion: migration/v1
source: {table: T, key: {hash: {name: PK, type: S}}, schema: {n: N, s: SS, m: {M: N}, l: L}}
target: {table: t, families: {a: {}, s.s: {}, m.m: {}, w: {}, _t: {}}}
rules:
- {name: item, row: ["{PK}"], put: [{attr: w, cell: "w:n", codec: i64be}, {attr: "*", cell: "a:{attr}"}]}
`
	m := mustLoad(t, text)
	for _, c := range []struct {
		attribute string
		cell      Cell
	}{
		{"n", Cell{Family: "a", Qualifier: []byte("n"), Value: []byte("x")}},
		{"w", Cell{Family: "w", Qualifier: []byte("n"), Value: []byte("x")}},
		{"s", Cell{Family: "s.s", Qualifier: []byte("\xff"), Value: []byte{0}}},
		{"m", Cell{Family: "m.m", Qualifier: []byte("k"), Value: []byte("x")}},
		{"l", Cell{Family: "a", Qualifier: []byte("l"), Value: []byte("x")}},
	} {
		_, err := m.Items(Row{Key: []byte("p"), Cells: []Cell{c.cell}})
		var e *maperr.Error
		if !errors.As(err, &e) || e.Code != maperr.CodeCorrupt || e.Attribute != c.attribute || string(e.Row) != "p" || e.Rule != "item" {
			t.Errorf("cell %s:%q: %v, want %s of row p, attribute %s", c.cell.Family, c.cell.Qualifier, err, maperr.CodeCorrupt, c.attribute)
		}
	}
}
