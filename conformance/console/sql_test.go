package console

import (
	"strings"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/internal/btclient"
)

// TestQuery_SQL: a query is run with parameters; its rows, its cost and the place of its error are shown, and its
// preparation is below it in Requests.
func TestQuery_SQL(t *testing.T) {
	ctx := browser(t)
	srv := start(t)
	srv.createTable(t, "users", "f")
	client := btclient.New(srv.lab.Bigtable().Conn(), "tabletop", "tabletop", btclient.Options{})
	for key, name := range map[string]string{"u#1": "Ada", "u#2": "<img src=x>\u202e", "u#3": "\xff"} {
		if err := client.MutateRow(t.Context(), "users", []byte(key), []*btpb.Mutation{btclient.SetCell("f", []byte("name"), 1000, []byte(name))}); err != nil {
			t.Fatal(err)
		}
	}
	p := open(t, ctx, srv)
	p.visit("/query")
	ask[bool](p, `navigator.clipboard.writeText = async (text) => { globalThis.copied = text; }, true`)
	p.pushButton("SQL")
	p.pushButton("Run") // the example
	p.until("document.body.innerText.includes('3 rows, 3 rows of tables read')")
	p.fits("the example")
	const field = "textarea[aria-label='The SQL query']"
	p.fill(field, "SELECT _key, f['name'] AS name,\n  LENGTH(f['name']) AS n, CAST(NULL AS STRING) AS none, 9007199254740993 AS large\nFROM users WHERE STARTS_WITH(_key, @prefix) AND _key < 'u#3'")
	p.pushButton("Add parameter")
	p.fill("[aria-label='Name of a parameter']", "prefix")
	p.fill("[aria-label='Type of a parameter']", "BYTES")
	p.fill("[aria-label='Value of a parameter']", "u#")
	p.pushButton("Run")
	p.until("document.body.innerText.includes('2 rows, 2 rows of tables read')")
	rows := ask[[][]string](p, "[...document.querySelectorAll('.query > :last-child tbody tr')].map((tr) => [...tr.children].map((td) => td.textContent))")
	if want := [][]string{{"u#1", "Ada", "3", "NULL", "9007199254740993"}, {"u#2", `<img src=x>\u{202e}`, "14", "NULL", "9007199254740993"}}; !equalRows(rows, want) {
		t.Errorf("the rows are %q, want %q", rows, want)
	}
	if head := ask[string](p, "document.querySelector('.query > :last-child thead').innerText"); !strings.Contains(head, "name\nBYTES") || !strings.Contains(head, "n\nINT64") {
		t.Errorf("the head is %q", head)
	}
	p.shoot("query-sql")
	ask[bool](p, "[...document.querySelectorAll('label')].find((l) => l.textContent === 'Show as JSON').click(), true")
	p.until(`document.querySelector('.query > :last-child pre')?.textContent.includes('{"_key":"u#1","name":"Ada","n":3,"none":null,"large":"9007199254740993"}')`)
	if got, want := p.copied("Copy for tabletop sql"), "--param 'prefix:BYTES=u#' --target 127.0.0.1:1 --project 'tabletop' --instance 'tabletop'"; !strings.HasPrefix(got, "tabletop sql 'SELECT _key, f['\\''name") || !strings.HasSuffix(got, want) {
		t.Errorf("copied is %s, want %s", got, want)
	}

	p.pushButton("Remove")
	p.fill(field, "SELECT\n\tnosuch, 1 FROM users")
	p.pushButton("Run")
	p.until("document.querySelector('[role=alert]')?.innerText.includes('Unrecognized name: nosuch [at 2:9]')")
	p.until(inEditor("root.querySelector('.cm-lintRange-error')"))
	if got := ask[string](p, inEditor("root.querySelector('.cm-lintRange-error').textContent")); got != "nosuch" {
		t.Errorf("marked is %q", got)
	}
	p.shoot("query-sql-error")
	p.forget() // the failed request
	p.fill(field, "SELECT COUNT(*) AS n FROM users")
	p.until(inEditor("!root.querySelector('.cm-lintRange-error')"))
	p.pushButton("Run")
	p.until("document.body.innerText.includes('1 row, 3 rows of tables read')")
	p.sound("query")

	ask[bool](p, "[...document.querySelectorAll('.query > :last-child a')].find((a) => a.textContent === 'Request').click(), true")
	p.ready("/requests")
	p.until("document.querySelector('main').innerText.includes('Prepared by')")
	// Three executions with their preparations, and the preparation that failed.
	p.fill("[aria-label='Filter']", "query")
	const lines = "[...document.querySelectorAll('[data-request]')].map((e) => e.innerText.replace(/\\s+/g, ' '))"
	p.until(lines + ".length === 4")
	if got := ask[[]string](p, lines); !strings.Contains(got[0], "ExecuteQuery users SELECT COUNT(*) AS n FROM users OK") || !strings.Contains(got[1], "PrepareQuery") || !strings.Contains(got[1], "SELECT nosuch, 1 FROM users InvalidArgument") {
		t.Errorf("the list is %q", got)
	}
	ask[bool](p, "document.querySelector('[data-request] .toggle').click(), true")
	p.until(lines + ".length === 5 && /└ .*PrepareQuery/.test(" + lines + "[1])")
	p.sound("requests")
}

func equalRows(a, b [][]string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if strings.Join(a[i], "\x00") != strings.Join(b[i], "\x00") {
			return false
		}
	}
	return true
}
