package console

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/btclient"
)

// common are the pages that do not belong to a table.
var common = map[string]string{"home": "/", "requests": "/requests", "query": "/query", "streams": "/streams", "lab": "/lab", "migration": "/migration"}

// see turns to pages and looks for complaints. TestStructure visits each of them.
func (p *tab) see(prefix string, pages map[string]string) {
	p.t.Helper()
	for name, path := range pages {
		p.turn(path)
		p.sound(prefix + " " + path)
		p.shoot(prefix + "-" + name)
	}
}

// startPairs starts a server with the DynamoDB table pairs, whose key has the texts a and b.
func startPairs(t *testing.T) *server {
	t.Helper()
	srv := start(t)
	if err := srv.ddb.Open(); err != nil {
		t.Fatal(err)
	}
	srv.call(t, "CreateTable", `{"TableName":"pairs","BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"a","KeyType":"HASH"},{"AttributeName":"b","KeyType":"RANGE"}],
		"AttributeDefinitions":[{"AttributeName":"a","AttributeType":"S"},{"AttributeName":"b","AttributeType":"S"}]}`)
	return srv
}

func (s *server) call(t *testing.T, operation, request string) {
	t.Helper()
	if _, err := s.ddb.Call(t.Context(), operation, []byte(request)); err != nil {
		t.Fatal(operation, err)
	}
}

