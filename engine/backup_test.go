package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/faultdisk"
	"github.com/tabletop-emu/tabletop/internal/test/long"
)

func noChange(*CatalogTx, *Backup) error { return nil }

func mustBackup(tb testing.TB, d *DB, table, name string) {
	tb.Helper()
	if err := d.Backups().Create(tb.Context(), table, name, noChange); err != nil {
		tb.Fatal(err)
	}
}

func mustRestoreBackup(tb testing.TB, d *DB, name, table string) {
	tb.Helper()
	if err := d.Backups().Restore(tb.Context(), name, table, func(*CatalogTx) error { return nil }); err != nil {
		tb.Fatal(err)
	}
}

func mustDumpTable(tb testing.TB, d *DB, table string) string {
	tb.Helper()
	text, err := dump(d, table, ScanOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

// cellsUnder counts the stored cells by table id, with or without an owner.
func cellsUnder(tb testing.TB, d *DB) map[uint32]int {
	tb.Helper()
	it, err := d.pebble.NewIter(nil)
	if err != nil {
		tb.Fatal(err)
	}
	n := map[uint32]int{}
	for it.First(); it.Valid(); it.Next() {
		if c, ok := decodeCellKey(it.Key()); ok {
			n[c.table]++
		}
	}
	if err := it.Close(); err != nil {
		tb.Fatal(err)
	}
	return n
}

// TestTrap84_Backup: restored tables have the rows of the backup's time, independently of the
// source, even after a restart.
func TestTrap84_Backup(t *testing.T) {
	t.Parallel()
	o := Options{Dir: "data", FS: vfs.NewMem()}
	d := openTest(t, o)
	createTest(t, d, "f", "gone", "g")
	mustMutate(t, d, "r", set("f", "q", 1000, "v"), set("gone", "q", 0, "x"), set("g", "\x00q\x00", 2000, ""))
	mustMutate(t, d, "r\x00", set("g", "q", 1000, "w"))
	if _, err := modifyFamilies(t.Context(), d, "t", []FamilyChange{{Drop: "gone"}}); err != nil {
		t.Fatal(err)
	}
	want := mustDump(t, d)
	mustBackup(t, d, "t", "b")
	b, err := d.Backups().Get("b")
	if err != nil {
		t.Fatal(err)
	}
	if b.Bytes == 0 || b.Table.Name != "t" || len(b.Table.Families) != 2 {
		t.Errorf("the backup is %+v of %+v", b, b.Table)
	}
	if n := len(d.Tables("")); n != 1 {
		t.Errorf("%d tables, want 1 without the backup", n)
	}
	mustMutate(t, d, "r", set("f", "q", 1000, "later"))
	if err := d.Backups().Copy(t.Context(), "b", "copy", noChange); err != nil {
		t.Fatal(err)
	}
	mustRestoreBackup(t, d, "b", "t1")
	if err := deleteTable(t.Context(), d, "t"); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = openTest(t, o)
	mustRestoreBackup(t, d, "b", "t2")
	if err := d.UpdateCatalog(t.Context(), func(tx *CatalogTx) error { return tx.DeleteBackup("b") }); err != nil {
		t.Fatal(err)
	}
	mustRestoreBackup(t, d, "copy", "t3")
	if err := d.Mutate(t.Context(), "t2", []byte("r"), []Mutation{{Kind: DeleteFromRow}}); err != nil {
		t.Fatal(err)
	}
	if got := mustDumpTable(t, d, "t1"); got != want {
		t.Errorf("t1 has\n%swant\n%s", got, want)
	}
	if got := mustDumpTable(t, d, "t3"); got != want {
		t.Errorf("t3 has\n%swant\n%s", got, want)
	}
	if got := mustDumpTable(t, d, "t2"); got == want {
		t.Error("a write to t2 has no effect")
	}
	used := map[uint32]bool{}
	for _, tab := range d.Tables("") {
		used[tab.ID] = true
	}
	for _, x := range d.Backups().List("") {
		used[x.Table.ID] = true
	}
	for id, n := range cellsUnder(t, d) {
		if !used[id] {
			t.Errorf("%d cells are left under id %d, which nothing has", n, id)
		}
	}
}

func TestBackup_Errors(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{BackupBytes: 200})
	createTest(t, d, "f")
	mustMutate(t, d, "r", set("f", "q", 1000, strings.Repeat("v", 100)))
	mustBackup(t, d, "t", "b")
	own := errors.New("own")
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name string
		do   func() error
		want error
	}{
		{"exists", func() error { return d.Backups().Create(t.Context(), "t", "b", noChange) }, ErrBackupExists},
		{"no table", func() error { return d.Backups().Create(t.Context(), "none", "b2", noChange) }, ErrTableNotFound},
		{"no backup", func() error { return d.Backups().Copy(t.Context(), "none", "b2", noChange) }, ErrBackupNotFound},
		{"bytes", func() error { return d.Backups().Create(t.Context(), "t", "b2", noChange) }, ErrBackupBytes},
		{"table exists", func() error { return d.Backups().Restore(t.Context(), "b", "t", nil) }, ErrTableExists},
		{"own", func() error {
			return d.Backups().Restore(t.Context(), "b", "t2", func(tx *CatalogTx) error {
				return errors.Join(tx.PutResource("left", nil), own)
			})
		}, own},
		{"canceled", func() error { return d.Backups().Restore(canceled, "b", "t2", nil) }, context.Canceled},
		{"delete", func() error {
			return d.UpdateCatalog(t.Context(), func(tx *CatalogTx) error { return tx.DeleteBackup("none") })
		}, ErrBackupNotFound},
	} {
		if err := c.do(); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
	if len(d.catalog.Load().copying) != 0 || len(cellsUnder(t, d)) != 2 || len(d.Backups().List("")) != 1 || len(d.Tables("")) != 1 {
		t.Errorf("calls that failed left cells: %v", cellsUnder(t, d))
	}
	if rs, err := d.Resources(""); err != nil || len(rs) != 0 {
		t.Errorf("calls that failed left resources: %v, %v", rs, err)
	}
}

// TestBackup_HoldsNoLock writes, changes the catalog, scans and collects while a backup, a
// copy or a restore is stopped in the middle of its files.
func TestBackup_HoldsNoLock(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(context.Context, *DB) error{
		"create": func(ctx context.Context, d *DB) error { return d.Backups().Create(ctx, "t", "b", noChange) },
		"copy":   func(ctx context.Context, d *DB) error { return d.Backups().Copy(ctx, "first", "b", noChange) },
		"restore": func(ctx context.Context, d *DB) error {
			return d.Backups().Restore(ctx, "first", "again", func(*CatalogTx) error { return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var armed atomic.Bool
			reached, proceed := make(chan struct{}), make(chan struct{})
			fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
				if op.Kind == errorfs.OpCreate && strings.Contains(op.Path, "copy-") && armed.CompareAndSwap(true, false) {
					close(reached)
					<-proceed
				}
				return nil
			}))
			d := openTest(t, Options{Dir: "data", FS: fs})
			createTest(t, d, "f")
			for i := range 50 {
				mustMutate(t, d, fmt.Sprint(i), set("f", "q", 1000, "v"))
			}
			want := mustDump(t, d)
			mustBackup(t, d, "t", "first")
			armed.Store(true)
			done := make(chan error)
			go func() { done <- do(t.Context(), d) }()
			<-reached
			for i := range 50 {
				mustMutate(t, d, fmt.Sprint(i), set("f", "q", 1000, "later"))
			}
			if err := d.DropRows(t.Context(), "t", Span{Start: []byte("3")}); err != nil {
				t.Fatal(err)
			}
			mustDump(t, d)
			if _, err := modifyFamilies(t.Context(), d, "t", []FamilyChange{{Create: &Family{Name: "g"}}}); err != nil {
				t.Fatal(err)
			}
			mustBackup(t, d, "t", "another")
			if _, err := d.RunGC(t.Context()); err != nil {
				t.Fatal(err)
			}
			close(proceed)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if name != "restore" {
				mustRestoreBackup(t, d, "b", "again")
			}
			if got := mustDumpTable(t, d, "again"); got != want {
				t.Errorf("the copy has\n%swant\n%s", got, want)
			}
		})
	}
}

