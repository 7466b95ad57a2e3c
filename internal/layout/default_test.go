package layout

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/secondary"
)

// TestDefault_Extremes checks the default layout with extreme legal items: the longest keys of
// the worst bytes, and names longer than a qualifier.
func TestDefault_Extremes(t *testing.T) {
	t.Parallel()
	key := attr.KeySchema{Hash: attr.KeyAttr{Name: "PK", Type: attr.B}, Range: attr.KeyAttr{Name: "SK", Type: attr.B}}
	m, err := Default("s", "t", key)
	if err != nil {
		t.Fatal(err)
	}
	x, err := secondary.Default("i", key, secondary.Def{Name: "i", Key: attr.KeySchema{Hash: attr.KeyAttr{Name: "GH", Type: attr.B}, Range: attr.KeyAttr{Name: "GS", Type: attr.B}}})
	if err != nil {
		t.Fatal(err)
	}
	zeros := func(n int) attr.Value { return attr.Binary(make([]byte, n)) }
	long := strings.Repeat("n", lens.MaxQualifierBytes+1)
	rows := map[string]bool{}
	for name, item := range map[string]attr.Item{
		"longest keys": {"PK": zeros(2048), "SK": zeros(1024), "GH": zeros(2048), "GS": zeros(1024)},
		"other tail":   {"PK": zeros(2047), "SK": zeros(1024), "GH": zeros(2048), "GS": zeros(1024)},
		"short hash":   {"PK": zeros(2048), "SK": zeros(1023), "GH": zeros(1), "GS": zeros(1024)},
		"long name":    {"PK": zeros(1), "SK": zeros(1), "GH": zeros(1), "GS": zeros(1), long: attr.String("v"), "a": attr.Null()},
		"keys alone":   {"PK": zeros(1), "SK": zeros(2)},
	} {
		p, err := m.Place(item, expTime)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, c := range p.Cells {
			if len(c.Qualifier) > lens.MaxQualifierBytes {
				t.Errorf("%s: a qualifier of %d bytes", name, len(c.Qualifier))
			}
		}
		if back, err := m.Item(Row{Key: p.Row, Cells: p.Cells}, item); err != nil || !attr.EqualItems(back, item) {
			t.Errorf("%s: comes back as %d attributes, %v", name, len(back), err)
		}
		ip, ok, err := x.Place(item, expTime)
		if err != nil || ok != (name != "keys alone") {
			t.Fatalf("%s: index: %v, %v", name, ok, err)
		}
		if !ok {
			continue
		}
		if len(p.Row) > lens.MaxRowKeyBytes || len(ip.Row) > lens.MaxRowKeyBytes || rows[string(ip.Row)] {
			t.Errorf("%s: row keys of %d and %d bytes, index row taken: %v", name, len(p.Row), len(ip.Row), rows[string(ip.Row)])
		}
		rows[string(ip.Row)] = true
		back, err := x.Items(Row{Key: ip.Row, Cells: ip.Cells})
		if err != nil || len(back) != 1 || !attr.EqualItems(back[0], item) {
			t.Errorf("%s: index entry comes back as %d items, %v", name, len(back), err)
		}
	}
	if got, err := x.Items(Row{Key: []byte("r"), Cells: []Cell{{Family: lens.FamilyItem, Qualifier: []byte{}, Timestamp: 2000, Value: []byte{}}, {Family: lens.FamilyItem, Qualifier: []byte{}, Timestamp: 1000, Value: []byte("M{}")}}}); err != nil || len(got) != 0 {
		t.Errorf("a tombstone yields %v, %v", got, err)
	}
}

// TestPlace_LongMembers checks that members and keys longer than a qualifier are stored as one
// cell.
func TestPlace_LongMembers(t *testing.T) {
	t.Parallel()
	m := subjects[0].mapping(t)
	long := strings.Repeat("m", lens.MaxQualifierBytes)
	for _, item := range []attr.Item{
		{"PK": attr.String("p"), "SK": attr.String("s"), "c": attr.SetOf(attr.SS, long+"1", "short")},
		{"PK": attr.String("p"), "SK": attr.String("s"), "f": attr.MapOf(map[string]attr.Value{long: attr.Null()})},
	} {
		p, err := m.Place(item, expTime)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Cells) != 2 || p.Exceptions != 1 {
			t.Errorf("%d cells, %d of them in the sidecar; want 2, 1", len(p.Cells), p.Exceptions)
		}
		if back, err := m.Item(Row{Key: p.Row, Cells: p.Cells}, item); err != nil || !attr.EqualItems(back, item) {
			t.Errorf("comes back as %v, %v", back, err)
		}
	}
	var e *maperr.Error
	if _, err := m.Place(attr.Item{"PK": attr.String("p"), "SK": attr.String("s"), long + "n": attr.Null()}, expTime); !errors.As(err, &e) || e.Code != maperr.CodeLimit {
		t.Errorf("a name longer than a qualifier: %v; want %s", err, maperr.CodeLimit)
	}
	if _, err := m.Place(attr.Item{"PK": attr.String(strings.Repeat("\x00", 2048)), "SK": attr.String("s")}, expTime); !errors.As(err, &e) || e.Code != maperr.CodeKeySize {
		t.Errorf("a key that grows beyond 4096 bytes: %v; want %s", err, maperr.CodeKeySize)
	}
}

