package docs_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/docs"
)

// TestText: a document has the name of its file, with and without its folder and ending.
func TestText(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"serve": "# tabletop serve\n", "docs/serve.md": "# tabletop serve\n", "tasks/go": "# ", "notes/performance": "# "} {
		if text, ok := docs.Text(name); !ok || !strings.HasPrefix(text, want) {
			t.Errorf("%s: %v, %.40q, want %q", name, ok, text, want)
		}
	}
	for _, name := range []string{"", "nothing", "docs", "tasks", "../README", "docs.go", "console-keys.png"} {
		if text, ok := docs.Text(name); ok {
			t.Errorf("%q has the text %.40q", name, text)
		}
	}
	for _, name := range []string{"index", "serve", "tasks/go", "notes/performance"} {
		if !slices.Contains(docs.Names(), name) {
			t.Errorf("%s is missing in %v", name, docs.Names())
		}
	}
}

var (
	hrefs = regexp.MustCompile(`href="([^"]*)"`)
	ids   = regexp.MustCompile(` id="([^"]*)"`)
	// denied are parts that the console's policy forbids, or that the program does not contain.
	denied = regexp.MustCompile(`<(img|script|style|iframe|input|details)\b|<[^>]* (style|on\w+)=|<p></p>|\]\(`)
	// written are codes; markup is Markdown that became text.
	written = regexp.MustCompile(`(?s)<pre>.*?</pre>|<code>.*?</code>`)
	markup  = regexp.MustCompile("\\*\\*|`|\\]\\[|\\\\|&lt;/?[a-z]|(?m:^(<p>|<li>)?([|>]|[*+-] |#+ |[0-9]{1,2}\\. |===|---))")
)

// TestHTML: each document has one title, and each link leads to a section of a document, or to
// another server. All are reachable from index.
func TestHTML(t *testing.T) {
	t.Parallel()
	pages, sections := map[string]string{}, map[string][]string{}
	for _, name := range docs.Names() {
		pages[name] = string(docs.HTML(name, "/docs"))
		for _, m := range ids.FindAllStringSubmatch(pages[name], -1) {
			if slices.Contains(sections[name], m[1]) {
				t.Errorf("%s has the id %s twice", name, m[1])
			}
			sections[name] = append(sections[name], m[1])
		}
	}
	reached := map[string]bool{"index": true}
	for queue := []string{"index"}; len(queue) > 0; queue = queue[1:] {
		for _, m := range hrefs.FindAllStringSubmatch(pages[queue[0]], -1) {
			if name, _, _ := strings.Cut(strings.TrimPrefix(m[1], "/docs/"), "#"); name != m[1] && !reached[name] && pages[name] != "" {
				reached[name] = true
				queue = append(queue, name)
			}
		}
	}
	for name, page := range pages {
		if title := docs.Title(name); title == "" || strings.Count(page, "<h1 ") != 1 || !strings.Contains(page, ">"+title+"</h1>") {
			t.Errorf("%s has the title %q, and begins with %.80s", name, title, page)
		}
		if found := denied.FindAllString(page, -1); found != nil {
			t.Errorf("%s has %q", name, found)
		}
		if found := markup.FindAllString(written.ReplaceAllString(page, ""), -1); found != nil {
			t.Errorf("%s has the markup %q", name, found)
		}
		if !reached[name] {
			t.Errorf("no link leads to %s", name)
		}
		for _, m := range hrefs.FindAllStringSubmatch(page, -1) {
			to, section, _ := strings.Cut(m[1], "#")
			other := strings.TrimPrefix(to, "/docs/")
			if to == "" {
				other = name
			}
			if strings.HasPrefix(m[1], "https://") {
				continue
			}
			if pages[other] == "" || section != "" && !slices.Contains(sections[other], section) {
				t.Errorf("%s links to %s, which does not exist", name, m[1])
			}
		}
	}
	if got := pages["console"]; !strings.Contains(got, `<a href="/docs/live">`) || !strings.Contains(got, `<div class="scroll"><table>`) {
		t.Errorf("console: %s", got)
	}
	if got := pages["index"]; !strings.Contains(got, "<td>CONTRIBUTING.md</td>") {
		t.Errorf("index does not name CONTRIBUTING.md as text: %s", got)
	}
}

// TestSections: each section leads to a heading of its document, and has its text without markup.
func TestSections(t *testing.T) {
	t.Parallel()
	pages := map[string]string{}
	for _, name := range docs.Names() {
		pages[name] = string(docs.HTML(name, "/docs"))
	}
	for _, s := range docs.Sections() {
		if s.Heading == "" || s.ID == "" && s.Heading != s.Title || s.ID != "" && !strings.Contains(pages[s.Document], ` id="`+s.ID+`"`) {
			t.Errorf("%s has the section %q with the id %q", s.Document, s.Heading, s.ID)
		}
		if strings.Contains(s.Text, "](") {
			t.Errorf("%s, %s has markup: %s", s.Document, s.Heading, s.Text)
		}
	}
	if s := docs.Sections(); len(s) < 2*len(pages) {
		t.Errorf("%d documents have %d sections", len(pages), len(s))
	}
}

// TestSearch: all words must occur, in any case; headings come first. An answer to the console is short.
func TestSearch(t *testing.T) {
	t.Parallel()
	if found := docs.Search("HOT-key-range"); len(found) == 0 || found[0].Heading != "L26 hot-key-range" {
		t.Errorf("the first section is %+v", found)
	}
	for _, words := range []string{"", " ", "snapshots nosuchword"} {
		if found := docs.Search(words); found != nil {
			t.Errorf("%q: found are %+v", words, found)
		}
	}
	// The page of a task is among the first results.
	if found := docs.Search("garbage collection"); !slices.ContainsFunc(found[:3], func(s docs.Section) bool { return s.Document == "tasks/ttl" }) {
		t.Errorf("the first sections are %+v", found[:3])
	}
	for words, want := range map[string]string{
		"hot-key-range": `"sections":[{"document":"lint","title":"Lint: the design guides as rules","id":"l26-hot-key-range","heading":"L26 hot-key-range","text":"`,
		"FNV1A32":       "fnv1a32",
		"nosuchword":    `{"count":0,"sections":[]}`,
		"the":           `"text":"… `,
	} {
		if got := string(docs.Site{}.Search(words)); !strings.Contains(got, want) || len(got) > 40_000 {
			t.Errorf("%q: %.600s", words, got)
		}
	}
}

// TestContents: the list has each document once, and marks the current one.
func TestContents(t *testing.T) {
	t.Parallel()
	got := string(docs.Site{}.Contents("tasks/go"))
	for _, name := range docs.Names() {
		if strings.Count(got, `"/docs/`+name+`"`) != 1 {
			t.Errorf("%s is not in %s", name, got)
		}
	}
	if strings.Count(got, "aria-current") != 1 || !strings.Contains(got, `<a href="/docs/tasks/go" aria-current="page">`) {
		t.Errorf("the current document is not marked in %s", got)
	}
}
