package layout

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// orgsMapping has rules of one and of three segments, whose columns differ.
const orgsMapping = `apiVersion: migration/v1
source: {table: T, key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}, schema: {Name: S, Tags: SS}}
target: {table: t, joiner: JOINER, families: {o: {}, u: {}, e: {}, s.Tags: {}, _t: {}}}
rules:
- {name: org, when: {PK: "ORG#{o}", SK: ORG}, row: ["{o}"], put: [{attr: "*", cell: "o:{attr}"}]}
- {name: user, when: {PK: "ORG#{o}", SK: "USER#{u}"}, row: ["{o}", u, "{u}"], put: [{attr: "*", cell: "u:{attr}"}]}
- {name: seat, when: {PK: "ORG#{o}", SK: "SEAT#{u}"}, row: ["{o}", "s#{u}"], put: [{attr: "*", cell: "e:{attr}"}]}
`

func orgs(t *testing.T, joiner string) *Mapping {
	t.Helper()
	return mustLoad(t, strings.Replace(orgsMapping, "JOINER", joiner, 1))
}

func orgKey(pk, sk string) attr.Item {
	return attr.Item{"PK": attr.String(pk), "SK": attr.String(sk)}
}

// The plain and the escaped joiner give two items the same row: the error names the item of
// the other rule.
func TestJoinedKeys_RowsOfTwoRulesAreTold(t *testing.T) {
	t.Parallel()
	org, user := orgKey("ORG#acme#u#bob", "ORG"), orgKey("ORG#acme", "USER#bob")
	for _, joiner := range []string{"escaped('#')", "plain('#')"} {
		m := orgs(t, joiner)
		a, errA := m.Locate(org)
		b, errB := m.Locate(user)
		if errA != nil || errB != nil || !bytes.Equal(a.Row, b.Row) {
			t.Fatalf("joiner %s: rows %q and %q, %v, %v", joiner, a.Row, b.Row, errA, errB)
		}
		other, key, ok := m.Stray(a.Rule, a.Row)
		if !ok || other != "user" || !attr.EqualItems(key, user) {
			t.Errorf("joiner %s: row %q of rule %s is also that of %s %v, %v; want user %v", joiner, a.Row, a.Rule, other, key, ok, user)
		}
		// A row with all its segments belongs to its rule.
		if other, key, ok := m.Stray(b.Rule, b.Row); ok {
			t.Errorf("joiner %s: row %q of rule %s is also that of %s %v", joiner, b.Row, b.Rule, other, key)
		}
		if other, key, ok := m.Stray("org", []byte("acme")); ok {
			t.Errorf("joiner %s: row acme is also that of %s %v", joiner, other, key)
		}
	}
}

// If rules have different numbers of segments, auto also escapes the last segments: no row
// belongs to two rules, items come back, and queries find them.
func TestJoinedKeys_LastSegmentsAreEscaped(t *testing.T) {
	t.Parallel()
	hostile := []string{"acme", "acme#u#bob", "acme#s#bob", "#", "$", "a$23u", "acme#u#", "u", "s#u"}
	for _, joiner := range []string{"auto", "escaped-all('#')"} {
		m := mustLoad(t, strings.NewReplacer("JOINER", joiner, "e:{attr}", "o:{attr}", "u:{attr}", "o:{attr}").Replace(orgsMapping)) // columns with the same names
		rows := map[string]string{}                                                                                                  // row to rule
		var placed []lens.Placed
		var items []attr.Item
		for _, o := range hostile {
			items = append(items, orgKey("ORG#"+o, "ORG"))
			for _, u := range hostile {
				items = append(items, orgKey("ORG#"+o, "USER#"+u), orgKey("ORG#"+o, "SEAT#"+u))
			}
		}
		for i, item := range items {
			item["Name"] = attr.String(fmt.Sprint(i))
			if i%3 == 0 {
				item["Tags"] = attr.SetOf(attr.SS, "x")
			}
			p, err := m.Place(item, expTime)
			if err != nil {
				t.Fatal(err)
			}
			if was := rows[string(p.Row)]; was != "" {
				t.Fatalf("joiner %s: row %q is of rules %s and %s", joiner, p.Row, was, p.Rule)
			}
			rows[string(p.Row)] = p.Rule
			if other, key, ok := m.Stray(p.Rule, p.Row); ok {
				t.Errorf("joiner %s: row %q is also that of %s %v", joiner, p.Row, other, key)
			}
			back, err := m.Item(Row{Key: p.Row, Cells: p.Cells}, item)
			if err != nil || !attr.EqualItems(back, item) {
				t.Errorf("joiner %s: item %v comes back as %v, %v", joiner, item, back, err)
			}
			placed = append(placed, p)
		}
		stored := rowsOf(placed)
		for _, o := range hostile {
			for _, c := range []struct {
				attr.KeyRange
				want int
			}{
				{attr.KeyRange{}, 1 + 2*len(hostile)},
				{attr.KeyRange{Op: attr.RangeBeginsWith, A: attr.String("SEAT#acme#")}, 3},
				{attr.KeyRange{Op: attr.RangeBeginsWith, A: attr.String("USER#acme#")}, 3},
				{attr.KeyRange{Op: attr.RangeEqual, A: attr.String("ORG")}, 1},
			} {
				c.Hash = attr.String("ORG#" + o)
				plan, err := m.PlanQuery(c.KeyRange)
				if err != nil {
					t.Fatal(err)
				}
				found := 0
				for _, row := range readPlan(plan, stored) {
					got, err := m.Items(row)
					if err != nil {
						t.Fatal(err)
					}
					for _, item := range got {
						if attr.Equal(item["PK"], c.Hash) && c.Matches(item["SK"]) {
							found++
						}
					}
				}
				if found != c.want {
					t.Errorf("joiner %s: %v of %s finds %d items, want %d", joiner, c.KeyRange, c.Hash.Str, found, c.want)
				}
			}
		}
	}
}

