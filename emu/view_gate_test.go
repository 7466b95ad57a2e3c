package emu_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/emu/internal/filter"
	"github.com/tabletop-emu/tabletop/emu/internal/view"
	"github.com/tabletop-emu/tabletop/engine"
)

// gateFamilies holds the families of the table in these tests, in its order.
var gateFamilies = []engine.Family{{Name: "z", Ordinal: 1}, {Name: "f", Ordinal: 2}, {Name: "a", Ordinal: 5}}

// gatedRow is an in-memory row that counts its moves.
type gatedRow struct {
	cells        []filter.Cell
	at           int
	steps, seeks int
}

func (m *gatedRow) NextCell() bool     { m.steps++; m.at++; return m.at < len(m.cells) }
func (m *gatedRow) Cell() *filter.Cell { return &m.cells[m.at] }
func (m *gatedRow) Rewind()            { m.at = -1 }
func (m *gatedRow) SkipColumn()        { panic("not asked for") }
func (m *gatedRow) SkipFamily()        { panic("not asked for") }

func (m *gatedRow) SeekColumn(family string, qualifier []byte) {
	m.seeks++
	i := slices.IndexFunc(gateFamilies, func(f engine.Family) bool { return f.Name == family })
	for m.at+1 < len(m.cells) {
		c := &m.cells[m.at+1]
		if c.Ordinal > gateFamilies[i].Ordinal || c.Ordinal == gateFamilies[i].Ordinal && string(c.Qualifier) >= string(qualifier) {
			return
		}
		m.at++
	}
}

// gatedRowOf returns a row with n columns, named 00000 and so on, in each family,
// with one cell each.
func gatedRowOf(n int) *gatedRow {
	m := &gatedRow{at: -1}
	for _, f := range gateFamilies {
		for i := range n {
			m.cells = append(m.cells, filter.Cell{Family: f.Name, Ordinal: f.Ordinal, Qualifier: fmt.Appendf(nil, "%05d", i)})
		}
	}
	return m
}

func drainGate(g *view.Gate) []string {
	var out []string
	for g.NextCell() {
		out = append(out, g.Cell().Family+":"+string(g.Cell().Qualifier))
	}
	return out
}

// TestViewGate_Seeks: a view of 100 columns of a row of 30,000 reads 100 cells and
// seeks 100 times, wherever they are.
func TestViewGate_Seeks(t *testing.T) {
	t.Parallel()
	d := &btapb.AuthorizedView_SubsetView{FamilySubsets: map[string]*btapb.AuthorizedView_FamilySubsets{"z": {}, "f": {}, "a": {}}}
	var want []string
	for i := range 100 {
		family := gateFamilies[i/34].Name
		q := fmt.Sprintf("%05d", 97*i)
		d.FamilySubsets[family].Qualifiers = append(d.FamilySubsets[family].Qualifiers, []byte(q))
		want = append(want, family+":"+q)
	}
	m := gatedRowOf(10_000)
	g := view.Compile("v", d).Over(m, gateFamilies)
	for range 2 { // the second time after Rewind
		m.steps, m.seeks = 0, 0
		if got := drainGate(g); !slices.Equal(got, want) || !g.Seen() {
			t.Fatalf("got %v, want %v", got, want)
		}
		if m.steps > 201 || m.seeks > 100 {
			t.Errorf("%d steps and %d seeks for %d cells", m.steps, m.seeks, len(want))
		}
		if g.NextCell() || m.steps > 201 {
			t.Error("the gate goes on after its last cell")
		}
		g.Rewind()
	}
	// A filter's seek goes directly to the next column in the view.
	m.steps, m.seeks = 0, 0
	g.SeekColumn("f", []byte("05000"))
	if !g.NextCell() || string(g.Cell().Qualifier) != "05044" || m.steps != 1 || m.seeks != 1 {
		t.Errorf("at %s after %d steps and %d seeks", g.Cell().Qualifier, m.steps, m.seeks)
	}
	g.SeekColumn("z", nil) // backwards
	if !g.NextCell() || string(g.Cell().Qualifier) != "05141" {
		t.Errorf("at %s", g.Cell().Qualifier)
	}
	g.SeekColumn("nowhere", nil)
	if m.steps = 0; g.NextCell() || m.steps != 0 {
		t.Error("a family that is nowhere sorts after all")
	}
	// A row without cells in the view.
	m = &gatedRow{at: -1, cells: gatedRowOf(10_000).cells[:10_000]}
	g = view.Compile("v", &btapb.AuthorizedView_SubsetView{FamilySubsets: map[string]*btapb.AuthorizedView_FamilySubsets{"f": {QualifierPrefixes: [][]byte{nil}}}}).Over(m, gateFamilies)
	g.BeginRow()
	if got := drainGate(g); len(got) != 0 || g.Seen() || m.steps > 2 || m.seeks > 1 {
		t.Errorf("%v after %d steps and %d seeks", got, m.steps, m.seeks)
	}
	if g := view.Compile("v", d).Over(m, []engine.Family{{Name: "other"}}); g != nil {
		t.Error("a gate that lets nothing through")
	}
}

