package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/smithy-go/logging"

	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/long"
)

// liveTables are a server with live DynamoDB tables, and one into which they are loaded.
type liveTables struct {
	t              *testing.T
	dir            string
	source, target *server
}

// newLiveTables starts both servers.
func newLiveTables(t *testing.T) *liveTables {
	t.Helper()
	return &liveTables{
		t: t, dir: t.TempDir(),
		source: serveHere(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "127.0.0.1:0", "--console", "127.0.0.1:0"),
		target: serveHere(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "off"),
	}
}

// ctl runs a verb on the source.
func (l *liveTables) ctl(args ...string) {
	l.t.Helper()
	ctl(l.t, l.source, exitEqual, args...)
}

// create creates a table with a stream of a view; without a stream if the view is empty.
func (l *liveTables) create(table, view string) {
	l.t.Helper()
	stream := ""
	if view != "" {
		stream = `,"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"` + view + `"}`
	}
	l.ctl("query", "CreateTable", `{"TableName":"`+table+`","BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}]`+stream+`}`)
}

// item is an item as JSON.
func item(id string, n int) string { return fmt.Sprintf(`{"id":{"S":%q},"n":{"N":"%d"}}`, id, n) }

// load loads items into the target.
func (l *liveTables) load(table string, items ...string) {
	l.t.Helper()
	file := writeFile(l.t, l.dir, table+".jsonl", strings.Join(items, "\n")+"\n")
	if out, code := tabletop(l.t, "migrate", "load", file, "--key", "id", "--table", table, "--target", l.address()); code != exitEqual {
		l.t.Fatalf("exit code %d: %s", code, out)
	}
}

// address is that of the target.
func (l *liveTables) address() string { return l.target.env["BIGTABLE_EMULATOR_HOST"] }

// followArgs returns the command that follows a table. The clock of the source is two minutes ahead,
// and the items were read in between.
func (l *liveTables) followArgs(table string, more ...string) []string {
	return append([]string{
		"migrate", "follow", table, "--dynamodb-endpoint", l.source.env["AWS_ENDPOINT_URL_DYNAMODB"],
		"--target", l.address(), "--since", clock.New().Now().Add(90 * time.Second).Format(time.RFC3339),
	}, more...)
}

// ready creates, loads and returns a table Things that can be followed.
func (l *liveTables) ready() {
	l.t.Helper()
	l.create("Things", "NEW_AND_OLD_IMAGES")
	l.ctl("put", "Things", item("a", 1))
	l.load("Things", item("a", 1))
	l.ctl("advance", "2m")
}

// begin begins the migration of Things. No endpoint uses the target, so none needs the time to notice.
func (l *liveTables) begin() {
	l.t.Helper()
	if out, code := tabletopInHurry(l.t, l.followArgs("Things", "--until", "tip")...); code != exitEqual {
		l.t.Fatalf("exit code %d: %s", code, out)
	}
}

// follow follows Things in the background, until the follower has caught up.
func (l *liveTables) follow() *server {
	l.t.Helper()
	s := &server{stderr: &strings.Builder{}, cmd: exec.CommandContext(l.t.Context(), "tabletop", l.followArgs("Things")...)}
	s.cmd.Stderr = s.stderr
	s.launch(l.t)
	if out, code := tabletop(l.t, "migrate", "status", "Things", "--wait", "phase=FOLLOWING", "--target", l.address()); code != exitEqual {
		l.t.Fatalf("exit code %d: %s", code, out)
	}
	return s
}

// holds checks the rows of Things against items.
func (l *liveTables) holds(items ...string) {
	l.t.Helper()
	file := writeFile(l.t, l.dir, "want.jsonl", strings.Join(items, "\n")+"\n")
	out, code := tabletop(l.t, "migrate", "verify", file, "--key", "id", "--table", "Things", "--against", l.address(), "--timestamps", "ignore")
	if code != exitEqual {
		l.t.Fatalf("exit code %d: %s", code, out)
	}
}