// TestBackup_Format: a store has the version of its first programs until it has a backup; this
// program reads both versions.
func TestBackup_Format(t *testing.T) {
	t.Parallel()
	o := Options{Dir: "data", FS: vfs.NewMem()}
	version := func(d *DB) string {
		value, closer, err := d.pebble.Get(catalogKey(catalogVersion, ""))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = closer.Close() }()
		return string(value)
	}
	d := openTest(t, o)
	createTest(t, d, "f")
	mustMutate(t, d, "r", set("f", "q", 1000, "v"))
	empty := mustSnapshot(t, d)
	if got := version(d); got != "1" {
		t.Errorf("without a backup: version %s, want 1", got)
	}
	for range 2 {
		mustBackup(t, d, "t", "b")
		if got := version(d); got != "2" {
			t.Errorf("with a backup: version %s, want 2", got)
		}
		mustRestore(t, d, empty)
		if got := version(d); got != "1" {
			t.Errorf("without it again: version %s, want 1", got)
		}
	}
	mustBackup(t, d, "t", "b")
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(openTest(t, o).Backups().List("")); n != 1 {
		t.Errorf("%d backups after a restart, want 1", n)
	}
}

// TestBackup_Snapshot: snapshots carry backups.
func TestBackup_Snapshot(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{})
	createTest(t, d, "f")
	mustMutate(t, d, "r", set("f", "q", 1000, "v"))
	want := mustDump(t, d)
	mustBackup(t, d, "t", "b")
	s := mustSnapshot(t, d)
	if err := d.UpdateCatalog(t.Context(), func(tx *CatalogTx) error { return tx.DeleteBackup("b") }); err != nil {
		t.Fatal(err)
	}
	for _, to := range []*DB{d, openTest(t, Options{})} {
		mustRestore(t, to, s)
		mustRestoreBackup(t, to, "b", "again")
		if got := mustDumpTable(t, to, "again"); got != want {
			t.Errorf("the backup has\n%swant\n%s", got, want)
		}
	}
}

