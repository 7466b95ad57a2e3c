package console

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// cut is a script that returns the parts of visible lines whose text is truncated: those that extend beyond the
// list, and those of a kind that must not be truncated.
const cut = `[...document.querySelectorAll('.virtual')].flatMap((list) => [...list.querySelectorAll('.line > *')].filter((e) => e.checkVisibility() && e.textContent &&
	(e.getBoundingClientRect().right > list.getBoundingClientRect().right || e.matches('.whole') && e.scrollWidth > e.clientWidth)).map((e) => e.textContent))`

// TestLists_Whole: on a laptop's screen and on half of one, lines stay inside their list, and
// times and durations are complete.
func TestLists_Whole(t *testing.T) {
	ctx := browser(t)
	srv, m := startFixture(t, "s4-versions")
	p := open(t, ctx, srv)
	table := "/t/tabletop/" + m.TargetTable()
	for _, width := range []int64{1280, 640} {
		p.resize(width, 800)
		for path, some := range map[string]string{table + "/rows": "[data-cell]", "/requests": "[data-request]"} {
			p.visit(path)
			p.until("!!document.querySelector('" + some + " > .whole')")
			if parts := ask[[]string](p, cut); len(parts) > 0 {
				t.Errorf("%s, %d pixels wide: cut are %q", path, width, parts)
			}
			if parts := ask[[]string](p, "[...document.querySelectorAll('.line .pill')].filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.textContent)"); len(parts) > 0 {
				t.Errorf("%s, %d pixels wide: cut are the statuses %q", path, width, parts)
			}
			p.sound(path)
			p.shoot(fmt.Sprintf("lists%s-%d", strings.ReplaceAll(path, "/", "-"), width))
		}
	}
	// Versions that are a millisecond apart look different.
	p.visit(table + "/rows")
	p.until("document.querySelectorAll('[data-cell]').length > 1")
	if same := ask[int](p, `((all) => all.length - new Set(all).size)([...document.querySelectorAll('[data-cell]')].filter((e) => e.matches('.old')).map((e) => e.querySelector('.whole').textContent + e.textContent))`); same != 0 {
		t.Errorf("%d versions look like another one", same)
	}
	p.shoot("lists-rows")
}

// active is a script that returns the current line of a list: its place and its text.
const active = `((list) => { const e = document.getElementById(list.getAttribute('aria-activedescendant') ?? ''); return e && list.contains(e) && e.ariaSelected === 'true' ? e.ariaPosInSet : 'none'; })(document.querySelector("[aria-label='%s']"))`

// TestLists_Keyboard: arrows move through the cells, each with its attributes, and Enter opens
// one. A list announces its current line, and a line that stays is the same element.
func TestLists_Keyboard(t *testing.T) {
	ctx := browser(t)
	srv, m := startFixture(t, "s1-catalog")
	p := open(t, ctx, srv)
	p.visit("/t/tabletop/" + m.TargetTable() + "/rows")
	p.until("!!document.querySelector('[data-attribute]') && document.querySelectorAll('[data-cell]').length > 1")
	at := func(list, want string) {
		t.Helper()
		p.until(fmt.Sprintf(active, list) + " === '" + want + "'")
	}
	at("Row keys", "1")
	ask[bool](p, "(document.querySelector('[aria-label=Cells]').dataset.old = '1', true)")
	p.press("ArrowDown", "[aria-label='Row keys']")
	at("Row keys", "2")
	p.until("!document.querySelector('[data-old]') && document.querySelectorAll('[data-cell]').length > 1")
	lit := make(map[string]bool)
	ask[bool](p, "(document.querySelector('[data-cell]').dataset.kept = '1', true)")
	for _, place := range []string{"1", "2"} {
		p.press("ArrowDown", "[aria-label='Cells']")
		at("Cells", place)
		cell := ask[string](p, "document.querySelector(\"[aria-label='Cells'] [aria-selected=true]\").dataset.cell")
		names := ask[[]string](p, "[...document.querySelectorAll('[data-attribute].lit')].map((e) => e.dataset.attribute)")
		want := ask[[]string](p, fmt.Sprintf("[...document.querySelectorAll('[data-attribute]')].filter((e) => e.dataset.cells.split(' ').includes('%s')).map((e) => e.dataset.attribute)", cell))
		if fmt.Sprint(names) != fmt.Sprint(want) {
			t.Errorf("at cell %s the attributes %q are lit, want %q", cell, names, want)
		}
		for _, name := range names {
			lit[name] = true
		}
		if ask[bool](p, "!!document.querySelector('dialog')") {
			t.Fatal("an arrow opens a cell")
		}
	}
	if len(lit) == 0 {
		t.Error("no attribute was lit")
	}
	if !ask[bool](p, "!!document.querySelector('[data-kept]')") {
		t.Error("the lines are other elements after an arrow")
	}
	p.press("Enter", "[aria-label='Cells']")
	p.until("!!document.querySelector('dialog[open]')")
	p.sound("the keyboard in lists")
	p.shoot("lists-keyboard")

	// In Requests the right arrow expands the calls; the selected request stays selected when
	// others arrive.
	scan := fmt.Sprintf("fetch('/api/v1/query', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify({operation: 'Scan', request: {TableName: %q}})}).then((r) => r.ok)", m.SourceTable())
	ask[bool](p, scan)
	p.visit("/requests?f=" + url.QueryEscape("endpoint:ddb op:Scan"))
	p.until("document.querySelectorAll('[data-request]').length === 1 && document.body.innerText.includes('● Live')")
	const list = "[aria-label='Requests, the newest first']"
	p.press("ArrowDown", list)
	at("Requests, the newest first", "1")
	chosen := ask[string](p, "document.querySelector('[aria-selected=true]').dataset.request")
	p.press("ArrowRight", list)
	p.until("document.querySelectorAll('[data-request]').length > 1")
	p.press("ArrowLeft", list)
	p.until("document.querySelectorAll('[data-request]').length === 1")
	ask[bool](p, scan)
	p.until("document.querySelectorAll('[data-request]').length === 2")
	p.until(fmt.Sprintf("document.querySelector('[aria-selected=true]')?.dataset.request === '%s'", chosen))
	at("Requests, the newest first", "2")
	p.sound("the keyboard in requests")
}

