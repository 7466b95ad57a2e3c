package console

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/control"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/test/labserver"
)

// submit sends the form of the open dialog, and waits for the page that follows.
func (p *tab) submit(path string) {
	p.t.Helper()
	p.click("dialog form button.primary")
	p.until("!document.querySelector('dialog') && document.documentElement.dataset.ready === '" + path + "'")
}

func rawValue(b string) *btpb.Value {
	return &btpb.Value{Kind: &btpb.Value_RawValue{RawValue: []byte(b)}}
}

// containsAll reports whether a text has all parts. It compares without regard to the kinds of
// spaces.
func containsAll(text string, parts ...string) bool {
	text = strings.Join(strings.Fields(text), " ")
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
}

// TestHome_Begin: on a server without tables Home creates a table of either endpoint, imports
// a file and loads the demo.
func TestHome_Begin(t *testing.T) {
	ctx := browser(t)
	s := startWith(t, labserver.Options{Control: control.Options{Demo: true}})
	srv := serverOf(s)
	p := open(t, ctx, srv)
	p.visit("/")
	if n := ask[int](p, "document.querySelectorAll('[data-begin] > section').length"); n != 3 {
		t.Errorf("an empty server offers %d actions", n)
	}
	if ask[bool](p, "document.querySelector('main').innerText.includes('Danger zone')") {
		t.Error("a server without tables offers a reset")
	}
	p.sound("an empty home")
	p.shoot("home-empty")

	p.pushButton("DynamoDB table…")
	p.shoot("home-create")
	if got := ask[string](p, "[...document.querySelectorAll('dialog .foot')].map((bar) => [...bar.querySelectorAll('button')].map((b) => b.textContent)).join(' | ')"); got != "Cancel,Create table" {
		t.Errorf("the last line of the form is %q", got)
	}
	p.fill("[aria-label='Name of the table']", "pairs")
	p.fill("[aria-label='Name of the partition key']", "who")
	p.fill("[aria-label='Name of the sort key']", "when")
	p.fill("[aria-label='Type of the sort key']", "N")
	p.submit("/d/pairs")
	p.visit("/")
	const line = "[...document.querySelectorAll('tbody tr')].find((tr) => tr.querySelector('.name')?.textContent === '%s')?.innerText.replaceAll(/\\s+/g, ' ') ?? ''"
	if got := ask[string](p, fmt.Sprintf(line, "pairs")); len(got) < 20 || got[:20] != "pairs 0 who S, when " {
		t.Errorf("the table is shown as %q", got)
	}

	p.pushButton("New Bigtable table…")
	p.fill("[aria-label='Name of the table']", "raw")
	p.fill("[aria-label='Families']", "f, g")
	p.fill("[aria-label='Versions to keep']", "3")
	p.submit("/t/tabletop/raw")
	if got := ask[string](p, "document.querySelector('tbody').innerText"); got == "" || ask[int](p, "[...document.querySelectorAll('tbody td')].filter((td) => td.textContent === 'maxversions=3').length") != 2 {
		t.Errorf("the families are %s", got)
	}

	// A name that is taken is an error of the form, which stays.
	p.visit("/")
	p.pushButton("New Bigtable table…")
	p.fill("[aria-label='Name of the table']", "raw")
	p.fill("[aria-label='Families']", "f")
	p.click("dialog form button.primary")
	p.until("!!document.querySelector('dialog .note.error')")
	p.forget()
	p.visit("/")

	p.pushButton("Import a file…")
	choose := func(name, text string) {
		ask[bool](p, fmt.Sprintf(`((input) => {
			const files = new DataTransfer();
			files.items.add(new File([%q], %q));
			input.files = files.files;
			return input.dispatchEvent(new Event('change'));
		})(document.querySelector('input[type=file]'))`, text, name))
	}
	choose("people.csv", "id,n\na,1\n")
	p.until("document.querySelector('dialog .note.error[role=alert]')?.textContent === 'The import expects JSON lines: one object per line.'")
	choose("people.jsonl", `{"Item":{"id":{"S":"a"},"n":{"N":"1"}}}`+"\n"+`{"id":"b","n":12345678901234567890,"tags":["x",null,true]}`+"\n")
	p.until("document.querySelector(\"[aria-label='Name of the partition key']\").value === 'id'")
	p.submit("/d/people")
	p.until("document.querySelectorAll('tbody tr').length === 2")
	if got := ask[string](p, "document.querySelector('tbody').innerText"); !containsAll(got, "S a", "S b", "N 12345678901234567890", `L [{"S":"x"},{"NULL":true},{"BOOL":true}]`) {
		t.Errorf("the imported items are %s", got)
	}

	if err := srv.lab.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.visit("/")
	p.pushButton("Load the demo")
	// The page is drawn as the tables appear, and once more when the demo is complete.
	p.until("document.querySelector('.toast')?.textContent.includes(' loaded into ') && document.documentElement.dataset.ready === '/' && document.querySelectorAll('tbody .name').length > 17")
	if got := ask[string](p, fmt.Sprintf(line, "orders")); len(got) < 22 || got[:22] != "orders 46 PK S, SK S o" {
		t.Errorf("a table of the demo is shown as %q", got)
	}
	p.sound("the demo")
	p.shoot("home-demo")
	looks := ask[[]string](p, "[...document.querySelectorAll('[data-looks] a')].map((a) => a.getAttribute('href'))")
	if !slices.Equal(looks, []string{"/t/tabletop/videos/rows", "/requests", "/keys/tabletop/events"}) {
		t.Fatalf("the demo leads to %q", looks)
	}
	for i, shown := range []string{"[data-attribute]", "[data-request]", ".heat .over span"} {
		p.visit(looks[i])
		p.until(fmt.Sprintf("!!document.querySelector(%q)", shown))
		p.sound(looks[i])
	}

	// The details of a request that reads a materialized view name its row, and link to the view.
	p.visit("/requests?f=" + url.QueryEscape("endpoint:ddb op:Query table:shop"))
	p.until("!!document.querySelector('[data-request]')")
	p.click("[data-request]")
	p.until("!!document.querySelector('.touched a[href^=\"/v/\"]')")

	srv.lab.Clock().Freeze()
	p.visit("/")
	if got := ask[string](p, "document.querySelector('.note.warn')?.innerText ?? ''"); !containsAll(got, "The clock is frozen. Open the Lab") {
		t.Errorf("with a frozen clock the page says %q", got)
	}
}

