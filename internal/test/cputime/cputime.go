// Package cputime measures the CPU time of benchmarks, because other work on the machine affects
// it less than wall time.
package cputime

import "time"

// Benchmark is the part of *testing.B that this package uses.
type Benchmark interface {
	Loop() bool
	ReportAllocs()
	ReportMetric(value float64, unit string)
	Fatal(args ...any)
}

// Loop runs fn for each iteration of the benchmark, with the number of the iteration, from 0. It
// reports allocations, and the CPU time of the process per iteration as cpu-ns/op.
func Loop(b Benchmark, fn func(i int)) {
	b.ReportAllocs()
	n, began := 0, ofProcess(b)
	for ; b.Loop(); n++ {
		fn(n)
	}
	b.ReportMetric(float64(ofProcess(b)-began)/float64(n), "cpu-ns/op")
}

// LoopApart is like Loop, but subtracts the time of apart, which does the part of fn's work that a
// comparison excludes. The two run alternately, so that other work on the machine affects both.
func LoopApart(b Benchmark, fn, apart func(i int)) {
	b.ReportAllocs()
	n, took := 0, time.Duration(0)
	for ; b.Loop(); n++ {
		began := ofProcess(b)
		fn(n)
		between := ofProcess(b)
		apart(n)
		took += between - began - (ofProcess(b) - between)
	}
	b.ReportMetric(float64(took)/float64(n), "cpu-ns/op")
}

// Ratio runs fn and base alternately, so that other work on the machine affects both. It reports the CPU time of
// fn, divided by that of base, as x-base.
func Ratio(b Benchmark, fn, base func(i int)) {
	n, of, to := 0, time.Duration(0), time.Duration(0)
	for ; b.Loop(); n++ {
		began := ofProcess(b)
		fn(n)
		between := ofProcess(b)
		base(n)
		of, to = of+between-began, to+ofProcess(b)-between
	}
	b.ReportMetric(float64(of)/float64(to), "x-base")
}