// writeTarget writes an item through a DynamoDB endpoint over the target.
func (l *liveTables) writeTarget() {
	l.t.Helper()
	mapping := filepath.Join(l.dir, "mapping.yaml")
	if out, code := tabletop(l.t, "migrate", "infer", filepath.Join(l.dir, "Things.jsonl"), "--key", "id", "--table", "Things", "-o", mapping); code != exitEqual {
		l.t.Fatalf("exit code %d: %s", code, out)
	}
	over := serveHere(l.t, "--target", l.address(), "--dynamodb", "127.0.0.1:0", "--auth", "none", "--mapping", mapping)
	r, err := http.NewRequestWithContext(l.t.Context(), http.MethodPost, over.env["AWS_ENDPOINT_URL_DYNAMODB"], strings.NewReader(`{"TableName":"Things","Item":`+item("d", 1)+`}`))
	if err != nil {
		l.t.Fatal(err)
	}
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810.PutItem")
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		l.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		l.t.Fatalf("%s: %s: %v", resp.Status, text, err)
	}
}

// TestThrottleFile: the file pauses a follower or limits it, and each change is said once.
func TestThrottleFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "throttle")
	var said []string
	f := &throttleFile{name: name, say: func(text string) { said = append(said, strings.TrimPrefix(text, "--throttle-file "+name+": ")) }}
	reads := func(rows int, ok bool, text string) {
		t.Helper()
		for range 2 {
			if gotRows, gotOK := f.read(); gotRows != rows || gotOK != ok {
				t.Errorf("%d rows, %t; want %d, %t", gotRows, gotOK, rows, ok)
			}
		}
		if len(said) > 1 || strings.Join(said, "") != text {
			t.Errorf("said %q, want %q", said, text)
		}
		said = nil
	}
	reads(0, false, "")
	writeFile(t, dir, "throttle", "")
	reads(0, true, "no changes are applied while the file exists")
	writeFile(t, dir, "throttle", "1200\n")
	reads(1200, true, "at most 1200 rows per second")
	writeFile(t, dir, "throttle", "fast")
	reads(0, true, `no changes are applied: "fast" is not a number of rows per second`)
	writeFile(t, dir, "throttle", "-1")
	reads(0, true, `no changes are applied: "-1" is not a number of rows per second`)
	writeFile(t, dir, "throttle", " 0 ")
	reads(0, true, "no changes are applied while the file exists")
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	reads(0, false, "gone, changes are applied again")
	if err := os.Mkdir(name, 0o700); err != nil {
		t.Fatal(err)
	}
	if rows, ok := f.read(); rows != 0 || !ok || len(said) != 1 || !strings.Contains(said[0], "no changes are applied: ") {
		t.Errorf("a file that cannot be read: %d rows, %t, said %q", rows, ok, said)
	}
}

// TestSDKLog: only the warning that the end of a command causes is dropped.
func TestSDKLog(t *testing.T) {
	t.Parallel()
	var got strings.Builder
	log := sdkLog(logging.NewStandardLogger(&got))
	log.Logf(logging.Warn, "failed to discard remaining HTTP response body, this may affect connection reuse")
	log.Logf(logging.Warn, "another %s", "one")
	if text := got.String(); !strings.HasSuffix(text, " WARN another one\n") || strings.Count(text, "\n") != 1 {
		t.Errorf("the log is %q", text)
	}
}

// TestOwner: a lease has one owner, so that two runs of a process, or equal numbers on two machines, differ.
func TestOwner(t *testing.T) {
	t.Parallel()
	one, two := owner(), owner()
	if number := fmt.Sprintf(" %d ", os.Getpid()); one == two || !strings.Contains(one, "@") || !strings.Contains(one, number) {
		t.Errorf("owners %q and %q, want different ones with%q", one, two, number)
	}
}