// TestEmpty_Advice: without data each page offers a step that works: Query creates the first table, and the
// rows of a DynamoDB table without items lead to the form of an item, never to a write of internal cells.
func TestEmpty_Advice(t *testing.T) {
	ctx := browser(t)
	srv := start(t)
	if err := srv.ddb.Open(); err != nil {
		t.Fatal(err)
	}
	p := open(t, ctx, srv)
	p.visit("/query")
	if got := ask[string](p, "document.querySelector('.note').textContent"); got != "There are no tables yet. Run this request to create one." {
		t.Errorf("Query says %q", got)
	}
	p.pushButton("Run")
	p.until("!!document.querySelector('[aria-live] details')")
	p.fill("[aria-label=Operation]", "Scan")
	p.until("document.querySelector('[aria-label=Table]').checkVisibility() && document.querySelector('textarea').value.includes('\"TableName\": \"orders\"')")
	p.sound("the first table")

	m, err := srv.ddb.Mapping(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	p.visit("/t/tabletop/" + m.TargetTable() + "/rows")
	if got := ask[string](p, "document.querySelector('.note').innerText"); !containsAll(got, "The table has no items yet.") || strings.Contains(got, "cbt") {
		t.Errorf("the rows of a table without items say %q", got)
	}
	p.pushButton("New item…")
	p.ready("/d/orders")
	p.asJSON()
	p.until("document.querySelector('dialog textarea').value.includes('\"id\"')")

	srv.createTable(t, "plain", "_own", "f")
	p.visit("/t/tabletop/plain/rows")
	if got := ask[string](p, "document.querySelector('.note').innerText"); !containsAll(got, "set plain row1 f:column=value") {
		t.Errorf("the rows of an empty Bigtable table say %q", got)
	}
	p.sound("empty tables")
}

// TestItem_Links: an item leads to its row, its requests and its stream records, and they lead
// back.
func TestItem_Links(t *testing.T) {
	ctx := browser(t)
	srv := start(t)
	if err := srv.ddb.Open(); err != nil {
		t.Fatal(err)
	}
	srv.call(t, "CreateTable", `{"TableName":"pairs","BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"a","KeyType":"HASH"},{"AttributeName":"b","KeyType":"RANGE"}],
		"AttributeDefinitions":[{"AttributeName":"a","AttributeType":"S"},{"AttributeName":"b","AttributeType":"N"}],"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"}}`)
	for _, b := range []int{1, 2} {
		srv.call(t, "PutItem", fmt.Sprintf(`{"TableName":"pairs","Item":{"a":{"S":"some one"},"b":{"N":"%d"},"c":{"S":"v%[1]d"}}}`, b))
	}
	m, err := srv.ddb.Mapping(t.Context(), "pairs")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := srv.client().EnsureTable(t.Context(), m.TargetTable(), []btclient.Family{{Name: "_m"}}, nil); err != nil {
		t.Fatal(err)
	}
	for row, err := range srv.client().Read(t.Context(), btclient.Read{Table: m.TargetTable(), Spans: []btclient.Span{{}}}) {
		if err != nil {
			t.Fatal(err)
		}
		srv.set(t, m.TargetTable(), string(row.Key), btclient.Cell{Family: "_m", Timestamp: 1000, Value: []byte("position")})
	}
	p := open(t, ctx, srv)
	p.visit(`/d/pairs?key={"a":{"S":"some one"},"b":{"N":"2"}}`)
	p.until("[...document.querySelectorAll('[data-places] a')].some((a) => a.textContent === 'Streams')")
	links := ask[map[string]string](p, "Object.fromEntries([...document.querySelectorAll('[data-places] a')].map((a) => [a.textContent, a.getAttribute('href')]))")
	row := links["Row"]
	if got := ask[string](p, "document.querySelector('dialog h1').textContent"); got != "Item some one 2" {
		t.Errorf("the title of the item is %q", got)
	}
	p.shoot("item-links")
	p.click("[data-places] a[href*='/rows']")
	p.ready("/t/tabletop/" + strings.Split(row, "/")[3] + "/rows")
	if ask[bool](p, "!!document.querySelector('dialog')") {
		t.Error("the item stays open over its row")
	}

	p.visit(row)
	p.until("document.querySelectorAll('[data-attribute]').length === 3")
	if got := ask[string](p, "document.querySelector('.item').innerText"); !containsAll(got, "some one", "N 2", "v2") {
		t.Errorf("the row has the item %s", got)
	}
	p.until("!!document.querySelector('[data-cell]')")
	if got := ask[string](p, "[document.querySelectorAll('[data-cell]').length, document.querySelector('.wide > h2 small').textContent].join()"); got != "1,1 in 1 column · 3 internal cells hidden" {
		t.Errorf("the cells in the list, and their number, are %s", got)
	}
	if n := ask[int](p, "document.querySelectorAll('[data-cell].mine, .item.mine').length"); n != 2 {
		t.Errorf("marked are %d places of the item, want its cell and its attributes", n)
	}
	p.visit(strings.Split(row, "?")[0])
	p.until("!!document.querySelector('[data-cell]')")
	if ask[bool](p, "!!document.querySelector('.mine')") {
		t.Error("without an item in the address cells are marked")
	}
	p.visit(strings.TrimSuffix(strings.Split(row, "?")[0], "/rows"))
	if got := ask[string](p, "[...document.querySelectorAll('tbody .badge')].map((e) => e.parentElement.textContent).join()"); got != "_finternal,_tinternal,_minternal" {
		t.Errorf("the internal families are %s", got)
	}
	p.visit(row)
	p.until("!!document.querySelector('.item')")
	back := ask[string](p, "document.querySelector('.item a').getAttribute('href')")
	ofRow := ask[string](p, "[...document.querySelectorAll('.wide a')].find((a) => a.textContent === 'Streams').getAttribute('href')")
	p.visit(back)
	p.asJSON()
	if got := ask[string](p, "document.querySelector('dialog textarea').value"); !containsAll(got, `"v2"`) {
		t.Errorf("the row leads to the item %s", got)
	}

	p.visit(links["Requests"])
	p.until("document.querySelectorAll('[data-request]').length > 0")

	for _, link := range []string{links["Streams"], ofRow} {
		p.visit(link)
		p.until("document.querySelectorAll('[data-write]').length > 0")
		if n := ask[int](p, "document.querySelectorAll('[data-write]').length"); n != 1 {
			t.Errorf("%s shows %d writes", link, n)
		}
		p.click("[data-write]")
		p.until("!!document.querySelector('.split a[href^=\"/d/pairs?key=\"]')")
		if got := ask[string](p, "document.querySelector('.split a[href^=\"/d/pairs?key=\"]').getAttribute('href')"); got != back {
			t.Errorf("the record leads to %s, want %s", got, back)
		}
	}
	p.sound("the links of an item")
}

// TestItems_Grid: the controls are on one line, no value is broken, and a column can be made
// wider with the keyboard and the pointer, and stays so.
func TestItems_Grid(t *testing.T) {
	ctx := browser(t)
	srv, m := startFixture(t, "s5-order-entry")
	p := open(t, ctx, srv)
	p.visit("/d/" + m.SourceTable())
	p.until("document.querySelectorAll('tbody tr').length > 1")
	if n := ask[int](p, "new Set([...document.querySelectorAll('main form > .bar.one > *, main form > .bar.one > .bar > *')].filter((e) => e.checkVisibility()).map((e) => { const r = e.getBoundingClientRect(); return Math.round((r.top + r.bottom) / 2); })).size"); n != 1 {
		t.Errorf("the controls are on %d lines", n)
	}
	if n := ask[int](p, "new Set([...document.querySelectorAll('tbody tr')].map((e) => Math.round(e.getBoundingClientRect().height))).size"); n != 1 {
		t.Errorf("lines have %d heights: a value is broken", n)
	}
	const width = "Math.round(document.querySelector(\"[aria-label='Width of SK']\").closest('th').getBoundingClientRect().width)"
	was := ask[int](p, width)
	p.press("ArrowRight", "[aria-label='Width of SK']")
	if is := ask[int](p, width); is != was+16 {
		t.Errorf("an arrow changes the width from %d to %d", was, is)
	}
	p.dragBy("[aria-label='Width of SK']", 100)
	p.until(fmt.Sprintf("%s === %d", width, was+116))
	p.pushButton("Read")
	p.until("!document.querySelector('.primary').disabled")
	if is := ask[int](p, width); is != was+116 {
		t.Errorf("reading again changes the width to %d", is)
	}
	p.sound("widths")
	p.shoot("items-grid")

	// The key stays visible beside any attribute, and an item begins with it.
	ask[bool](p, "((e) => { e.scrollLeft = e.scrollWidth; return e.scrollLeft > 0; })(document.querySelector('.scroll'))")
	if hidden := ask[[]string](p, `[...document.querySelectorAll('thead th')].slice(0, 2).filter((th) => {
		const r = th.getBoundingClientRect();
		return r.left < 0 || !th.contains(document.elementFromPoint(r.left + 12, r.top + 8));
	}).map((th) => th.innerText)`); len(hidden) > 0 {
		t.Errorf("scrolled to the right, the columns %q are hidden", hidden)
	}
	p.shoot("items-scrolled")
	p.click("tbody tr")
	names := ask[[]string](p, "[...document.querySelectorAll('dialog tbody > tr > th')].map((th) => th.textContent)")
	if len(names) < 3 || names[0] != "PK" || names[1] != "SK" || !slices.IsSorted(names[2:]) {
		t.Errorf("the attributes of an item are %q", names)
	}
	p.asJSON()
	const put = "document.querySelector('dialog .foot .primary').disabled"
	if !ask[bool](p, put) {
		t.Error("an unchanged item can be put")
	}
	p.fill("dialog textarea", `{"PK":{"S":"new"},"SK":{"S":"new"}}`)
	if ask[bool](p, put) {
		t.Error("a changed item cannot be put")
	}
	p.fill("dialog textarea", "{")
	if !ask[bool](p, put) {
		t.Error("an invalid item can be put")
	}
	p.click("dialog .foot button")
	p.pushButton("Discard")
	p.until("!document.querySelector('dialog')")
	p.click("tbody tr")
	if got := ask[[]string](p, "Object.keys(JSON.parse(document.querySelector('dialog textarea').value))"); !slices.Equal(got, names) {
		t.Errorf("its JSON has them as %q", got)
	}
}

// TestItems_Conditions: all conditions of a filter must hold, and a click on the head of a column sorts the page.
func TestItems_Conditions(t *testing.T) {
	ctx := browser(t)
	srv := startThings(t)
	for id, rest := range map[string]string{"a": `,"kind":{"S":"x"},"total":{"N":"9"}`, "b": `,"kind":{"S":"x"},"total":{"N":"10"}`, "c": `,"kind":{"S":"y"},"total":{"N":"100"}`, "d": ""} {
		srv.call(t, "PutItem", fmt.Sprintf(`{"TableName":"things","Item":{"id":{"S":%q}%s}}`, id, rest))
	}
	p := open(t, ctx, srv)
	p.visit("/d/things")
	const ids = "[...document.querySelectorAll('tbody tr')].map((tr) => tr.children[1].textContent.slice(2)).join('')"
	for _, want := range []string{"abcd", "cbad"} {
		ask[bool](p, "([...document.querySelectorAll('button.head')].find((b) => b.textContent.startsWith('total')).click(), true)")
		if got := ask[string](p, ids); got != want {
			t.Errorf("sorted by total the items are %s, want %s", got, want)
		}
	}
	if got := ask[string](p, "document.querySelector('[aria-sort]').textContent + document.querySelector('[aria-sort]').ariaSort"); got != "total ▾descending" {
		t.Errorf("the sorted column is %q", got)
	}
	p.pushButton("Options")
	p.pushButton("Add condition")
	for i, typed := range []struct{ name, kind, value string }{{"kind", "S", "x"}, {"total", "N", "10"}} {
		for label, value := range map[string]string{"Attribute": typed.name, "Type": typed.kind, "Value": typed.value} {
			ask[bool](p, fmt.Sprintf(`((e) => { e.value = %q; e.dispatchEvent(new Event('input', {bubbles: true})); return true; })(document.querySelectorAll("[aria-label='%s of the filter']")[%d])`, value, label, i))
		}
	}
	p.shoot("items-conditions")
	p.pushButton("Read")
	p.until(ids + " === 'b' && [...document.querySelectorAll('button')].some((b) => b.textContent === 'Options (2)')")
	p.sound("conditions")
}

// TestRows_Counters: eight bytes are shown as a number where a family or the mapping says so.
func TestRows_Counters(t *testing.T) {
	ctx := browser(t)
	srv, m := startFixture(t, "s2-video")
	p := open(t, ctx, srv)
	p.visit("/t/tabletop/" + m.TargetTable() + "/rows")
	p.until("!!document.querySelector('[data-cell]')")
	found := ask[[][]string](p, `(async () => {
		const out = [];
		for (const line of document.querySelectorAll("[aria-label='Row keys'] .line")) {
			const was = document.querySelector('.wide h2').textContent;
			line.click();
			for (let i = 0; i < 1000 && !(line.ariaSelected === 'true' && (document.querySelector('.wide h2').textContent !== was || !out.length)); i++) await new Promise((done) => setTimeout(done, 10));
			for (const c of document.querySelectorAll('[data-counter]')) {
				const attributes = [...document.querySelectorAll('[data-attribute]')].filter((a) => a.dataset.cells.split(' ').includes(c.closest('[data-cell]').dataset.cell));
				out.push([c.dataset.counter, attributes.map((a) => a.innerText).join(' ')]);
			}
		}
		return out;
	})()`)
	if len(found) == 0 {
		t.Error("no counter is shown as a number")
	}
	for _, c := range found {
		if !containsAll(c[1], "N "+c[0]) {
			t.Errorf("the counter %s is of %q", c[0], c[1])
		}
	}
	ask[bool](p, `fetch('/api/v1/tables/tabletop/sums', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify({families: {
		n: {valueType: {aggregateType: {inputType: {int64Type: {encoding: {bigEndianBytes: {}}}}, sum: {}}}}, f: {}}})}).then((r) => r.ok)`)
	add := &btpb.Mutation{Mutation: &btpb.Mutation_AddToCell_{AddToCell: &btpb.Mutation_AddToCell{
		FamilyName: "n", ColumnQualifier: rawValue("q"), Timestamp: &btpb.Value{Kind: &btpb.Value_RawTimestampMicros{}}, Input: &btpb.Value{Kind: &btpb.Value_IntValue{IntValue: 42}},
	}}}
	if err := srv.client().MutateRow(t.Context(), "sums", []byte("r"), []*btpb.Mutation{add, btclient.SetCell("f", []byte("q"), 1000, []byte("\x00\x00\x00\x00\x00\x00\x00\x2a"))}); err != nil {
		t.Fatal(err)
	}
	p.visit("/t/tabletop/sums/rows")
	p.until("document.querySelectorAll('[data-cell]').length === 2")
	if got := ask[[]string](p, "[...document.querySelectorAll('[data-counter]')].map((e) => e.dataset.counter)"); len(got) != 1 || got[0] != "42" {
		t.Errorf("the counters are %q", got)
	}
	p.sound("counters")
}