// TestBackup_Property: property (e), of backups. A restored table has the rows of its backup's
// time, after any writes.
func TestBackup_Property(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		d, err := Open(Options{Now: clock.NewFrozen(epoch).Now, MemTableBytes: 64 << 10})
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { _ = d.Close() }()
		if _, err := createTable(t.Context(), d, Table{Name: "t", Families: []Family{
			{Name: "f", GC: GCRule{Kind: MaxVersions, Versions: 1}}, {Name: "g"},
		}}); err != nil {
			rt.Fatal(err)
		}
		write := func(label string) {
			for range rapid.IntRange(0, 20).Draw(rt, label) {
				row := []byte(rapid.SampledFrom([]string{"a", "a\x00", "b", "\xff"}).Draw(rt, "row"))
				var err error
				switch rapid.IntRange(0, 5).Draw(rt, "kind") {
				case 0:
					err = d.Mutate(t.Context(), "t", row, []Mutation{{Kind: DeleteFromRow}})
				case 1:
					err = d.DropRows(t.Context(), "t", Span{Start: row})
				case 2:
					_, err = d.RunGC(t.Context())
				default:
					family := rapid.SampledFrom([]string{"f", "g"}).Draw(rt, "family")
					value := strings.Repeat("v", rapid.IntRange(0, 40_000).Draw(rt, "size"))
					err = d.Mutate(t.Context(), "t", row, []Mutation{set(family, "q", rapid.Int64Range(0, 3).Draw(rt, "micros"), value)})
				}
				if err != nil {
					rt.Fatal(err)
				}
			}
		}
		write("before")
		want, err := dump(d, "t", ScanOptions{})
		if err != nil {
			rt.Fatal(err)
		}
		if err := d.Backups().Create(t.Context(), "t", "b", noChange); err != nil {
			rt.Fatal(err)
		}
		write("after")
		if err := d.Backups().Restore(t.Context(), "b", "t2", func(*CatalogTx) error { return nil }); err != nil {
			rt.Fatal(err)
		}
		if got, err := dump(d, "t2", ScanOptions{}); err != nil || got != want {
			rt.Fatalf("restored\n%.300s, %v, want\n%.300s", got, err, want)
		}
	})
}

// TestTrap94_Crash crashes a store before every write to its disk while backups are made,
// copied, restored and deleted: each exists completely or not at all, and unfinished ones
// leave nothing.
func TestTrap94_Crash(t *testing.T) {
	t.Parallel()
	every := 3
	if long.Enabled() {
		every = 1
	}
	for _, noSync := range []bool{false, true} {
		t.Run(fmt.Sprintf("noSync=%v", noSync), func(t *testing.T) {
			t.Parallel()
			testTrap94(t, noSync, every)
		})
	}
}

