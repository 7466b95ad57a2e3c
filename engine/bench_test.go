package engine

import (
	"bytes"
	"fmt"
	"testing"
)

// benchRows is the size of the table that benchmarks read: three cells of
// some 340 bytes a row, which is beyond what the memtable holds.
const benchRows = 30_000

func benchKey(i int) []byte { return fmt.Appendf(nil, "row%010d", i) }

func benchMutations(i int) []Mutation {
	value := bytes.Repeat([]byte{byte(i)}, 340)
	var muts []Mutation
	for c := range 3 {
		muts = append(muts, Mutation{Kind: SetCell, Family: "f", Qualifier: fmt.Appendf(nil, "q%d", c), Timestamp: 1000, Value: value})
	}
	return muts
}

func fillBench(b *testing.B, rows int) *DB {
	b.Helper()
	d := openTest(b, Options{})
	createTest(b, d, "f")
	for i := range rows {
		if err := d.Mutate(b.Context(), "t", benchKey(i), benchMutations(i)); err != nil {
			b.Fatal(err)
		}
	}
	return d
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
			n++
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

func BenchmarkMutate(b *testing.B) {
	for _, store := range []string{"memory", "disk"} {
		b.Run(store, func(b *testing.B) {
			o := Options{}
			if store == "disk" {
				o.Dir, o.NoSync = b.TempDir(), true
			}
			d := openTest(b, o)
			createTest(b, d, "f")
			muts := benchMutations(1)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := d.Mutate(b.Context(), "t", benchKey(i%benchRows), muts); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkReplace deletes a row's cells and sets them again, as a put does.
func BenchmarkReplace(b *testing.B) {
	d := fillBench(b, 1000)
	muts := append([]Mutation{{Kind: DeleteFromFamily, Family: "f"}}, benchMutations(2)...)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := d.Mutate(b.Context(), "t", benchKey(i%1000), muts); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRestore goes back to a snapshot after a small change, as a test
// suite does; BenchmarkSnapshot takes one.
func BenchmarkRestore(b *testing.B) {
	for _, rows := range []int{100, benchRows} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			d := fillBench(b, rows)
			s, err := d.Snapshot(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := d.Mutate(b.Context(), "t", benchKey(i%rows), benchMutations(i)); err != nil {
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
			d := fillBench(b, rows)
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

func BenchmarkReadRow(b *testing.B) {
	d := fillBench(b, benchRows)
	b.ReportAllocs()
	for i := 0; b.Loop(); i = (i + 7919) % benchRows {
		k := benchKey(i)
		if n := readBench(b, d, Span{Start: k, End: append(k, 0)}, false); n != 3 {
			b.Fatal(n)
		}
	}
}

func BenchmarkScan(b *testing.B) {
	d := fillBench(b, benchRows)
	for _, latest := range []bool{false, true} {
		b.Run(fmt.Sprintf("10k rows/latest=%v", latest), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if n := readBench(b, d, Span{Start: benchKey(5000), End: benchKey(15000)}, latest); n != 30_000 {
					b.Fatal(n)
				}
			}
		})
	}
}

// BenchmarkVersions reads the newest of many versions: by timestamp, and of
// one that was overwritten in place.
func BenchmarkVersions(b *testing.B) {
	for _, versions := range []int{100, 10_000} {
		d := openTest(b, Options{})
		createTest(b, d, "f")
		for i := range versions {
			mustMutate(b, d, "versions", set("f", "q", int64(i), "v"))
			mustMutate(b, d, "overwritten", set("f", "q", 0, "v"))
		}
		for _, row := range []string{"versions", "overwritten"} {
			b.Run(fmt.Sprintf("%s=%d", row, versions), func(b *testing.B) {
				for b.Loop() {
					if n := readBench(b, d, Span{Start: []byte(row), End: []byte(row + "\x00")}, true); n != 1 {
						b.Fatal(n)
					}
				}
			})
		}
	}
}
