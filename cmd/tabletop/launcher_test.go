package main

import (
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tabletop-emu/tabletop/internal/test/serveout"
)

// launcher is a program that starts a server as docs/launcher.md describes, and never stops it.
// It inherits the configuration of the server.
func launcher() {
	server := exec.Command("tabletop", "serve")
	server.Stdout, server.Stderr = os.Stdout, os.Stderr
	if _, err := server.StdinPipe(); err != nil { // open as long as this process
		log.Fatal(err)
	}
	if err := server.Run(); err != nil {
		log.Fatal(err)
	}
}

// launched is a running launcher with its server.
type launched struct {
	cmd    *exec.Cmd
	out    io.ReadCloser // closed by the end of both processes
	stderr *strings.Builder
	dir    string // for all files
	file   string
}

// launch starts a launcher with further variables. All files of the server are in dir.
func launch(t *testing.T, dir string, env ...string) *launched {
	t.Helper()
	l := &launched{dir: dir, file: filepath.Join(dir, "ports.json"), stderr: &strings.Builder{}}
	l.cmd = exec.CommandContext(t.Context(), "launcher")
	l.cmd.Dir = dir
	l.cmd.Env = append(os.Environ(), append([]string{
		"TABLETOP_BIGTABLE=127.0.0.1:0", "TABLETOP_DYNAMODB=127.0.0.1:0", "TABLETOP_CONSOLE=127.0.0.1:0",
		"TABLETOP_PORT_FILE=" + l.file, "TABLETOP_UNTIL_STDIN_CLOSES=true", "TMPDIR=" + dir, "HOME=" + dir,
	}, env...)...)
	l.cmd.Stderr = l.stderr
	var err error
	if l.out, err = l.cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = l.cmd.Process.Kill()
		_ = l.cmd.Wait()
	})
	return l
}

// ports waits until the server is ready, and returns the content of the port file.
func (l *launched) ports(t *testing.T) (p ports) {
	t.Helper()
	if _, err := serveout.Read(l.out); err != nil {
		_ = l.cmd.Wait()
		t.Fatalf("%v\n%s", err, l.stderr)
	}
	text, err := os.ReadFile(l.file)
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return p
}

// TestLauncher_Killed: when a launcher is killed, its server stops, and leaves neither port nor
// file. The server is configured by the environment alone.
func TestLauncher_Killed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := launch(t, dir, "TABLETOP_SEED="+seedFolder(t))
	found := l.ports(t)
	if info, err := os.Stat(l.file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v; want a private file", info, err)
	}
	s := &server{env: map[string]string{"AWS_ENDPOINT_URL_DYNAMODB": *found.DynamoDB}}
	if got := keys(t, s); got != "a b" {
		t.Errorf("items %q when the port file appears, want a b", got)
	}
	reset, err := http.NewRequestWithContext(t.Context(), http.MethodPost, found.Console+"/api/v1/reset", nil)
	if err != nil {
		t.Fatal(err)
	}
	reset.Header.Set("Authorization", "Bearer "+found.Token)
	answer, err := http.DefaultClient.Do(reset)
	if err != nil {
		t.Fatal(err)
	}
	if _ = answer.Body.Close(); answer.StatusCode != http.StatusOK || keys(t, s) != "a b" {
		t.Errorf("the reset answers %s", answer.Status)
	}
	if err := l.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, l.out); err != nil { // the server has it open, too
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	for _, addr := range []string{*found.Bigtable, strings.TrimPrefix(*found.DynamoDB, "http://"), strings.TrimPrefix(found.Console, "http://")} {
		if conn, err := net.Dial("tcp", addr); err == nil {
			t.Errorf("%s is still open: %v", addr, conn.Close())
		}
	}
}

// TestLauncher_Refused: a server that does not start leaves no port file, and gives its reason.
func TestLauncher_Refused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, c := range map[string]struct {
		env, want string
	}{
		"variable": {"TABLETOP_GC=never", `"never" must be background`},
		"seed":     {"TABLETOP_SEED=none.json", "--seed: none.json: cannot open the seed"},
		"port":     {"TABLETOP_DYNAMODB=" + listen(t).Addr().String(), "address already in use"},
	} {
		l := launch(t, dir, c.env)
		if _, err := io.Copy(io.Discard, l.out); err != nil {
			t.Fatal(err)
		}
		_ = l.cmd.Wait()
		if text := l.stderr.String(); !strings.HasPrefix(text, "tabletop: ") || !strings.Contains(text, c.want) {
			t.Errorf("%s: the server printed %q, want %q in it", name, text, c.want)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: left behind: %v, %v", name, left, err)
		}
	}
}