func (s *server) createTable(t *testing.T, table string, families ...string) {
	t.Helper()
	spec := &btapb.Table{ColumnFamilies: map[string]*btapb.ColumnFamily{}}
	for _, f := range families {
		spec.ColumnFamilies[f] = &btapb.ColumnFamily{GcRule: &btapb.GcRule{Rule: &btapb.GcRule_MaxNumVersions{MaxNumVersions: 1}}}
	}
	_, err := btapb.NewBigtableTableAdminClient(s.lab.Bigtable().Conn()).CreateTable(t.Context(), &btapb.CreateTableRequest{
		Parent: "projects/tabletop/instances/tabletop", TableId: table, Table: spec,
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (s *server) client() *btclient.Client {
	return btclient.New(s.lab.Bigtable().Conn(), "tabletop", "tabletop", btclient.Options{})
}

// set writes cells of a column "f:name", each with its own timestamp.
func (s *server) set(t *testing.T, table, key string, cells ...btclient.Cell) {
	t.Helper()
	for len(cells) > 0 {
		n := min(len(cells), 5000)
		if err := s.client().MutateRow(t.Context(), table, []byte(key), btclient.AppendSets(nil, cells[:n])); err != nil {
			t.Fatal(err)
		}
		cells = cells[n:]
	}
}

const createThings = `{"TableName":"things","BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],
	"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}]}`

func TestPages_Empty(t *testing.T) {
	ctx := browser(t)
	srv := start(t)
	if err := srv.ddb.Open(); err != nil {
		t.Fatal(err)
	}
	p := open(t, ctx, srv)
	p.sound("sign in")
	if at := ask[string](p, "location.href"); strings.Contains(at, token) {
		t.Errorf("the token stays in the address: %s", at)
	}
	p.see("empty", common)
	srv.createTable(t, "bare")
	srv.createTable(t, "rowless", "f")
	srv.call(t, "CreateTable", createThings)
	p.see("empty", map[string]string{
		"table": "/t/tabletop/bare", "keys": "/keys/tabletop/bare", "rows": "/t/tabletop/rowless/rows", "items": "/d/things",
	})
}

func TestPages_NoToken(t *testing.T) {
	ctx := browser(t)
	srv := start(t)
	p := open(t, ctx, srv)
	p.visit("/requests")
	if _, err := chromedp.Call(p.ctx, network.ClearBrowserCookies, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	p.do(chromedp.Reload())
	p.until("!!document.querySelector('input[aria-label=Token]')")
	p.shoot("token")
	p.forget() // a refusal is a complaint
	p.fill("input[aria-label=Token]", token)
	p.click("form button")
	p.ready("/requests")
	p.sound("signed in again")
}

// texts are texts that a page must show and never execute.
var texts = []string{
	`<script>document.title="owned"</script>`,
	`"><img src=x onerror="document.title='owned'">`,
	`<svg/onload=document.title='owned'>`,
	"\u202egnitirw tfel-ot-thgir\u202c",
	"a\x00b\x1b[31mc",
	`javascript:document.title="owned"`,
	`{{constructor.constructor('document.title="owned"')()}} ${document.title="owned"}`,
	strings.Repeat("unbroken", 60),
	strings.Repeat("é", 2048),
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string
	}
	return string(b)
}

func TestPages_Hostile(t *testing.T) {
	ctx := browser(t)
	srv := start(t)
	if err := srv.ddb.Open(); err != nil {
		t.Fatal(err)
	}
	srv.createTable(t, "hostile", "f", "g")
	cell := func(name, value string) btclient.Cell {
		return btclient.Cell{Family: "f", Qualifier: []byte(name), Timestamp: 1000, Value: []byte(value)}
	}
	for _, text := range append(texts, "\xff\xfe\x00 not UTF-8 \xc3") {
		srv.set(t, "hostile", text, cell(text, text), cell("", ""), btclient.Cell{Family: "g", Qualifier: []byte(text), Timestamp: 1 << 62 / 1000 * 1000, Value: []byte(text)})
	}
	srv.set(t, "hostile", "large", cell("ten megabytes", strings.Repeat("<b>x</b>", 10<<20/8)))
	var wide []btclient.Cell
	for i := range 10_000 {
		wide = append(wide, cell(fmt.Sprintf("column-%05d<i>", i), "v"))
	}
	srv.set(t, "hostile", "wide", wide...)
	srv.call(t, "CreateTable", createThings)
	for _, text := range texts {
		srv.call(t, "PutItem", fmt.Sprintf(`{"TableName":"things","Item":{"id":{"S":%s},%s:{"M":{%[2]s:{"SS":[%[1]s]}}},"l":{"L":[{"S":%[1]s}]}}}`,
			quoted(text[:min(len(text), 1000)]), quoted("x"+text)))
	}
	p := open(t, ctx, srv)
	p.see("hostile", common)
	p.see("hostile", map[string]string{"table": "/t/tabletop/hostile", "keys": "/keys/tabletop/hostile", "rows": "/t/tabletop/hostile/rows", "items": "/d/things"})

	for _, text := range texts {
		p.visit("/history/tabletop/hostile?key=" + url.QueryEscape(strings.ReplaceAll(text, `\`, `\\`)))
		p.until("document.querySelectorAll('[data-event]').length > 0")
		p.sound("a history")
	}
	p.visit("/t/tabletop/hostile/rows")
	rows := len(texts) + 3
	for i := range rows {
		p.press("ArrowDown", "[aria-label='Row keys']")
		p.until(fmt.Sprintf("document.querySelector(\"[aria-label='Row keys'] [aria-selected=true]\")?.ariaPosInSet === '%d'", min(i+2, rows)))
		p.until("!!document.querySelector('[data-cell]')")
		p.sound(fmt.Sprintf("row %d", i))
	}
	p.visit("/t/tabletop/hostile/rows?prefix=wide")
	p.until("document.querySelector('[data-cell]')?.ariaSetSize === '10000'")
	if n := ask[int](p, "document.querySelectorAll('[data-cell]').length"); n > 100 {
		t.Errorf("%d cells are elements, which are not seen", n)
	}
	p.scrollTo("[aria-label='Cells']", 140_000)
	p.until("[...document.querySelectorAll('[data-cell]')].some(e => e.dataset.cell === '5000')")
	p.visit("/t/tabletop/hostile/rows?prefix=large")
	p.until("!!document.querySelector('[data-cell]')")
	p.click("[data-cell]")
	p.until("!!document.querySelector('dialog[open]')")
	p.sound("a cell of 10 MB")
	p.shoot("hostile-large-cell")
	p.visit("/d/things")
	p.click("tbody tr")
	p.until("!!document.querySelector('dialog[open]')")
	p.sound("an item")
	p.shoot("hostile-item")
	// The text of a filter is shown as text too.
	p.visit("/requests?f=" + url.QueryEscape(texts[1]))
	p.sound("a filter")
}

// TestPages_Fixtures visits the tables of all fixtures. In a row of each rule, pointing at an
// attribute highlights its cells, and pointing at a cell highlights its attributes.
// TestCarried_Exactly of control checks that these match the mapping.
func TestPages_Fixtures(t *testing.T) {
	ctx := browser(t)
	subjects, err := fixtures.Subjects()
	if err != nil {
		t.Fatal(err)
	}
	p := open(t, ctx, start(t))
	for _, s := range subjects {
		t.Run(s.Name, func(t *testing.T) {
			srv, m := startFixture(t, s.Name)
			p.t = t
			t.Cleanup(func() { p.do(chromedp.Navigate("about:blank")) }) // before the server ends
			p.enter(srv)
			table, items := url.PathEscape(m.TargetTable()), url.PathEscape(m.SourceTable())
			p.see(s.Name, map[string]string{"home": "/", "table": "/t/tabletop/" + table, "items": "/d/" + items, "keys": "/keys/tabletop/" + table, "rows": "/t/tabletop/" + table + "/rows"})
			for rule, key := range srv.rowsOfRules(t, m) {
				// A prefix that is a whole key: the row is the first.
				var text strings.Builder
				for _, b := range key {
					fmt.Fprintf(&text, `\x%02x`, b)
				}
				p.turn("/t/tabletop/" + table + "/rows?prefix=" + url.QueryEscape(text.String()))
				p.until("!!document.querySelector('[data-attribute]')")
				at := "/api/v1/tables/tabletop/" + table + "/items?key64=" + url.QueryEscape(base64.StdEncoding.EncodeToString(key))
				if wrong := ask[[]string](p, fmt.Sprintf(hoverAll, at)); len(wrong) > 0 {
					t.Errorf("rule %s, row %q: %s", rule, key, strings.Join(wrong, "\n"))
				}
				p.sound("hover")
				p.point("[data-attribute]:not([data-cells=''])")
				p.shoot(s.Name + "-" + rule)
			}
			// An opened item would change no cell, unless it is a copy that is not written.
			// After adding or removing an attribute, the
			// page shows the changes that the API reports, which are the endpoint's (TestPreviewItem_Fixtures of control).
			p.turn("/d/" + items)
			p.until("!!document.querySelector('tbody tr[tabindex]')")
			p.click("tbody tr[tabindex]")
			p.until("/No cell changes|is a copy of/.test(document.querySelector('[data-edit]')?.textContent)")
			p.asJSON()
			if wrong := ask[string](p, fmt.Sprintf(editAll, "/api/v1/items/"+items+"/preview")); wrong != "" {
				t.Error(wrong)
			}
			p.sound("an item's edit")
		})
	}
}

// rowsOfRules returns, for each rule of a mapping, the key of a row with an item of the rule.
func (s *server) rowsOfRules(t *testing.T, m *mapping.Mapping) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for row, err := range s.client().Read(t.Context(), btclient.Read{Table: m.TargetTable(), Spans: []btclient.Span{{}}, Clone: true}) {
		if err != nil {
			t.Fatal(err)
		}
		items, err := m.Items(row)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range items {
			placed, err := m.Place(item, 0)
			if err != nil {
				t.Fatal(err)
			}
			if out[placed.Rule] == nil {
				out[placed.Rule] = row.Key
			}
		}
	}
	for _, f := range m.Fidelity() {
		if out[f.Rule] == nil {
			t.Errorf("the rule %s has no row", f.Rule)
		}
	}
	return out
}
