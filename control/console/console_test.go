package console_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/control/console"
	"github.com/tabletop-emu/tabletop/docs"
)

func files(t *testing.T) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	err := fs.WalkDir(console.Files(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		out[name], err = fs.ReadFile(console.Files(), name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func gzipped(t *testing.T, text []byte) int {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Len()
}

var imports = regexp.MustCompile(`(?:from|import) '\./([^']+)'`)

// loaded are the modules that a page loads later.
var loaded = regexp.MustCompile(`import\('\./([^']+)'\)`)

// vendored is the bundle that tools/editor builds.
const vendored = "codemirror.js"

// reach adds a file and its imports.
func reach(t *testing.T, all map[string][]byte, name string, into map[string]bool) {
	t.Helper()
	if into[name] {
		return
	}
	into[name] = true
	text, ok := all[name]
	if !ok {
		t.Errorf("%s is imported and not there", name)
	}
	for _, m := range imports.FindAllSubmatch(text, -1) {
		reach(t, all, string(m[1]), into)
	}
}

// TestSizes: the first page is at most 80 kB, and all files together at most 500 kB, as gzip.
func TestSizes(t *testing.T) {
	t.Parallel()
	all := files(t)
	sum := 0
	for _, text := range all {
		sum += gzipped(t, text)
	}
	first := map[string]bool{"page.html": true, "style.css": true, "mark.svg": true}
	reach(t, all, "app.js", first)
	reach(t, all, "home.js", first)
	firstSum := 0
	for name := range first {
		firstSum += gzipped(t, all[name])
	}
	t.Logf("the first page %d bytes, all %d", firstSum, sum)
	if firstSum > 80_000 || sum > 500_000 {
		t.Errorf("the first page has %d bytes and all %d, want at most 80,000 and 500,000", firstSum, sum)
	}
	for _, m := range regexp.MustCompile(`'([a-z]+\.js)'`).FindAllSubmatch(all["app.js"], -1) {
		page := map[string]bool{}
		if reach(t, all, string(m[1]), page); page[vendored] {
			t.Errorf("%s loads the editor before its first picture", m[1])
		}
	}
}

// TestVendored: the bundle of CodeMirror is the output of the present sources in tools/editor, and
// it names the license. make editor-check builds it again.
func TestVendored(t *testing.T) {
	t.Parallel()
	const tools = "../../tools/editor"
	sums, err := os.ReadFile(filepath.Join(tools, "sha256.txt"))
	if err != nil {
		t.Fatal(err)
	}
	hashed := map[string]bool{}
	for line := range strings.Lines(string(sums)) {
		want, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		text, err := os.ReadFile(filepath.Join(tools, name))
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s is not the file of the last build: run make editor", name)
		}
		hashed[filepath.Base(name)] = true
	}
	for _, name := range []string{vendored, "build.mjs", "entry.js", "package.json", "package-lock.json"} {
		if !hashed[name] {
			t.Errorf("sha256.txt lacks %s", name)
		}
	}
	if head, _, _ := strings.Cut(string(files(t)[vendored]), "*/"); !strings.Contains(head, "Permission is hereby granted, free of charge") || !strings.Contains(head, "@codemirror/view ") {
		t.Errorf("it begins with %.300q, want the packages and their license", head)
	}
}

// TestFiles: the page's files are complete, and none contains code that makes HTML, or a
// script, of data.
func TestFiles(t *testing.T) {
	t.Parallel()
	all := files(t)
	reached := map[string]bool{"page.html": true, "style.css": true, "mark.svg": true}
	reach(t, all, "app.js", reached)
	for _, m := range regexp.MustCompile(`'([a-z]+\.js)'`).FindAllSubmatch(all["app.js"], -1) {
		reach(t, all, string(m[1]), reached)
	}
	for name := range maps.Clone(reached) {
		for _, m := range loaded.FindAllSubmatch(all[name], -1) {
			reach(t, all, string(m[1]), reached)
		}
	}
	denied := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|\beval\(|new Function|\bstyle:|https?://[^$'"\x60 ]*\.(com|org|net|io)`)
	for name, text := range all {
		if !reached[name] {
			t.Errorf("%s: no page needs it", name)
		}
		if name == vendored || strings.HasSuffix(name, ".svg") { // pictures name the namespace of SVG
			text = bytes.ReplaceAll(text, []byte("http://www.w3.org/2000/svg"), nil)
		}
		if name == vendored { // its style rules are data
			text = regexp.MustCompile(`\bstyle:`).ReplaceAll(text, nil)
		}
		if found := denied.Find(text); found != nil {
			t.Errorf("%s: it has %q: data is text, and nothing comes from elsewhere", name, found)
		}
	}
	if page := string(all["page.html"]); strings.Contains(page, "<style") || regexp.MustCompile(`<script[^>]*>[^<]`).MatchString(page) {
		t.Error("page.html: scripts and styles are files of their own, as the policy demands")
	}
}

// TestDoc: doc.go names each file, and each named file exists.
func TestDoc(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, name := range regexp.MustCompile(`[a-z]+\.(js|css|html)\b`).FindAllString(string(text), -1) {
		named[name] = true
	}
	all := files(t)
	for name := range all {
		if !named[name] && name != "mark.svg" {
			t.Errorf("doc.go does not name %s", name)
		}
	}
	for name := range named {
		if all[name] == nil {
			t.Errorf("doc.go names %s, which does not exist", name)
		}
	}
}

// TestHandle: each path of a page is answered with the page, and files with their types.
func TestHandle(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	console.Handle(mux, docs.Site{})
	for path, want := range map[string]string{
		"/requests": "text/html", "/v/i/v": "text/html", "/t/i/t/rows": "text/html", "/history/orders": "text/html", "/history/i/t": "text/html", "/t/i/t": "text/html", "/d/a%2Fb": "text/html",
		"/static/app.js": "text/javascript", "/static/style.css": "text/css", "/static/mark.svg": "image/svg+xml",
		"/static/mapping.schema.json": "application/json", "/docs/index": "text/html", "/docs/search": "text/html", "/docs/tasks/go": "text/html",
	} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if got := w.Header().Get("Content-Type"); w.Code != http.StatusOK || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %d %s, want %s", path, w.Code, got, want)
		}
	}
	for _, path := range []string{"/static/nothing.js", "/static/../console.go", "/elsewhere", "/docs/nothing", "/docs/docs/serve.md"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if w.Code == http.StatusOK {
			t.Errorf("%s: it is answered", path)
		}
	}
	for _, path := range []string{"/docs", "/docs/"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if to := w.Header().Get("Location"); w.Code != http.StatusFound || to != "/docs/index" {
			t.Errorf("%s: %d, leads to %q", path, w.Code, to)
		}
	}
}

// TestHandle_Document: a document is in the page, with its title, in front of the script.
func TestHandle_Document(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	console.Handle(mux, docs.Site{})
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/docs/tasks/ttl", nil))
	for _, want := range []string{"<title>Test a time to live · Tabletop</title>", `<main id="main" class="doc" tabindex="-1"><nav aria-label="Documents"><input `, `<a href="/docs/tasks/ttl" aria-current="page">`, `</nav><article><h1 id="test-a-time-to-live">`, `src="/static/app.js"`} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("it lacks %s: %.600s", want, w.Body)
		}
	}

	w = httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/static/docs.json?q=hot-key-range", nil))
	if !strings.Contains(w.Body.String(), `"sections":[{"document":"lint",`) {
		t.Errorf("a search: %.600s", w.Body)
	}

	mux = http.NewServeMux()
	console.Handle(mux, nil)
	w = httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/docs/index", nil))
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "<code>tabletop help</code>") {
		t.Errorf("a server without documents: %d %.600s", w.Code, w.Body)
	}
}

