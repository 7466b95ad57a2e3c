package console

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/internal/btclient"
)

// structure is a script that returns the faults of a page's structure: headings that skip a level, controls without
// a label, controls in controls, ids that two elements have, and links in texts that only their
// color marks.
const structure = `(() => {
	const wrong = [];
	const seen = [...document.querySelectorAll('h1, h2, h3, h4')].filter((e) => e.checkVisibility()).map((e) => Number(e.tagName[1]));
	seen.forEach((n, i) => { if (n > (i ? seen[i - 1] : 0) + 1) wrong.push('h' + n + ' after ' + (i ? 'h' + seen[i - 1] : 'nothing')); });
	if (!document.querySelector('dialog') && seen.filter((n) => n === 1).length !== 1) wrong.push('h1: ' + seen);
	for (const e of document.querySelectorAll('input, select, textarea')) {
		if (!e.ariaLabel && ![...e.labels].some((l) => l.innerText.trim())) wrong.push('no label: ' + e.outerHTML.slice(0, 120));
	}
	for (const e of document.querySelectorAll('[role=option] button, [role=option] a, button button, a a, a button, label button')) wrong.push('nested: ' + e.outerHTML.slice(0, 120));
	const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
	if (new Set(ids).size !== ids.length) wrong.push('an id twice: ' + ids);
	for (const e of document.querySelectorAll('p a, li a, .doc td a')) if (e.checkVisibility() && !getComputedStyle(e).textDecorationLine.includes('underline')) wrong.push('only its color marks ' + e.outerHTML.slice(0, 120));
	for (const e of document.querySelectorAll('a, button')) if (e.checkVisibility() && !(e.innerText.trim() || e.ariaLabel)) wrong.push('no name: ' + e.outerHTML.slice(0, 120));
	for (const e of document.querySelectorAll('th')) if (!e.innerText.trim() && e.checkVisibility()) wrong.push('an empty head: ' + e.parentElement.outerHTML.slice(0, 120));
	return wrong;
})()`

// outside is a script that returns the elements that extend beyond the window, except those in a list or a table that can
// be scrolled.
const outside = `(() => {
	const out = document.documentElement.scrollWidth > innerWidth ? ['the page'] : [];
	for (const e of document.querySelectorAll('main *, header *')) {
		if (!e.checkVisibility() || e.closest('.scroll, .virtual, pre, textarea, .heat, .split > section > h2, .line-head')) continue;
		if (e.getBoundingClientRect().right > innerWidth + 1) out.push(e.outerHTML.slice(0, 120));
	}
	return out.slice(0, 5);
})()`

// TestStructure: with a mapped table, without tables, and with hostile data each page has
// headings in order, labels, and no nested controls, and fits a laptop's screen and half of one.
func TestStructure(t *testing.T) {
	ctx := browser(t)
	mapped, m := startFixture(t, "s5-order-entry")
	empty := start(t)
	hostile := start(t)
	if err := hostile.ddb.Open(); err != nil {
		t.Fatal(err)
	}
	hostile.call(t, "CreateTable", createThings)
	for _, id := range []string{`<b onclick=\"x\">`, `\u202ea\u0000`, strings.Repeat("long", 300), `a\\b`} {
		hostile.call(t, "PutItem", fmt.Sprintf(`{"TableName":"things","Item":{"id":{"S":"%s"},"%s":{"SS":["%[1]s"]}}}`, id, strings.Repeat("name", 50)))
	}
	hostile.createTable(t, "rows", "f")
	hostile.set(t, "rows", strings.Repeat("k", 4000), btclient.Cell{Family: "f", Qualifier: []byte("\x00\xff" + strings.Repeat("q", 500)), Timestamp: 1000, Value: []byte("v")})
	pages := []string{"/", "/requests", "/query", "/streams", "/lab", "/migration", "/nowhere"}
	of := func(table, items string) []string {
		return append([]string{"/t/tabletop/" + table, "/t/tabletop/" + table + "/rows", "/keys/tabletop/" + table, "/d/" + items, "/streams?bigtable=tabletop/" + table + "&dynamodb=" + items}, pages...)
	}
	for _, c := range []struct {
		name  string
		srv   *server
		paths []string
	}{
		{"mapped", mapped, of(m.TargetTable(), m.SourceTable())},
		{"empty", empty, pages},
		{"hostile", hostile, of("rows", "things")},
	} {
		p := open(t, ctx, c.srv)
		for _, path := range c.paths {
			p.visit(path)
			for _, width := range []int64{1280, 640} {
				p.resize(width, 800)
				p.frame()
				for _, wrong := range ask[[]string](p, structure) {
					t.Errorf("%s %s: %s", c.name, path, wrong)
				}
				if out := ask[[]string](p, outside); len(out) > 0 {
					t.Errorf("%s %s, %d pixels wide: beyond the window are %q", c.name, path, width, out)
				}
				p.shoot(fmt.Sprintf("structure-%s-%s-%d", c.name, strings.ReplaceAll(strings.Trim(strings.SplitN(path, "?", 2)[0], "/"), "/", "-"), width))
			}
		}
		if strings.Contains(fmt.Sprint(c.paths), "/d/") {
			p.resize(1280, 800)
			p.visit(c.paths[3])
			p.until("!!document.querySelector('tbody tr')")
			p.click("tbody tr")
			p.until("!!document.querySelector('dialog [data-line]')")
			p.click("dialog summary")
			p.fits(c.name + ", an item")
			for _, wrong := range ask[[]string](p, structure) {
				t.Errorf("%s, an item: %s", c.name, wrong)
			}
		}
	}
}

