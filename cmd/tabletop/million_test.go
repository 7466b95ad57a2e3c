package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/race"
)

// millionItems is how many items TestMillion migrates: `make million` says.
var millionItems = flag.Int64("million.items", 20_000, "items that the large migration has")

// maxMillionMemory bounds the memory of a migration, however many items it has.
const maxMillionMemory = 512 << 20

// writeSynthetic writes n items of all ten types as JSON lines, the same for the
// same seed: keys of two attributes, a hundred items a partition, scalars, sets,
// nested documents, empty ones, and now and then a value of another type than
// its attribute mostly has.
func writeSynthetic(t *testing.T, file string, seed uint64, n int64) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	r := rand.New(rand.NewPCG(seed, 0))
	var line []byte
	for i := range n {
		line = attr.AppendItemJSON(append(line[:0], `{"Item":`...), syntheticItem(r, i))
		if _, err := w.Write(append(line, "}\n"...)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Flush(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func syntheticItem(r *rand.Rand, i int64) attr.Item {
	word := func() string { return strconv.FormatUint(r.Uint64(), 36) }
	str := func(s string) attr.Value { return attr.Value{Type: attr.S, Str: s} }
	num := func(n int) attr.Value { return attr.Value{Type: attr.N, Str: strconv.Itoa(n)} }
	item := attr.Item{
		"PK":      str(fmt.Sprintf("customer-%07d", i/100)),
		"SK":      num(int(i % 100)),
		"name":    str(word() + " " + word()),
		"price":   num(r.IntN(1_000_000) - 500_000),
		"active":  {Type: attr.BOOL, Bool: r.IntN(2) == 0},
		"deleted": {Type: attr.NULL},
		"hash":    {Type: attr.B, Str: word()},
		"tags":    {Type: attr.SS, Set: []string{"a" + word(), "b" + word()}},
		"ratings": {Type: attr.NS, Set: []string{strconv.Itoa(r.IntN(5)), strconv.Itoa(5 + r.IntN(5))}},
		"events":  {Type: attr.L, List: []attr.Value{str(word()), num(r.IntN(100)), {Type: attr.M, Map: map[string]attr.Value{"at": num(r.IntN(1_000_000))}}}},
		"address": {Type: attr.M, Map: map[string]attr.Value{"street": str(word()), "zip": num(10000 + r.IntN(90000)), "note": {Type: attr.NULL}}},
	}
	switch r.IntN(20) {
	case 0:
		item["price"] = str("on request")
	case 1:
		item["events"] = attr.Value{Type: attr.L, List: []attr.Value{}}
	case 2:
		item["address"] = attr.Value{Type: attr.M, Map: map[string]attr.Value{}}
	case 3:
		item["keys"] = attr.Value{Type: attr.BS, Set: []string{"x" + word(), "y" + word()}}
	}
	return item
}

// measured runs a command, logs what it cost, and returns what it says.
func measured(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "tabletop", args...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("tabletop %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	used := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	memory := used.Maxrss << 10
	t.Logf("tabletop %s: %.1f s of CPU, at most %d MiB of memory", strings.Join(args[:2], " "),
		(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), memory>>20)
	if memory > maxMillionMemory {
		t.Errorf("tabletop %s took %d MiB of memory, want at most %d", strings.Join(args[:2], " "), memory>>20, maxMillionMemory>>20)
	}
	return string(out)
}

// checkpointed is how many items of its one table a checkpoint says are written.
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
	if race.Enabled {
		t.Skip("the memory of a program with the race detector is not the program's")
	}
	t.Parallel()
	dir := t.TempDir()
	items := filepath.Join(dir, "items.jsonl")
	writeSynthetic(t, items, 1, *millionItems)
	mapping := filepath.Join(dir, "m.yaml")
	report := filepath.Join(dir, "report.json")
	measured(t, "migrate", "verify", "--source", items, "--write-mapping", mapping, "--report", "json="+report)
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
				Seconds float64
			}
		}
	}
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if r.Items != *millionItems || r.Rows != r.Items || r.Differences != 0 || r.Exceptions == 0 {
		t.Errorf("%d items, %d rows, %d differences, %d exceptions; want %d, as many, 0, some", r.Items, r.Rows, r.Differences, r.Exceptions, *millionItems)
	}
	for _, p := range r.Tables[0].Phases {
		t.Logf("%s: %d items in %.1f s, %.0f a second", p.Name, p.Items, p.Seconds, float64(p.Items)/p.Seconds)
	}

	// Killed in the middle; a small load, as soon as there is a checkpoint.
	middle := *millionItems / 2
	if *millionItems < 100_000 {
		middle = 1
	}
	data, checkpoint := filepath.Join(dir, "data"), filepath.Join(dir, "checkpoint")
	load := []string{"migrate", "load", "--source", items, "--mapping", mapping, "--data", data, "--checkpoint", checkpoint}
	cmd := exec.CommandContext(t.Context(), "tabletop", load...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	killed := int64(0) // items that were written then
	for look := time.NewTicker(time.Millisecond); killed == 0; {
		select {
		case err := <-ended:
			t.Fatalf("the load ended before %d items were in its checkpoint: %v", middle, err)
		case <-look.C:
			if n := checkpointed(t, checkpoint); n >= middle {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				<-ended
				look.Stop()
				killed = checkpointed(t, checkpoint) // it may have gone on since
			}
		}
	}
	out := measured(t, load...)
	if want := fmt.Sprintf("  %d items passed over: the checkpoint says that they are written", killed); !strings.Contains(out, want) {
		t.Errorf("the load was killed after %d items and not resumed there:\n%s", killed, out)
	}
	t.Logf("killed after %d items of %d, and resumed", killed, *millionItems)
	s := serve(t, "--data", data, "--bigtable", "127.0.0.1:0", "--dynamodb", "off")
	out = measured(t, "migrate", "verify", "--source", items, "--mapping", mapping, "--against", s.env["BIGTABLE_EMULATOR_HOST"])
	if !strings.Contains(out, " 0 differences") {
		t.Error(out)
	}
}
