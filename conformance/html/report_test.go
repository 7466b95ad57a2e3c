// Package html opens the HTML report in a real browser.
package html

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/test/peer"
	"github.com/tabletop-emu/tabletop/migrate"
)

// hostile holds texts that a page must show and never execute.
var hostile = []string{
	`<script>document.title="owned"</script>`,
	`"><img src=x onerror="document.title='owned'">`,
	`</pre></td></table><h1>owned</h1>`,
	`{{.Title}} {{template "x"}} &amp; &lt;`,
	"\u202egnitirw tfel-ot-thgir\u202c",
	"a\x00b\x1b[31mc",
	`javascript:document.title="owned"`,
	strings.Repeat("unbroken", 60),
}

const hostileMapping = `apiVersion: migration/v1
source:
  table: Things
  key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}
  schema: {V: S, CreatedAt: S, Tags: SS, Count: N}
target:
  table: things
  joiner: escaped('#')
  families: {a: {gc: {versions: 1}}, s.Tags: {gc: {versions: 1}}, counters_of_users: {}, _t: {gc: {versions: 1}}}
timestamps: {default: "2024-05-14T11:14:20.608Z"}
rules:
- name: count
  when: {SK: "count-{c:s}"}
  row: ["{PK:s}", "count", "{c}"]
  put: [{attr: Count, cell: "counters_of_users:c"}]
- name: thing
  when: {}
  row: ["{PK:s}", "{SK:s}"]
  put: [{attr: "*", cell: "a:{attr}"}]
`

// hostileFixture returns a fixture with differences, findings of each level, exceptions, and a
// hostile text in every place that data can reach.
func hostileFixture() fstest.MapFS {
	var items, golden, access strings.Builder
	for i, text := range hostile {
		fmt.Fprintf(&items, `{"Item":{"PK":{"S":%s},"SK":{"S":"profile"},"V":{"S":%s},"CreatedAt":{"S":"2024-05-14T10:00:00"},"Tags":{"SS":[%[2]s]}}}`+"\n", quoted(text), quoted(text+" value"))
		fmt.Fprintf(&golden, "row-%d [%x]\n  a:V @1715685260608000 = \"other\"\n", i, fmt.Sprintf("row-%d", i))
	}
	items.WriteString(`{"Item":{"PK":{"S":"jo@example.com"},"SK":{"S":"count-likes"},"Count":{"N":"7"}}}` + "\n")
	items.WriteString(`{"Item":{"PK":{"S":"jo@example.com"},"SK":{"S":"profile"},"V":{"N":"12"}}}` + "\n")
	access.WriteString("id: <b>by value</b>\ntitle: \"<i>a scan</i>\"\ndynamodb: {op: Scan, request: {FilterExpression: \"V = :v\", ExpressionAttributeValues: {\":v\": {S: x}}}}\nexpect: {count: 1, items: [{PK: {S: \"</td>\"}, SK: {S: x}}]}\n")
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	return fstest.MapFS{
		"fixture.yaml":             file("title: \"<title>A hostile</title> table & \\\"what\\\" its report shows\"\nname: hostile\n"),
		"mapping.yaml":             file(hostileMapping),
		"source/items.jsonl":       file(items.String()),
		"expect/rows.golden":       file(golden.String()),
		"access/1-by-value.yaml":   file(access.String()),
		"access/2-everything.yaml": file("id: everything\ntitle: every thing there is\nbigtable: {read: {}, full_scan: true}\nexpect: {count: 0, items: []}\n"),
		"access/3-one.yaml":        file("id: one\ntitle: the counter of a person\ndynamodb: {op: GetItem, request: {Key: {PK: {S: jo@example.com}, SK: {S: count-likes}}}}\nexpect: {count: 1, keys: [[jo@example.com, count-likes]]}\n"),
	}
}

// quoted returns a JSON string.
func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r < 0x20:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + `"`
}

