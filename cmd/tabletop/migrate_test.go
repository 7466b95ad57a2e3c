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

// sharedData is a folder of real exports beside the module; it is not part of
// the project.
const sharedData = "../../../shared/data"

// inferredChoice is a choice of infer as it is printed, with its reason.
var inferredChoice = regexp.MustCompile(`(?m)^  (key|row key|types|families|joiner) +\S.*\n +\(.+\)$`)

// TestMigrate_RealInputs runs the main job on all real inputs that are there:
// infer proposes a mapping and prints why, and by that mapping every item comes
// back.
func TestMigrate_RealInputs(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(sharedData); err != nil {
		t.Skipf("the real exports are not here: %v", err)
	}
	inputs := map[string]struct{ items, exceptions int }{
		"s3-export": {3, 0},
		"users-export/sample-dynamodb-export.json.gz": {3335, 0}, "users-export/sample_dynamodb_row.json": {1, 0},
		"workbench/AnOnlineShop_14.json": {19, 0}, "workbench/AnOnlineShop_facets.json": {20, 0}, "workbench/SocialNetworkSchema.json": {17, 9}, "workbench/ChatSystemSchema.json": {8, 0},
		"workbench/ConnectedVehiclesSchema.json": {12, 2}, "workbench/GamePlayerProfilesSchema.json": {14, 0}, "workbench/global-serverless-batchwrite.json": {13, 0},
		"devguide/devguide-ProductCatalog.json": {8, 0}, "devguide/devguide-Forum.json": {2, 0}, "devguide/devguide-Thread.json": {3, 0},
	}
	type totals struct {
		Items, Rows, Differences, Exceptions int
		Tables                               []struct{ Accepted []any }
	}
	for source, want := range inputs {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			source := filepath.Join(sharedData, source)
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
	// None is left out.
	fsys := os.DirFS(sharedData)
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch _, known := inputs[name]; {
		case err != nil:
			return err
		case known && d.IsDir():
			return fs.SkipDir
		case !known && !d.IsDir() && d.Name() != "README.md" && d.Name() != "sample_bigtable_row.json": // what Google's utility made of an item
			t.Errorf("%s is not among the inputs", name)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestMigrateVerify_Truncated refuses half of a real export by its name.
func TestMigrateVerify_Truncated(t *testing.T) {
	t.Parallel()
	whole, err := os.ReadFile(filepath.Join(sharedData, "users-export/sample-dynamodb-export.json.gz"))
	if err != nil {
		t.Skipf("the real exports are not here: %v", err)
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

// A report that nobody can have read is a fault of the environment, whatever it
// says; a bad input stays one.
func TestMigrate_FullOutput(t *testing.T) {
	t.Parallel()
	const device = "/dev/full" // takes nothing
	if _, err := os.Stat(device); err != nil {
		t.Skipf("there is no device that is full: %v", err)
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
