package console

import (
	"strings"
	"testing"
)

// TestHome: the lines for clients have an endpoint and the other settings of clients; tables
// of indexes are listed under their table.
func TestHome(t *testing.T) {
	ctx := browser(t)
	srv, m := startFixture(t, "s5-order-entry")
	p := open(t, ctx, srv)
	p.visit("/")
	lines := ask[[]string](p, "[...document.querySelectorAll('.lines tr')].map((tr) => tr.children[0].textContent + ' ' + tr.children[1].textContent)")
	of := map[string]int{}
	for _, line := range lines {
		language, _, _ := strings.Cut(line, " ")
		of[language]++
		dynamoDB := strings.Contains(line, "http://127.0.0.1:2")
		if !dynamoDB && !strings.Contains(line, "127.0.0.1:1") && !strings.Contains(line, `"127.0.0.1", 1)`) {
			t.Errorf("no endpoint is in %q", line)
		}
		if dynamoDB && strings.Count(line, "tabletop") < 2 {
			t.Errorf("no credentials are in %q", line)
		}
	}
	for _, language := range []string{"Go", "Java", "Python", "JavaScript"} {
		if of[language] != 2 {
			t.Errorf("%d lines for %s, want one for each endpoint", of[language], language)
		}
	}
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
	p.click(".lines summary, summary")
	p.until("document.querySelector('.lines').checkVisibility()")
	p.shoot("home-lines")
	p.resize(640, 800)
	p.shoot("home-narrow")
	p.fits("Home")
}
