package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2"
)

// TestScan_Moment scans a table that is deleted and undeleted repeatedly: a scan sees all of
// its rows or finds no table, and never the table without its rows or rows of another table.
func TestScan_Moment(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{})
	createTest(t, d, "f", "g")
	for r := range 10 {
		mustMutate(t, d, fmt.Sprint("r", r), set("f", "q", 1000, "v"), set("g", "q", 1000, "w"))
	}
	first := mustDump(t, d)
	one := mustSnapshot(t, d)
	if _, err := modifyFamilies(t.Context(), d, "t", []FamilyChange{{Drop: "f"}, {Drop: "g"}, {Create: &Family{Name: "h"}}}); err != nil {
		t.Fatal(err)
	}
	for r := range 5 {
		mustMutate(t, d, fmt.Sprint("s", r), set("h", "q", 1000, "x"))
	}
	second := mustDump(t, d)
	other := mustSnapshot(t, d)
	stop := make(chan struct{})
	var scanners sync.WaitGroup
	for range 4 {
		scanners.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				got, err := dump(d, "t", ScanOptions{})
				if !errors.Is(err, ErrTableNotFound) && (err != nil || got != first && got != second) {
					t.Errorf("error %v, rows\n%s", err, got)
					return
				}
			}
		})
	}
	for range 30 {
		mustRestore(t, d, one)
		mustRestore(t, d, other)
		if err := deleteTable(context.Background(), d, "t"); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	scanners.Wait()
	for _, s := range []*Snapshot{one, other} {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestScan_ForeignKey reads a row with a key behind its first cell that is not the key of a cell.
func TestScan_ForeignKey(t *testing.T) {
	t.Parallel()
	for _, rest := range []string{"", "\x00\x00q", "\x00\x00q\x00\x01", "\x00\x00qqqqqqqqqqqqqqqqqqqqqq", "\x00\x00q\x00\x01q\x00\x01\x80\x00\x00\x00\x00\x00\x00\x00"} {
		for _, skip := range []bool{false, true} {
			d := openTest(t, Options{})
			createTest(t, d, "f")
			mustMutate(t, d, "r", set("f", "a", 0, "v"))
			tab, err := d.lookup("t")
			if err != nil {
				t.Fatal(err)
			}
			key := append(appendRowPrefix(nil, tab.def.ID, []byte("r")), rest...)
			if err := d.pebble.Set(key, []byte("v"), pebble.NoSync); err != nil {
				t.Fatal(err)
			}
			s, err := d.Scan(t.Context(), "t", ScanOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for s.NextRow() {
				for s.NextCell() {
					if skip {
						s.SkipColumn()
					}
				}
			}
			if err := s.Close(); err == nil || !strings.Contains(err.Error(), "not the key of a cell") {
				t.Errorf("%q: error %v", rest, err)
			}
		}
	}
}
