package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/faultdisk"
	"github.com/tabletop-emu/tabletop/internal/test/long"
)

// TestCrash crashes a store at every step of a sequence of calls and checks that it reopens
// with all acknowledged changes and no partial one.
func TestCrash(t *testing.T) {
	t.Parallel()
	seeds := uint64(2)
	if long.Enabled() {
		seeds = 4
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 0))
			fs := vfs.NewCrashableMem()
			o := Options{Dir: "data", FS: fs, Now: clock.NewFrozen(epoch).Now, MemTableBytes: faultdisk.MemTableBytes}
			d := openTest(t, o)
			createTest(t, d, "f", "g")
			for step := range 30 {
				row := fmt.Appendf(nil, "r%d", rng.IntN(4))
				switch rng.IntN(8) {
				default:
					// One value in both families: half a mutation would show.
					v := fmt.Sprint(step)
					mustMutate(t, d, string(row), set("f", "q", 0, v), set("g", "q", 0, v), set("f", v, 0, strings.Repeat(v, 500)))
				case 1:
					mustMutate(t, d, string(row), Mutation{Kind: DeleteFromRow})
				case 2:
					if err := d.DropRows(t.Context(), "t", Span{Start: row, End: append(row, 0)}); err != nil {
						t.Fatal(err)
					}
				case 3:
					if _, err := d.ReadModifyWrite(t.Context(), "t", row, []RuleReadModifyWrite{
						{Family: "f", Qualifier: []byte("a"), Append: []byte("x")},
						{Family: "g", Qualifier: []byte("a"), Append: []byte("x")},
					}); err != nil {
						t.Fatal(err)
					}
				case 4:
					name := fmt.Sprint("h", step)
					if _, err := modifyFamilies(t.Context(), d, "t", []FamilyChange{{Create: &Family{Name: name}}, {Drop: name}}); err != nil {
						t.Fatal(err)
					}
				}
				cfg := vfs.CrashCloneCfg{}
				if seed > 0 {
					cfg = vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rng}
				}
				again := o
				again.FS = fs.CrashClone(cfg)
				crashed, err := Open(again)
				if err != nil {
					t.Fatalf("step %d: %v", step, err)
				}
				if got, want := mustDump(t, crashed), mustDump(t, d); got != want {
					t.Fatalf("step %d: after the crash:\n%swant:\n%s", step, got, want)
				}
				if got, want := tableText(t, crashed), tableText(t, d); got != want {
					t.Fatalf("step %d: after the crash: %s, want: %s", step, got, want)
				}
				if err := crashed.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func tableText(t *testing.T, d *DB) string {
	t.Helper()
	tab, err := d.Table("t")
	if err != nil {
		t.Fatal(err)
	}
	return describe(tab)
}

