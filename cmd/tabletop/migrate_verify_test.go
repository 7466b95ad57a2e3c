package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMigrateVerify_Against: the report names the rows that were compared, and warns when the
// environment names a server that was not read.
func TestMigrateVerify_Against(t *testing.T) {
	t.Parallel()
	s := serveHere(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "off")
	address := s.env["BIGTABLE_EMULATOR_HOST"]
	dir := t.TempDir()
	items := writeFile(t, dir, "items.jsonl", `{"id":{"S":"a"},"n":{"N":"31"}}`+"\n")
	mapping, data := filepath.Join(dir, "mapping.yaml"), filepath.Join(dir, "data")
	if out, code := tabletop(t, "migrate", "infer", items, "--key", "id", "-o", mapping); code != exitEqual {
		t.Fatal(out)
	}
	for _, to := range [][]string{{"--target", address}, {"--data", data}} {
		if out, code := tabletop(t, append([]string{"migrate", "load", items, "--mapping", mapping}, to...)...); code != exitEqual {
			t.Fatal(out)
		}
	}
	const warning = "warning: BIGTABLE_EMULATOR_HOST"
	for _, c := range []struct {
		name, env string
		args      []string
		compared  string
		warns     bool
	}{
		{"private", "", nil, "a private store; --against HOST:PORT checks a server", false},
		{"not read", address, nil, "a private store; --against " + address + " checks that server", true},
		{"a server", "", []string{"--against", address}, address, false},
		{"the server of the environment", address, []string{"--against", address}, address, false},
		{"a folder", "", []string{"--data", data}, "the data folder " + data, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			json := filepath.Join(t.TempDir(), "report.json")
			args := append([]string{"migrate", "verify", items, "--mapping", mapping, "--report", "json=" + json}, c.args...)
			out, code := tabletopIn(t, []string{"BIGTABLE_EMULATOR_HOST=" + c.env}, args...)
			if code != exitEqual || !strings.Contains(out, "\ncompared with "+c.compared+"\n") || strings.Contains(out, warning) != c.warns {
				t.Errorf("exit code %d, want 0, the comparison with %s, warning %v:\n%s", code, c.compared, c.warns, out)
			}
			text, err := os.ReadFile(json)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), `"comparedWith": "`+c.compared+`"`) {
				t.Errorf("the JSON report lacks the comparison with %s", c.compared)
			}
		})
	}
}

// TestMigrateVerify_WriteMapping: infer and verify write the same file for an input. If a load
// used one, verify accepts the other: both mean the same rows. It says so if they do not.
func TestMigrateVerify_WriteMapping(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"plain":   `{"id":{"S":"a"},"n":{"N":"31"}}` + "\n",
		"escaped": `{"id":{"S":"a#b"},"of":{"S":"x#"},"n":{"N":"31"}}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			items := writeFile(t, dir, "items.jsonl", text)
			key := []string{"--key", "id"}
			if name == "escaped" {
				key[1] = "id,of"
			}
			run := func(want int, args ...string) string {
				t.Helper()
				out, code := tabletop(t, append([]string{"migrate"}, args...)...)
				if code != want {
					t.Fatalf("tabletop migrate %s: exit code %d, want %d:\n%s", strings.Join(args, " "), code, want, out)
				}
				return out
			}
			inferred, written, data := filepath.Join(dir, "inferred.yaml"), filepath.Join(dir, "written.yaml"), filepath.Join(dir, "data")
			run(exitEqual, append([]string{"infer", items, "-o", inferred}, key...)...)
			run(exitEqual, append([]string{"verify", items, "--write-mapping", written}, key...)...)
			a, err := os.ReadFile(inferred)
			if err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(written)
			if err != nil {
				t.Fatal(err)
			}
			if string(a) != string(b) {
				t.Errorf("infer writes\n%s\nverify writes\n%s", a, b)
			}
			run(exitEqual, "load", items, "--mapping", inferred, "--data", data)
			run(exitEqual, append([]string{"verify", items, "--data", data}, key...)...)

			other := writeFile(t, dir, "other.yaml", strings.Replace(string(a), "- name: item", "- name: thing", 1))
			out := run(exitDifferences, "verify", items, "--data", data, "--mapping", other)
			for _, want := range []string{`m:mapping: want "  - name: thing", got "  - name: item": line `, ": the table was loaded with another mapping; pass --mapping FILE"} {
				if !strings.Contains(out, want) {
					t.Errorf("the report lacks %q:\n%s", want, out)
				}
			}
		})
	}
}
