package console

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/tabletop-emu/tabletop/docs"
)

// TestDocs: the header leads to the documents, whose links lead to each other, to sections, and
// back. They need no token.
func TestDocs(t *testing.T) {
	ctx := browser(t)
	p := open(t, ctx, start(t))
	current := func(want string) {
		t.Helper()
		if got := ask[string](p, "[...document.querySelectorAll('header nav [aria-current]')].map((a) => a.textContent + ' ' + a.ariaCurrent).join()"); got != want {
			t.Errorf("%s belongs to %q, want %q", ask[string](p, "location.pathname"), got, want)
		}
	}
	// arrive waits until the browser has loaded another page with an element.
	arrive := func(path, element string) {
		t.Helper()
		p.do(chromedp.WaitReady(element))
		p.ready(path)
	}
	p.click("header nav a[href='/docs/index']")
	arrive("/docs/index", "main.doc")
	current("Docs page")
	if got := ask[string](p, "document.title"); got != "All documents · Tabletop" {
		t.Errorf("the title is %s", got)
	}
	p.sound("the index of documents")
	p.click("main a[href='/docs/control#faults']")
	arrive("/docs/control", "#faults")
	current("Docs true")
	if top := ask[float64](p, "document.getElementById('faults').getBoundingClientRect().top"); top < 0 || top > 400 {
		t.Errorf("the section is %v pixels from the top", top)
	}
	p.shoot("docs-section")
	p.do(chromedp.Evaluate[chromedp.Void]("location.hash = 'snapshots'"))
	p.until("document.getElementById('snapshots').getBoundingClientRect().top < 400")
	p.ready("/docs/control")
	p.click("header nav a[href='/lab']")
	p.ready("/lab")
	if ask[bool](p, "document.querySelector('main').classList.contains('doc')") {
		t.Error("another page looks like a document")
	}
	p.do(chromedp.Evaluate[chromedp.Void]("history.back()"))
	arrive("/docs/control", "#faults")
	p.sound("a document after another page")

	if _, err := chromedp.Call(p.ctx, network.ClearBrowserCookies, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	p.visit("/docs/tasks/go")
	p.until("document.querySelector('main h1').textContent.includes('Go')")
	p.forget() // the header asks for the clock
}

// TestDocs_Structure: each document has headings in order, and fits a laptop's screen and half
// of one.
func TestDocs_Structure(t *testing.T) {
	ctx := browser(t)
	p := open(t, ctx, start(t))
	p.visit("/docs/index")
	for _, name := range docs.Names() {
		// A document in the same frame takes a tenth of the time of a visit.
		ask[any](p, fmt.Sprintf(`(async () => {
			const text = await (await fetch('/docs/%s')).text();
			document.querySelector('main').replaceChildren(...new DOMParser().parseFromString(text, 'text/html').querySelector('main').childNodes);
		})()`, name))
		for _, width := range []int64{1280, 640} {
			p.resize(width, 800)
			p.frame()
			for _, wrong := range ask[[]string](p, structure) {
				t.Errorf("%s: %s", name, wrong)
			}
			if out := ask[[]string](p, outside); len(out) > 0 {
				t.Errorf("%s, %d pixels wide: beyond the window are %q", name, width, out)
			}
		}
		p.shoot("docs-" + strings.ReplaceAll(name, "/", "-"))
		p.sound(name)
	}
}

// TestDocs_Contents: beside a document are its sections, below the other documents in the order of the index. A narrow
// window folds the list. Each block of code can be copied.
func TestDocs_Contents(t *testing.T) {
	ctx := browser(t)
	p := open(t, ctx, start(t))
	p.visit("/docs/serve")
	const names = "[...document.querySelectorAll('main nav details > a')].map((a) => a.getAttribute('href').slice(6))"
	all := ask[[]string](p, names)
	if len(all) != len(docs.Names()) {
		t.Errorf("%d documents are listed", len(all))
	}
	place := func(name string) int { return slices.Index(all, name) }
	for _, two := range [][2]string{{"index", "testkit"}, {"testkit", "control"}, {"guide", "lint"}, {"serve", "release"}, {"tasks/go", "tasks/pytest"}, {"tasks/pytest", "tasks/docker"}} {
		if place(two[0]) < 0 || place(two[0]) > place(two[1]) {
			t.Errorf("%s is not before %s in %q", two[0], two[1], all)
		}
	}
	sections := ask[[]string](p, "[...document.querySelectorAll('main nav .sections a')].map((a) => a.textContent)")
	if want := ask[[]string](p, "[...document.querySelectorAll('article h2')].map((e) => e.textContent)"); len(want) < 3 || !slices.Equal(sections, want) {
		t.Errorf("the sections are %q, want %q", sections, want)
	}
	p.click("main nav .sections a:last-child")
	p.until("document.querySelector('article h2:last-of-type').getBoundingClientRect().top < innerHeight")

	ask[bool](p, copying)
	if n := ask[int](p, "document.querySelectorAll('article pre:not(.bar.one > pre)').length"); n != 0 {
		t.Errorf("%d blocks of code have no button", n)
	}
	p.click("article pre + button")
	p.until("!!globalThis.copied")
	if want := ask[string](p, "document.querySelector('article pre').textContent.trimEnd()"); want == "" || ask[string](p, "globalThis.copied") != want {
		t.Errorf("copied is %q, want %q", ask[string](p, "globalThis.copied"), want)
	}

	const seen = "document.querySelector('main nav a').checkVisibility()"
	p.until(seen)
	p.shoot("docs-contents")
	p.resize(640, 800)
	p.until("!" + seen)
	p.click("main nav summary")
	p.until(seen)
	p.fits("the list of documents")
	p.scrollTo("main", 0)
	p.shoot("docs-contents-640")
	p.resize(1280, 800)
	p.until(seen)

	// Results are not a part of the document.
	p.fill("main nav input", "snapshots")
	p.until("!!document.querySelector('article h2 a') && !document.querySelector('main nav [aria-current]') && !document.querySelector('.sections').checkVisibility()")
	p.fill("main nav input", "")
	p.until("document.querySelector('main nav [aria-current]')?.textContent === 'tabletop serve' && document.querySelector('.sections').checkVisibility()")
	p.sound("the list of documents")
}

// TestDocs_Search: a slash goes to the field, typed words find sections of all documents, a result leads to its
// section, and Escape shows the document again. Ctrl-K leads from each page to the search.
func TestDocs_Search(t *testing.T) {
	ctx := browser(t)
	p := open(t, ctx, start(t))
	press := func(key string, ctrl bool) {
		ask[bool](p, fmt.Sprintf("document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: %q, ctrlKey: %v, bubbles: true, cancelable: true})), true", key, ctrl))
	}
	// arrive waits until the browser has loaded another page with an element.
	arrive := func(path, element string) {
		t.Helper()
		p.do(chromedp.WaitReady(element))
		p.ready(path)
	}
	const heading = "document.querySelector('article h1').textContent"
	p.visit("/docs/serve")
	press("/", false)
	p.fill(":focus", "HOT-key-range")
	p.until(heading + " === 'Search' && document.querySelector('article h2 a')?.getAttribute('href') === '/docs/lint#l26-hot-key-range'")
	if got := ask[[]string](p, "[...document.querySelectorAll('article h2 mark')].map((e) => e.textContent)"); len(got) == 0 || got[0] != "hot-key-range" {
		t.Errorf("the marked words are %q", got)
	}
	for _, wrong := range ask[[]string](p, structure) {
		t.Error("results: " + wrong)
	}
	p.sound("results")
	p.shoot("docs-search")
	press("Escape", false)
	p.until(heading + " === 'tabletop serve'")
	p.fill("nav input", "a(b[c* <b>")
	p.until("document.querySelector('article').textContent.includes('0 sections')")
	p.fill("nav input", "hot-key-range")
	p.until("!!document.querySelector('article h2 a')")
	press("ArrowDown", false)
	if got := ask[string](p, "document.activeElement.textContent"); got != "L26 hot-key-range" {
		t.Errorf("the arrow goes to %q", got)
	}
	p.click("article h2 a")
	arrive("/docs/lint", "#l26-hot-key-range")
	p.visit("/lab")
	press("k", true)
	arrive("/docs/search", "main.doc")
	p.until("document.activeElement === document.querySelector('nav input')")
	p.fill(":focus", "snapshots")
	p.until("location.search === '?q=snapshots' && document.querySelectorAll('article h2').length > 3")
	p.sound("the search")
}