// TestCrash_Writing crashes during concurrent writes: acknowledged writes survive, and every
// row is complete.
func TestCrash_Writing(t *testing.T) {
	t.Parallel()
	fs := faultdisk.NewMemory()
	o := Options{Dir: "data", FS: fs, Now: clock.NewFrozen(epoch).Now, MemTableBytes: faultdisk.MemTableBytes}
	d := openTest(t, o)
	createTest(t, d, "f", "g")
	const writers = 4
	var acknowledged [writers]atomic.Int64
	// The writers go on during a crash, and soon wait for the next one.
	stop, progress := make(chan struct{}), make(chan struct{}, 4*writers)
	done := make(chan error, writers)
	for w := range writers {
		go func() {
			for i := int64(1); ; i++ {
				select {
				case <-stop:
					done <- nil
					return
				default:
				}
				v := fmt.Sprint(i)
				if err := d.Mutate(t.Context(), "t", fmt.Appendf(nil, "w%d", w), []Mutation{
					set("f", "q", 0, v), set("g", "q", 0, v),
				}); err != nil {
					done <- err
					return
				}
				acknowledged[w].Store(i)
				select {
				case progress <- struct{}{}:
				case <-stop:
				}
			}
		}()
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		for range cap(progress) {
			select {
			case err := <-done:
				t.Fatal(err)
			case <-progress:
			}
		}
		var atLeast [writers]int64
		for w := range atLeast {
			atLeast[w] = acknowledged[w].Load()
		}
		again := o
		again.FS = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(100), RNG: rng})
		crashed, err := Open(again)
		if err != nil {
			t.Fatal(err)
		}
		for w := range atLeast {
			var values []int64
			s, err := crashed.Scan(t.Context(), "t", ScanOptions{Spans: []Span{
				{Start: fmt.Appendf(nil, "w%d", w), End: fmt.Appendf(nil, "w%d\x00", w)},
			}})
			if err != nil {
				t.Fatal(err)
			}
			for s.NextRow() {
				for s.NextCell() {
					values = append(values, number(t, string(s.Cell().Value)))
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if atLeast[w] > 0 && (len(values) != 2 || values[0] != values[1] || values[0] < atLeast[w]) {
				t.Fatalf("writer %d: %d after the crash, %d was acknowledged", w, values, atLeast[w])
			}
		}
		if err := crashed.Close(); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	for range writers {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// TestFaults makes every write to the disk fail from the n-th on. Calls return errors, and
// nothing panics. A store on the data written so far has all acknowledged changes, each with
// its record; all its changes have records; it has the records that a reader had seen, and a
// backup completely or not at all.
func TestFaults(t *testing.T) {
	t.Parallel()
	const most = 300 // more than the actual number of writes
	every := int32(8)
	if long.Enabled() {
		every = 1
	}
	for n := range int32(most) {
		if n%every != 0 && n != most-1 {
			continue
		}
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			mem := vfs.NewCrashableMem()
			var left atomic.Int32
			left.Store(n)
			var failing atomic.Bool
			fs := faultdisk.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if !failing.Load() || op.Kind.ReadOrWrite() != errorfs.OpIsWrite || left.Add(-1) >= 0 {
					return nil
				}
				return errorfs.ErrInjected
			}))
			o := Options{Dir: "data", FS: fs, Now: clock.NewFrozen(epoch).Now, MemTableBytes: faultdisk.MemTableBytes}
			d, err := Open(o)
			if err != nil {
				t.Fatal(err)
			}
			createTest(t, d, "f")
			setJournal(t, d, JournalStream, time.Hour)
			reader, err := d.ReadJournal("t", JournalOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer reader.Close()
			failing.Store(true)
			acknowledged, failed := "", false
			backedUp, atBackup := false, ""
			var read []string
			for i := range 40 {
				err := d.Mutate(t.Context(), "t", []byte("r"), []Mutation{
					set("f", "q", 0, fmt.Sprint(i)), set("f", "p", 0, strings.Repeat("x", 1<<10)),
				})
				switch i {
				case 20:
					_ = d.DropRows(t.Context(), "t", Span{Start: []byte("s")}) // also flushes
				case 30:
					if atBackup = acknowledged; d.Backups().Create(t.Context(), "t", "b", noChange) == nil {
						backedUp = true
					}
				}
				for reader.Next() {
					read = append(read, recordText(reader.Record()))
				}
				switch {
				case err == nil && failed:
					t.Fatalf("write %d: acknowledged after a failure", i)
				case err == nil:
					acknowledged = fmt.Sprint(i)
				default:
					failed = true
				}
			}
			crash := mem.CrashClone(vfs.CrashCloneCfg{})
			failing.Store(false)
			_ = d.Close() // may report the failure
			if n == 0 && !failed || n == most-1 && failed {
				t.Fatalf("from write %d on: failed: %v", n, failed)
			}
			o.FS = crash
			again := openTest(t, o)
			got := mustDump(t, again)
			if acknowledged != "" {
				found := false
				for i := int(number(t, acknowledged)); i < 40; i++ {
					found = found || strings.Contains(got, fmt.Sprintf("%q\n", fmt.Sprint(i)))
				}
				if !found {
					t.Fatalf("%s was acknowledged; found:\n%s", acknowledged, got)
				}
			}
			recs := records(t, again, JournalOptions{})
			for i, text := range read {
				if i >= len(recs) || recordText(&recs[i]) != text {
					t.Fatalf("a reader had %d records, %d still exist; the first missing one: %.100s", len(read), len(recs), text)
				}
			}
			if acknowledged != "" && len(recs) <= int(number(t, acknowledged)) {
				t.Errorf("%s was acknowledged, and there are %d records", acknowledged, len(recs))
			}
			folded := openTest(t, Options{Now: o.Now})
			createTest(t, folded, "f")
			if fold(t, folded, recs); mustDump(t, folded) != got {
				t.Errorf("the records result in\n%.500swant\n%.500s", mustDump(t, folded), got)
			}
			_, err = again.Backups().Get("b")
			if err != nil && (backedUp || !errors.Is(err, ErrBackupNotFound)) {
				t.Errorf("a backup was acknowledged: %v, and is: %v", backedUp, err)
			}
			ids := 1
			if err == nil {
				ids = 2
				mustRestoreBackup(t, again, "b", "restored")
				if got := mustDumpTable(t, again, "restored"); !strings.Contains(got, fmt.Sprintf("%q\n", atBackup)) && !strings.Contains(got, `"30"`) {
					t.Errorf("the backup was made after %s was written, and has\n%s", atBackup, got)
				}
				if err := deleteTable(t.Context(), again, "restored"); err != nil {
					t.Fatal(err)
				}
			}
			if cells := cellsUnder(t, again); len(cells) > ids {
				t.Errorf("there are cells under ids %v", cells)
			}
		})
	}
}