// TestSwitch: the pages of a table have a menu that opens the same page of another table.
func TestSwitch(t *testing.T) {
	ctx := browser(t)
	srv := startThings(t)
	srv.call(t, "CreateTable", strings.Replace(createThings, "things", "others", 1))
	id := func(table string) string {
		m, err := srv.ddb.Mapping(t.Context(), table)
		if err != nil {
			t.Fatal(err)
		}
		return m.TargetTable()
	}
	one, other := id("things"), id("others")
	p := open(t, ctx, srv)
	for from, to := range map[string]string{
		"/d/things": "/d/others", "/t/tabletop/" + one: "/t/tabletop/" + other, "/t/tabletop/" + one + "/rows": "/t/tabletop/" + other + "/rows", "/keys/tabletop/" + one: "/keys/tabletop/" + other,
		"/streams?bigtable=tabletop/" + one + "&dynamodb=things": "/streams?bigtable=tabletop%2F" + other + "&dynamodb=others",
	} {
		p.visit(from)
		ask[bool](p, fmt.Sprintf(`((menu) => { menu.value = %q; menu.dispatchEvent(new Event('change')); return true; })(document.querySelector('[aria-label="Switch table"]'))`, to))
		p.ready(to)
		if got := ask[string](p, "location.pathname + location.search"); got != to {
			t.Errorf("%s leads to %s, want %s", from, got, to)
		}
		p.sound(to)
	}
}

// TestQuery_Fault: the error of a fault has a button that removes the fault.
func TestQuery_Fault(t *testing.T) {
	ctx := browser(t)
	srv := startThings(t)
	srv.control(t, "POST", "faults", `{"endpoint":"dynamodb","method":"Scan","effect":"fail","code":"Throttling"}`)
	p := open(t, ctx, srv)
	p.visit("/query?op=Scan&request=" + url.QueryEscape(`{"TableName":"things"}`))
	p.pushButton("Run")
	p.until("document.querySelector('.note.error')?.innerText.includes('Remove the fault')")
	p.forget()
	// The request leads to the fault too.
	p.visit("/requests?f=op:Scan")
	p.until("document.querySelector('[data-request]')?.innerText.includes('fault')")
	p.click("[data-request]")
	p.until("document.querySelector('.detail').innerText.includes('A fault caused this response')")
	p.shoot("requests-fault")
	p.visit("/query?op=Scan&request=" + url.QueryEscape(`{"TableName":"things"}`))
	p.pushButton("Run")
	p.until("document.querySelector('.note.error')?.innerText.includes('Remove the fault')")
	p.forget()
	p.pushButton("Remove the fault")
	p.until("document.querySelector('.note.error')?.innerText.includes('It is removed now.') && !document.querySelector('header .state').innerText.includes('fault')")
	p.pushButton("Run")
	p.until("!document.querySelector('.note.error') && document.querySelector('main').innerText.includes('0 items')")
	p.sound("without the fault")
}
