package cputime

import (
	"syscall"
	"time"
)

// ofProcess returns the processor time of the process so far.
func ofProcess(b Benchmark) time.Duration {
	process, err := syscall.GetCurrentProcess()
	if err != nil {
		b.Fatal(err)
	}
	var created, exited, kernel, user syscall.Filetime
	if err := syscall.GetProcessTimes(process, &created, &exited, &kernel, &user); err != nil {
		b.Fatal(err)
	}
	return ticks(kernel) + ticks(user)
}

// ticks converts a duration, which Windows counts in 100 ns.
func ticks(t syscall.Filetime) time.Duration {
	return time.Duration(uint64(t.HighDateTime)<<32|uint64(t.LowDateTime)) * 100
}
