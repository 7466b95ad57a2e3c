package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// seedFolder returns a folder with a table of two items and a stream.
func seedFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"table.json": `{"TableName":"orders","BillingMode":"PROVISIONED","ProvisionedThroughput":{"ReadCapacityUnits":1,"WriteCapacityUnits":1},
			"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}],
			"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"KEYS_ONLY"}}`,
		"orders.jsonl": `{"pk":{"S":"a"},"total":{"N":"1"}}` + "\n" + `{"pk":{"S":"b"}}` + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// keys returns the sorted keys of the items in orders.
func keys(t *testing.T, s *server) string {
	t.Helper()
	var page struct {
		Items []struct{ PK struct{ S string } }
	}
	if err := json.Unmarshal([]byte(strings.ReplaceAll(dynamoDB(t, s, "Scan", `{"TableName":"orders"}`), `"pk"`, `"PK"`)), &page); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, item := range page.Items {
		out = append(out, item.PK.S)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// stopped stops a server, and returns the rest of its output. The stop must succeed.
func stopped(t *testing.T, s *server) string {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(s.out) // a closed pipe ends it too
	_ = s.cmd.Wait()             // the exit code is checked
	if code := s.cmd.ProcessState.ExitCode(); code != exitEqual || !s.quiet() {
		t.Fatalf("exit code %d\n%s", code, s.stderr)
	}
	return string(rest)
}

// TestServe_Seed: the items exist when the server is ready, with any flags, and a reset brings
// them back.
func TestServe_Seed(t *testing.T) {
	t.Parallel()
	s := serveHere(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "127.0.0.1:0", "--console", "127.0.0.1:0", "--seed", seedFolder(t),
		"--table-delay", "1h", "--throttle", "--index-lag", "1h")
	if got := keys(t, s); got != "a b" {
		t.Fatalf("items %q, want a b", got)
	}
	for range 2 {
		ctl(t, s, 0, "put", "orders", `{"pk":{"S":"c"}}`)
		ctl(t, s, 0, "reset")
		if got := keys(t, s); got != "a b" {
			t.Fatalf("items %q after a reset, want a b", got)
		}
	}
	over := serveHere(t, "--target", s.env["BIGTABLE_EMULATOR_HOST"], "--instance", "other", "--dynamodb", "127.0.0.1:0", "--seed", seedFolder(t))
	if got := keys(t, over); got != "a b" {
		t.Errorf("items %q over another Bigtable, want a b", got)
	}
}

// TestServe_SeedAgain: with --data, a restart leaves the table as it was.
func TestServe_SeedAgain(t *testing.T) {
	t.Parallel()
	args := []string{"--bigtable", "off", "--dynamodb", "127.0.0.1:0", "--data", filepath.Join(t.TempDir(), "store"), "--seed", seedFolder(t)}
	s := serve(t, args...)
	dynamoDB(t, s, "DeleteItem", `{"TableName":"orders","Key":{"pk":{"S":"a"}}}`)
	stopped(t, s)
	s = serve(t, args...)
	if got := keys(t, s); got != "b" {
		t.Errorf("items %q after a restart, want b", got)
	}
	stopped(t, s)
}

// TestServe_SeedOfStore: a store is not a seed, and the error says how to begin with its data.
func TestServe_SeedOfStore(t *testing.T) {
	t.Parallel()
	store := filepath.Join(t.TempDir(), "store")
	stopped(t, serve(t, "--bigtable", "off", "--dynamodb", "127.0.0.1:0", "--data", store))
	l := launch(t, t.TempDir(), "TABLETOP_SEED="+store)
	if _, err := io.Copy(io.Discard, l.out); err != nil {
		t.Fatal(err)
	}
	_ = l.cmd.Wait() // its words are checked
	if want := "tabletop: --seed: " + store + ": the folder is the store of a server, not a seed: "; !strings.HasPrefix(l.stderr.String(), want) {
		t.Errorf("the server printed %q, want %q at its beginning", l.stderr, want)
	}
}

// TestServe_ExportOnExit: an export is the seed of the next start, and a killed server leaves
// none.
func TestServe_ExportOnExit(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	args := []string{"--bigtable", "off", "--dynamodb", "127.0.0.1:0", "--export-on-exit", out, "--seed"}
	killed := serve(t, append(args, seedFolder(t))...)
	killed.end(t, syscall.SIGKILL)
	if _, err := os.Stat(out); !os.IsNotExist(err) {
		t.Fatalf("a killed server left %s (%v)", out, err)
	}

	s := serve(t, append(args, out, "--seed", seedFolder(t))...) // the export may not exist yet
	dynamoDB(t, s, "PutItem", `{"TableName":"orders","Item":{"pk":{"S":"c"}}}`)
	if rest := stopped(t, s); rest != "# exported 1 table to "+out+"\n" {
		t.Errorf("the stop printed %q", rest)
	}
	s = serve(t, append(args, out)...)
	if got := keys(t, s); got != "a b c" {
		t.Errorf("items %q of the export, want a b c", got)
	}
	if table := dynamoDB(t, s, "DescribeTable", `{"TableName":"orders"}`); !strings.Contains(table, `"StreamViewType":"KEYS_ONLY"`) || !strings.Contains(table, `"WriteCapacityUnits":1`) {
		t.Errorf("table %s", table)
	}
	dynamoDB(t, s, "DeleteTable", `{"TableName":"orders"}`)
	stopped(t, s)
	s = serve(t, append(args, out)...) // an export without tables
	if got := dynamoDB(t, s, "ListTables", `{}`); got != `{"TableNames":[]}` {
		t.Errorf("tables %s", got)
	}

	if err := os.RemoveAll(out); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(out, nil, 0o644); err != nil { // in the way of the export
		t.Fatal(err)
	}
	if code := s.end(t, syscall.SIGTERM); code != exitEnvironment || !strings.Contains(s.stderr.String(), "tabletop: --export-on-exit: ") {
		t.Errorf("exit code %d\n%s", code, s.stderr)
	}
}
