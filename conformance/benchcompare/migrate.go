package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// migrate times `tabletop migrate verify`, which infers a mapping for an export, loads it into
// a private store and verifies every item: once for each size of -migration. The memory is the
// peak of the process, which includes the store unless that is in a temporary folder.
func (b *bench) migrate(ctx context.Context, server string, rep int) (err error) {
	dir, err := os.MkdirTemp("", "benchcompare-export")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var out []result
	for size := range strings.SplitSeq(b.migration, ",") {
		items, err := strconv.Atoi(size)
		if err != nil {
			return fmt.Errorf("-migration: %w", err)
		}
		file := filepath.Join(dir, "orders.jsonl")
		if err := writeExport(file, items); err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, filepath.Join(b.binaries, "tabletop"), "migrate", "verify", "--source", file, "--key", "pk,sk", "--table", "orders")
		elapsed := stopwatch()
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, text)
		}
		seconds := elapsed().Seconds()
		r := result{Run: rep, Target: server, Workload: "migrate/" + size, Ops: items, Seconds: seconds, OpsPerS: float64(items) / seconds}
		if used, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			r.RSSMB = float64(used.Maxrss) / 1024 // in KiB, the unit of Linux
			r.ServerUs = float64(cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()) / float64(items) / 1e3
		}
		out = append(out, r)
	}
	return appendResults(b.raw, out)
}

// writeExport writes items of some 150 bytes as JSON lines.
func writeExport(file string, items int) error {
	f, err := os.Create(filepath.Clean(file))
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	for i := range items {
		i = i * 7919 % items // in a scattered order, each once
		_, _ = fmt.Fprintf(w, `{"pk":{"S":"customer#%07d"},"sk":{"S":"order#%03d"},"total":{"N":"%d.5"},"state":{"S":"paid"},"lines":{"L":[{"S":"sku-%d"},{"N":"%d"}]},"gift":{"BOOL":%t}}`+"\n",
			i/10, i%10, i%1000, i%97, i%7, i%3 == 0)
	}
	return errors.Join(w.Flush(), f.Close()) // a writer keeps its first error
}
