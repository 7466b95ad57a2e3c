// Package clients runs the tests of the clients of the control API in clients/: those in Python,
// JavaScript and Java, each against servers of its own.
package clients

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tabletop-emu/tabletop/conformance/internal/program"
	"github.com/tabletop-emu/tabletop/internal/test/serveout"
)

// TestClients: each client has the features in docs/control.md: items, snapshots, faults,
// time, all commands of ctl, two concurrent workers with a server each, and servers that do
// not answer. It starts servers, which end with the process that started them.
func TestClients(t *testing.T) {
	t.Parallel()
	binary, err := program.Path(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Run("surface", func(t *testing.T) {
		t.Parallel()
		surface(t, binary)
	})
	for _, c := range []struct {
		name, dir string
		needs     string   // a required program
		compile   []string // compiler, with the output folder as its last word; nil: not compiled
		run       []string
	}{
		{name: "python", dir: "python", needs: "python3", run: []string{"python3", "-B", "-m", "unittest", "-v", "test_tabletop", "test_start"}},
		{name: "javascript", dir: "javascript", needs: "node", run: []string{"node", "--test"}},
		{
			name: "java", dir: "java", needs: "javac", compile: []string{"javac", "-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "Tabletop.java", "TabletopTest.java", "StartTest.java", "-d"},
			run: []string{"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", "CLASSES", "TabletopTest"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(c.needs); err != nil {
				t.Skipf("the client in %s needs %s: %v", c.name, c.needs, err)
			}
			dir, err := filepath.Abs(filepath.Join("../../clients", c.dir))
			if err != nil {
				t.Fatal(err)
			}
			classes := t.TempDir()
			run := func(env []string, args ...string) {
				t.Helper()
				cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
				cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%q: %v\n%s", args, err, out)
				}
			}
			if c.compile != nil {
				run(nil, append(c.compile, classes)...)
			}
			args := strings.Split(strings.ReplaceAll(strings.Join(c.run, "\x00"), "CLASSES", classes), "\x00")
			env := append(serve(t, binary), "TABLETOP_BINARY="+binary)
			for _, assignment := range serve(t, binary) {
				if strings.HasPrefix(assignment, "TABLETOP_CONSOLE_") {
					env = append(env, strings.Replace(assignment, "_CONSOLE_", "_SECOND_", 1))
				}
			}
			run(env, args...)
		})
	}
}

// serve starts a server that ends with the test, and returns the variables that it exports.
func serve(t *testing.T, binary string) (exports []string) {
	t.Helper()
	server := exec.CommandContext(context.WithoutCancel(t.Context()), binary, "serve", "--bigtable", "127.0.0.1:0", "--dynamodb", "127.0.0.1:0", "--console", "127.0.0.1:0", "--fixtures", "../../fixtures/subjects")
	server.Stderr = os.Stderr
	out, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := server.Wait(); err != nil {
			t.Errorf("the server: %v", err)
		}
	})
	ready, err := serveout.Read(out)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range ready.Exports {
		exports = append(exports, name+"="+value)
	}
	return exports
}