// TestFollow_Killed: after SIGKILL, another process continues once the lease has ended, and no change is
// missing. Meanwhile another process is refused, with the name of the first.
func TestFollow_Killed(t *testing.T) {
	t.Parallel()
	long.Test(t)
	l := newLiveTables(t)
	l.ready()
	first := l.follow()
	l.ctl("put", "Things", item("b", 1))
	out, code := tabletop(t, l.followArgs("Things")...)
	if owner := fmt.Sprintf(" %d ", first.cmd.Process.Pid); code != exitBadInput || !strings.Contains(out, owner) || !strings.Contains(out, "end that process first") {
		t.Errorf("exit code %d, want %d and %q: %s", code, exitBadInput, owner, out)
	}
	if out, code := tabletop(t, "migrate", "finish", "Things", "--target", l.address()); code != exitBadInput || !strings.Contains(out, "end that process") {
		t.Errorf("exit code %d, want %d: %s", code, exitBadInput, out)
	}
	first.end(t, syscall.SIGKILL)
	l.ctl("put", "Things", item("b", 2))
	l.ctl("put", "Things", item("c", 1))
	l.ctl("query", "DeleteItem", `{"TableName":"Things","Key":{"id":{"S":"a"}}}`)
	// The next one waits for the end of the lease by itself.
	if out, code := tabletop(t, l.followArgs("Things", "--until", "tip")...); code != exitEqual || !strings.Contains(out, "waiting up to 15s for the lease of ") {
		t.Fatalf("exit code %d: %s", code, out)
	}
	l.holds(item("b", 2), item("c", 1))
	if out, code := tabletop(t, "migrate", "finish", "Things", "--target", l.address()); code != exitEqual {
		t.Errorf("exit code %d: %s", code, out)
	}
	l.holds(item("b", 2), item("c", 1))
	l.writeTarget()
	if out, code := tabletop(t, l.followArgs("Things", "--until", "tip")...); code != exitBadInput || !strings.Contains(out, "a DynamoDB endpoint has written since the load") {
		t.Errorf("exit code %d: %s", code, out)
	}
	args := l.followArgs("", "--until", "tip")
	if out, code := tabletop(t, slices.DeleteFunc(args, func(arg string) bool { return arg == "" })...); code != exitBadInput || !strings.Contains(out, "the migrations of all loaded tables have ended: name a table") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if out, code := tabletop(t, "migrate", "status", "--json", "--target", l.address()); code != exitEqual || !strings.Contains(out, `"phase": "ENDED"`) {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// TestFollow_Interrupted: SIGTERM ends a follower with its progress and its lease, so that the next one
// continues at once.
func TestFollow_Interrupted(t *testing.T) {
	t.Parallel()
	l := newLiveTables(t)
	l.ready()
	l.begin()
	first := l.follow()
	if code := first.end(t, syscall.SIGTERM); code != exitEqual || !strings.Contains(first.stderr.String(), "interrupted; the same command continues") {
		t.Errorf("exit code %d: %s", code, first.stderr)
	}
	// The next command works as it is.
	args := l.followArgs("Things")
	out, code := tabletop(t, "migrate", "status", "Things", "--target", l.address(), "--call-timeout", "20s")
	_, next, _ := strings.Cut(out, "  next     tabletop ")
	sorted := func(words []string) []string {
		words = slices.DeleteFunc(slices.Clone(words), func(word string) bool { return strings.HasSuffix(word, "Z") }) // --since is that of the first run
		slices.Sort(words)
		return words
	}
	if got, want := sorted(strings.Fields(next)), sorted(append(args, "--call-timeout", "20s")); code != exitEqual || !slices.Equal(got, want) {
		t.Errorf("exit code %d, the next command has the words %q, want %q", code, got, want)
	}
	if out, code := tabletopInHurry(t, append(strings.Fields(next), "--until", "tip")...); code != exitEqual {
		t.Errorf("the next command: exit code %d: %s", code, out)
	}
	l.ctl("put", "Things", item("b", 1))
	if out, code := tabletopInHurry(t, append(args, "--apply", "guarded", "--until", "tip")...); code != exitEqual || !regexp.MustCompile(`(?m)^Things: 1 change applied, 0 dead letters, all writes before \S+Z, in [\d.]+m?s$`).MatchString(out) {
		t.Errorf("exit code %d: %s", code, out)
	}
	if out, code := tabletop(t, "migrate", "status", "--json", "--target", l.address()); code != exitEqual || !strings.Contains(out, `"changes": 1,`) {
		t.Errorf("exit code %d, and the second follower must apply 1 change: %s", code, out)
	}
	// A wait that ends says what it found.
	out, code = tabletop(t, "migrate", "status", "Things", "--wait", "phase=DRAINED,letters<1,lag<1m", "--timeout", "0s", "--target", l.address())
	if code != exitDifferences || !strings.Contains(out, "after 0s, lag<1m does not hold for table Things: no process follows the table") {
		t.Errorf("exit code %d: %s", code, out)
	}
	l.holds(item("a", 1), item("b", 1))
}

// TestStatus_Next: each next command up to the end of a migration is valid as it is printed, and works.
func TestStatus_Next(t *testing.T) {
	t.Parallel()
	l := newLiveTables(t)
	l.ready()
	l.begin()
	next := func(want string) []string {
		t.Helper()
		out, code := tabletop(t, "migrate", "status", "Things", "--target", l.address(), "--call-timeout", "20s")
		_, line, _ := strings.Cut(out, "  next ")
		_, words, _ := strings.Cut(line, "tabletop ")
		args := shellWords(words)
		if code != exitEqual || !strings.HasPrefix(words, want) {
			t.Fatalf("exit code %d, the next command must be %s: %s", code, want, out)
		}
		app, err := newParser("")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (&program{}).parse(app, arranged(args)); err != nil {
			t.Fatalf("%s: %v", words, err)
		}
		return args
	}
	run := func(args []string) {
		t.Helper()
		if out, code := tabletopInHurry(t, args...); code != exitEqual {
			t.Fatalf("%q: exit code %d: %s", args, code, out)
		}
	}
	first := l.follow()
	last := next("migrate follow Things --since ")
	if code := first.end(t, syscall.SIGTERM); code != exitEqual {
		t.Fatalf("exit code %d: %s", code, first.stderr)
	}
	run(last)
	run(next("migrate verify --live --consistent --table Things --dynamodb-endpoint http://"))
	l.ctl("put", "Things", item("b", 1))
	run(last)
	run(next("migrate verify --live --dirty --table Things --dynamodb-endpoint http://"))
	run(next("migrate follow Things --since "))
	run(next("migrate finish Things "))
}

// TestFollow_Refused: a table that cannot be followed is refused with the remedy.
func TestFollow_Refused(t *testing.T) {
	t.Parallel()
	l := newLiveTables(t)
	l.create("Keys", "KEYS_ONLY")
	l.create("Plain", "")
	l.ctl("advance", "2m")
	l.create("Young", "NEW_AND_OLD_IMAGES")
	for _, table := range []string{"Keys", "Plain", "Young", "Absent"} {
		l.load(table, item("a", 1))
	}
	for _, c := range []struct {
		table string
		code  int
		want  string
	}{
		{"Other", exitBadInput, "table Other was not loaded; loaded are Absent, Keys, Plain, Young: load an export of it first"},
		{"Keys", exitBadInput, "its stream has the view KEYS_ONLY, whose records lack the new items; disable the stream, enable one"},
		{"Plain", exitBadInput, "it has no enabled stream; enable one with the view NEW_AND_OLD_IMAGES"},
		{"Young", exitBadInput, "expected at least 1m0s before"},
		{"Absent", exitBadInput, "the source does not have the table; check its name, the endpoint and the region"},
	} {
		if out, code := tabletop(t, l.followArgs(c.table)...); code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("table %s: exit code %d, want %d and %q: %s", c.table, code, c.code, c.want, out)
		}
	}
	out, code := tabletop(t, "migrate", "follow", "Keys", "--dynamodb-endpoint", "http://127.0.0.1:1", "--target", l.address(), "--since", "2024-01-01T00:00:00Z")
	if code != exitEnvironment || !strings.Contains(out, "the source does not answer; check the endpoint") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if out, code := tabletop(t, "migrate", "follow", "Keys", "--dynamodb-endpoint", l.source.env["AWS_ENDPOINT_URL_DYNAMODB"], "--target", l.address()); code != exitBadInput || !strings.Contains(out, "pass a time before it was read (--since)") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if out, code := tabletop(t, "migrate", "status", "Other", "--target", l.address()); code != exitBadInput || !strings.Contains(out, "table Other has no migration in instance tabletop; name another instance (--project, --instance), or begin one: tabletop migrate follow Other") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if out, code := tabletop(t, "migrate", "status", "--instance", "other", "--target", l.address()); code != exitEqual || !strings.Contains(out, "no table of instance other is followed; name another instance (--project, --instance), or load an export") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if out, code := tabletop(t, l.followArgs("Keys", "--instance", "other")...); code != exitBadInput || !strings.Contains(out, "nothing was loaded into instance other: name another instance (--project, --instance), or load an export first") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if out, code := tabletop(t, "migrate", "finish", "Other", "--target", l.address()); code != exitBadInput || !strings.Contains(out, "table Other was not loaded") {
		t.Errorf("exit code %d: %s", code, out)
	}
}
