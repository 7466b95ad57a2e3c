package engine

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/tabletop-emu/tabletop/internal/test/cputime"
)

// The benchmarks named after a call have two parts: "engine", and "pebble" with the least work
// for the same result: the same keys and options, read and written directly. The difference is
// the price of the data model. conformance/benchcompare runs the benchmarks named Compare.

// benchRows is the size of the table that benchmarks read: three cells of some 340 bytes per
// row, more than the memtable holds.
const benchRows = 30_000

// benchStride visits all rows in a scattered order.
const benchStride = 7919

func benchKeys(n int) [][]byte {
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "row%010d", i)
	}
	return keys
}

func benchMutations(i int) []Mutation {
	value := bytes.Repeat([]byte{byte(i)}, 340)
	var muts []Mutation
	for c := range 3 {
		muts = append(muts, Mutation{Kind: SetCell, Family: "f", Qualifier: fmt.Appendf(nil, "q%d", c), Timestamp: 1000, Value: value})
	}
	return muts
}

func fillBench(b *testing.B, rows int) (*DB, [][]byte) {
	b.Helper()
	d := openTest(b, Options{})
	createTest(b, d, "f")
	keys := benchKeys(rows)
	for i, k := range keys {
		if err := d.Mutate(b.Context(), "t", k, benchMutations(i)); err != nil {
			b.Fatal(err)
		}
	}
	// Otherwise pending compactions would run during the first benchmark.
	if err := d.Compact(b.Context()); err != nil {
		b.Fatal(err)
	}
	return d, keys
}

