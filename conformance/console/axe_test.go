package console

import (
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/tabletop-emu/tabletop/docs"
)

// axeAll is a script that returns the violations that axe-core finds in the page, each with its elements.
const axeAll = `axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations.map((v) => v.id + ': ' + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(' | ')))`

// TestAxe: axe-core finds no violation on any page, in both schemes and in two widths. AXE_CORE names the file
// axe.min.js of the npm package axe-core, since the project does not contain it; without it the test is skipped.
func TestAxe(t *testing.T) {
	file := os.Getenv("AXE_CORE")
	if file == "" {
		t.Skip("AXE_CORE does not name axe.min.js")
	}
	script, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	ctx := browser(t)
	srv, m := startFixture(t, "s5-order-entry")
	rows, items := "tabletop/"+m.TargetTable(), m.SourceTable()
	srv.query(t, "Scan", fmt.Sprintf(`{"TableName":%q,"Limit":3}`, items))
	p := open(t, ctx, srv)
	checked := 0
	check := func(what string, schemes ...string) {
		t.Helper()
		p.do(chromedp.Evaluate[chromedp.Void](string(script)))
		for _, scheme := range schemes {
			if _, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}); err != nil {
				t.Fatal(err)
			}
			for _, width := range []int64{1280, 640} {
				p.resize(width, 800)
				p.frame()
				for _, wrong := range ask[[]string](p, axeAll) {
					t.Errorf("%s, %s, %d pixels wide: %s", what, scheme, width, wrong)
				}
				checked++
			}
		}
	}
	for _, path := range []string{
		"/", "/t/" + rows, "/t/" + rows + "/rows", "/d/" + items, "/keys/" + rows + "?metric=rows", "/history/" + rows + "?key=" + url.QueryEscape("a"),
		"/requests", "/query", "/streams", "/streams?bigtable=" + rows + "&dynamodb=" + items, "/lab", "/migration", "/migration?fixture=s5-order-entry",
		"/nowhere", "/docs/index", "/docs/search?q=snapshots",
	} {
		p.visit(path)
		switch {
		case path == "/requests":
			p.until("!!document.querySelector('[data-request]')")
			p.click("[data-request]")
			p.until("document.body.innerText.includes('As Bigtable')")
		case strings.HasSuffix(path, "/rows"):
			p.until("!!document.querySelector('[data-cell]')")
		case strings.HasPrefix(path, "/docs/search"):
			p.until("!!document.querySelector('article h2 a')")
		}
		check(path, "light", "dark")
	}
	for _, name := range docs.Names() { // they look alike
		p.visit("/docs/" + name)
		check(name, "light")
	}
	p.resize(1280, 800)
	p.visit("/d/" + items)
	p.until("!!document.querySelector('tbody tr')")
	p.click("tbody tr")
	p.click("dialog summary")
	p.until("!!document.querySelector('dialog [data-line]')")
	check("an item", "light", "dark")
	p.asJSON()
	p.until("!!document.querySelector('dialog .editor')")
	check("an item as JSON", "light", "dark")
	t.Logf("axe-core checked %d states", checked)
}
