package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/rogpeppe/go-internal/testscript"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tabletop-emu/tabletop/internal/test/memory"
	"github.com/tabletop-emu/tabletop/internal/test/race"
	"github.com/tabletop-emu/tabletop/internal/test/serveout"
)

// TestMain also lets the test binary act as `tabletop`, in scripts and for exec.Command.
func TestMain(m *testing.M) {
	if race.Enabled && os.Getenv(raceOptions) == "" {
		// The detector delays the exit of each of some two hundred programs by a second.
		_ = os.Setenv(raceOptions, "atexit_sleep_ms=10")
	}
	// Most tests here wait for other processes.
	if err := flag.Set("test.parallel", "8"); err != nil {
		log.Fatal(err)
	}
	memory.CollectSeldom() // a command with much data chooses its own pace
	testscript.Main(m, map[string]func(){"tabletop": main, "launcher": launcher})
}

// raceOptions is the variable with the race detector's options.
const raceOptions = "GORACE"

// TestScripts runs the scripts of testdata that start the program.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, scripts(t, false))
}

// TestScripts_Within runs the other scripts of testdata, within one process: the start of another one
// takes longer than most commands. Folder and environment are those of the process, so that it has no
// other tests, and the scripts run one after another.
func TestScripts_Within(t *testing.T) { //nolint:paralleltest // Alone makes it parallel
	memory.Alone(t, func(t *testing.T) { testscript.RunT(oneByOne{t}, scripts(t, true)) })
}

// oneByOne is a test whose scripts are not parallel.
type oneByOne struct{ *testing.T }

func (oneByOne) Parallel()     {}
func (oneByOne) Verbose() bool { return testing.Verbose() }

func (o oneByOne) Run(name string, script func(testscript.T)) {
	o.T.Run(name, func(t *testing.T) { script(oneByOne{t}) })
}

// scripts returns the scripts of testdata that use runs, or the others.
func scripts(t *testing.T, useRuns bool) testscript.Params {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refusing := grpc.NewServer()
	go func() { _ = refusing.Serve(l) }()
	t.Cleanup(refusing.Stop)
	params := testscript.Params{
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir) // Pebble and gRPC need nothing of the user's
			env.Setenv(raceOptions, os.Getenv(raceOptions))
			env.Setenv("REFUSING", l.Addr().String())
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": exits,
			"runs":  runs,
		},
		RequireExplicitExec: true,
	}
	all, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nruns ") == useRuns {
			params.Files = append(params.Files, name)
		}
	}
	return params
}

// exits runs a command and checks its exit code: exits CODE PROGRAM ARGS...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGS...")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if err != nil {
		code = -1
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			code = exit.ExitCode()
		}
	}
	if got := fmt.Sprint(code); got != args[0] {
		ts.Fatalf("%s exited %s (%v), want %s", strings.Join(args[1:], " "), got, err, args[0])
	}
}

// scriptVariables are the variables of a script that its commands may use.
var scriptVariables = []string{
	"HOME", "TMPDIR", "PATH", "CI", "TABLETOP_CONFIG", "TABLETOP_BIGTABLE", "TABLETOP_KEY", "TABLETOP_SOURCE",
	"TABLETOP_PROJET", "TABLETOP_OS", "TABLETOP_MAX_DIFFS", "TABLETOP_BINARY",
}

// runs runs tabletop within this process, in the folder of the script, and checks its exit code:
// runs CODE ARGS... Of the script's variables it has those of scriptVariables.
func runs(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: runs CODE ARGS...")
	}
	before := os.Environ()
	os.Clearenv()
	for _, name := range scriptVariables {
		if value := ts.Getenv(name); value != "" {
			ts.Check(os.Setenv(name, value))
		}
	}
	defer func() { // go test -cover writes to TMPDIR at the end, when the script's has gone
		os.Clearenv()
		for _, variable := range before {
			name, value, _ := strings.Cut(variable, "=")
			ts.Check(os.Setenv(name, value))
		}
	}()
	folder, err := os.Getwd()
	ts.Check(err)
	ts.Check(os.Chdir(ts.MkAbs(".")))
	defer func() { ts.Check(os.Chdir(folder)) }()
	p := &program{stdin: strings.NewReader(""), stdout: ts.Stdout(), stderr: ts.Stderr(), sleep: sleepLess}
	if got := fmt.Sprint(p.run(context.Background(), args[1:])); got != args[0] {
		ts.Fatalf("tabletop %s exited %s, want %s", strings.Join(args[1:], " "), got, args[0])
	}
}