// TestItems_Native reads cells of other clients: older versions, members with any value,
// unknown columns.
func TestItems_Native(t *testing.T) {
	t.Parallel()
	m := subjects[0].mapping(t)
	row := Row{Key: []byte("p#s"), Cells: []Cell{
		{Family: "a", Qualifier: []byte("e"), Timestamp: 3000, Value: []byte("Slast")},
		{Family: "a", Qualifier: []byte("e"), Timestamp: 1000, Value: []byte("N1")},
		{Family: "a", Qualifier: []byte("n"), Timestamp: 2000, Value: []byte("2.50")},
		{Family: "a", Qualifier: []byte("n"), Timestamp: 1000, Value: []byte("no number")},
		{Family: "nobody's", Qualifier: []byte("x"), Timestamp: 1000, Value: []byte("x")},
		{Family: "s.c", Qualifier: []byte("member"), Timestamp: 1000, Value: nil},
		{Family: lens.FamilyState, Qualifier: []byte("s"), Timestamp: 1000, Value: []byte("state")},
	}}
	items, err := m.Items(row)
	want := attr.Item{"PK": attr.String("p"), "SK": attr.String("s"), "e": attr.ListOf(attr.Int(1), attr.String("last")), "n": attr.Value{Type: attr.N, Str: "2.5"}, "c": attr.SetOf(attr.SS, "member")}
	if err != nil || len(items) != 1 || !attr.EqualItems(items[0], want) {
		t.Errorf("got %v, %v; want %v", items, err, want)
	}
	for _, none := range []Row{{Key: []byte("no delimiter"), Cells: row.Cells}, {Key: []byte("p#s"), Cells: row.Cells[4:5]}, {Key: []byte("p#s"), Cells: row.Cells[6:]}} {
		if items, err := m.Items(none); err != nil || len(items) != 0 {
			t.Errorf("%q: got %v, %v; want no item", none.Key, items, err)
		}
	}
	var e *maperr.Error
	row.Cells[2].Value = []byte("no number")
	if _, err := m.Items(row); !errors.As(err, &e) || e.Code != maperr.CodeCorrupt || !bytes.Equal(e.Row, row.Key) {
		t.Errorf("an invalid number: %v; want %s", err, maperr.CodeCorrupt)
	}
}

// TestItems_Hostile checks that no row causes a panic, and that its items can be laid out
// again or are rejected.
func TestItems_Hostile(t *testing.T) {
	t.Parallel()
	for _, s := range subjects {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			m := s.mapping(t)
			rapid.Check(t, func(t *rapid.T) {
				row := Row{Key: []byte(rapid.SampledFrom([]string{"1", "p#s", "p\x00\x01s", "P-1", "other#1", "p#O#x", "x#p#s#y", "pre", "\x00\x02\x00\x01ab"}).Draw(t, "key"))}
				for range rapid.IntRange(1, 6).Draw(t, "cells") {
					row.Cells = append(row.Cells, Cell{
						Family:    rapid.SampledFrom([]string{"a", "c", "g", "x", "y", "d", "sets", "maps", "s.c", "m.f", lens.FamilyTypes, lens.FamilyTypes}).Draw(t, "family"),
						Qualifier: []byte(rapid.SampledFrom([]string{"", "a", "c", "e", "item", "Views", "UserComments", "a/a", "a/e", "a/", "c/a:a", "c/m.f:k", "r/a:Views", "i/item/", "i/comment/1", "i/tags/x", "i/two/x#y", "x/y/z", "\xff", "PK"}).Draw(t, "qualifier")),
						Timestamp: rapid.SampledFrom([]int64{0, 1, 1000, 1262304000000000, expTime}).Draw(t, "time"),
						Value:     []byte(rapid.SampledFrom([]string{"", "S", "Se", "Le", "Me", "Lj", "Mj", "N1", "1", "{}", `{"M":{}}`, `{"S":"x"}`, `{"absent":{"S":"x"},"present":{"L":[]}}`, "[1,", "views2", "\x00", "\x00\x00\x00\x00\x00\x00\x00\x01"}).Draw(t, "value")),
					})
				}
				row = rowsOf([]lens.Placed{{Location: lens.Location{Row: row.Key}, Cells: row.Cells}})[0]
				items, err := m.Items(row)
				var e *maperr.Error
				if err != nil && (!errors.As(err, &e) || e.Code != maperr.CodeCorrupt) {
					t.Fatalf("%v", err)
				}
				for _, item := range items {
					p, err := m.Place(item, expTime)
					if err != nil {
						continue
					}
					if back, err := m.Item(Row{Key: p.Row, Cells: p.Cells}, item); err != nil || !attr.EqualItems(back, item) {
						t.Fatalf("%s comes back as %s, %v", attr.AppendItemJSON(nil, item), attr.AppendItemJSON(nil, back), err)
					}
				}
			})
		})
	}
}

