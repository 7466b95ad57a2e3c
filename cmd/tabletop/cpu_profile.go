package main

import (
	"fmt"
	"runtime/pprof"
)

// startCPUProfile profiles the process until stop, which puts the profile in
// its place. The file is whole or not there: of one that cannot be written stop
// returns why, and a process that is killed leaves what it had written beside it,
// as FILE.*.
func startCPUProfile(file string) (stop func() error, err error) {
	if file == "" {
		return func() error { return nil }, nil
	}
	w, err := createWhole(file)
	if err != nil {
		return nil, err
	}
	written := &output{Writer: w} // package pprof returns no error of its writer
	if err := pprof.StartCPUProfile(written); err != nil {
		w.drop()
		return nil, err
	}
	return func() error {
		pprof.StopCPUProfile()
		if written.err != nil {
			w.drop()
			return fmt.Errorf("%s: the profile was not written: %w", file, written.err)
		}
		return w.keep()
	}, nil
}