// server is a process of `tabletop serve`, or of another verb that serves.
type server struct {
	cmd    *exec.Cmd         // nil within this process
	env    map[string]string // the lines to export
	ready  string            // the last line
	stderr *strings.Builder  // read it after the end
	out    io.ReadCloser
}

// quiet reports whether an ended server printed nothing on stderr, except that its stop takes a
// while on a busy machine.
func (s *server) quiet() bool {
	text := s.stderr.String()
	return text == "" || strings.HasPrefix(text, "tabletop: waiting for requests in flight") && strings.Count(text, "\n") == 1
}

// serve starts a server on free loopback ports and waits until it is ready.
func serve(t *testing.T, args ...string) *server {
	t.Helper()
	return started(t, append([]string{"serve"}, args...)...)
}

// serveHere is like serve, within this process, whose flags, requests and answers are the same. The
// start of another process takes longer than most tests of them. The server ends with the test.
func serveHere(t *testing.T, args ...string) *server {
	t.Helper()
	args = append([]string{"serve"}, args...)
	read, write := io.Pipe()
	var stderr printed
	beside(t, args, func(ctx context.Context) int {
		p := &program{stdin: strings.NewReader(""), stdout: write, stderr: &stderr}
		code := p.run(ctx, args)
		_ = write.Close()
		if code != exitEqual {
			t.Log(stderr.String())
		}
		return code
	})
	out, err := serveout.Read(read)
	go func() { _, _ = io.Copy(io.Discard, read) }()
	if err != nil {
		t.Fatal(err)
	}
	return &server{env: out.Exports, ready: out.Ready}
}

// beside runs a command of the given words within this process until the end of the test, and then checks
// that it exits with 0.
func beside(t *testing.T, words []string, run func(ctx context.Context) int) {
	t.Helper()
	ended := make(chan int, 1)
	go func() { ended <- run(t.Context()) }()
	t.Cleanup(func() { // the context has just ended
		if code := <-ended; code != exitEqual {
			t.Errorf("%q exits %d", words, code)
		}
	})
}

// started starts a program that serves, and waits until it is ready.
func started(t *testing.T, args ...string) *server {
	t.Helper()
	s := &server{stderr: &strings.Builder{}}
	s.cmd = exec.CommandContext(t.Context(), "tabletop", args...)
	s.cmd.Stderr = s.stderr
	s.begin(t)
	return s
}

// begin starts the command and waits until it is ready.
func (s *server) begin(t *testing.T) {
	t.Helper()
	var err error
	if s.out, err = s.cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	s.launch(t)
	out, err := serveout.Read(s.out)
	if err != nil {
		_ = s.cmd.Wait()
		t.Fatalf("%v: %v\n%s", err, s.cmd.ProcessState, s.stderr)
	}
	s.env, s.ready = out.Exports, out.Ready
}

// launch starts the command, and kills it at the end of the test.
func (s *server) launch(t *testing.T) {
	t.Helper()
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	})
}

// end sends sig, and returns the exit code.
func (s *server) end(t *testing.T, sig os.Signal) int {
	t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	_ = s.cmd.Wait() // the exit code is checked
	return s.cmd.ProcessState.ExitCode()
}

