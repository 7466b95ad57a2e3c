package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/serveout"
)

// ctl runs a verb against a server.
func ctl(t *testing.T, s *server, want int, args ...string) string {
	t.Helper()
	out, code := tabletop(t, append([]string{"ctl", "--console-url", s.env["TABLETOP_CONSOLE_URL"], "--console-token", s.env["TABLETOP_CONSOLE_TOKEN"]}, args...)...)
	if code != want {
		t.Fatalf("ctl %q exits %d: %s", args, code, out)
	}
	return out
}

// TestConsole: a fault injected by ctl hits the endpoint's clients, which retry, and is counted.
// Files with the token are private to the owner, and deleted with the server.
func TestConsole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	portFile, tokenFile := filepath.Join(dir, "ports.json"), filepath.Join(dir, "token")
	s := serve(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "127.0.0.1:0", "--console", "127.0.0.1:0", "--port-file", portFile, "--console-token-file", tokenFile)
	for _, file := range []string{portFile, tokenFile} {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
	var found ports
	text, err := os.ReadFile(portFile)
	if err == nil {
		err = json.Unmarshal(text, &found)
	}
	if token, readErr := os.ReadFile(tokenFile); err != nil || readErr != nil || found.Console != s.env["TABLETOP_CONSOLE_URL"] || found.Token != strings.TrimSpace(string(token)) {
		t.Errorf("%s: %v, %v", text, err, readErr)
	}
	if !regexp.MustCompile(`^[A-Z0-9]+$`).MatchString(found.Token) {
		t.Errorf("the token %q may not stand after --console-token", found.Token)
	}
	conn := s.dial(t)
	createTable(t, conn, "t")
	ctl(t, s, exitEqual, "fault", `{"endpoint":"bigtable","method":"MutateRow","effect":"fail","code":"UNAVAILABLE","times":2}`)
	write := &btpb.MutateRowRequest{TableName: parent + "/tables/t", RowKey: []byte("k"), Mutations: []*btpb.Mutation{
		{Mutation: &btpb.Mutation_DeleteFromRow_{DeleteFromRow: &btpb.Mutation_DeleteFromRow{}}},
	}}
	for i, want := range []codes.Code{codes.Unavailable, codes.Unavailable, codes.OK} {
		if _, err := btpb.NewBigtableClient(conn).MutateRow(t.Context(), write); status.Code(err) != want {
			t.Errorf("attempt %d: %v, want %v", i, err, want)
		}
	}
	if out := ctl(t, s, exitEqual, "faults"); !strings.Contains(out, `"hits": 2`) {
		t.Error(out)
	}
	if out := ctl(t, s, exitBadInput, "restore", "none"); !strings.Contains(out, `no snapshot "none": "tabletop ctl snapshots" lists them, "tabletop ctl snapshot NAME" takes one`) {
		t.Error(out)
	}
	if out := ctl(t, s, exitBadInput, "snapshot"); !strings.Contains(out, "ctl snapshot takes NAME") {
		t.Error(out)
	}
	ctl(t, s, exitBadInput, "explode")
	if code := s.end(t, syscall.SIGTERM); code != exitEqual || s.stderr.Len() > 0 {
		t.Errorf("the server ends with %d: %s", code, s.stderr)
	}
	for _, file := range []string{portFile, tokenFile} {
		if _, err := os.Stat(file); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", file, err)
		}
	}
}

// TestConsole_DynamoDBFaults: faults hit the clients of the DynamoDB endpoint, and its requests are recorded.
func TestConsole_DynamoDBFaults(t *testing.T) {
	t.Parallel()
	s := serveHere(t, "--bigtable", "off", "--dynamodb", "127.0.0.1:0", "--console", "127.0.0.1:0", "--auth", "none")
	ctl(t, s, exitEqual, "fault", `{"endpoint":"dynamodb","method":"ListTables","effect":"fail","code":"Throttling","times":1}`)
	ctl(t, s, exitEqual, "fault", `{"endpoint":"dynamodb","method":"DescribeLimits","effect":"fail","code":"Throttling"}`)
	for _, want := range []string{"ThrottlingException", `{"TableNames":[]}`} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.env["AWS_ENDPOINT_URL_DYNAMODB"], strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-amz-json-1.0")
		r.Header.Set("X-Amz-Target", "DynamoDB_20120810.ListTables")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || !strings.Contains(string(body), want) {
			t.Errorf("%s %s, %v; want %s", resp.Status, body, err, want)
		}
	}
	if out := ctl(t, s, exitEqual, "requests"); strings.Count(out, `"operation": "ListTables"`) != 2 {
		t.Error(out)
	}
}

