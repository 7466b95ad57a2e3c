package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/faultdisk"
	"github.com/tabletop-emu/tabletop/internal/test/long"
)

// recordedText is like storeText, with the readable records of table t, and with the backups and
// their cells.
func recordedText(t *testing.T, d *DB) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(storeText(t, d))
	for _, x := range d.Backups().List("") {
		fmt.Fprintf(&b, "backup %s of %d bytes %s", x.Name, x.Bytes, describe(x.Table))
		lower := appendTablePrefix(nil, x.Table.ID)
		it, err := d.pebble.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: prefixEnd(bytes.Clone(lower))})
		if err != nil {
			t.Fatal(err)
		}
		for valid := it.First(); valid; valid = it.Next() {
			value, err := it.ValueAndErr()
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "\t%x %.10q and %d\n", it.Key()[tablePrefixLen:], value, len(value))
		}
		if err := it.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if tab, err := d.Table("t"); err == nil {
		fmt.Fprintf(&b, "journal of t: %v\n", tab.Journal)
	}
	from, err := d.JournalAt("t", JournalStream, d.now().Add(-time.Hour).UnixMicro())
	if errors.Is(err, ErrNoJournal) || errors.Is(err, ErrTableNotFound) {
		return b.String()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records(t, d, JournalOptions{After: from}) {
		fmt.Fprintf(&b, "%d at %d: %.200s\n", r.Number, r.Micros, recordText(&r))
	}
	return b.String()
}

// TestCrash_Journal crashes a store before every write to its disk. Rows are written, dropped
// and collected, and backups made and restored, with a journal. Each acknowledged write has
// its one record, with its number, and none has half of one; a journal or a backup exists
// completely or not at all. The end that a reader saw is still a valid end after the crash,
// and later writes come after it.
func TestCrash_Journal(t *testing.T) {
	t.Parallel()
	seeds := uint64(1)
	if long.Enabled() {
		seeds = 3
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			testCrashJournal(t, seed)
		})
	}
}