// readBench visits the cells of span, skipping versions if latest, and
// returns their number.
func readBench(b *testing.B, d *DB, span Span, latest bool) int {
	b.Helper()
	s, err := d.Scan(b.Context(), "t", ScanOptions{Spans: []Span{span}})
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	for s.NextRow() {
		for s.NextCell() {
			n += min(1, len(s.Cell().Value))
			if latest {
				s.SkipColumn()
			}
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	return n
}

// readPebble visits the keys of the span in Pebble itself.
func readPebble(b *testing.B, d *DB, span Span) int {
	b.Helper()
	lower, upper := spanBounds(nil, nil, 1, span)
	it, err := d.pebble.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	for valid := it.First(); valid; valid = it.Next() {
		n += min(1, len(it.Value()))
	}
	if err := it.Close(); err != nil {
		b.Fatal(err)
	}
	return n
}

func rowSpan(key []byte) Span { return Span{Start: key, End: append(bytes.Clone(key), 0)} }

// benchBoth runs the two parts of a benchmark.
func benchBoth(b *testing.B, engine, store func(b *testing.B, i int)) {
	b.Helper()
	for _, part := range []struct {
		name string
		run  func(b *testing.B, i int)
	}{{"engine", engine}, {"pebble", store}} {
		b.Run(part.name, func(b *testing.B) {
			cputime.Loop(b, func(i int) { part.run(b, i) })
		})
	}
}

func wantCells(b *testing.B, got, want int) {
	b.Helper()
	if got != want {
		b.Fatalf("%d cells, want %d", got, want)
	}
}

// BenchmarkCompareWrite writes rows of three cells in memory; BenchmarkWriteDisk writes them
// to a disk without a sync.
func BenchmarkCompareWrite(b *testing.B) { benchWrite(b, Options{}) }

func BenchmarkWriteDisk(b *testing.B) { benchWrite(b, Options{Dir: b.TempDir(), NoSync: true}) }

func benchWrite(b *testing.B, o Options) {
	b.Helper()
	d := openTest(b, o)
	createTest(b, d, "f")
	muts, keys := benchMutations(1), benchKeys(benchRows)
	benchBoth(b, func(b *testing.B, i int) {
		b.Helper()
		if err := d.Mutate(b.Context(), "t", keys[i%benchRows], muts); err != nil {
			b.Fatal(err)
		}
	}, func(b *testing.B, i int) {
		b.Helper()
		batch := d.pebble.NewBatch()
		prefix := appendRowPrefix(nil, 1, keys[i%benchRows])
		for c := range muts {
			key := appendTimestamp(appendEscaped(appendOrdinal(bytes.Clone(prefix), 0), muts[c].Qualifier), muts[c].Timestamp)
			if err := batch.Set(key, muts[c].Value, nil); err != nil {
				b.Fatal(err)
			}
		}
		if err := batch.Commit(pebble.NoSync); err != nil {
			b.Fatal(err)
		}
		if err := batch.Close(); err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkReplace deletes a row's cells and sets them again, as a put does.
func BenchmarkReplace(b *testing.B) {
	d, keys := fillBench(b, 1000)
	muts := append([]Mutation{{Kind: DeleteFromFamily, Family: "f"}}, benchMutations(2)...)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := d.Mutate(b.Context(), "t", keys[i%1000], muts); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRestore restores a snapshot after a small change, as a test suite does;
// BenchmarkSnapshot takes one.
func BenchmarkRestore(b *testing.B) {
	for _, rows := range []int{100, benchRows} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			d, keys := fillBench(b, rows)
			s, err := d.Snapshot(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := d.Mutate(b.Context(), "t", keys[i%rows], benchMutations(i)); err != nil {
					b.Fatal(err)
				}
				if err := d.Restore(b.Context(), s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSnapshot(b *testing.B) {
	for _, rows := range []int{100, benchRows} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			d, _ := fillBench(b, rows)
			b.ReportAllocs()
			for b.Loop() {
				s, err := d.Snapshot(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCompareRowRead(b *testing.B) {
	d, keys := fillBench(b, benchRows)
	key := func(i int) []byte { return keys[i*benchStride%benchRows] }
	benchBoth(b,
		func(b *testing.B, i int) { b.Helper(); wantCells(b, readBench(b, d, rowSpan(key(i)), false), 3) },
		func(b *testing.B, i int) { b.Helper(); wantCells(b, readPebble(b, d, rowSpan(key(i))), 3) })
}

// BenchmarkCompareScan reads 10,000 rows: all cells, and only the latest ones as a filter
// does.
func BenchmarkCompareScan(b *testing.B) {
	d, keys := fillBench(b, benchRows)
	span := Span{Start: keys[5000], End: keys[15000]}
	benchBoth(b,
		func(b *testing.B, _ int) { b.Helper(); wantCells(b, readBench(b, d, span, false), 30_000) },
		func(b *testing.B, _ int) { b.Helper(); wantCells(b, readPebble(b, d, span), 30_000) })
	b.Run("latest", func(b *testing.B) {
		for b.Loop() {
			wantCells(b, readBench(b, d, span, true), 30_000)
		}
	})
}

// BenchmarkScanFrom reads the last of three columns in the row of an update, as a predicate does: with one
// seek, and with a second one behind the first cell.
func BenchmarkScanFrom(b *testing.B) {
	d, keys := fillBench(b, benchRows)
	read := func(from int, scan func(tx *RowTx) *Scan) func(int) {
		return func(i int) {
			if err := d.Update(b.Context(), "t", keys[(from+i*benchStride)%benchRows], func(tx *RowTx) error {
				s := scan(tx)
				if !s.NextCell() || string(s.Cell().Qualifier) != "q2" {
					b.Error("no cell of q2")
				}
				return s.Close()
			}); err != nil {
				b.Fatal(err)
			}
		}
	}
	// The two visit different rows, so that neither finds the blocks of the other in the cache.
	cputime.Ratio(b,
		read(0, func(tx *RowTx) *Scan { return tx.ScanFrom("f", []byte("q2")) }),
		read(benchRows/2, func(tx *RowTx) *Scan {
			s := tx.Scan()
			s.NextCell()
			s.SeekColumn("f", []byte("q2"))
			return s
		}))
}

// BenchmarkVersions reads the newest of many versions: by timestamp, and of one that was
// overwritten in place.
func BenchmarkVersions(b *testing.B) {
	for _, versions := range []int{100, 30_000} {
		d := openTest(b, Options{})
		createTest(b, d, "f")
		for i := range versions {
			mustMutate(b, d, "versions", set("f", "q", int64(i), "v"))
			mustMutate(b, d, "overwritten", set("f", "q", 0, "v"))
		}
		for _, row := range []string{"versions", "overwritten"} {
			b.Run(fmt.Sprintf("%s=%d", row, versions), func(b *testing.B) {
				span := rowSpan([]byte(row))
				benchBoth(b,
					func(b *testing.B, _ int) { b.Helper(); wantCells(b, readBench(b, d, span, true), 1) },
					func(b *testing.B, _ int) {
						b.Helper()
						lower, upper := spanBounds(nil, nil, 1, span)
						it, err := d.pebble.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
						if err != nil {
							b.Fatal(err)
						}
						if !it.First() || len(it.Value()) != 1 {
							b.Fatal(it.Error())
						}
						// Look for another column.
						column := it.Key()[:len(it.Key())-timestampLen]
						if it.SeekGE(prefixEnd(bytes.Clone(column))) {
							b.Fatal("more than one column")
						}
						if err := it.Close(); err != nil {
							b.Fatal(err)
						}
					})
			})
		}
	}
}

// BenchmarkWideRow writes and reads a row of 100,000 columns: all of them, and 100 scattered
// ones.
func BenchmarkWideRow(b *testing.B) {
	const columns, step = 100_000, 1000
	d := openTest(b, Options{})
	createTest(b, d, "f")
	var muts []Mutation
	for c := range columns {
		// In random order, but each once: the stride has no factor of columns.
		muts = append(muts, set("f", fmt.Sprintf("q%06d", c*benchStride%columns), 1000, "0123456789"))
	}
	row := []byte("wide")
	keys := make([][]byte, columns)
	for c := range muts {
		prefix := appendEscaped(appendOrdinal(appendRowPrefix(nil, 1, row), 0), muts[c].Qualifier)
		keys[c] = appendTimestamp(prefix, 1000)
	}
	b.Run("write", func(b *testing.B) {
		benchBoth(b, func(b *testing.B, _ int) {
			b.Helper()
			if err := d.Mutate(b.Context(), "t", row, muts); err != nil {
				b.Fatal(err)
			}
		}, func(b *testing.B, _ int) {
			b.Helper()
			batch := d.pebble.NewBatch()
			for c := range keys {
				if err := batch.Set(keys[c], muts[c].Value, nil); err != nil {
					b.Fatal(err)
				}
			}
			if err := batch.Commit(pebble.NoSync); err != nil {
				b.Fatal(err)
			}
			if err := batch.Close(); err != nil {
				b.Fatal(err)
			}
		})
	})
	if err := d.Mutate(b.Context(), "t", row, muts); err != nil {
		b.Fatal(err)
	}
	if err := d.pebble.Flush(); err != nil {
		b.Fatal(err)
	}
	b.Run("read", func(b *testing.B) {
		benchBoth(b,
			func(b *testing.B, _ int) { b.Helper(); wantCells(b, readBench(b, d, rowSpan(row), false), columns) },
			func(b *testing.B, _ int) { b.Helper(); wantCells(b, readPebble(b, d, rowSpan(row)), columns) })
	})
	slices.SortFunc(keys, bytes.Compare)
	slices.SortFunc(muts, func(x, y Mutation) int { return bytes.Compare(x.Qualifier, y.Qualifier) })
	b.Run("read 100", func(b *testing.B) {
		benchBoth(b, func(b *testing.B, _ int) {
			b.Helper()
			s, err := d.Scan(b.Context(), "t", ScanOptions{Spans: []Span{rowSpan(row)}})
			if err != nil {
				b.Fatal(err)
			}
			n := 0
			for s.NextRow() {
				for c := step / 2; c < columns; c += step {
					s.SeekColumn("f", muts[c].Qualifier)
					if s.NextCell() {
						n += min(1, len(s.Cell().Value))
					}
				}
			}
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
			wantCells(b, n, columns/step)
		}, func(b *testing.B, _ int) {
			b.Helper()
			lower, upper := spanBounds(nil, nil, 1, rowSpan(row))
			it, err := d.pebble.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
			if err != nil {
				b.Fatal(err)
			}
			n := 0
			for c := step / 2; c < columns; c += step {
				if it.SeekGE(keys[c]) {
					n += min(1, len(it.Value()))
				}
			}
			if err := it.Close(); err != nil {
				b.Fatal(err)
			}
			wantCells(b, n, columns/step)
		})
	})
}

// BenchmarkGC writes with and without a concurrent collector that has a million old versions
// to collect; "p99-ns" and "worst-ns" are of single writes.
func BenchmarkGC(b *testing.B) {
	const rows, versions = 1000, 1000
	for _, collecting := range []bool{false, true} {
		b.Run(fmt.Sprintf("collecting=%v", collecting), func(b *testing.B) {
			d := openTest(b, Options{})
			def := Table{Name: "t", Families: []Family{{Name: "f", GC: GCRule{Kind: MaxVersions, Versions: 1}}}}
			if _, err := createTable(b.Context(), d, def); err != nil {
				b.Fatal(err)
			}
			keys := benchKeys(rows)
			var muts []Mutation
			for v := range versions {
				muts = append(muts, set("f", "q", int64(v), "0123456789"))
			}
			for _, k := range keys {
				if err := d.Mutate(b.Context(), "t", k, muts); err != nil {
					b.Fatal(err)
				}
			}
			done := make(chan error, 1)
			if collecting {
				go func() { _, err := d.RunGC(b.Context()); done <- err }()
			} else {
				done <- nil
			}
			write := []Mutation{set("f", "q", versions, "0123456789")}
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				began := time.Now()
				if err := d.Mutate(b.Context(), "t", keys[i*benchStride%rows], write); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100]), "p99-ns")
			b.ReportMetric(float64(took[len(took)-1]), "worst-ns")
			if err := <-done; err != nil {
				b.Fatal(err)
			}
		})
	}
}
