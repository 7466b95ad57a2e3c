package main

import "runtime/pprof"

// startCPUProfile profiles the process until stop, which puts the profile in
// its place. The file is whole or, of a process that is killed, not there.
func startCPUProfile(file string) (stop func() error, err error) {
	if file == "" {
		return func() error { return nil }, nil
	}
	w, err := createWhole(file)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(w); err != nil {
		w.drop()
		return nil, err
	}
	return func() error {
		pprof.StopCPUProfile()
		return w.keep()
	}, nil
}
