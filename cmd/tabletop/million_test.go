//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/internal/test/race"
	"github.com/tabletop-emu/tabletop/internal/test/synthetic"
)

// millionItems is the number of items of TestMillion, set by `make million`.
var millionItems = flag.Int64("million.items", minMillionItems, "items that the large migration has, at least 20,000")

// minMillionItems is the smallest load that can be killed in the middle: it saves its progress
// every 8 MiB.
const minMillionItems = 20_000

// maxMillionMemory bounds the memory of a migration, however many items it has.
const maxMillionMemory = 512 << 20

// writeSynthetic writes n items of all ten types to a file.
func writeSynthetic(t *testing.T, file string, n int64) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(synthetic.WriteLines(f, 1, n), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// measured runs a command, logs its cost, and returns its output and CPU seconds.
func measured(t *testing.T, args ...string) (out string, cpu float64) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "tabletop", args...)
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("tabletop %s: %v\n%s", strings.Join(args, " "), err, text)
	}
	used := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	memory := used.Maxrss << 10
	cpu = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	t.Logf("tabletop %s: %.1f s of CPU, at most %d MiB of memory", strings.Join(args[:2], " "), cpu, memory>>20)
	if memory > maxMillionMemory {
		t.Errorf("tabletop %s took %d MiB of memory, want at most %d", strings.Join(args[:2], " "), memory>>20, maxMillionMemory>>20)
	}
	return string(text), cpu
}

// rates are items per second: by the clock, over all phases, and by CPU time.
type rates struct{ clock, cpu float64 }

// verifySynthetic verifies n synthetic items in a private store, and writes their
// mapping to a file.
func verifySynthetic(t *testing.T, items, mapping string, n int64) rates {
	t.Helper()
	report := filepath.Join(t.TempDir(), "report.json")
	_, cpu := measured(t, "migrate", "verify", "--source", items, "--write-mapping", mapping, "--report", "json="+report)
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Items, Rows, Differences, Exceptions int64
		Tables                               []struct {
			Phases []struct {
				Name    string
				Items   int64
				Passes  int64
				Seconds float64
			}
		}
	}
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if r.Items != n || r.Rows != n || r.Differences != 0 || r.Exceptions == 0 {
		t.Errorf("%d items, %d rows, %d differences, %d exceptions; want %d, as many, 0, some", r.Items, r.Rows, r.Differences, r.Exceptions, n)
	}
	seconds := 0.0
	for _, p := range r.Tables[0].Phases {
		t.Logf("%s: %d items in %.1f s, %.0f a second", p.Name, p.Items, p.Seconds, float64(p.Items*p.Passes)/p.Seconds)
		seconds += p.Seconds
	}
	return rates{float64(n) / seconds, float64(n) / cpu}
}

// checkpointed returns the number of written items in a checkpoint of one table.
func checkpointed(t *testing.T, file string) int64 {
	t.Helper()
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	var c struct{ Tables []struct{ Items int64 } }
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	return c.Tables[0].Items
}

// TestMillion loads and verifies a large table in one run of bounded memory.
// Then it kills a load in the middle, resumes it, and verifies those rows.
func TestMillion(t *testing.T) {
	long.Test(t)
	if race.Enabled {
		t.Skip("the memory of a program with the race detector is not the program's")
	}
	if *millionItems < minMillionItems {
		t.Fatalf("-million.items is %d, want at least %d", *millionItems, minMillionItems)
	}
	t.Parallel()
	dir := t.TempDir()
	items := filepath.Join(dir, "items.jsonl")
	writeSynthetic(t, items, *millionItems)
	mapping := filepath.Join(dir, "m.yaml")
	large := verifySynthetic(t, items, mapping, *millionItems)
	if few := int64(10_000); *millionItems > 10*few {
		file := filepath.Join(dir, "few.jsonl")
		writeSynthetic(t, file, few)
		small := verifySynthetic(t, file, filepath.Join(dir, "few.yaml"), few)
		t.Logf("verify of %d items: %.0f items a second, %.0f of CPU; of %d: %.0f and %.0f; ratio %.2f and %.2f",
			*millionItems, large.clock, large.cpu, few, small.clock, small.cpu, large.clock/small.clock, large.cpu/small.cpu)
	}

	// Killed in the middle; a small load at its first checkpoint.
	middle := *millionItems / 2
	if *millionItems < 100_000 {
		middle = 1
	}
	data, checkpoint := filepath.Join(dir, "data"), filepath.Join(dir, "checkpoint")
	s := serve(t, "--data", data, "--bigtable", "127.0.0.1:0", "--dynamodb", "off")
	target := relayTo(t, s.env["BIGTABLE_EMULATOR_HOST"], "items", func() bool { return checkpointed(t, checkpoint) >= middle })
	load := []string{"migrate", "load", "--source", items, "--mapping", mapping, "--target", target.addr, "--checkpoint", checkpoint, "--call-timeout", "1h"}
	cmd := exec.CommandContext(t.Context(), "tabletop", load...)
	ended := begin(t, cmd)
	select {
	case <-target.held:
	case err := <-ended:
		t.Fatalf("the load ended before %d items were in its checkpoint: %v", middle, err)
	}
	kill(t, cmd, ended)
	killed := checkpointed(t, checkpoint)
	out, _ := measured(t, load...)
	if want := fmt.Sprintf("  %d items skipped: written according to the checkpoint", killed); !strings.Contains(out, want) {
		t.Errorf("the load was killed after %d items and not resumed there:\n%s", killed, out)
	}
	t.Logf("killed after %d items of %d, and resumed", killed, *millionItems)
	out, _ = measured(t, "migrate", "verify", "--source", items, "--mapping", mapping, "--against", s.env["BIGTABLE_EMULATOR_HOST"])
	if !strings.Contains(out, " 0 differences") {
		t.Error(out)
	}
}