func (s *server) dial(t *testing.T) *grpc.ClientConn {
	t.Helper()
	conn, err := dialBigtable(s.env["BIGTABLE_EMULATOR_HOST"], "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn.ClientConn
}

const parent = "projects/tabletop/instances/tabletop"

func createTable(t *testing.T, conn grpc.ClientConnInterface, table string) {
	t.Helper()
	_, err := btapb.NewBigtableTableAdminClient(conn).CreateTable(t.Context(), &btapb.CreateTableRequest{
		Parent: parent, TableId: table,
		Table: &btapb.Table{ColumnFamilies: map[string]*btapb.ColumnFamily{"f": {}}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func mutate(ctx context.Context, conn grpc.ClientConnInterface, table, row string) error {
	_, err := btpb.NewBigtableClient(conn).MutateRow(ctx, &btpb.MutateRowRequest{
		TableName: parent + "/tables/" + table, RowKey: []byte(row),
		Mutations: []*btpb.Mutation{{Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{
			FamilyName: "f", ColumnQualifier: []byte("q"), TimestampMicros: 1000, Value: []byte(row),
		}}}},
	})
	return err
}

// rows returns the keys of a table's rows with the value of mutate.
func rows(t *testing.T, conn grpc.ClientConnInterface, table string) map[string]bool {
	t.Helper()
	stream, err := btpb.NewBigtableClient(conn).ReadRows(t.Context(), &btpb.ReadRowsRequest{TableName: parent + "/tables/" + table})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range resp.GetChunks() {
			if key := string(c.GetRowKey()); key == string(c.GetValue()) {
				got[key] = true
			}
		}
	}
}

// TestServe_Stop: SIGTERM and Ctrl-C stop the server cleanly, and a folder keeps the data.
func TestServe_Stop(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i, sig := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		s := serve(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "127.0.0.1:0", "--data", dir, "--grace", "24h")
		conn := s.dial(t)
		if i == 0 {
			createTable(t, conn, "t")
			if err := mutate(t.Context(), conn, "t", "row"); err != nil {
				t.Fatal(err)
			}
		}
		if got := rows(t, conn, "t"); len(got) != 1 {
			t.Errorf("rows %v", got)
		}
		if code := s.end(t, sig); code != 0 {
			t.Errorf("exit code %d after %v\n%s", code, sig, s.stderr)
		}
		if !s.quiet() {
			t.Errorf("a clean run says on stderr:\n%s", s.stderr)
		}
	}
}

// TestServe_Target: the DynamoDB endpoint works over the Bigtable of another process.
func TestServe_Target(t *testing.T) {
	t.Parallel()
	behind := serve(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "off", "--gc-interval", "10ms")
	front := serve(t, "--target", behind.env["BIGTABLE_EMULATOR_HOST"], "--dynamodb", "127.0.0.1:0", "--project", "p", "--instance", "i")
	if got, want := front.env["BIGTABLE_EMULATOR_HOST"], behind.env["BIGTABLE_EMULATOR_HOST"]; got != want {
		t.Errorf("BIGTABLE_EMULATOR_HOST is %q, want the target %q", got, want)
	}
	if front.env["AWS_ENDPOINT_URL_DYNAMODB"] == "" || front.env["AWS_REGION"] == "" || front.env["AWS_DEFAULT_REGION"] == "" {
		t.Errorf("exports %v", front.env)
	}
	if got, want := front.env["AWS_ENDPOINT_URL_DYNAMODB_STREAMS"], front.env["AWS_ENDPOINT_URL_DYNAMODB"]; got != want {
		t.Errorf("clients of streams are sent to %q, want %q", got, want)
	}
	tables, err := btapb.NewBigtableTableAdminClient(front.dial(t)).ListTables(t.Context(), &btapb.ListTablesRequest{Parent: "projects/p/instances/i"})
	if err != nil {
		t.Fatal(err)
	}
	if len(tables.GetTables()) == 0 {
		t.Error("the facade keeps no catalog at the target")
	}
	for _, s := range []*server{front, behind} {
		if code := s.end(t, syscall.SIGTERM); code != 0 {
			t.Errorf("exit code %d\n%s", code, s.stderr)
		}
	}
}

// TestServe_PortFile: the complete file exists when the server is ready, and is deleted when it
// stops.
func TestServe_PortFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "ports.json")
	if err := os.WriteFile(file, []byte("of another time"), 0o600); err != nil {
		t.Fatal(err)
	}
	behind := serve(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "off")
	bigtable := behind.env["BIGTABLE_EMULATOR_HOST"]
	for _, tc := range []struct {
		name             string
		args             []string
		bigtable, dynamo bool
	}{
		{"both", []string{"--bigtable", "127.0.0.1:0", "--dynamodb", "127.0.0.1:0"}, true, true},
		{"Bigtable", []string{"--bigtable", "127.0.0.1:0", "--dynamodb", "off"}, true, false},
		{"DynamoDB", []string{"--bigtable", "off", "--dynamodb", "127.0.0.1:0"}, false, true},
		{"target", []string{"--target", bigtable, "--dynamodb", "127.0.0.1:0"}, true, true},
	} {
		s := serve(t, append(tc.args, "--port-file", file)...)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]any{"bigtable": nil, "dynamodb": nil}
		if tc.bigtable {
			want["bigtable"] = s.env["BIGTABLE_EMULATOR_HOST"]
		}
		if tc.dynamo {
			want["dynamodb"] = s.env["AWS_ENDPOINT_URL_DYNAMODB"]
		}
		// Its members are in documented order, for clients that match it with a pattern.
		exact, err := json.Marshal(want) // sorts by name
		if err != nil || string(text) != string(exact)+"\n" {
			t.Errorf("%s: the file is %s, want %s", tc.name, text, exact)
		}
		if code := s.end(t, syscall.SIGTERM); code != 0 {
			t.Errorf("%s: exit code %d\n%s", tc.name, code, s.stderr)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: %v left behind, %v", tc.name, left, err)
		}
	}
	// The first server does not delete the file of its successor.
	args := []string{"--bigtable", "127.0.0.1:0", "--dynamodb", "off", "--port-file", file}
	first, second := serve(t, args...), serve(t, args...)
	first.end(t, syscall.SIGTERM)
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), second.env["BIGTABLE_EMULATOR_HOST"]) {
		t.Errorf("the file of the second server is %q, %v", text, err)
	}
}

