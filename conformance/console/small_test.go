package console

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/internal/btclient"
)

// TestItems_Pages: the next page can be requested while there is one, and the fields of the
// key are on one line.
func TestItems_Pages(t *testing.T) {
	ctx := browser(t)
	srv := startPairs(t)
	for i := range 3 {
		srv.call(t, "PutItem", fmt.Sprintf(`{"TableName":"pairs","Item":{"a":{"S":"x"},"b":{"S":"%d"}}}`, i))
	}
	p := open(t, ctx, srv)
	p.visit("/d/pairs")
	// at waits for a page with a number of items, on which only some of the three buttons can be used.
	at := func(items int, usable string) {
		t.Helper()
		p.until(fmt.Sprintf("document.querySelectorAll('tbody tr').length === %d && [...document.querySelectorAll('button')].filter((b) => b.textContent.endsWith(' page') && !b.disabled).map((b) => b.textContent).join() === '%s'", items, usable))
	}
	at(3, "")
	tops := ask[[]float64](p, "['Partition key', 'Sort key'].map((label) => { const r = document.querySelector(`[aria-label='${label}']`).getBoundingClientRect(); return (r.top + r.bottom) / 2; })")
	if d := tops[0] - tops[1]; d < -1 || d > 1 {
		t.Errorf("the field of the sort key is %v pixels higher", d)
	}
	p.fill("[aria-label='Page size']", "2")
	p.pushButton("Read")
	at(2, "Next page")
	p.pushButton("Next page")
	at(1, "First page,Previous page")
	p.until("document.body.innerText.includes('Scan: 1 item of 1 read, 0.5 RCU, page 2')")
	p.shoot("items-pages")
	ask[any](p, "history.back()")
	at(2, "Next page")
	if got := ask[string](p, "location.pathname + document.querySelector(\"[aria-label='Page size']\").value"); got != "/d/pairs2" {
		t.Errorf("Back leads to %s", got)
	}
	p.pushButton("Next page")
	at(1, "First page,Previous page")
	p.pushButton("Previous page")
	at(2, "Next page")
	p.fill("[aria-label='Page size']", "1")
	p.pushButton("Read")
	at(1, "Next page")
	p.pushButton("Next page")
	at(1, "First page,Previous page,Next page")
	p.pushButton("First page")
	at(1, "Next page")
	p.sound("pages of items")
}

// TestItem_Duplicate: a copy of an item needs another key, and leaves the item as it is. The field of its JSON
// leaves room in a low window.
func TestItem_Duplicate(t *testing.T) {
	ctx := browser(t)
	srv := startThings(t)
	srv.call(t, "PutItem", `{"TableName":"things","Item":{"id":{"S":"a"},"total":{"N":"1"}}}`)
	p := open(t, ctx, srv)
	p.resize(1280, 500)
	p.visit("/d/things")
	p.click("tbody tr")
	p.pushButton("Duplicate…")
	const save = "[...document.querySelectorAll('dialog button')].find((b) => b.textContent === 'Save')"
	p.until("document.querySelector('dialog h1')?.textContent === 'New item' && document.querySelectorAll('dialog').length === 1")
	if got := ask[string](p, "document.querySelector('[data-diff]').textContent"); got != "Change the key: the table has an item with this key." || !ask[bool](p, save+".disabled") {
		t.Errorf("the copy says %q", got)
	}
	p.asJSON()
	p.until("!!document.querySelector('dialog .editor')")
	if got := ask[float64](p, "document.querySelector('dialog .editor').getBoundingClientRect().height / innerHeight"); got < 0.2 || got > 0.41 {
		t.Errorf("the field of the JSON has %.2f of the height of the window", got)
	}
	p.shoot("item-duplicate")
	p.pushButton("Form")
	p.fill("dialog [data-line] [aria-label='Value of an attribute']", "b")
	p.until("!" + save + ".disabled")
	p.pushButton("Save")
	p.until("!document.querySelector('dialog') && document.querySelectorAll('tbody tr').length === 2")
	if got := ask[string](p, "document.querySelector('tbody').innerText"); !containsAll(got, "S a", "S b") || strings.Count(got, "N 1") != 2 {
		t.Errorf("the items are %q", got)
	}
	p.sound("a copy of an item")
}

// TestTable_Kept: the tables of indexes, and those of migrations and of the DynamoDB endpoint itself, cannot be
// changed on their pages.
func TestTable_Kept(t *testing.T) {
	ctx := browser(t)
	srv, m := startFixture(t, "s5-order-entry")
	p := open(t, ctx, srv)
	own := ask[string](p, "fetch('/api/v1/tables').then((r) => r.json()).then((all) => all.bigtable.find((t) => t.own)?.table ?? '')")
	if own == "" {
		t.Fatal("the endpoint has no table of its own")
	}
	for table, said := range map[string]string{
		m.TargetTable() + "__GSI1": "An index of " + m.SourceTable() + " has its entries in these rows: only the DynamoDB endpoint changes them.",
		"_migration_schema":        "Migrations keep their state in this table: only tabletop migrate and the DynamoDB endpoint change it.",
		own:                        "The DynamoDB endpoint keeps its own data in this table: only the endpoint changes it.",
	} {
		p.visit("/t/tabletop/" + table)
		if got := ask[string](p, "document.querySelector('[data-kept]').textContent"); got != said {
			t.Errorf("%s: the page says %q", table, got)
		}
		if got := ask[string](p, "[...document.querySelectorAll('main button')].map((b) => b.textContent).join()"); got != "Collect garbage now" {
			t.Errorf("%s: the buttons are %s", table, got)
		}
		p.sound(table)
		p.shoot("table-kept")
	}
}