// browser finds Chromium. Without REPORT_CHECK in the environment, which make
// report-check sets, the test is skipped.
func browser(t *testing.T) string {
	t.Helper()
	if os.Getenv("REPORT_CHECK") == "" {
		t.Skip("REPORT_CHECK is not set: make report-check runs this test")
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("no Chromium is here: apt-get install chromium")
	return ""
}

// open loads a page and returns its document and the browser's messages. The environment
// variable REPORT_SHOTS names a folder for pictures.
func open(t *testing.T, path string, flags ...string) (dom, console string) {
	t.Helper()
	args := append([]string{
		"--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
		"--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--user-data-dir=" + t.TempDir(), "--enable-logging=stderr", "--v=0",
	}, flags...)
	cmd := exec.CommandContext(t.Context(), browser(t), append(args, "file://"+path)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	var said []string
	for line := range strings.Lines(stderr.String()) {
		if strings.Contains(line, ":CONSOLE") {
			said = append(said, line)
		}
	}
	return stdout.String(), strings.Join(said, "")
}

func TestReport_InBrowser(t *testing.T) {
	browser(t)
	ctx := context.Background()
	r, err := migrate.Verify(ctx, peer.Start(t, engine.Options{}, emu.Options{}).Conn(), migrate.OfFixture(hostileFixture()), migrate.VerifyOptions{Common: migrate.Common{MaxDifferences: 12}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Equal() || len(r.Failures) != 12 || r.Differences <= 12 || len(r.Lint.Findings) < 4 {
		t.Fatalf("the fixture does not cover the report:\n%s", r.Text())
	}
	var page bytes.Buffer
	if err := r.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	shots := os.Getenv("REPORT_SHOTS")
	path := filepath.Join(t.TempDir(), "report.html")
	if shots != "" {
		path = filepath.Join(shots, "report.html")
	}
	if err := os.WriteFile(path, page.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	dom, console := open(t, path, "--dump-dom")
	if console != "" {
		t.Errorf("the browser says:\n%s", console)
	}
	for what, n := range map[string]int{
		`class="card hunk"`:       len(r.Failures),
		`<tr class="check">`:      len(r.Checks),
		`<tr class="pattern">`:    len(r.Patterns),
		`<tr class="fidelity">`:   len(r.Tables[0].Fidelity),
		`<tr class="rule">`:       len(r.Tables[0].Rules),
		`class="card sample"`:     len(r.Tables[0].Samples),
		`<div class="finding `:    len(r.Lint.Findings),
		`<script`:                 0,
		`<img`:                    0,
		`<iframe`:                 0,
		"<h1>":                    1,
		"<main>":                  1,
		"</main>":                 1,
		"onerror=\"document":      0,
		`href="http`:              0,
		`src="`:                   0,
		`<title>&lt;title&gt;A h`: 1,
	} {
		if got := strings.Count(dom, what); got != n {
			t.Errorf("the document has %q %d times, want %d", what, got, n)
		}
	}
	for tile, n := range map[string]int64{"items": r.Items, "differences": r.Differences, "lint errors": int64(r.Lint.Errors)} {
		if !strings.Contains(dom, fmt.Sprintf(`data-count="%s">%d</b>`, tile, n)) {
			t.Errorf("the tile %q does not show %d", tile, n)
		}
	}
	if title := regexp.MustCompile(`<title>(.*)</title>`).FindStringSubmatch(dom); title == nil || strings.Contains(title[1], "owned") || !strings.HasSuffix(title[1], fmt.Sprintf("%d differences", r.Differences)) {
		t.Errorf("the title is %q", title)
	}
	if shots != "" {
		for name, flags := range map[string][]string{
			"light":  {"--window-size=1280,5200"},
			"dark":   {"--window-size=1280,5200", "--blink-settings=preferredColorScheme=0"},
			"narrow": {"--window-size=500,3200"},
		} {
			open(t, path, append(flags, "--hide-scrollbars", "--screenshot="+filepath.Join(shots, name+".png"))...)
		}
		open(t, path, "--print-to-pdf="+filepath.Join(shots, "print.pdf"), "--no-pdf-header-footer")
	}
}
