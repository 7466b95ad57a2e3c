package facade

import (
	"bytes"
	"testing"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/secondary"
)

// nativeTable is where a table's items are stored, for reads from the Bigtable without the facade.
type nativeTable struct {
	base    *layout.Mapping
	indexes []*secondary.Index // without views; the index of due times is the last
}

// dueTimes is the name of the index of due times.
const dueTimes = "due times"

func nativeTableOf(tb testing.TB, s *Server, name string) nativeTable {
	tb.Helper()
	def, err := s.store.TableNow(tb.Context(), name)
	if err != nil {
		tb.Fatal(err)
	}
	var t nativeTable
	for _, m := range s.opts.layouts() {
		if def.Mapped && m.SourceTable() == name {
			t.base = (*layout.Mapping)(m)
		}
	}
	if t.base == nil {
		if t.base, err = layout.Default(name, def.BigtableTable, def.Key); err != nil {
			tb.Fatal(err)
		}
	}
	add := func(table string, d secondary.Def) {
		x := t.base.Index(d.Name)
		if x == nil {
			if x, err = secondary.Default(table, def.Key, d); err != nil {
				tb.Fatal(err)
			}
		}
		t.indexes = append(t.indexes, x)
	}
	for i := range def.Indexes {
		if def.Indexes[i].View {
			continue
		}
		add(def.Indexes[i].BigtableTable, def.Indexes[i].Definition())
	}
	if def.TTLTable != "" {
		due := attr.KeyAttr{Name: def.TTLAttribute, Type: attr.N}
		add(def.TTLTable, secondary.Def{Name: dueTimes, Key: attr.KeySchema{Hash: due}, KeysOnly: true})
	}
	return t
}

// nativeClient returns a client of the facade's Bigtable.
func nativeClient(s *Server) *btclient.Client {
	return btclient.New(s.opts.Conn, s.opts.Project, s.opts.Instance, btclient.Options{})
}

// isUnfinished reports whether a cell of bookkeeping exists only until a write is finished:
// an outbox, an intent, or a state that is an intent's.
func isUnfinished(c layout.Cell) bool {
	if c.Family != lens.FamilyState || len(c.Qualifier) == 0 {
		return false
	}
	switch c.Qualifier[0] {
	case 'o', 'i':
		return true
	case 's':
		return bytes.HasPrefix(c.Value, []byte{'T'})
	default:
		return false
	}
}
