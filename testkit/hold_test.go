package testkit_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tabletop-emu/tabletop/testkit"
)

// TestHold: a test that is held prints a page which shows its rows and requests, and goes on when it is let go.
func TestHold(t *testing.T) {
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
	held := make(chan struct{})
	go func() {
		defer close(held)
		env.HoldTo(t, write)
	}()
	line, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, read) }() // it ends with the pipe
	found := regexp.MustCompile(`^TestHold is held: (http://127\.0\.0\.1:\d+)/#token=(\w+)\n`).FindStringSubmatch(line)
	if found == nil {
		t.Fatalf("it prints %q", line)
	}
	ask := func(method, path string) string {
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
	var info struct{ Held string }
	if err := json.Unmarshal([]byte(ask("GET", "info")), &info); err != nil || info.Held != t.Name() {
		t.Errorf("the page is of %q: %v", info.Held, err)
	}
	if rows := ask("GET", "tables/tabletop/rows/rows"); !strings.Contains(rows, `"a row"`) {
		t.Errorf("the rows are %s", rows)
	}
	if requests := ask("GET", "requests"); !strings.Contains(requests, "MutateRow") {
		t.Errorf("the requests are %s", requests)
	}
	ask("POST", "release")
	<-held
	if err := write.Close(); err != nil {
		t.Error(err)
	}
	http.DefaultClient.CloseIdleConnections()
}

// late is a test that has run out of time.
type late struct{ testing.TB }

func (late) Deadline() (time.Time, bool) { return time.Now(), true }

// TestHold_Deadline: a test that has little time left is not held.
func TestHold_Deadline(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	testkit.Start(t, testkit.WithConsole()).HoldTo(late{t}, &out)
	if !strings.HasPrefix(out.String(), "TestHold_Deadline is held: ") {
		t.Errorf("it prints %q", out.String())
	}
}