// rgb is a color in sRGB, each part from 0 to 1.
type rgb [3]float64

// colorOf parses a color such as #1b2130.
func colorOf(t *testing.T, color string) (out rgb) {
	t.Helper()
	var parts [3]uint8
	if _, err := fmt.Sscanf(color, "#%02x%02x%02x", &parts[0], &parts[1], &parts[2]); err != nil {
		t.Fatalf("%s: %v", color, err)
	}
	for i, n := range parts {
		out[i] = float64(n) / 255
	}
	return out
}

// luminance returns the relative luminance by WCAG 2.
func (c rgb) luminance() float64 {
	var linear rgb
	for i, x := range c {
		if linear[i] = math.Pow((x+0.055)/1.055, 2.4); x <= 0.04045 {
			linear[i] = x / 12.92
		}
	}
	return 0.2126*linear[0] + 0.7152*linear[1] + 0.0722*linear[2]
}

// TestPalette: in both schemes texts have the contrast 4.5 with each background, and the edges
// of fields 3.
func TestPalette(t *testing.T) {
	t.Parallel()
	schemes := regexp.MustCompile(`:root \{([^}]*)\}`).FindAllSubmatch(files(t)["style.css"], -1)
	if len(schemes) != 2 {
		t.Fatalf("%d schemes, want light and dark", len(schemes))
	}
	for i, scheme := range schemes {
		colors := map[string]string{}
		for _, m := range regexp.MustCompile(`--([\w-]+): (#\w+)`).FindAllSubmatch(scheme[1], -1) {
			colors[string(m[1])] = string(m[2])
		}
		contrast := func(front, back string, share, least float64) {
			c, on := colorOf(t, colors[front]), colorOf(t, colors[back])
			for n := range on {
				on[n] += share * (c[n] - on[n])
			}
			a, b := c.luminance(), on.luminance()
			if got := (max(a, b) + 0.05) / (min(a, b) + 0.05); got < least {
				t.Errorf("scheme %d: %s on %s has the contrast %.2f, want %.1f", i, front, back, got, least)
			}
		}
		check := func(front, back string, least float64) { contrast(front, back, 0, least) }
		// A status is on its background and a tenth of its own color.
		for _, back := range []string{"bg", "panel", "sel"} {
			for _, front := range []string{"ok", "bad", "soft"} {
				contrast(front, back, 0.1, 4.5)
			}
		}
		for _, back := range []string{"bg", "panel", "sel", "mark", "badbg", "warnbg"} {
			for _, front := range []string{"text", "soft", "link", "ok", "bad", "atom"} {
				check(front, back, 4.5)
			}
		}
		check("on-link", "link", 4.5)
		check("bg", "text", 4.5) // the toast
		check("edge", "bg", 3)
		check("edge", "panel", 3)
	}
}

// TestWords: the pages use the words of the field.
func TestWords(t *testing.T) {
	t.Parallel()
	coined := regexp.MustCompile(`(?i)\b(doors?|books|mends?|come back to)\b|All of it`)
	for name, text := range files(t) {
		if found := coined.Find(text); found != nil {
			t.Errorf("%s: it has the word %q", name, found)
		}
	}
}