// A query whose text of the last segment begins with a literal that is escaped elsewhere reads
// the unescaped rows.
func TestJoinedKeys_LiteralInLastSegment(t *testing.T) {
	t.Parallel()
	m := mustLoad(t, `apiVersion: migration/v1
source: {table: T, key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}, schema: {Name: S}}
target: {table: t, joiner: escaped('#'), families: {a: {}, _t: {}}}
rules:
- {name: user, when: {SK: "USER#{u}"}, row: ["{PK}", "u#{u}"], put: [{attr: "*", cell: "a:{attr}"}]}
`)
	item := orgKey("acme", "USER#bob")
	p, err := m.Place(item, expTime)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := m.PlanQuery(attr.KeyRange{Hash: attr.String("acme")})
	if err != nil {
		t.Fatal(err)
	}
	if rows := readPlan(plan, rowsOf([]lens.Placed{p})); len(rows) != 1 {
		t.Errorf("the row is %q, and the plan\n%s", p.Row, formatPlan(plan))
	}
}

// The outcome of auto is recorded, and compiles to the same rows.
func TestJoinedKeys_AutoIsProven(t *testing.T) {
	t.Parallel()
	m := orgs(t, "auto")
	proof := m.ProveJoiner()
	for _, key := range []attr.Item{orgKey("ORG#acme", "ORG"), orgKey("ORG#acme", "USER#b#c")} {
		if err := proof.Add(key); err != nil {
			t.Fatal(err)
		}
	}
	if proof.Joiner() != "escaped-all('#')" || !proof.Apart() || proof.Offender() != nil {
		t.Errorf("auto has the outcome %s, offender %v", proof.Joiner(), proof.Offender())
	}
	if err := proof.Add(orgKey("ORG#acme#u#bob", "ORG")); err != nil || proof.Offender() == nil {
		t.Errorf("no offender, %v", err)
	}
	proven, err := m.Proven(proof.Joiner())
	if err != nil {
		t.Fatal(err)
	}
	rows, err := proven.SchemaRows(expTime)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := FromSchemaRows("t", rows)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []attr.Item{orgKey("ORG#acme#u#bob", "ORG"), orgKey("ORG#a", "USER#b#c"), orgKey("ORG#a", "SEAT#b#c")} {
		a, _ := m.Locate(key)
		for _, o := range []*Mapping{proven, stored} {
			b, err := o.Locate(key)
			if diff := cmp.Diff(a, b); err != nil || diff != "" {
				t.Errorf("%v (-auto +proven): %v\n%s", key, err, diff)
			}
		}
	}
	// Rows that an earlier load wrote with its outcome of auto stay the same.
	if before, err := m.Proven("escaped('#')"); err != nil || before.Joiner() != "escaped('#')" {
		t.Errorf("%v", err)
	}
	// One rule, or rules whose rows cannot meet, need no escapes.
	for _, rules := range []string{
		`[{name: a, row: ["{PK}", "{SK}"], put: [{attr: "*", cell: "o:{attr}"}]}]`,
		`[{name: a, when: {SK: a}, row: [a, "{PK}"], put: [{attr: "*", cell: "o:{attr}"}]}, {name: b, row: [b, "{PK}", "{SK}"], put: [{attr: "*", cell: "o:{attr}"}]}]`,
	} {
		text, _, _ := strings.Cut(strings.Replace(orgsMapping, "JOINER", "auto", 1), "rules:")
		if proof := mustLoad(t, text+"rules: "+rules).ProveJoiner(); proof.Apart() || proof.Joiner() != "plain('#')" {
			t.Errorf("auto has the outcome %s for rules %s", proof.Joiner(), rules)
		}
	}
}
