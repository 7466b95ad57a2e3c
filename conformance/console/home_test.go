package console

import (
	"fmt"
	"strings"
	"testing"
)

// TestHome: the code for clients has an endpoint and the other settings of clients; tables of
// indexes are listed under their table.
func TestHome(t *testing.T) {
	ctx := browser(t)
	srv, m := startFixture(t, "s5-order-entry")
	p := open(t, ctx, srv)
	p.visit("/")
	p.click("summary")
	ask[bool](p, copying)
	languages := ask[[]string](p, "[...document.querySelectorAll('[role=tab]')].map((b) => b.textContent)")
	if fmt.Sprint(languages) != "[Shell Go Java Python JavaScript]" {
		t.Errorf("the languages are %q", languages)
	}
	for _, language := range languages {
		p.pushButton(language)
		codes := ask[[]string](p, "[...document.querySelectorAll('[role=tabpanel] pre')].map((e) => e.textContent)")
		if len(codes) != 2 {
			t.Fatalf("%s has %d pieces of code, want one for each endpoint", language, len(codes))
		}
		if !strings.Contains(codes[0], "127.0.0.1:1") && !strings.Contains(codes[0], `"127.0.0.1", 1)`) {
			t.Errorf("%s: no endpoint of Bigtable is in %s", language, codes[0])
		}
		if !strings.Contains(codes[1], "http://127.0.0.1:2") || strings.Count(codes[1], "tabletop") < 2 {
			t.Errorf("%s: no endpoint of DynamoDB with credentials is in %s", language, codes[1])
		}
		if got := p.copied("Copy"); got != codes[1] {
			t.Errorf("%s: copied is %s, want %s", language, got, codes[1])
		}
		p.fits(language)
	}
	ask[bool](p, "document.querySelector('[role=tab][aria-selected=true]').focus(), true")
	p.press("ArrowLeft", "[role=tab][aria-selected=true]")
	if got := ask[string](p, "document.querySelector('[role=tab][aria-selected=true]').textContent + document.querySelectorAll('[role=tab][tabindex=\"0\"]').length"); got != "Python1" {
		t.Errorf("an arrow leads to %s", got)
	}
	p.shoot("home-code")
	p.click("summary")
	heads := ask[[]string](p, "[...document.querySelectorAll('h2')].map((e) => e.textContent)")
	if len(heads) < 2 || heads[0] != "Addresses" || heads[1] != "Tables" {
		t.Errorf("the parts of the page are %q", heads)
	}
	table := m.TargetTable()
	if got := ask[string](p, "document.querySelector(\"a[href='/t/tabletop/"+table+"']\").closest('td').querySelector('details').textContent"); !strings.Contains(got, "2 index tables") || !strings.Contains(got, table+"__GSI1") || !strings.Contains(got, table+"__GSI2") {
		t.Errorf("under the table is %q", got)
	}
	if n := ask[int](p, "[...document.querySelectorAll('tbody > tr > td > a, tbody > tr > td > div:not(.under) > a')].filter((a) => a.textContent.includes('__')).length"); n != 0 {
		t.Errorf("%d tables of indexes stand by themselves", n)
	}
	p.sound("home")
	p.shoot("home")
	p.fill("input[type=search]", "GSI2")
	p.until("!!document.querySelector('.under').checkVisibility()")
	p.fill("input[type=search]", "")
	p.click("summary")
	p.resize(640, 800)
	p.shoot("home-narrow")
	p.fits("Home")
}