// TestCrash_Open crashes a store before every write to its disk during its creation, and again
// during Open: it can be opened, and keeps its data.
func TestCrash_Open(t *testing.T) {
	t.Parallel()
	seeds := 1
	if long.Enabled() {
		seeds = 10
	}
	crashes := 0
	for seed := range uint64(seeds) {
		disk := faultdisk.NewCrashing(seed)
		o := Options{Dir: "data", FS: disk.FS(), Now: clock.NewFrozen(epoch).Now, MemTableBytes: faultdisk.MemTableBytes}
		check := func(when, want string) {
			for n, x := range disk.Take() {
				crashes++
				crashed, err := Open(Options{Dir: "data", FS: x.FS, Now: o.Now, MemTableBytes: o.MemTableBytes})
				if err != nil {
					t.Fatalf("seed %d, crash %d while it was %s: %v", seed, n, when, err)
				}
				if got := storeText(t, crashed); got != want {
					t.Errorf("seed %d, crash %d while it was %s: it has\n%swant\n%s", seed, n, when, got, want)
				}
				if err := crashed.Close(); err != nil {
					t.Error(err)
				}
			}
		}
		d, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		check("made", "")
		createTest(t, d, "f")
		mustMutate(t, d, "r", set("f", "q", 0, "v"))
		want := storeText(t, d)
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		disk.Take()
		if d, err = Open(o); err != nil {
			t.Fatal(err)
		}
		check("opened", want)
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		check("closed", want)
	}
	t.Logf("%d crashes", crashes)
	if crashes < 50*seeds {
		t.Errorf("the disk crashed %d times, want %d and more", crashes, 50*seeds)
	}
}

