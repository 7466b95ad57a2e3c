package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
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
