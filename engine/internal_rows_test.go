package engine

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestMutateInternal: rows of several internal tables change in one commit, which does not wait for the disk. A
// later commit waits for it.
func TestMutateInternal(t *testing.T) {
	t.Parallel()
	var syncs atomic.Int64
	disk := vfs.NewCrashableMem()
	d := openTest(t, Options{Dir: "store", FS: syncCounter{disk, &syncs}})
	create := func(name string) {
		t.Helper()
		if _, err := createTable(t.Context(), d, Table{Name: name, Families: []Family{{Name: "f"}}}); err != nil {
			t.Fatal(err)
		}
	}
	const one, two = InternalTables + "1", InternalTables + "2"
	create(one)
	create(two)
	create("t")
	value := func(d *DB, table, row string) string {
		t.Helper()
		v, err := d.Values(t.Context(), table, "f", [][]byte{[]byte("missing"), []byte(row)})
		if err != nil || v[0] != nil {
			t.Fatalf("a missing row has the value %q, %v", v[0], err)
		}
		if v[1] == nil {
			return "missing"
		}
		return string(v[1])
	}
	cell := func(v string) []Mutation { return []Mutation{set("f", "", 0, v)} }
	before := syncs.Load()
	err := d.MutateInternal(t.Context(), []InternalRow{
		{one, []byte("a"), cell("1")}, {two, []byte("a"), cell("2")}, {one, []byte("b\x00"), cell("")}, {one, []byte("a"), cell("3")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := value(d, one, "a") + value(d, two, "a") + value(d, one, "b\x00"); got != "32" {
		t.Errorf("values %q", got)
	}
	if n := syncs.Load() - before; n != 0 {
		t.Errorf("%d syncs", n)
	}
	if err := d.Mutate(t.Context(), one, []byte("c"), cell("4")); err != nil {
		t.Fatal(err)
	}
	err = d.MutateInternal(t.Context(), []InternalRow{
		{one, []byte("a"), []Mutation{{Kind: DeleteFromRow}}},
		{two, []byte("a"), []Mutation{{Kind: DeleteFromColumn, Family: "f", Qualifier: []byte{}, End: 1}}},
	})
	if got := value(d, one, "a") + " " + value(d, two, "a"); err != nil || got != "missing missing" {
		t.Errorf("values %q, %v", got, err)
	}
	again := openTest(t, Options{Dir: "store", FS: disk.CrashClone(vfs.CrashCloneCfg{})})
	if got := value(again, one, "a") + value(again, two, "a"); got != "32" {
		t.Errorf("values %q after a crash", got)
	}

	for _, c := range []struct {
		table string
		muts  []Mutation
		want  error
	}{
		{"t", cell(""), ErrInvalid},
		{InternalTables + "3", cell(""), ErrTableNotFound},
		{two, []Mutation{set("g", "", 0, "")}, ErrFamilyNotFound},
	} {
		err := d.MutateInternal(t.Context(), []InternalRow{{one, []byte("never"), cell("")}, {c.table, []byte("a"), c.muts}})
		if !errors.Is(err, c.want) || value(d, one, "never") != "missing" {
			t.Errorf("%s: %v, want %v", c.table, err, c.want)
		}
	}
}

// TestLatchOf_Internal: the latches of rows of internal tables are no latches of other tables.
func TestLatchOf_Internal(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{})
	for _, c := range []struct {
		name  string
		first int
	}{{"t", 0}, {InternalTables + "v", halfLatches}} {
		if _, err := createTable(t.Context(), d, Table{Name: c.name}); err != nil {
			t.Fatal(err)
		}
		tab, err := d.lookup(c.name)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range benchKeys(1000) {
			if l := d.latchOf(tab, key); l < c.first || l >= c.first+halfLatches {
				t.Fatalf("a row of %s has latch %d, want %d to %d", c.name, l, c.first, c.first+halfLatches-1)
			}
		}
	}
}