// TestPages_Missing: an unknown path, and a malformed one, have a page that leads to the others.
func TestPages_Missing(t *testing.T) {
	ctx := browser(t)
	srv := start(t)
	p := open(t, ctx, srv)
	for _, path := range []string{"/nowhere", "/t/tabletop", "/requests/7"} {
		p.visit(path)
		if got := ask[string](p, "document.querySelector('main').innerText"); !containsAll(got, "Page not found", path, "Streams: changes of tables") {
			t.Errorf("%s: the page is %s", path, got)
		}
		if n := ask[int](p, "document.querySelectorAll('main li a').length"); n != 7 {
			t.Errorf("%s: it has %d links", path, n)
		}
		p.click("main li a")
		p.ready("/")
	}
	p.shoot("missing")
}

// TestNotation: invisible characters are written in one way for items, keys and cells, and
// fields accept what the pages show.
func TestNotation(t *testing.T) {
	ctx := browser(t)
	srv := startThings(t)
	srv.call(t, "PutItem", `{"TableName":"things","Item":{"id":{"S":"\u202ea\u0000\t\\x00é"},"is":{"S":"this"}}}`)
	srv.call(t, "PutItem", `{"TableName":"things","Item":{"id":{"S":"other"},"is":{"S":"other"}}}`)
	srv.createTable(t, "rows", "f")
	const key = "\u202ea\x00\t\\x00é"
	srv.set(t, "rows", key+"\xff", btclient.Cell{Family: "f", Qualifier: []byte(key), Timestamp: 1000, Value: []byte(key)})
	srv.set(t, "rows", "other", btclient.Cell{Family: "f", Qualifier: []byte("q"), Timestamp: 1000, Value: []byte("v")})
	const want = `\u{202e}a\x00\t\\x00é`
	p := open(t, ctx, srv)

	p.visit("/d/things")
	p.until("document.querySelectorAll('tbody tr').length === 2")
	if got := ask[string](p, "document.querySelector('tbody').innerText"); !strings.Contains(got, want) {
		t.Errorf("the item is shown as %q", got)
	}
	p.fill("[aria-label='Partition key']", want)
	p.pushButton("Read")
	p.until("document.querySelectorAll('tbody tr').length === 1 && document.querySelector('tbody').innerText.includes('this')")
	p.fill("[aria-label='Partition key']", "")
	p.fill("[aria-label='Attribute of the filter']", "id")
	p.fill("[aria-label='Value of the filter']", want)
	p.pushButton("Read")
	p.until("document.querySelectorAll('tbody tr').length === 1 && document.body.innerText.includes('1 item of 2 read')")
	p.click("tbody tr")
	if got := ask[string](p, "document.querySelector('dialog th').nextElementSibling.innerText"); !strings.Contains(got, want) {
		t.Errorf("the open item is shown as %q", got)
	}
	p.asJSON()
	if got := ask[string](p, "document.querySelector('dialog textarea').value"); !strings.Contains(got, `"\u202ea\u0000\t\\x00é"`) {
		t.Errorf("as JSON the item is %s", got)
	}

	p.visit("/t/tabletop/rows/rows?prefix=" + url.QueryEscape(want+`\xff`))
	p.until("!!document.querySelector('[data-cell]')")
	if got := ask[[]string](p, "[...document.querySelectorAll(\"[aria-label='Row keys'] .grow, [data-cell] > .name-of-cell, [data-cell] > .grow\")].map((e) => e.textContent)"); fmt.Sprint(got) != fmt.Sprint([]string{want + `\xff`, "f:" + want, want}) {
		t.Errorf("key, column and value are %q", got)
	}
	p.sound("the notation of invisible characters")
	p.shoot("notation")
}
