package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tabletop-emu/tabletop/internal/test/faultdisk"
)

func mustSnapshot(t *testing.T, d *DB) *Snapshot {
	t.Helper()
	s, err := d.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustRestore(t *testing.T, d *DB, s *Snapshot) {
	t.Helper()
	if err := d.Restore(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

// TestRestore_Scans checks that scans keep their view, and that a row transaction sees the row
// before or after the restore.
func TestRestore_Scans(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{MemTableBytes: 64 << 10})
	createTest(t, d, "f")
	for i := range 200 {
		mustMutate(t, d, fmt.Sprintf("%03d", i), set("f", "q", 1000, strings.Repeat("before", 100)))
	}
	s := mustSnapshot(t, d)
	for i := range 200 {
		mustMutate(t, d, fmt.Sprintf("%03d", i), set("f", "q", 1000, strings.Repeat("after", 100)))
	}
	scan, err := d.Scan(t.Context(), "t", ScanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for scan.NextRow() && scan.NextCell() {
		if rows == 50 {
			mustRestore(t, d, s)
			if err := d.Compact(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if !strings.HasPrefix(string(scan.Cell().Value), "after") {
			t.Fatalf("row %q holds %.10q", scan.Row(), scan.Cell().Value)
		}
		rows++
	}
	if err := scan.Close(); err != nil || rows != 200 {
		t.Errorf("%d rows, error %v", rows, err)
	}
	if text := mustDump(t, d); strings.Contains(text, "after") || strings.Count(text, "\n") != 200 {
		t.Error("not the data of the snapshot")
	}
}

// TestRestore_Concurrent restores and takes snapshots during writes of rows that hold the same
// value twice: no reader may see them differ.
func TestRestore_Concurrent(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{MemTableBytes: 64 << 10})
	createTest(t, d, "f", "g")
	write := func(row, v string) error {
		return d.Mutate(context.Background(), "t", []byte(row), []Mutation{set("f", "q", 1000, v), set("g", "q", 1000, v)})
	}
	for i := range 8 {
		if err := write(fmt.Sprint(i), "first"); err != nil {
			t.Fatal(err)
		}
	}
	first := mustSnapshot(t, d)
	var writers sync.WaitGroup
	stop := make(chan struct{})
	for w := range 3 {
		writers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := write(fmt.Sprint(n%8), strings.Repeat(fmt.Sprint(w, n), 20)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	check := func() {
		text := mustDump(t, d)
		lines := strings.Split(strings.TrimSpace(text), "\n")
		if len(lines) != 16 {
			t.Errorf("%d cells, want 16", len(lines))
		}
		for i := 0; i+1 < len(lines); i += 2 {
			_, a, _ := strings.Cut(lines[i], "@")
			_, b, _ := strings.Cut(lines[i+1], "@")
			if a != b {
				t.Errorf("half a row: %s, %s", lines[i], lines[i+1])
			}
		}
	}
	for range 10 {
		s := mustSnapshot(t, d)
		check()
		mustRestore(t, d, first)
		check()
		if _, err := d.RunGC(t.Context()); err != nil {
			t.Error(err)
		}
		mustRestore(t, d, s)
		check()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	writers.Wait()
}

// TestRestore_AnotherStore restores a snapshot into stores that did not make
// it.
func TestRestore_AnotherStore(t *testing.T) {
	t.Parallel()
	from, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = from.Close() }()
	createTest(t, from, "f")
	mustMutate(t, from, "r", set("f", "q", 1000, strings.Repeat("v", 100_000)))
	s := mustSnapshot(t, from)
	want := mustDump(t, from)
	dir := t.TempDir()
	for _, o := range []Options{{}, {Dir: "data", FS: vfs.NewMem()}, {Dir: dir}} {
		to := openTest(t, o)
		createTest(t, to, "x", "y")
		mustMutate(t, to, "r", set("y", "q", 1000, "old"))
		mustRestore(t, to, s)
		if got := mustDump(t, to); got != want {
			t.Errorf("%+v: %.100s", o, got)
		}
		mustMutate(t, to, "r2", set("f", "q", 1000, "new"))
	}
	if got := mustDump(t, from); got != want {
		t.Errorf("the source holds %.100s", got)
	}
	if err := from.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := openTest(t, Options{}).Restore(t.Context(), s); !errors.Is(err, ErrSnapshotClosed) {
		t.Errorf("error %v, want %v", err, ErrSnapshotClosed)
	}
}

func TestSnapshot_Closed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := openTest(t, Options{Dir: dir, NoSync: true})
	createTest(t, d, "f")
	mustMutate(t, d, "r", set("f", "q", 1000, "v"))
	s, other := mustSnapshot(t, d), mustSnapshot(t, d)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Restore(t.Context(), s); !errors.Is(err, ErrSnapshotClosed) {
		t.Errorf("error %v, want %v", err, ErrSnapshotClosed)
	}
	if got := mustDump(t, d); got == "" {
		t.Error("a restore that failed changed something")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Snapshot(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	if err := d.Restore(ctx, other); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	left, err := filepath.Glob(filepath.Join(dir, "snapshots", "*"))
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %q, error %v; want one snapshot", left, err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "snapshots")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a closed store leaves its snapshots: %v", err)
	}
}

// TestRestore_Crash crashes a store around restores: it holds all of one state or all of the
// other.
func TestRestore_Crash(t *testing.T) {
	t.Parallel()
	fs := faultdisk.NewMemory()
	d := openTest(t, Options{Dir: "data", FS: fs})
	createTest(t, d, "f")
	for i := range 20 {
		mustMutate(t, d, fmt.Sprint(i), set("f", "q", 1000, "first"))
	}
	s := mustSnapshot(t, d)
	first := mustDump(t, d)
	if err := d.DropRows(t.Context(), "t", Span{}); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		mustMutate(t, d, fmt.Sprint(i), set("f", "q", 1000, "second"))
	}
	second := mustDump(t, d)
	acknowledged := second
	for _, restore := range []bool{false, true} {
		if restore {
			mustRestore(t, d, s)
			acknowledged = first
		}
		clone := fs.CrashClone(vfs.CrashCloneCfg{})
		again, err := Open(Options{Dir: "data", FS: clone})
		if err != nil {
			t.Fatal(err)
		}
		if got := mustDump(t, again); got != acknowledged {
			t.Errorf("restored: %v, after a crash\n%swant\n%s", restore, got, acknowledged)
		}
		if _, err := clone.Stat("data/snapshots"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("snapshots of the store that crashed: %v", err)
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	}
	// At any moment of a restore, with any part of the unsynced data.
	mustMutate(t, d, "0", set("f", "q", 1000, "third"))
	third := mustDump(t, d)
	done := make(chan error)
	go func() { done <- d.Restore(context.Background(), s) }()
	for finished := false; !finished; {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			finished = true
		default:
		}
		clone := fs.CrashClone(vfs.CrashCloneCfg{})
		again, err := Open(Options{Dir: "data", FS: clone})
		if err != nil {
			t.Fatal(err)
		}
		if got := mustDump(t, again); got != first && (got != third || finished) {
			t.Errorf("in the middle of a restore:\n%s", got)
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	}
}