func testCrashJournal(t *testing.T, seed uint64) {
	t.Helper()
	ctx := context.Background()
	change := func(fn func(tx *CatalogTx) error) func(*DB) error {
		return func(d *DB) error { return d.UpdateCatalog(ctx, fn) }
	}
	keep := func(reason JournalReason, keep time.Duration) func(*DB) error {
		return change(func(tx *CatalogTx) error {
			_, err := tx.UpdateTable("t", func(def *Table) error { def.Journal[reason].Keep = keep; return nil })
			return err
		})
	}
	write := func(row string, muts ...Mutation) func(*DB) error {
		return func(d *DB) error {
			return errors.Join(d.UpdateRows(ctx, "t", [][]byte{[]byte(row)}, func(_ int, tx *RowTx) error { return tx.Mutate(muts) })...)
		}
	}
	large := strings.Repeat("v", 9<<10)
	put := func(tx *CatalogTx, b *Backup) error { return tx.PutResource(b.Name, nil) }
	collect := func(d *DB) error { _, err := d.RunGC(ctx); return err }
	c := clock.NewFrozen(epoch)
	advance := func(by time.Duration) func(*DB) error { return func(*DB) error { c.Advance(by); return nil } }
	type step struct {
		do     func(*DB) error
		unseen bool
	}
	script := []step{
		{do: change(func(tx *CatalogTx) error {
			def := Table{Name: "t", Families: []Family{{Name: "f", GC: GCRule{Kind: MaxVersions, Versions: 1}}, {Name: "g"}}}
			def.Journal[JournalStream].Keep = time.Hour
			_, err := tx.CreateTable(def)
			return err
		})},
		{do: write("a", set("f", "q", 1000, large), set("g", "q", 1000, "v"))},
		{do: func(d *DB) error {
			return d.Mutate(ctx, "t", []byte("b"), []Mutation{set("f", "q", 1000, "v"), set("f", "q", 2000, large)})
		}},
		{do: func(d *DB) error {
			_, err := d.ReadModifyWrite(ctx, "t", []byte("c"), []RuleReadModifyWrite{{Family: "f", Qualifier: []byte("n"), Increment: 1}})
			return err
		}},
		{do: func(d *DB) error { return d.Backups().Create(ctx, "t", "b1", put) }},
		{do: write("a", Mutation{Kind: DeleteFromRow}, set("f", "q", 3000, "w"), set("f", "q", 4000, "x"))},
		{do: collect},
		{do: keep(JournalViews, time.Minute)},
		{do: func(d *DB) error { return d.Backups().Copy(ctx, "b1", "b2", put) }},
		{do: keep(JournalViews, 0)},
		{do: func(d *DB) error { return d.DropRows(ctx, "t", Span{Start: []byte("a"), End: []byte("b")}) }},
		{do: change(func(tx *CatalogTx) error {
			_, err := tx.ModifyFamilies("t", []FamilyChange{{Drop: "g"}, {Create: &Family{Name: "g"}}})
			return errors.Join(err, tx.DeleteBackup("b1"), tx.DeleteResource("b1"))
		})},
		{do: advance(40 * time.Minute), unseen: true},
		{do: write("d", set("g", "q", 1000, large))},
		{do: func(d *DB) error { return d.Compact(ctx) }, unseen: true},
		{do: advance(30 * time.Minute)},                                            // the first records expire
		{do: collect, unseen: true},                                                // trims them
		{do: func(d *DB) error { return d.DropRows(ctx, "t", Span{}) }},            // in pieces
		{do: change(func(tx *CatalogTx) error { return tx.SoftDeleteTable("t") })}, // with its journal
		{do: change(func(tx *CatalogTx) error { _, err := tx.UndeleteTable("t"); return err })},
		{do: keep(JournalStream, 0)},
		{do: write("e", set("f", "q", 1000, "unrecorded"))},
		{do: keep(JournalStream, time.Hour)},
		{do: write("e", set("f", "q", 2000, large))},
		{do: change(func(tx *CatalogTx) error { return tx.DeleteTable("t") })},
		{do: func(d *DB) error { return d.Backups().Restore(ctx, "b2", "t", func(*CatalogTx) error { return nil }) }},
		{do: keep(JournalStream, time.Hour)},
		{do: write("f", set("f", "q", 1000, "v"))},
	}
	disk := faultdisk.NewCrashing(seed)
	o := Options{Dir: "data", FS: disk.FS(), Now: c.Now, MemTableBytes: 32 << 10}
	d := openTest(t, o)
	d.dropPieceRows = 1
	run := faultdisk.Script{Disk: disk, Text: func() string { return recordedText(t, d) }}
	times := []time.Time{c.Now()} // by number of steps
	ends := []uint64{0}
	for i, step := range script {
		run.Steps = append(run.Steps, faultdisk.Step{Name: fmt.Sprint("step ", i), Unseen: step.unseen, Do: func() error {
			if err := step.do(d); err != nil {
				return err
			}
			end, _ := d.journal.end(d.now)
			times, ends = append(times, c.Now()), append(ends, end.Number)
			return nil
		}})
	}
	run.Reopen = func(x faultdisk.Crash) (string, error) {
		again := o
		again.FS, again.Now = x.FS, clock.NewFrozen(times[x.Done]).Now
		crashed, err := Open(again)
		if err != nil {
			return "", err
		}
		text := recordedText(t, crashed)
		held := map[uint32]bool{}
		for tab := range crashed.catalog.Load().all() {
			held[tab.def.ID] = true
		}
		for _, b := range crashed.Backups().List("") {
			held[b.Table.ID] = true
		}
		for id, n := range cellsUnder(t, crashed) {
			if !held[id] {
				return "", fmt.Errorf("%d cells are under id %d, which nothing has", n, id)
			}
		}
		if end, _ := crashed.journal.end(crashed.now); end.Number < ends[x.Done] {
			return "", fmt.Errorf("the end is %d, a reader had seen %d", end.Number, ends[x.Done])
		}
		if tab, err := crashed.Table("t"); err == nil && tab.Journal[JournalStream].Keep > 0 {
			mustMutate(t, crashed, "after", set("f", "q", 1000, "v"))
			if got := records(t, crashed, JournalOptions{After: max(ends[x.Done], tab.Journal[JournalStream].Since)}); len(got) == 0 {
				return "", fmt.Errorf("a new record comes before %d, which a reader has seen as the end", ends[x.Done])
			}
		}
		return text, crashed.Close()
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
