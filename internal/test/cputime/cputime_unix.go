//go:build unix

package cputime

import (
	"syscall"
	"time"
)

// ofProcess returns the processor time of the process so far.
func ofProcess(b Benchmark) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