// TestServe_UntilStdinCloses: the server stops cleanly when its standard input closes.
func TestServe_UntilStdinCloses(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ports.json")
	s := &server{stderr: &strings.Builder{}}
	s.cmd = exec.CommandContext(t.Context(), "tabletop", "serve", "--bigtable", "127.0.0.1:0", "--dynamodb", "off", "--port-file", file, "--until-stdin-closes")
	s.cmd.Stdin, s.cmd.Stderr = read, s.stderr
	s.begin(t)
	if err := errors.Join(read.Close(), write.Close()); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil || !s.quiet() {
		t.Errorf("the server ended with %v, and says:\n%s", err, s.stderr)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the port file: %v", err)
	}
}

// TestServe_NoFolder: the error of a file in a missing folder has the given name and advice.
func TestServe_NoFolder(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--port-file", "--console-token-file"} {
		name := filepath.Join(t.TempDir(), "none", "file.json")
		out, err := exec.CommandContext(t.Context(), "tabletop", "serve", "--bigtable", "off", "--dynamodb", "127.0.0.1:0", "--console", "127.0.0.1:0", flag, name).CombinedOutput()
		exited, ok := errors.AsType[*exec.ExitError](err)
		want := flag + ": " + name + " cannot be written: folder " + filepath.Dir(name) + " does not exist"
		if !ok || exited.ExitCode() != 3 || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v\n%s", flag, err, out)
		}
	}
}