// testTrap94 opens the store after each crash whose number is a multiple of every, and after
// the last one.
func testTrap94(t *testing.T, noSync bool, every int) {
	t.Helper()
	disk := faultdisk.NewCrashing(1)
	o := Options{Dir: "data", FS: disk.FS(), NoSync: noSync, Now: clock.NewFrozen(epoch).Now, MemTableBytes: 32 << 10}
	d := openTest(t, o)
	createTest(t, d, "f")
	for i := range 20 {
		mustMutate(t, d, fmt.Sprint(i), set("f", "q", 1000, strings.Repeat("v", 4000)))
	}
	want := mustDump(t, d)
	if err := d.pebble.Flush(); err != nil { // also with NoSync
		t.Fatal(err)
	}
	disk.Take()
	put := func(name string) func(*CatalogTx, *Backup) error {
		return func(tx *CatalogTx, _ *Backup) error { return tx.PutResource(name, nil) }
	}
	run := []func() error{
		func() error { return d.Backups().Create(context.Background(), "t", "b", put("b")) },
		func() error { return d.Backups().Copy(context.Background(), "b", "b2", put("b2")) },
		func() error {
			return d.Backups().Restore(context.Background(), "b2", "t2", func(tx *CatalogTx) error { return tx.PutResource("t2", nil) })
		},
		func() error {
			return d.UpdateCatalog(context.Background(), func(tx *CatalogTx) error {
				return errors.Join(tx.DeleteBackup("b"), tx.DeleteResource("b"))
			})
		},
		d.syncLog,
	}
	for _, step := range run {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	crashes := disk.Take()
	for n, x := range crashes {
		if n%every != 0 && n != len(crashes)-1 {
			continue
		}
		again := o
		again.FS = x.FS
		crashed, err := Open(again)
		if err != nil {
			t.Fatalf("crash %d: %v", n, err)
		}
		named := map[string]bool{}
		holders := map[uint32]bool{}
		for _, tab := range crashed.Tables("") {
			holders[tab.ID], named[tab.Name] = true, true
			if got := mustDumpTable(t, crashed, tab.Name); got != want {
				t.Errorf("crash %d: table %s has\n%.200s", n, tab.Name, got)
			}
		}
		for _, b := range crashed.Backups().List("") {
			holders[b.Table.ID], named[b.Name] = true, true
			mustRestoreBackup(t, crashed, b.Name, "check-"+b.Name)
			if got := mustDumpTable(t, crashed, "check-"+b.Name); got != want {
				t.Errorf("crash %d: backup %s has\n%.200s", n, b.Name, got)
			}
			tab, err := crashed.Table("check-" + b.Name)
			if err != nil {
				t.Fatal(err)
			}
			holders[tab.ID] = true
		}
		rs, err := crashed.Resources("")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"b", "b2", "t2"} {
			has := false
			for _, r := range rs {
				has = has || r.Name == name
			}
			if has != named[name] {
				t.Errorf("crash %d: %s exists: %v, its resource: %v", n, name, named[name], has)
			}
		}
		for id := range cellsUnder(t, crashed) {
			if !holders[id] {
				t.Errorf("crash %d: cells under id %d, which nothing has", n, id)
			}
		}
		if err := crashed.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d crashes", len(crashes))
	if len(crashes) < 30 {
		t.Errorf("only %d crashes", len(crashes))
	}
}

// BenchmarkCompareBackup makes a backup, and restores it, in memory. For comparison, the same
// cells are read from a bare Pebble, written to files and ingested.
func BenchmarkCompareBackup(b *testing.B) {
	d, _ := fillBench(b, benchRows)
	n := 0
	benchBoth(b, func(b *testing.B, _ int) {
		b.Helper()
		n++
		name := fmt.Sprint(n)
		mustBackup(b, d, "t", name)
		mustRestoreBackup(b, d, name, name)
		if err := d.UpdateCatalog(b.Context(), func(tx *CatalogTx) error {
			return errors.Join(tx.DeleteBackup(name), tx.DeleteTable(name))
		}); err != nil {
			b.Fatal(err)
		}
	}, func(b *testing.B, _ int) {
		b.Helper()
		for range 2 {
			n++
			copyBare(b, d, uint32(1<<20+n))
		}
	})
}

// copyBare is a copy by Pebble alone.
func copyBare(b *testing.B, d *DB, id uint32) {
	b.Helper()
	lower := appendTablePrefix(nil, 1)
	it, err := d.pebble.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: prefixEnd(bytes.Clone(lower))})
	if err != nil {
		b.Fatal(err)
	}
	w := sortedFiles{d: d, dir: d.fs.PathJoin(d.snapshotDir, fmt.Sprint("bare-", id))}
	if err := d.fs.MkdirAll(w.dir, 0o755); err != nil {
		b.Fatal(err)
	}
	var key []byte
	for it.First(); it.Valid(); it.Next() {
		key = append(key[:0], it.Key()...)
		binary.BigEndian.PutUint32(key[1:], id)
		if err := w.set(key, it.Value()); err != nil {
			b.Fatal(err)
		}
	}
	lower = appendTablePrefix(nil, id)
	if err := errors.Join(it.Close(), w.close(), d.pebble.Ingest(b.Context(), w.files), d.fs.RemoveAll(w.dir),
		d.pebble.DeleteRange(lower, prefixEnd(bytes.Clone(lower)), pebble.NoSync)); err != nil {
		b.Fatal(err)
	}
}
