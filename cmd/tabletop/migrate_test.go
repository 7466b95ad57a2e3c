package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// inputs is a folder of every kind of input, described in its README.
const inputs = "../../migrate/testdata/inputs"

// inferredChoice matches a printed choice of infer, with its reason.
var inferredChoice = regexp.MustCompile(`(?m)^  (key|row key|types|families|joiner) +\S.*\n +\(.+\)$`)

// TestMigrate_Inputs runs the main job on each input: infer proposes a mapping with reasons,
// and every item comes back through it.
func TestMigrate_Inputs(t *testing.T) {
	t.Parallel()
	items := map[string]struct{ items, exceptions int }{
		"s3-export": {3, 0}, "s3-incremental-export": {4, 0}, "change-records": {5, 0},
		"json-lines/members.json.gz": {120, 0}, "json-lines/member.json": {1, 0}, "csv/loans.csv": {4, 0},
		"batch-write/Repairs.json": {5, 0}, "batch-write/Tools-request.json": {3, 0},
		"workbench/Lending.json": {16, 0}, "workbench/Club.json": {10, 6}, "workbench/Notes.json": {5, 0},
	}
	type totals struct {
		Items, Rows, Differences, Exceptions int
		Tables                               []struct{ Accepted []any }
	}
	for source, want := range items {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			source := filepath.Join(inputs, source)
			mapping, report := filepath.Join(dir, "mapping.yaml"), filepath.Join(dir, "report.json")
			out, code := tabletop(t, "migrate", "infer", "--source", source, "-o", mapping)
			if code != exitEqual || len(inferredChoice.FindAllString(out, -1)) != 5 {
				t.Fatalf("exit code %d, want 0 and five choices with their reasons:\n%s", code, out)
			}
			if out, code := tabletop(t, "migrate", "verify", "--source", source, "--mapping", mapping, "--report", "json="+report); code != exitEqual {
				t.Fatalf("exit code %d:\n%s", code, out)
			}
			text, err := os.ReadFile(report)
			if err != nil {
				t.Fatal(err)
			}
			var got totals
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatal(err)
			}
			if got.Items != want.items || got.Rows != want.items || got.Differences != 0 || got.Exceptions != want.exceptions || len(got.Tables) != 1 || len(got.Tables[0].Accepted) > 0 {
				t.Errorf("got %+v, want %d items in as many rows of one table, %d exceptions and nothing else", got, want.items, want.exceptions)
			}
		})
	}
	// The list is complete.
	fsys := os.DirFS(inputs)
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch _, known := items[name]; {
		case err != nil:
			return err
		case known && d.IsDir():
			return fs.SkipDir
		case !known && !d.IsDir() && d.Name() != "README.md":
			t.Errorf("%s is not among the inputs", name)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestMigrateVerify_Truncated rejects a truncated file by its name.
func TestMigrateVerify_Truncated(t *testing.T) {
	t.Parallel()
	whole, err := os.ReadFile(filepath.Join(inputs, "json-lines/members.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "half.json.gz")
	if err := os.WriteFile(file, whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "tabletop", "migrate", "verify", "--source", file).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != exitBadInput {
		t.Errorf("%v, want exit code %d", err, exitBadInput)
	}
	if !strings.Contains(string(out), file) || strings.Contains(string(out), "differences") {
		t.Errorf("it says: %s", out)
	}
}

// A report that could not be printed is a fault of the environment, whatever its result; a bad
// input stays one.
func TestMigrate_FullOutput(t *testing.T) {
	t.Parallel()
	const device = "/dev/full" // all writes fail
	if _, err := os.Stat(device); err != nil {
		t.Skipf("no full device: %v", err)
	}
	dir := t.TempDir()
	items := writeFile(t, dir, "items.jsonl", `{"id":{"S":"a"}}`+"\n")
	other := writeFile(t, dir, "other.jsonl", `{"id":{"S":"b"}}`+"\n")
	damaged := writeFile(t, dir, "damaged.jsonl", "{")
	for _, c := range []struct {
		code int
		args []string
	}{
		{exitEnvironment, []string{"migrate", "verify", items, "--key", "id"}},
		{exitEnvironment, []string{"migrate", "diff", items, other, "--key", "id"}},
		{exitEnvironment, []string{"migrate", "infer", items, "--key", "id"}},
		{exitEnvironment, []string{"migrate", "plan", items, "--key", "id"}},
		{exitEnvironment, []string{"migrate", "verify", items, "--key", "id", "--report", "json=" + device}},
		{exitEnvironment, []string{"--help"}},
		{exitBadInput, []string{"migrate", "verify", damaged, "--key", "id"}},
	} {
		full, err := os.OpenFile(device, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "tabletop", c.args...)
		var said strings.Builder
		cmd.Stdout, cmd.Stderr = full, &said
		err = errors.Join(cmd.Run(), full.Close())
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != c.code {
			t.Errorf("%s: %v, want exit code %d", strings.Join(c.args, " "), err, c.code)
		}
		if c.code == exitEnvironment && !strings.Contains(said.String(), "no space left on device") {
			t.Errorf("%s says: %s", strings.Join(c.args, " "), said.String())
		}
	}
}