// TestPages_NoTable: the page of a missing table leads to the existing ones; like the others
// of a table, it belongs to Home.
func TestPages_NoTable(t *testing.T) {
	ctx := browser(t)
	srv := start(t)
	p := open(t, ctx, srv)
	for _, path := range []string{"/t/tabletop/gone", "/t/tabletop/gone/rows", "/keys/tabletop/gone"} {
		p.visit(path)
		if got := ask[string](p, "document.querySelector('.note.error').innerText"); strings.Contains(got, "/api/") || !strings.Contains(got, "Home lists") {
			t.Errorf("%s: the page says %s", path, got)
		}
		if got := ask[string](p, "document.querySelector('nav [aria-current]')?.textContent ?? 'none'"); got != "Home" {
			t.Errorf("%s: the page is of %s", path, got)
		}
		p.shoot("no-table")
		p.click(".note.error a")
		p.ready("/")
	}
}

// TestTable_Mapping: the page of a mapped table shows its file, the treatment of each
// attribute, and the findings of lint.
func TestTable_Mapping(t *testing.T) {
	ctx := browser(t)
	srv, m := startFixture(t, "s6-anti-sequential")
	p := open(t, ctx, srv)
	p.visit("/t/tabletop/" + m.TargetTable())
	p.pushButton("Show mapping and lint findings")
	p.until("!!document.querySelector('[data-mapping] [data-fidelity]')")
	for what, expression := range map[string]string{
		"one fixture":              "document.querySelectorAll('[data-mapping] section').length === 1 && document.querySelector('[data-mapping] h2').innerText === 's6-anti-sequential'",
		"the text":                 "document.querySelector('[data-mapping] pre').textContent.includes('apiVersion: migration/v1')",
		"a finding":                "!!document.querySelector('[data-mapping] [data-finding]')",
		"how each attribute fares": fmt.Sprintf("document.querySelectorAll('[data-mapping] [data-fidelity]').length === %d", len(m.Fidelity())),
	} {
		if !ask[bool](p, expression) {
			t.Errorf("the page does not show %s: %s", what, ask[string](p, "document.querySelector('[data-mapping]').innerText"))
		}
	}
	if wrong := ask[string](p, "document.querySelector('[data-mapping] .note.error:not([data-finding])')?.textContent ?? ''"); wrong != "" {
		t.Errorf("the page says %s", wrong)
	}
	p.shoot("table-mapping")
}

// TestRows_Copy: the code that reads a row is available for each client, whatever bytes the
// key has.
func TestRows_Copy(t *testing.T) {
	ctx := browser(t)
	srv := start(t)
	srv.createTable(t, "rows", "f")
	for _, key := range []string{`it's "é"`, "\x00\xff\\"} {
		srv.set(t, "rows", key, btclient.Cell{Family: "f", Timestamp: 1000, Value: []byte("v")})
	}
	p := open(t, ctx, srv)
	for prefix, want := range map[string]map[string]string{
		"it": {
			"Go": `row, err := client.Open("rows").ReadRow(ctx, "it's \"é\"")`, "Java": `ByteString.copyFromUtf8("it's \"é\"")`,
			"Python": `.read_row(b"it's \x22\xc3\xa9\x22")`, "JavaScript": `.row("it's \"é\"").get()`, "cbt": `lookup rows 'it'\''s "é"'`,
		},
		`\x00`: {"Go": `"\x00\xff\x5c"`, "Java": `ByteString.fromHex("00ff5c")`, "Python": `b"\x00\xff\x5c"`, "JavaScript": `Buffer.from("00ff5c", "hex")`},
	} {
		p.visit("/t/tabletop/rows/rows?prefix=" + url.QueryEscape(prefix))
		p.until("!!document.querySelector('[data-cell]')")
		p.pushButton("Copy as…")
		lines := ask[[][]string](p, "[...document.querySelectorAll('dialog pre')].map((e) => [e.previousElementSibling.querySelector('b').textContent, e.textContent])")
		if len(lines) != len(want) {
			t.Errorf("%q: there are %q", prefix, lines)
		}
		for _, line := range lines {
			if code, ok := want[line[0]]; !ok || !strings.Contains(line[1], code) {
				t.Errorf("%q: %s is %s, want %s in it", prefix, line[0], line[1], code)
			}
		}
		p.sound("copies")
		p.shoot("rows-copy")
	}
}
