//go:build unix

// Package cputime counts the processor time of benchmarks, which says more than the clock on
// a busy machine.
package cputime

import (
	"syscall"
	"time"
)

// Benchmark is what of a *testing.B is needed.
type Benchmark interface {
	Loop() bool
	ReportAllocs()
	ReportMetric(value float64, unit string)
	Fatal(args ...any)
}

// Loop runs fn as often as the benchmark asks for, with the number of the time from 0
// on, and reports the process's CPU time of one as cpu-ns/op, beside allocations.
func Loop(b Benchmark, fn func(i int)) {
	b.ReportAllocs()
	n, began := 0, ofProcess(b)
	for ; b.Loop(); n++ {
		fn(n)
	}
	b.ReportMetric(float64(ofProcess(b)-began)/float64(n), "cpu-ns/op")
}

// LoopApart is as Loop, but that what apart takes is not counted: the part of fn's work
// that a comparison leaves out. Both run in turn, so that what else the machine does
// affects both.
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

// ofProcess is the processor time of the process so far.
func ofProcess(b Benchmark) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
