package conformance

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var withJava = flag.String("conformance.java", "", "a class path with the SDK for Java and our client; then its example runs too")

// TestExamples runs the unchanged examples of docs/dynamodb.md for other languages, each
// against a server of its own that they find by its output.
func TestExamples(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]func(t *testing.T) []string{
		"Python": func(*testing.T) []string { return []string{*withPython, "../clients/python/example_dynamodb.py"} },
		"JavaScript": func(t *testing.T) []string {
			t.Helper()
			return []string{*withNode, besidePackages(t, "example-dynamodb.mjs", "tabletop.mjs")}
		},
		"Java": func(*testing.T) []string {
			if *withJava == "" {
				return []string{""}
			}
			return []string{"java", "-Dslf4j.internal.verbosity=ERROR", "-cp", *withJava, "../clients/java/ExampleDynamoDB.java"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line := command(t)
			if line[0] == "" {
				t.Skipf("no %s was given: make conformance-streams and conformance-java give them", name)
			}
			buckets := t.TempDir()
			if err := os.Mkdir(filepath.Join(buckets, "exports"), 0o777); err != nil {
				t.Fatal(err)
			}
			srv, err := serve("--bigtable", "127.0.0.1:0", "--dynamodb", "127.0.0.1:0", "--console", "127.0.0.1:0", "--buckets", buckets)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := srv.stop(); err != nil {
					t.Errorf("stopping the server: %v", err)
				}
			}()
			cmd := exec.CommandContext(t.Context(), line[0], line[1:]...)
			cmd.Env = os.Environ()
			for name, value := range srv.exports {
				cmd.Env = append(cmd.Env, name+"="+value)
			}
			var warnings strings.Builder
			cmd.Stderr = &warnings
			if out, err := cmd.Output(); err != nil || string(out) != "ok\n" {
				t.Fatalf("%v\n%s\n%s", err, out, &warnings)
			}
			if made, err := filepath.Glob(filepath.Join(buckets, "exports", "AWSDynamoDB", "*", "manifest-summary.json")); err != nil || len(made) != 1 {
				t.Errorf("exports: %v, %v", made, err)
			}
		})
	}
}

// besidePackages copies files of the client for JavaScript next to the packages of
// conformance/js, and returns the first one's path.
func besidePackages(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	packages, err := filepath.Abs("js/node_modules")
	if err == nil {
		err = os.Symlink(packages, filepath.Join(dir, "node_modules"))
	}
	for _, name := range files {
		var text []byte
		if err == nil {
			text, err = os.ReadFile(filepath.Join("../clients/javascript", name))
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o666)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, files[0])
}
