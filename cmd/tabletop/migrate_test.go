package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// sharedData is a folder of real exports beside the module; it is not part of
// the project.
const sharedData = "../../../shared/data"

// TestMigrateVerify_RealInputs runs the main job on real inputs.
func TestMigrateVerify_RealInputs(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(sharedData); err != nil {
		t.Skipf("the real exports are not here: %v", err)
	}
	type totals struct{ Items, Rows, Differences, Exceptions int }
	cases := []struct {
		source string
		want   totals
	}{
		{"users-export/sample-dynamodb-export.json.gz", totals{Items: 3335, Rows: 3335}},
		{"s3-export", totals{Items: 3, Rows: 3}},
		{"workbench/AnOnlineShop_14.json", totals{Items: 19, Rows: 19}},
		{"workbench/ChatSystemSchema.json", totals{Items: 8, Rows: 8}},
		{"workbench/global-serverless-batchwrite.json", totals{Items: 13, Rows: 13}},
	}
	for _, tc := range cases {
		t.Run(tc.source, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "report.json")
			out, err := exec.CommandContext(t.Context(), "tabletop", "migrate", "verify",
				"--source", filepath.Join(sharedData, tc.source), "--mapping", "auto", "--report", "json="+file).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got totals
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
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
