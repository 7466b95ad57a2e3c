package conformance

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestMain builds the binary, starts it, and sets what it asks to export in
// this process' environment: where the clients look for it by themselves.
func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "tabletop-conformance")
	if err != nil {
		return failed("temporary folder", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary := filepath.Join(dir, "tabletop")
	build := exec.Command("go", "build", "-o", binary, "../cmd/tabletop")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return failed("go build", err)
	}

	server := exec.Command(binary, "serve", "--bigtable", "127.0.0.1:0", "--dynamodb", "127.0.0.1:0")
	server.Stderr = os.Stderr
	out, err := server.StdoutPipe()
	if err != nil {
		return failed("serve", err)
	}
	if err := server.Start(); err != nil {
		return failed("serve", err)
	}
	if err := export(out); err != nil {
		_ = server.Process.Kill()
		return failed("serve", err)
	}
	code := m.Run()
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		return failed("stopping the server", err)
	}
	if err := server.Wait(); err != nil {
		return failed("the server, at its end", err)
	}
	return code
}

func failed(what string, err error) int {
	fmt.Fprintf(os.Stderr, "conformance: %s: %v\n", what, err)
	return 1
}

// export sets the variables that the server prints, until it is ready.
func export(out io.Reader) error {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		line := lines.Text()
		if assignment, ok := strings.CutPrefix(line, "export "); ok {
			name, value, _ := strings.Cut(assignment, "=")
			if err := os.Setenv(name, value); err != nil {
				return err
			}
		}
		if strings.HasPrefix(line, "# ready") {
			return nil
		}
	}
	return fmt.Errorf("it ended before it was ready: %w", lines.Err())
}