// TestConsole_WeakToken: a guessable token causes a warning if it restricts access.
func TestConsole_WeakToken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for token, want := range map[string]string{
		"abc":              "tabletop: warning: the token of --token-file has 3 characters, and can be guessed: use at least 16\n",
		"0123456789abcdef": "",
	} {
		s := serve(t, "--bigtable", "off", "--dynamodb", "127.0.0.1:0", "--console=127.0.0.1:0", "--token-file", writeFile(t, dir, token, token))
		if code := s.end(t, syscall.SIGTERM); code != exitEqual || s.stderr.String() != want {
			t.Errorf("%s: it ends with %d: %s", token, code, s.stderr)
		}
	}
}

// TestConsole_Lead: a moved clock keeps its lead after the server was killed, even without the
// console: a backup stays READY.
func TestConsole_Lead(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	args := []string{"--bigtable", "127.0.0.1:0", "--dynamodb", "off", "--data", data}
	s := serve(t, append(args, "--console", "127.0.0.1:0")...)
	ctl(t, s, exitEqual, "advance", "240h")
	conn := s.dial(t)
	createTable(t, conn, "t")
	const cluster = parent + "/clusters/tabletop"
	admin := btapb.NewBigtableTableAdminClient(conn)
	if _, err := admin.CreateBackup(t.Context(), &btapb.CreateBackupRequest{Parent: cluster, BackupId: "b", Backup: &btapb.Backup{
		SourceTable: parent + "/tables/t", ExpireTime: timestamppb.New(clock.New().Now().Add(15 * 24 * time.Hour)),
	}}); err != nil {
		t.Fatal(err)
	}
	s.end(t, syscall.SIGKILL)
	s = serve(t, args...)
	got, err := btapb.NewBigtableTableAdminClient(s.dial(t)).GetBackup(t.Context(), &btapb.GetBackupRequest{Name: cluster + "/backups/b"})
	if err != nil || got.GetState() != btapb.Backup_READY {
		t.Errorf("after a restart: %v, %v", got, err)
	}
	if code := s.end(t, syscall.SIGTERM); code != exitEqual {
		t.Errorf("it ends with %d: %s", code, s.stderr)
	}
	if err := os.WriteFile(filepath.Join(data, leadFile), []byte("soon"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, code := tabletop(t, append([]string{"serve"}, args...)...)
	if code != exitBadInput || !strings.Contains(out, `"soon" is not the lead of a clock; expected a duration such as 25h0m0s`) {
		t.Errorf("it exits %d: %s", code, out)
	}
}

// TestServe_Refused: the error of an invalid flag names it and the expectation; so does that of
// an open endpoint without a token.
func TestServe_Refused(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"--console 0.0.0.0:0":                                              "--console 0.0.0.0:0 can be reached from other machines",
		"--console 0.0.0.0:0 --public":                                     "--token-file",
		"--bigtable off --console 127.0.0.1:0 --target 127.0.0.1:1":        "--console and --target cannot be combined",
		"--fixtures x":                                                     "--console-token-file and --fixtures need --console",
		"--cors localhost":                                                 "must be an origin",
		"--like dynalite":                                                  "dynamodb-local",
		"--allow-host http://desk.example":                                 `--allow-host: "http://desk.example" must be a host name`,
		"--allow-host *":                                                   `--allow-host: "*" must be a host name`,
		"--bigtable 127.0.0.1:0 --kinesis-dir " + file:                     "--kinesis-dir: mkdir",
		"--bigtable 127.0.0.1:0 --kinesis-endpoint x":                      `--kinesis-endpoint: "x" is not a URL`,
		"--bigtable 127.0.0.1:0 --stream-retention=-1h":                    "--stream-retention: -1h0m0s, want 0 or more",
		"--bigtable 127.0.0.1:0 --stream-retention 0":                      "--stream-retention: must be greater than 0s",
		"--bigtable 127.0.0.1:0 --stream-shard-rotation 0s":                "--stream-shard-rotation: must be greater than 0s",
		"--bigtable 127.0.0.1:0 --stream-shard-rotation 1us":               "--stream-shard-rotation: 1µs, want whole milliseconds",
		"--bigtable 127.0.0.1:0 --stream-shards 2,3":                       "--stream-shards: [2 3], want numbers",
		"--bigtable 127.0.0.1:0 --stream-shards 2,3 --console 127.0.0.1:0": "--stream-shards: [2 3], want numbers",
		"--bigtable 127.0.0.1:0 --buckets " + file:                         "--buckets: open",
		"--throttle=off":                                                   `--throttle: "off" must be`,
	} {
		out, code := tabletop(t, append([]string{"serve", "--dynamodb", "127.0.0.1:0"}, strings.Fields(args)...)...)
		if code != exitBadInput || !strings.Contains(out, want) {
			t.Errorf("serve %s exits %d: %s", args, code, out)
		}
	}
}

// TestEndpoints_WebPages: requests of web pages of another origin, or to another host name, do
// not reach the endpoint; those of this machine do.
func TestEndpoints_WebPages(t *testing.T) {
	t.Parallel()
	ask := func(s *server, method, host, origin string) (status int, allowed, text string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, s.env["AWS_ENDPOINT_URL_DYNAMODB"], http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if host != "" {
			r.Host = host
		}
		if origin != "" {
			r.Header.Set("Origin", origin)
			r.Header.Set("Access-Control-Request-Method", "POST")
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, resp.Header.Get("Access-Control-Allow-Origin"), string(body)
	}
	plain := serveHere(t, "--bigtable", "off", "--dynamodb", "127.0.0.1:0")
	open := serveHere(t, "--bigtable", "off", "--dynamodb", "127.0.0.1:0", "--cors", "*", "--allow-host", "Desk.example")
	one := serveHere(t, "--bigtable", "off", "--dynamodb", "127.0.0.1:0", "--cors", "http://app.example:3000", "--like", "dynamodb-local")
	for _, c := range []struct {
		s                    *server
		method, host, origin string
		status               int
		allowed              bool // by CORS
	}{
		{plain, "GET", "", "", 200, false},
		{plain, "GET", "localhost", "", 200, false},
		{plain, "GET", "evil.example", "", 403, false},
		{plain, "GET", "localhost.evil.example", "", 403, false},
		{plain, "OPTIONS", "", "http://evil.example", 403, false},
		{plain, "OPTIONS", "", "null", 403, false},
		{plain, "OPTIONS", "", "http://localhost:5173", 200, true},
		{plain, "OPTIONS", "", "http://[::1]:5173", 200, true},
		{plain, "POST", "", "http://evil.example", 403, false},
		{open, "OPTIONS", "", "http://evil.example", 200, true},
		{open, "GET", "desk.example:8000", "", 200, false},
		{open, "GET", "evil.example", "", 403, false},
		{one, "OPTIONS", "", "http://app.example:3000", 200, true},
		{one, "OPTIONS", "", "http://localhost:5173", 403, false},
		{one, "GET", "", "", 400, false}, // tools wait for this
	} {
		status, allowed, text := ask(c.s, c.method, c.host, c.origin)
		if status != c.status || (allowed != "") != c.allowed {
			t.Errorf("%s of host %q, origin %q: %d %q %s", c.method, c.host, c.origin, status, allowed, text)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, one.env["AWS_ENDPOINT_URL_DYNAMODB"], http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if !resp.Close {
		t.Error("a tool that waits for 400 and leaves the body unread would not end: the connection stays")
	}
}

// TestConsole_Hint: a server without a console prints how to get one, except if it already has
// one or cannot have it.
func TestConsole_Hint(t *testing.T) {
	t.Parallel()
	const hint = "# --console adds"
	printed := func(args ...string) string {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		cmd := exec.CommandContext(ctx, "tabletop", append([]string{"serve", "--bigtable=127.0.0.1:0", "--dynamodb=127.0.0.1:0"}, args...)...)
		stdout, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = cmd.Wait() }()
		defer cancel()
		out, err := serveout.Read(stdout)
		if err != nil {
			t.Error(err)
		}
		return out.Text
	}
	if out := printed(); strings.Count(out, hint) != 1 {
		t.Errorf("without a console it prints\n%s", out)
	}
	if out := printed("--console"); strings.Contains(out, hint) || !strings.Contains(out, "# Console: http://") {
		t.Errorf("with one it prints\n%s", out)
	}
}