// TestPlace_Deepest checks that every form holds attributes of the maximal depth.
func TestPlace_Deepest(t *testing.T) {
	t.Parallel()
	deep := attr.String("bottom")
	for range attr.MaxDepth - 1 {
		deep = attr.ListOf(deep)
	}
	long := strings.Repeat("n", lens.MaxQualifierBytes+1)
	for _, s := range subjects {
		m := s.mapping(t)
		for _, name := range []string{"e", "l", "f", "Formats", "Content", long} {
			item := attr.Item{"PK": attr.String("2"), "SK": attr.String("VideoComment#8305627524999"), name: deep}
			p, err := m.Place(item, expTime)
			if err != nil {
				continue // keys of another type, or a name that is too long for the mapping
			}
			if back, err := m.Item(Row{Key: p.Row, Cells: p.Cells}, item); err != nil || !attr.EqualItems(back, item) {
				t.Errorf("%s: attribute %.9s: %v", s.name, name, err)
			}
		}
	}
	x, err := secondary.Default("i", attr.KeySchema{Hash: attr.KeyAttr{Name: "PK", Type: attr.S}}, secondary.Def{Name: "i", Key: attr.KeySchema{Hash: attr.KeyAttr{Name: "G", Type: attr.S}}})
	if err != nil {
		t.Fatal(err)
	}
	p, _, err := x.Place(attr.Item{"PK": attr.String("p"), "G": attr.String("g"), "deep": deep}, expTime)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := x.Items(Row{Key: p.Row, Cells: p.Cells}); err != nil || len(back) != 1 || !attr.Equal(back[0]["deep"], deep) {
		t.Errorf("index: %v", err)
	}
}

// TestMapping_Collision puts two items whose rules share a column on one row.
func TestMapping_Collision(t *testing.T) {
	t.Parallel()
	m := subjects[slices.IndexFunc(subjects, func(s subject) bool { return s.name == "wide" })].mapping(t)
	there := attr.Item{"PK": attr.String("1"), "SK": attr.String("VideoStats"), "ViewCount": attr.Int(7)}
	p, err := m.Place(there, expTime)
	if err != nil {
		t.Fatal(err)
	}
	row := Row{Key: p.Row, Cells: p.Cells}
	for sk, want := range map[string]bool{"VideoStatsViews": true, "VideoStats": false, "VideoStatsLikes": false} {
		var e *maperr.Error
		err := m.Collision(row, attr.Item{"PK": attr.String("1"), "SK": attr.String(sk)})
		if got := errors.As(err, &e) && e.Code == maperr.CodeCollision; got != want || !want && err != nil {
			t.Errorf("%s: %v; want a collision: %v", sk, err, want)
		}
	}
}

// TestMapping_Accessors checks the accessors of a mapping.
func TestMapping_Accessors(t *testing.T) {
	t.Parallel()
	m := subjects[0].mapping(t)
	if m.Joiner() != "auto" || m.TargetTable() != "t" || m.SourceTable() != "" || len(m.Families()) != 8 || m.PlanScan().Spans[0].End != nil {
		t.Errorf("joiner %q, target %q, source %q, %d families", m.Joiner(), m.TargetTable(), m.SourceTable(), len(m.Families()))
	}
	if _, ok := m.ImportTimeMicros(); ok {
		t.Error("an import time out of nothing")
	}
	plain, err := m.WithJoiner("plain('#')")
	if err != nil || plain.Joiner() != "plain('#')" || plain.ProveJoiner() != nil {
		t.Errorf("%v, %v", plain, err)
	}
	if _, err := m.WithJoiner("glue"); err == nil {
		t.Error("joiner glue is accepted")
	}
	if _, err := m.Place(attr.Item{}, 1); err == nil {
		t.Error("a timestamp in microseconds is accepted")
	}
}