func TestOpen_Locked(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	o := Options{Dir: dir}
	d := openTest(t, o)
	for _, name := range []string{dir, dir + "/../data"} {
		if _, err := Open(Options{Dir: name}); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), dir) {
			t.Fatalf("open of %s twice: %v", name, err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	openTest(t, o)
}

// TestOpen_LockedByProcess opens the directory from another process: this test binary, which
// gets the directory's name in its environment.
func TestOpen_LockedByProcess(t *testing.T) {
	t.Parallel()
	const variable = "TABLETOP_TEST_LOCKED_DIR"
	if dir := os.Getenv(variable); dir != "" {
		_, err := Open(Options{Dir: dir})
		if !errors.Is(err, ErrLocked) {
			t.Fatalf("open: %v", err)
		}
		t.Log(err)
		return
	}
	dir := t.TempDir()
	openTest(t, Options{Dir: dir})
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestOpen_LockedByProcess$", "-test.v")
	cmd.Env = append(os.Environ(), variable+"="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "stop the other program") {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestOpen_FormatVersion(t *testing.T) {
	t.Parallel()
	write := func(fs vfs.FS, key, value string) {
		t.Helper()
		p, err := pebble.Open("data", &pebble.Options{FS: fs, FormatMajorVersion: pebble.FormatNewest, Logger: storeLogger{&DB{}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(p.Set([]byte(key), []byte(value), pebble.Sync), p.Close()); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ name, key, value, want string }{
		{"newer", string(catalogKey(catalogVersion, "")), "3", "the store has version 3, this program reads up to 2"},
		{"unreadable", string(catalogKey(catalogVersion, "")), "x", `the stored version is "x"`},
		{"foreign", "key", "value", "did not write"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fs := vfs.NewMem()
			write(fs, c.key, c.value)
			_, err := Open(Options{Dir: "data", FS: fs})
			if !errors.Is(err, ErrFormatVersion) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("open: %v, want %q", err, c.want)
			}
		})
	}
	t.Run("newer files", func(t *testing.T) {
		t.Parallel()
		fs := vfs.NewMem()
		write(fs, "k", "v")
		names, err := fs.List("data")
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			if strings.HasPrefix(n, "marker.format-version.") {
				if err := fs.Rename("data/"+n, "data/marker.format-version.000099.999"); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := Open(Options{Dir: "data", FS: fs}); !errors.Is(err, ErrFormatVersion) {
			t.Fatalf("open: %v", err)
		}
	})
	for _, c := range []struct{ name, key, value string }{
		{"bad table", string(catalogKey(catalogTable, "t")), "{"},
		{"bad ordinal", string(catalogKey(catalogTable, "t")), `{"families":[{"ordinal":7}],"next_ordinal":3}`},
		{"bad id", string(catalogKey(catalogNextID, "")), "1"},
		{"unknown", string(catalogKey('?', "")), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fs := vfs.NewMem()
			if err := func() error {
				d, err := Open(Options{Dir: "data", FS: fs})
				if err != nil {
					return err
				}
				return d.Close()
			}(); err != nil {
				t.Fatal(err)
			}
			write(fs, c.key, c.value)
			if _, err := Open(Options{Dir: "data", FS: fs}); err == nil || !strings.Contains(err.Error(), "catalog") {
				t.Fatalf("open: %v", err)
			}
		})
	}
}

// TestOpen_ForeignFolder checks that Open rejects a folder with foreign files, and accepts the
// remains of a store whose creation crashed.
func TestOpen_ForeignFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(Options{Dir: dir})
	if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "main.go") {
		t.Errorf("got %v, want ErrInvalid that names main.go", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 {
		t.Errorf("the refused folder has %d entries, want 1", len(entries))
	}
	if err := os.Rename(filepath.Join(dir, "main.go"), filepath.Join(dir, "LOCK")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		d, err := Open(Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// storeText returns all data of a store that callers can see.
func storeText(t *testing.T, d *DB) string {
	t.Helper()
	var b strings.Builder
	for _, tab := range d.Tables("") {
		text, err := dump(d, tab.Name, ScanOptions{})
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("table " + describe(tab) + text)
	}
	for _, x := range d.DeletedTables("") {
		fmt.Fprintf(&b, "deleted %d %s", x.Deleted.UnixMicro(), describe(x.Table))
	}
	text, err := resourcesText(d.Resources(""))
	if err != nil {
		t.Fatal(err)
	}
	return b.String() + text
}

// TestCrash_Catalog crashes a store before every write to its disk during a script. Each
// change of tables and resources exists completely or not at all, and acknowledged changes
// exist. Collections and compactions change no visible data.
func TestCrash_Catalog(t *testing.T) {
	t.Parallel()
	change := func(fn func(tx *CatalogTx) error) func(*DB) error {
		return func(d *DB) error { return d.UpdateCatalog(context.Background(), fn) }
	}
	create := func(name string, families ...string) func(*DB) error {
		return change(func(tx *CatalogTx) error {
			def := Table{Name: name}
			for _, f := range families {
				def.Families = append(def.Families, Family{Name: f, GC: GCRule{Kind: MaxVersions, Versions: 100}})
			}
			_, err := tx.CreateTable(def)
			return errors.Join(err, tx.PutResource("made/"+name, []byte(name)))
		})
	}
	write := func(name string) func(*DB) error {
		return func(d *DB) error {
			return d.Update(context.Background(), name, []byte("r"), func(tx *RowTx) error {
				muts := []Mutation{set("f", "q", 0, strings.Repeat("v", 9<<10)), set("g", "q", 0, strings.Repeat("w", 9<<10))}
				return errors.Join(tx.Mutate(muts), tx.PutResource("row/"+name, []byte("r")))
			})
		}
	}
	collect := func(d *DB) error { _, err := d.RunGC(context.Background()); return err }
	compact := func(d *DB) error { return d.Compact(context.Background()) }
	c := clock.NewFrozen(epoch)
	script := []func(*DB) error{
		create("t", "f", "g"),
		create("u", "f", "g"),
		write("t"),
		write("u"),
		compact,
		change(func(tx *CatalogTx) error {
			_, err := tx.ModifyFamilies("t", []FamilyChange{{Drop: "f"}, {Create: &Family{Name: "f"}}})
			return errors.Join(err, tx.PutResource("modified", nil), tx.DeleteResource("made/t"))
		}),
		collect, // forgets the dropped family
		write("t"),
		change(func(tx *CatalogTx) error {
			_, err := tx.UpdateTable("u", func(tab *Table) error { tab.Meta = []byte("M"); return nil })
			return errors.Join(err, tx.PutResource("updated", nil), tx.SoftDeleteTable("t"))
		}),
		change(func(tx *CatalogTx) error {
			_, err := tx.UndeleteTable("t")
			return errors.Join(err, tx.DeleteResource("updated"), tx.DeleteTable("u"))
		}),
		compact,
		change(func(tx *CatalogTx) error {
			_, err := tx.CreateTable(Table{Name: "v", Families: []Family{{Name: "f"}, {Name: "g"}}})
			return errors.Join(err, tx.SoftDeleteTable("t"), tx.PutResource("replaced", nil))
		}),
		write("v"),
		func(*DB) error { c.Advance(2 * keepDeleted); return nil }, // t expires
		collect, // removes t
		change(func(tx *CatalogTx) error {
			return errors.Join(tx.SoftDeleteTable("v"), tx.PurgeTables(""), tx.DeleteResource("replaced"))
		}),
		compact,
	}
	// With such small memtables, every few writes reach files.
	disk := faultdisk.NewCrashing(1)
	o := Options{Dir: "data", FS: disk.FS(), Now: c.Now, MemTableBytes: 32 << 10}
	d := openTest(t, o)
	run := faultdisk.Script{Disk: disk, Text: func() string { return storeText(t, d) }}
	times := []time.Time{c.Now()} // by number of steps
	for i, step := range script {
		run.Steps = append(run.Steps, faultdisk.Step{Name: fmt.Sprint("step ", i), Unseen: true, Do: func() error {
			err := step(d)
			times = append(times, c.Now())
			return err
		}})
	}
	run.Reopen = func(x faultdisk.Crash) (string, error) {
		again := o
		again.FS, again.Now = x.FS, clock.NewFrozen(times[x.Done]).Now
		crashed, err := Open(again)
		if err != nil {
			return "", err
		}
		return storeText(t, crashed), crashed.Close()
	}
	crashes, err := run.Run()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d crashes", crashes)
	if crashes < 5*len(script) {
		t.Errorf("only %d crashes", crashes)
	}
}
