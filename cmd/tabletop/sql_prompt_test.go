package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
)

// keyboard is a terminal whose keys a test presses.
type keyboard struct {
	t    *testing.T
	keys *io.PipeWriter

	mu      sync.Mutex
	shown   strings.Builder // guarded by mu
	changed *sync.Cond
	code    chan int
}

// Write shows text.
func (k *keyboard) Write(b []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.changed.Broadcast()
	return k.shown.Write(b)
}

// startPrompt starts the prompt of tabletop sql, with the history in a folder.
func startPrompt(ctx context.Context, t *testing.T, dir string, args ...string) *keyboard {
	t.Helper()
	in, keys := io.Pipe()
	k := &keyboard{t: t, keys: keys, code: make(chan int, 1)}
	k.changed = sync.NewCond(&k.mu)
	p := &program{stdin: in, stdout: k, stderr: k, terminal: true, configDir: dir}
	go func() { k.code <- p.run(ctx, append([]string{"sql"}, args...)) }()
	t.Cleanup(func() { _ = keys.Close() })
	return k
}

// press presses keys, and waits until a text is shown behind what the test has seen.
func (k *keyboard) press(keys, until string) {
	k.t.Helper()
	if _, err := io.WriteString(k.keys, keys); err != nil {
		k.t.Fatal(err)
	}
	k.await(until)
}

// await waits until a text is shown, and forgets all up to it.
func (k *keyboard) await(text string) {
	k.t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	for {
		if _, rest, ok := strings.Cut(k.shown.String(), text); ok {
			k.shown.Reset()
			k.shown.WriteString(rest)
			return
		}
		k.changed.Wait()
	}
}

// ends checks the exit code of the prompt.
func (k *keyboard) ends(want int) {
	k.t.Helper()
	if got := <-k.code; got != want {
		k.t.Errorf("exit code %d, want %d, after %q", got, want, k.shown.String())
	}
}

// TestSQL_Prompt: a prompt runs statements and commands, continues after errors, and keeps a history.
func TestSQL_Prompt(t *testing.T) {
	t.Parallel()
	target, dir := sqlTables(t), t.TempDir()
	k := startPrompt(t.Context(), t, dir, target)
	k.await("Statements end with a semicolon")
	k.await("sql> ")
	k.press("SELECT 1 AS a,\r", "  -> ")
	k.press("2 AS b;\r", "\r\na  b\r\n1  2\r\n(1 row)\r\nsql> ")
	k.press("SELECT nosuch FROM users;\r", "\r\nerror: Unrecognized name: nosuch [at 1:8]\r\nSELECT nosuch FROM users\r\n       ^\r\nsql> ")
	k.press("SELECT 1; SELECT 2;\x03", "^C\r\nsql> ") // nothing ran
	k.press("SELECT '\r", "  -> ")
	k.press("\x03", "^C\r\nsql> ") // the statement is dropped
	k.press("\\timing\r", "Timing is on.\r\nsql> ")
	k.press("SELECT 3 AS c;\r", "(1 row)\r\nTime: ")
	k.await("sql> ")
	k.press("\x1b[200~SELECT 4\r, 5;\r\x1b[201~", "4      5\r\n") // pasted
	k.await("sql> ")
	k.press("\x1b[A\x1b[A\r", "SELECT 3 AS c;\r\nc\r\n3\r\n(1 row)\r\nTime: ") // the one before the last
	k.await("sql> ")
	k.press("\\format\r", "\r\ntable\r\nsql> ")
	k.press("help\r", "list the tables and views")
	k.await("sql> ")
	k.press("SELECT\r", "  -> ")
	k.press("quit;\r", "error: Unrecognized name: quit [at 2:1]") // within a statement
	k.await("sql> ")
	k.press("\x04", "\r\n")
	k.ends(exitEqual)

	file := filepath.Join(dir, "tabletop", "sql_history")
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := "SELECT 1 AS a, 2 AS b;\nSELECT nosuch FROM users;\n\\timing\nSELECT 3 AS c;\nSELECT 4 , 5;\n"; !strings.HasPrefix(string(text), want) || info.Mode().Perm() != 0o600 {
		t.Errorf("the history has mode %v:\n%s\nwant\n%s", info.Mode(), text, want)
	}
	if err := os.WriteFile(file, []byte("SELECT 6 AS six;\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	k = startPrompt(t.Context(), t, dir, target)
	k.await("sql> ")
	k.press("\x1b[A\r", "six\r\n6\r\n(1 row)\r\nsql> ")
	k.press("Quit;\r", "\r\n")
	k.ends(exitEqual)

	blocked := filepath.Join(dir, "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	k = startPrompt(t.Context(), t, blocked, target) // no history can be stored there
	k.await("sql> ")
	k.press("SELECT 7 AS a;\r", "(1 row)\r\nsql> ")
	k.press("\x1b[A\r", "(1 row)\r\nsql> ")
	if err := k.keys.Close(); err != nil {
		t.Fatal(err)
	}
	k.ends(exitEqual)
}

// slowSQL answers no query before its end.
type slowSQL struct {
	btpb.UnimplementedBigtableServer
	began, ended chan struct{}
}

// PrepareQuery implements the service.
func (slowSQL) PrepareQuery(context.Context, *btpb.PrepareQueryRequest) (*btpb.PrepareQueryResponse, error) {
	return &btpb.PrepareQueryResponse{PreparedQuery: []byte("p")}, nil
}

// ExecuteQuery implements the service.
func (s slowSQL) ExecuteQuery(_ *btpb.ExecuteQueryRequest, stream btpb.Bigtable_ExecuteQueryServer) error {
	s.began <- struct{}{}
	<-stream.Context().Done()
	s.ended <- struct{}{}
	return stream.Context().Err()
}

// TestSQL_Cancel: Ctrl-C ends a running query, discards what was typed, and leaves the prompt. The end of the
// process ends both.
func TestSQL_Cancel(t *testing.T) {
	t.Parallel()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	slow := slowSQL{began: make(chan struct{}), ended: make(chan struct{})}
	srv := grpc.NewServer()
	btpb.RegisterBigtableServer(srv, slow)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(lis) }()
	t.Cleanup(func() {
		srv.Stop()
		<-served
	})
	ctx, cancel := context.WithCancel(t.Context())
	k := startPrompt(ctx, t, "", fmt.Sprintf("--target=%v", lis.Addr()))
	k.await("sql> ")
	for _, keys := range []string{"\x03", "SELECT 2;\r\x03"} {
		k.press("SELECT 1;\r", "SELECT 1;\r\n")
		<-slow.began
		k.press(keys, "canceled\r\nsql> ")
		<-slow.ended
	}
	k.press("SELECT 1;\r", "SELECT 1;\r\n")
	<-slow.began
	cancel()
	<-slow.ended
	k.await("interrupted")
	k.ends(exitEnvironment)
}