// TestServe_GC: background and eager remove a surplus version, manual does not.
func TestServe_GC(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--gc", "background", "--gc-interval", "1ms"}, {"--gc", "eager"}, {"--gc", "manual"}} {
		s := serveHere(t, append(args, "--bigtable", "127.0.0.1:0", "--dynamodb", "off")...)
		conn := s.dial(t)
		_, err := btapb.NewBigtableTableAdminClient(conn).CreateTable(t.Context(), &btapb.CreateTableRequest{
			Parent: parent, TableId: "t",
			Table: &btapb.Table{ColumnFamilies: map[string]*btapb.ColumnFamily{"f": {GcRule: &btapb.GcRule{
				Rule: &btapb.GcRule_MaxAge{MaxAge: durationpb.New(time.Hour)},
			}}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := mutate(t.Context(), conn, "t", "row"); err != nil { // a cell of 1970
			t.Fatal(err)
		}
		switch want := map[string]int{"manual": 1, "eager": 0}; args[1] {
		case "manual", "eager":
			if got := rows(t, conn, "t"); len(got) != want[args[1]] {
				t.Errorf("%s: rows %v", args[1], got)
			}
			continue
		}
		for len(rows(t, conn, "t")) > 0 { // bounded by the test's deadline
			runtime.Gosched()
		}
	}
}

// TestServe_TTL: an expired item is deleted without a request, and logged.
func TestServe_TTL(t *testing.T) {
	t.Parallel()
	s := serve(t, "--bigtable", "off", "--dynamodb", "127.0.0.1:0", "--ttl-interval", "1ms")
	dynamoDB(t, s, "CreateTable", `{"TableName":"items","BillingMode":"PAY_PER_REQUEST",
		"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}]}`)
	dynamoDB(t, s, "UpdateTimeToLive", `{"TableName":"items","TimeToLiveSpecification":{"AttributeName":"expires","Enabled":true}}`)
	now := time.Now().Unix()
	dynamoDB(t, s, "PutItem", fmt.Sprintf(`{"TableName":"items","Item":{"pk":{"S":"old"},"expires":{"N":"%d"}}}`, now-60))
	dynamoDB(t, s, "PutItem", fmt.Sprintf(`{"TableName":"items","Item":{"pk":{"S":"young"},"expires":{"N":"%d"}}}`, now+3600))
	for {
		got := dynamoDB(t, s, "Scan", `{"TableName":"items"}`)
		if !strings.Contains(got, "young") {
			t.Fatalf("the unexpired item was deleted: %s", got)
		}
		if !strings.Contains(got, "old") { // bounded by the test's deadline
			break
		}
	}
	if code := s.end(t, syscall.SIGTERM); code != 0 || !strings.HasSuffix(s.stderr.String(), "deleted expired items\" items=1\n") {
		t.Errorf("exit code %d\n%s", code, s.stderr)
	}
}

// TestServe_Limits: a row key that is too long for Bigtable is rejected, unless the limits are off.
func TestServe_Limits(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]codes.Code{"strict": codes.InvalidArgument, "off": codes.OK} {
		s := serveHere(t, "--limits", value, "--bigtable", "127.0.0.1:0", "--dynamodb", "off")
		conn := s.dial(t)
		createTable(t, conn, "t")
		if err := mutate(t.Context(), conn, "t", strings.Repeat("k", 5000)); status.Code(err) != want {
			t.Errorf("--limits %s: %v, want %v", value, err, want)
		}
	}
}

// TestServe_Headers: headers that are too long for DynamoDB are rejected.
func TestServe_Headers(t *testing.T) {
	t.Parallel()
	s := serveHere(t, "--bigtable", "off", "--dynamodb", "127.0.0.1:0")
	for size, want := range map[int]int{15 << 10: http.StatusOK, 20 << 10: http.StatusRequestHeaderFieldsTooLarge} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.env["AWS_ENDPOINT_URL_DYNAMODB"], nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Long", strings.Repeat("a", size))
		request.Close = true
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("a header of %d bytes: %s, want %d", size, answer.Status, want)
		}
	}
}

// TestServe_Warnings: an endpoint open to other machines causes a warning; a disabled one is
// not announced.
func TestServe_Warnings(t *testing.T) {
	t.Parallel()
	s := serve(t, "--bigtable", "0.0.0.0:0", "--dynamodb", "off", "--public")
	if host, _, err := net.SplitHostPort(s.env["BIGTABLE_EMULATOR_HOST"]); err != nil || host != "127.0.0.1" {
		t.Errorf("clients are sent to %q", s.env["BIGTABLE_EMULATOR_HOST"])
	}
	if len(s.env) != 1 {
		t.Errorf("exports %v, want the Bigtable endpoint's alone", s.env)
	}
	if code := s.end(t, syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if got := s.stderr.String(); !strings.Contains(got, "--bigtable") || !strings.Contains(got, "other machines") {
		t.Errorf("stderr %q does not warn", got)
	}
}

// TestServe_PortInUse: a port in use is a fault of the environment. The error has advice and, on
// Linux, names the process.
func TestServe_PortInUse(t *testing.T) {
	t.Parallel()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lis.Close() }()
	for _, flag := range []string{"--bigtable", "--dynamodb"} {
		args := []string{"serve", "--bigtable", "127.0.0.1:0", "--dynamodb", "127.0.0.1:0", flag, lis.Addr().String()}
		out, err := exec.CommandContext(t.Context(), "tabletop", args...).CombinedOutput()
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != exitEnvironment {
			t.Errorf("%s: %v, want exit code %d", flag, err, exitEnvironment)
		}
		if runtime.GOOS == "linux" && !strings.Contains(string(out), fmt.Sprintf(": stop process %d (", os.Getpid())) {
			t.Errorf("%s: %s does not name process %d", flag, out, os.Getpid())
		}
		if !strings.Contains(string(out), lis.Addr().String()) || !strings.Contains(string(out), flag+"=127.0.0.1:0 selects a free one\n") {
			t.Errorf("%s: %s", flag, out)
		}
	}
}