// insideView evaluates a definition by its documentation.
func insideView(d *btapb.AuthorizedView_SubsetView, family, qualifier string) bool {
	s := d.GetFamilySubsets()[family]
	return slices.ContainsFunc(s.GetQualifiers(), func(q []byte) bool { return string(q) == qualifier }) || hasPrefixOf(s.GetQualifierPrefixes(), qualifier)
}

func hasPrefixOf(prefixes [][]byte, key string) bool {
	return slices.ContainsFunc(prefixes, func(p []byte) bool { return strings.HasPrefix(key, string(p)) })
}

// FuzzViewCompile compares views of any definition with its documented meaning: for
// keys and qualifiers at and next to its bounds, and for a whole row read
// through it.
func FuzzViewCompile(f *testing.F) {
	for _, d := range []*btapb.AuthorizedView_SubsetView{
		{},
		{RowPrefixes: [][]byte{{}}, FamilySubsets: map[string]*btapb.AuthorizedView_FamilySubsets{"f": {QualifierPrefixes: [][]byte{{}}}}},
		{RowPrefixes: [][]byte{[]byte("r1"), []byte("r"), {0xff, 0xff}, []byte("r1\xff")}, FamilySubsets: map[string]*btapb.AuthorizedView_FamilySubsets{
			"z": {Qualifiers: [][]byte{[]byte("b"), []byte("a"), []byte("a\x00"), {}}}, "a": {QualifierPrefixes: [][]byte{[]byte("a\xff"), []byte("x")}}, "nowhere": {},
		}},
	} {
		b, err := proto.Marshal(d)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d := &btapb.AuthorizedView_SubsetView{}
		if proto.Unmarshal(b, d) != nil || view.Parameters(d) > 100 {
			return
		}
		v := view.Compile("v", d)
		keys := []string{"", "\x00", "a", "\xff"}
		add := func(named [][]byte) {
			for _, n := range named {
				key := string(n)
				keys = append(keys, key, key+"\x00", key+"\xff", key[:len(key)/2], key+"x")
			}
		}
		add(d.GetRowPrefixes())
		for _, s := range d.GetFamilySubsets() {
			add(s.GetQualifiers())
			add(s.GetQualifierPrefixes())
		}
		slices.Sort(keys)
		keys = slices.Compact(keys)
		m := &gatedRow{at: -1}
		var want []string
		for _, family := range gateFamilies {
			for _, key := range keys {
				if got, want := v.HoldsRow([]byte(key)), hasPrefixOf(d.GetRowPrefixes(), key); got != want {
					t.Fatalf("row %q: %v, want %v", key, got, want)
				}
				in := insideView(d, family.Name, key)
				set := &btpb.Mutation{Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{FamilyName: family.Name, ColumnQualifier: []byte(key)}}}
				if v.HoldsColumn(family.Name, []byte(key)) != in || v.Allows(set) != in {
					t.Fatalf("column %s:%q: want %v", family.Name, key, in)
				}
				m.cells = append(m.cells, filter.Cell{Family: family.Name, Ordinal: family.Ordinal, Qualifier: []byte(key)})
				if in {
					want = append(want, family.Name+":"+key)
				}
			}
		}
		g := v.Over(m, gateFamilies)
		if g == nil {
			if len(want) > 0 {
				t.Fatalf("no gate; want %q", want)
			}
			return
		}
		if got := drainGate(g); !slices.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}
