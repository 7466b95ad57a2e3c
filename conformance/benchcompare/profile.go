package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

// profile runs parts only against our server, and writes a CPU profile of all its runs to a
// file for the compiler's optimizer: see `make pgo`. The profile names no folder of this
// machine: the program is built with -trimpath, and pprof takes the program's own name from
// its arguments.
func (b *bench) profile(ctx context.Context, parts []string, file string) (err error) {
	if file, err = filepath.Abs(file); err != nil {
		return err
	}
	if b.profiles, err = os.MkdirTemp("", "benchcompare-profiles"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.profiles)) }()
	if _, err := b.measure(ctx, parts, ""); err != nil {
		return err
	}
	runs, err := filepath.Glob(filepath.Join(b.profiles, "*.prof"))
	if err != nil {
		return err
	}
	merge := []string{"tool", "pprof", "-symbolize", "none", "-proto", "-output", file, ourProgram}
	return b.command(ctx, b.binaries, nil, "go", append(merge, runs...)...)
}
