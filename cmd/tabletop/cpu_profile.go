package main

import (
	"fmt"
	"runtime/pprof"
)

// startCPUProfile profiles the process until stop, which moves the complete profile to file.
// stop returns an error if the profile could not be written. A killed process leaves its
// partial profile as FILE.*.
func startCPUProfile(file string) (stop func() error, err error) {
	if file == "" {
		return func() error { return nil }, nil
	}
	w, err := createWhole(file)
	if err != nil {
		return nil, err
	}
	written := &output{Writer: w} // package pprof ignores errors of its writer
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
