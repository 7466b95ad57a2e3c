package testkit_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tabletop-emu/tabletop/testkit"
)

// TestPause: a paused test prints the address of a page which shows its rows and requests, and
// continues on request.
func TestPause(t *testing.T) {
	t.Parallel()
	env := testkit.Start(t, testkit.WithConsole())
	if err := env.BigtableAdmin(t).CreateTableFromConf(t.Context(), &bigtable.TableConf{TableID: "rows", Families: map[string]bigtable.GCPolicy{"f": bigtable.MaxVersionsPolicy(1)}}); err != nil {
		t.Fatal(err)
	}
	m := bigtable.NewMutation()
	m.Set("f", "q", 1000, []byte("v"))
	if err := env.Bigtable(t).Open("rows").Apply(t.Context(), "a row", m); err != nil {
		t.Fatal(err)
	}
	read, write := io.Pipe()
	paused := make(chan struct{})
	go func() {
		defer close(paused)
		env.PauseTo(t, write)
	}()
	ask := pausedAt(t, read)
	var info struct{ Paused string }
	if err := json.Unmarshal([]byte(ask("GET", "info")), &info); err != nil || info.Paused != t.Name() {
		t.Errorf("the page is of %q: %v", info.Paused, err)
	}
	if rows := ask("GET", "tables/tabletop/rows/rows"); !strings.Contains(rows, `"a row"`) {
		t.Errorf("the rows are %s", rows)
	}
	if requests := ask("GET", "requests"); !strings.Contains(requests, "MutateRow") {
		t.Errorf("the requests are %s", requests)
	}
	ask("POST", "resume")
	<-paused
	if err := write.Close(); err != nil {
		t.Error(err)
	}
	http.DefaultClient.CloseIdleConnections()
}

// pausedAt reads the address of a paused test from its output, and returns a function that
// sends requests there.
func pausedAt(t *testing.T, printed io.Reader) func(method, path string) string {
	t.Helper()
	line, err := bufio.NewReader(printed).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, printed) }() // it ends with the pipe
	found := regexp.MustCompile(`^` + t.Name() + ` is paused: (http://127\.0\.0\.1:\d+)/#token=(\w+)\r?\n$`).FindStringSubmatch(line)
	if found == nil {
		t.Fatalf("it prints %q", line)
	}
	return func(method, path string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, found[1]+"/api/v1/"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+found[2])
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s %s: %d %s %v", method, path, resp.StatusCode, text, err)
		}
		return string(text)
	}
}

// TestPause_Terminal: the terminal shows the address of a paused test whose standard error
// goes elsewhere, as in go test with named packages.
func TestPause_Terminal(t *testing.T) {
	t.Parallel()
	if os.Getenv("TESTKIT_ON_TERMINAL") != "" {
		testkit.Start(t, testkit.WithConsole()).Pause(t)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("script"); err != nil || runtime.GOOS != "linux" {
		t.Skip("it needs the script of Linux, which opens a terminal")
	}
	errors := filepath.Join(t.TempDir(), "stderr")
	terminal := exec.CommandContext(t.Context(), "script", "-qec", "'"+self+"' -test.run '^TestPause_Terminal$' -test.timeout 10m 2>'"+errors+"'", "/dev/null")
	terminal.Env = append(os.Environ(), "TESTKIT_ON_TERMINAL=1")
	printed, err := terminal.StdoutPipe()
	if err == nil {
		err = terminal.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	pausedAt(t, printed)("POST", "resume")
	if err := terminal.Wait(); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(errors); err != nil || !strings.Contains(string(text), "TestPause_Terminal is paused: ") {
		t.Errorf("standard error has %q: %v", text, err)
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestPause_Failed: with TABLETOP_PAUSE a failed test stays open at its end, with its rows,
// and fails when it is continued. A test that passed does not, nor does one that failed
// without the variable. Without the console, the output of the failed test names the missing option.
func TestPause_Failed(t *testing.T) {
	t.Parallel()
	const fails, bare, passes = "fails", "fails without a console", "passes"
	if how := os.Getenv("TESTKIT_PAUSE_FAILED"); how != "" {
		options := []testkit.Option{testkit.WithConsole()}
		if how == bare {
			options = nil
		}
		env := testkit.Start(t, options...)
		if err := env.BigtableAdmin(t).CreateTableFromConf(t.Context(), &bigtable.TableConf{TableID: "rows", Families: map[string]bigtable.GCPolicy{"f": bigtable.MaxVersionsPolicy(1)}}); err != nil {
			t.Fatal(err)
		}
		m := bigtable.NewMutation()
		m.Set("f", "q", 1000, []byte("v"))
		if err := env.Bigtable(t).Open("rows").Apply(t.Context(), "a row", m); err != nil {
			t.Fatal(err)
		}
		if how != passes {
			t.Error("it is to fail")
		}
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		how, pause string
		paused     bool
	}{{fails, "1", true}, {passes, "1", false}, {fails, "", false}, {bare, "1", false}, {bare, "", false}} {
		child := exec.CommandContext(t.Context(), self, "-test.run", "^TestPause_Failed$", "-test.timeout", "10m")
		child.Env = append(os.Environ(), "TESTKIT_PAUSE_FAILED="+c.how, "TABLETOP_PAUSE="+c.pause)
		var out strings.Builder
		child.Stdout = &out
		printed, err := child.StderrPipe()
		if err == nil {
			err = child.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if c.paused {
			ask := pausedAt(t, printed)
			if rows := ask("GET", "tables/tabletop/rows/rows"); !strings.Contains(rows, `"a row"`) {
				t.Errorf("the rows of the test that failed are %s", rows)
			}
			ask("POST", "resume")
		} else if text, err := io.ReadAll(printed); err != nil || len(text) > 0 {
			t.Errorf("%+v: it prints %q, %v", c, text, err)
		}
		err = child.Wait()
		if failed := strings.Contains(out.String(), "it is to fail"); failed != (c.how != passes) || (err != nil) != failed {
			t.Errorf("%+v: it ends with %v: %s", c, err, out.String())
		}
		if hint := strings.Contains(out.String(), "TABLETOP_PAUSE needs testkit.WithConsole()"); hint != (c.how == bare && c.pause != "") {
			t.Errorf("%+v: it prints %s", c, out.String())
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// late is a test that has run out of time.
type late struct{ testing.TB }

func (late) Deadline() (time.Time, bool) { return time.Unix(0, 0), true }

// TestPause_Deadline: a test with little time left continues at once, and reports the reason.
func TestPause_Deadline(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	testkit.Start(t, testkit.WithConsole()).PauseTo(late{t}, &out)
	for _, want := range []string{"TestPause_Deadline is paused: ", "automatically at ", "-timeout 0", "\nTestPause_Deadline continues: the deadline of go test is near"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it prints %q, without %q", out.String(), want)
		}
	}
}
