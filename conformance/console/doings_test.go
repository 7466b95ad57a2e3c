package console

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/control"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/test/labserver"
)

// TestRequests_Live: a client's requests appear without a reload, and a DynamoDB request
// expands to its Bigtable calls.
func TestRequests_Live(t *testing.T) {
	ctx := browser(t)
	srv := startThings(t)
	p := open(t, ctx, srv)
	p.visit("/requests?f=" + url.QueryEscape("endpoint:ddb"))
	p.until("document.body.innerText.includes('● Live')")
	endpoint := httptest.NewServer(srv.ddb)
	defer endpoint.Close()
	for i := range 3 {
		ask := func(operation, body string) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint.URL, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/x-amz-json-1.0")
			r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
			r.Header.Set("x-tabletop-test", t.Name())
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
		}
		ask("PutItem", fmt.Sprintf(`{"TableName":"things","Item":{"id":{"S":"item-%d"},"price":{"N":"%d"}}}`, i, i))
		ask("Query", fmt.Sprintf(`{"TableName":"things","KeyConditionExpression":"id = :id","FilterExpression":"price > :p","ExpressionAttributeValues":{":id":{"S":"item-%d"},":p":{"N":"0"}}}`, i))
	}
	p.until("document.querySelectorAll('[data-request]').length === 6")
	if got := ask[string](p, "document.querySelector('[data-request]').innerText"); !strings.Contains(got, "Query") {
		t.Errorf("the newest is not first: %s", got)
	}
	p.click("[data-request]")
	p.until("document.body.innerText.includes('As Bigtable')")
	if calls := ask[string](p, "document.querySelector('.call').textContent"); !strings.Contains(calls, "ReadRows") || !strings.Contains(calls, "rowRanges") {
		t.Errorf("the calls of a Query do not show their rows: %s", calls)
	}
	p.click("[data-request] .toggle")
	p.until("document.querySelectorAll('[data-request]').length > 6")
	// Each call has a bar within the time of its request, in the list and in the details.
	for _, at := range []string{"[data-request] .track i", ".call .track i"} {
		if wrong := ask[[]string](p, "((all) => all.length ? all.filter((i) => !(parseFloat(i.style.left) >= 0 && parseFloat(i.style.left) + parseFloat(i.style.width) < 100.1)).map((i) => i.outerHTML) : ['none'])([...document.querySelectorAll('"+at+"')])"); len(wrong) > 0 {
			t.Errorf("the bars %s are %q", at, wrong)
		}
	}
	// Intercept the file before it is written.
	ask[bool](p, `URL.createObjectURL = (blob) => { blob.text().then((text) => { globalThis.saved = text; }); return '#'; }, true`)
	p.pushButton("Save access pattern")
	p.until("!!globalThis.saved")
	if got := ask[string](p, "globalThis.saved"); !strings.Contains(got, "op: Query") || !strings.Contains(got, "expect:\n  count: 1\n") {
		t.Errorf("the access pattern is %s", got)
	}
	p.sound("requests")
	p.shoot("requests-live")
}

// TestRequests_Paused: during a pause the page keeps as many requests as otherwise, and shows
// how many arrived.
func TestRequests_Paused(t *testing.T) {
	const come = 5200
	ctx := browser(t)
	srv := start(t)
	srv.createTable(t, "rows", "f")
	p := open(t, ctx, srv)
	p.visit("/requests")
	p.until("document.body.innerText.includes('● Live')")
	p.pushButton("Pause")
	for i := range come {
		srv.set(t, "rows", fmt.Sprint(i), btclient.Cell{Family: "f", Timestamp: 1000, Value: []byte("v")})
		if i%500 == 499 { // the server forgets requests older than the last 5,000
			p.until(fmt.Sprintf("document.body.innerText.replaceAll(',', '').includes(' %d since the pause')", i+1))
		}
	}
	p.until("document.body.innerText.includes('5,200 since the pause, 5,000 of them kept')")
	p.shoot("requests-paused")
	p.pushButton("Pause")
	p.until("document.querySelector(\"[aria-label='Requests, the newest first'] .line\")?.ariaSetSize === '5000' && !document.body.innerText.includes('since the pause')")
	if key := ask[string](p, "document.querySelector('[data-request]').children[4].textContent"); key != fmt.Sprint(come-1) {
		t.Errorf("the newest is that of %s", key)
	}
	p.sound("a pause")
}

// TestItem_Edit: putting an item first shows the changes, and then the table has it.
func TestItem_Edit(t *testing.T) {
	ctx := browser(t)
	srv := startThings(t)
	srv.call(t, "PutItem", `{"TableName":"things","Item":{"id":{"S":"a"},"same":{"S":"s"},"total":{"N":"1"}}}`)
	p := open(t, ctx, srv)
	p.visit("/d/things")
	p.click("tbody tr")
	p.click("dialog summary")
	p.asJSON()
	p.fill("dialog textarea", `{"id":{"S":"a"},"same":{"S":"s"},"total":{"N":"2"}}`)
	diff := ask[string](p, "document.querySelector('dialog [data-diff]').textContent")
	if !strings.Contains(diff, `- total: {"N":"1"}`) || !strings.Contains(diff, `+ total: {"N":"2"}`) || strings.Contains(diff, "same") {
		t.Errorf("the difference is %q", diff)
	}
	p.until("!!document.querySelector('[data-edit] [data-edited]')")
	if cells := ask[string](p, "[...document.querySelectorAll('[data-edited]')].map((c) => c.dataset.edited.slice(0, 1) + c.textContent).join(' ')"); !strings.Contains(cells, "total") || strings.Contains(cells, "same") || strings.Count(cells, "total") != 2 {
		t.Errorf("the changed cells are %q, want one removed and one added of total", cells)
	}
	p.until("document.querySelector('[data-edit]').innerText.includes('1 cell is unchanged.')")
	p.press("Escape", "dialog textarea")
	p.pushButton("Cancel")
	p.until("document.querySelectorAll('dialog').length === 1 && document.querySelector('dialog textarea').value.includes('2')")
	p.sound("the cells of an edit")
	p.shoot("item-edit")
	p.fill("dialog textarea", `{"id":{"S":"a"},"same":{"S":"s"},"total":{"N":"1"}}`)
	p.until("document.querySelector('[data-edit]').textContent.includes('No cell changes')")
	p.fill("dialog textarea", `{"id":{"N":"1"}}`)
	p.until("document.querySelector('[data-edit]').textContent.includes('id') && document.querySelector('dialog button.primary').disabled")
	p.fill("dialog textarea", `{"id":{"S":"a"},"same":{"S":"s"},"total":{"N":"2"}}`)
	p.click("dialog button.primary")
	p.until("!document.querySelector('dialog') && document.querySelector('tbody tr').innerText.includes('2')")
	if got := ask[string](p, "document.querySelector('.toast').textContent + [...document.querySelectorAll('.toast a')].map((a) => new URL(a.href).pathname).join()"); !strings.HasPrefix(got, "Saved. Row Requests/t/") || !strings.HasSuffix(got, "/rows,/requests") {
		t.Errorf("after the edit the page says %q", got)
	}
	p.sound("edit")
}

// TestItem_Form: the form and the JSON of an item have the same attributes, whatever their types. A
// value that is not JSON of its type cannot be put.
func TestItem_Form(t *testing.T) {
	ctx := browser(t)
	srv := startThings(t)
	p := open(t, ctx, srv)
	p.visit("/d/things?new=true")
	const lines = "[...document.querySelectorAll('dialog [data-line]')].map((line) => [...line.querySelectorAll('input, select')].map((e) => e.value).join('|')).join(' ')"
	p.until(lines + " === 'id|S|'")
	if got := ask[string](p, "(([name, kind]) => [name.readOnly, kind.disabled, document.querySelector('dialog [data-line] button') === null].join())(document.querySelectorAll('dialog [data-line] > *'))"); got != "true,true,true" {
		t.Errorf("the key can be changed: %s", got)
	}
	last := func(label, value string) {
		t.Helper()
		ask[bool](p, fmt.Sprintf(`((e) => { e.value = %q; e.dispatchEvent(new Event('input', {bubbles: true})); return true; })([...document.querySelectorAll("dialog [aria-label='%s of an attribute']")].at(-1))`, value, label))
	}
	if got := ask[string](p, "document.querySelector('[data-diff]').textContent"); got != "Enter a value for id, which is part of the key." {
		t.Errorf("a new item says %q", got)
	}
	last("Value", `a\u{202e}`)
	for _, a := range [][3]string{{"n", "N", "1"}, {"ok", "BOOL", "false"}, {"no", "NULL", "null"}, {"tags", "SS", `["x","y"]`}, {"list", "L", `[{"N":"1"}]`}} {
		p.pushButton("Add attribute")
		last("Name", a[0])
		last("Type", a[1])
		last("Value", a[2])
	}
	const disabled = "document.querySelector('dialog .foot .primary').disabled"
	last("Value", "[{")
	if got := ask[string](p, "document.querySelector('[data-diff]').textContent"); !ask[bool](p, disabled) || !strings.HasPrefix(got, "list: ") {
		t.Errorf("a list that is not JSON can be put: %s", got)
	}
	last("Type", "N")
	last("Value", "one")
	if got := ask[string](p, "document.querySelector('[data-diff]').textContent"); !ask[bool](p, disabled) || got != "list: not a number." {
		t.Errorf("a text in place of a number: %s", got)
	}
	last("Type", "L")
	last("Value", "[{")
	p.pushButton("Add attribute")
	last("Name", "n")
	last("Value", "twice")
	ask[bool](p, `((e) => { e.value = '[{"N":"1"}]'; e.dispatchEvent(new Event('input', {bubbles: true})); return true; })([...document.querySelectorAll("dialog [aria-label='Value of an attribute']")].at(-2))`)
	if got := ask[string](p, "document.querySelector('[data-diff]').textContent"); !ask[bool](p, disabled) || got != "Two attributes are named n." {
		t.Errorf("two attributes of a name can be put: %s", got)
	}
	ask[bool](p, "[...document.querySelectorAll('dialog [data-line] button')].at(-1).click(), true")
	p.until("document.querySelector('[data-edit]').textContent.includes('list')")
	p.forget() // of values while they are typed, such as an empty number
	p.sound("the form of an item")
	p.shoot("item-form")
	p.asJSON()
	const want = `{"id":{"S":"a\u202e"},"n":{"N":"1"},"ok":{"BOOL":false},"no":{"NULL":true},"tags":{"SS":["x","y"]},"list":{"L":[{"N":"1"}]}}`
	if got := ask[string](p, "document.querySelector('dialog textarea').value.replaceAll(/\\s/g, '')"); got != want {
		t.Errorf("the form makes\n%s, want\n%s", got, want)
	}
	p.fill("dialog textarea", strings.Replace(want, `"N":"1"`, `"N":"2"`, 1))
	p.pushButton("Form")
	if got := ask[string](p, lines); got != `id|S|a\u{202e} list|L|[{"N":"1"}] n|N|2 no|NULL|null ok|BOOL|false tags|SS|["x","y"]` {
		t.Errorf("the form shows %s", got)
	}
	p.pushButton("Save")
	p.until("!document.querySelector('dialog') && document.querySelectorAll('tbody tr').length === 1")
	answer, err := srv.ddb.Call(t.Context(), "GetItem", []byte(`{"TableName":"things","Key":{"id":{"S":"a\u202e"}}}`))
	if err != nil || !strings.Contains(string(answer), `"n":{"N":"2"}`) || !strings.Contains(string(answer), `"ok":{"BOOL":false}`) {
		t.Errorf("the item is %s, %v", answer, err)
	}

	// A mistake in the JSON stays there.
	p.click("tbody tr")
	p.asJSON()
	p.fill("dialog textarea", `{"id":{"S":"a"},"bare":1}`)
	p.pushButton("Form")
	if got := ask[string](p, "document.querySelector('dialog .note').textContent"); !strings.Contains(got, "bare") {
		t.Errorf("the form says %q", got)
	}
	p.asJSON()
	for _, text := range []string{"{", "null", "[]"} {
		p.fill("dialog textarea", text)
		if !ask[bool](p, disabled) {
			t.Errorf("%s can be put", text)
		}
	}
	p.pushButton("Form")
	if got := ask[string](p, "document.querySelector('dialog .note').textContent"); !strings.Contains(got, "Correct the JSON first") {
		t.Errorf("the form says %q", got)
	}
}

// TestItem_Mapping: an item that the mapping refuses cannot be saved. A counter is shown as its number, and the page
// warns if it becomes a text.
func TestItem_Mapping(t *testing.T) {
	ctx := browser(t)
	srv, m := startFixture(t, "s2-video")
	p := open(t, ctx, srv)
	p.visit("/d/" + m.SourceTable() + "?key=" + url.QueryEscape(`{"PK":{"S":"0123"},"SK":{"S":"VideoStatsLikes"}}`))
	p.click("dialog summary")
	p.asJSON()
	const item = `{"PK":{"S":"0123"},"SK":{"S":"VideoStatsLikes"},"Count":{"N":"%s"}}`
	p.fill("dialog textarea", fmt.Sprintf(item, "4"))
	p.until("[...document.querySelectorAll('[data-edited] [data-counter]')].map((e) => e.textContent).join() === '3 int64,4 int64'")
	p.shoot("item-counter")
	const said = "document.querySelector('[data-edit] .note')?.textContent"
	p.fill("dialog textarea", fmt.Sprintf(item, "1.5"))
	p.until(said + " === 'a:Likes stops being a counter: its new value is not a 64-bit integer.'")
	p.fill("dialog textarea", `{"PK":{"S":"0123"},"SK":{"S":"Nothing"}}`)
	p.until(said + "?.startsWith('The mapping refuses this item: E-UNMATCHED') && document.querySelector('dialog button.primary').disabled")
	if got, want := ask[string](p, "document.querySelector('[data-edit] a').getAttribute('href')"), "/t/tabletop/"+m.TargetTable(); got != want {
		t.Errorf("the mapping is at %s, want %s", got, want)
	}
	p.fill("dialog textarea", fmt.Sprintf(item, "5"))
	p.until("!document.querySelector('dialog button.primary').disabled && !" + said)
	p.sound("an item outside of the mapping")
}

// TestTable_DynamoDB: the page of a table with items leaves internal families alone, and deletes
// the DynamoDB table in place of the rows below it.
func TestTable_DynamoDB(t *testing.T) {
	ctx := browser(t)
	srv := startThings(t)
	p := open(t, ctx, srv)
	p.visit("/")
	p.visit(ask[string](p, "document.querySelector(\"main a[href^='/t/tabletop/ddb.']\").getAttribute('href')"))
	if wrong := ask[string](p, "[...document.querySelectorAll('tr:has(.badge) .acts button')].map((b) => b.ariaLabel).join()"); wrong != "" || !ask[bool](p, "!!document.querySelector('tr .badge')") {
		t.Errorf("the internal families have the buttons %s", wrong)
	}
	if ask[bool](p, "[...document.querySelectorAll('button')].some((b) => b.textContent === 'Delete the table…')") {
		t.Error("it offers to delete the rows of a DynamoDB table")
	}
	p.pushButton("Set…")
	p.fill("[aria-label^='Attribute with']", "ends")
	p.shoot("table-ttl")
	p.pushButton("Turn on")
	p.until("!document.querySelector('dialog') && document.body.innerText.includes('ends (enabled)')")
	p.sound("a time to live")
	p.visit("/query")
	p.fill("[aria-label=Operation]", "UpdateTimeToLive")
	p.until("(() => { try { const { TimeToLiveSpecification: s } = JSON.parse(document.querySelector('textarea').value); return s.AttributeName === 'ends' && s.Enabled === false; } catch { return false; } })()")
	p.visit("/")
	p.visit(ask[string](p, "document.querySelector(\"main a[href^='/t/tabletop/ddb.']\").getAttribute('href')"))
	p.pushButton("Delete the DynamoDB table…")
	p.pushButton("Delete the table")
	p.ready("/")
	p.sound("a DynamoDB table that is gone")
	if got, err := srv.ddb.Call(t.Context(), "DescribeTable", []byte(`{"TableName":"things"}`)); err == nil {
		t.Errorf("the server still has %s", got)
	}
}

// TestLab: a fault armed on the page takes effect, its hits are counted, and a snapshot can be
// restored.
func TestLab(t *testing.T) {
	ctx := browser(t)
	srv := start(t)
	srv.createTable(t, "rows", "f")
	set := func(key string) error {
		return srv.client().MutateRow(t.Context(), "rows", []byte(key), []*btpb.Mutation{btclient.SetCell("f", []byte("q"), 1000, []byte("v"))})
	}
	p := open(t, ctx, srv)
	p.visit("/lab")
	p.fill("textarea", `{"endpoint":"bigtable","method":"MutateRow","effect":"fail","code":"UNAVAILABLE","times":1,"behindDynamoDB":true}`) // this process has no other clients
	p.pushButton("Arm fault")
	p.until("!!document.querySelector('[data-fault]')")
	if err := set("a"); err == nil {
		t.Error("the fault does not strike")
	}
	p.pushButton("Refresh hits")
	p.until("document.querySelector('[data-fault] .num').textContent === '1'")
	p.pushButton("Take snapshot")
	p.until("document.body.innerText.includes('Restore')")
	if err := set("b"); err != nil {
		t.Fatal(err)
	}
	p.pushButton("Restore…")
	p.pushButton("Replace all tables")
	p.until("document.body.innerText.includes('Restored “')")
	if dump, err := srv.lab.Dump(t.Context(), "rows"); err != nil || dump != "" {
		t.Errorf("after restore there is %q, %v", dump, err)
	}
	before := srv.lab.Clock().Now()
	p.pushButton("+1d")
	p.until("document.body.innerText.includes('The time is')")
	if d := srv.lab.Clock().Now().Sub(before); d < 24*time.Hour {
		t.Errorf("the clock moved by %v", d)
	}
	p.sound("lab")
	p.shoot("lab")
}

// lightOf is a script that returns the pixels of the map that are not background, by row: the moments with
// load, and the number of them with more than half of the brightness.
const lightOf = `((c) => {
	const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
	return Array.from({length: c.height}, (_, y) => {
		const at = [...Array(c.width).keys()];
		const lit = at.filter((x) => d[4 * (y * c.width + x)] !== 12 || d[4 * (y * c.width + x) + 1] !== 14);
		return {lit, bright: at.filter((x) => d[4 * (y * c.width + x)] > 200).length};
	});
})(document.querySelector('canvas[role=img]'))`

type line struct {
	Lit    []int
	Bright int
}

// crowded is a script that returns the labels of the heat map that overlap, and labels side by side of different rows.
const crowded = `(() => {
	const wrong = [];
	for (const selector of ['.of-key .band', '.legend .tick']) {
		const all = [...document.querySelectorAll(selector)].map((e) => [e, e.getBoundingClientRect()]);
		for (const [e, a] of all) for (const [f, b] of all) {
			if (e === f) continue;
			if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1) wrong.push(e.textContent + ' over ' + f.textContent);
			if (e.dataset.row && f.dataset.row && a.top === b.top && e.dataset.row !== f.dataset.row) wrong.push(e.textContent + ' beside ' + f.textContent);
		}
	}
	return wrong;
})()`

// TestKeys: for ten minutes of known load the map shows a diagonal, a line and an even field,
// the sum is that of the requests, and hot or ascending keys are marked with their rule.
func TestKeys(t *testing.T) {
	const seconds, each = 600, 10
	ctx := browser(t)
	srv := start(t)
	srv.lab.Clock().Freeze()
	loads := map[string]func(i int) string{
		"sequential": func(i int) string { return fmt.Sprintf("order-%05d", i) },
		"hot": func(i int) string {
			if i%10 < 3 {
				return "user-050"
			}
			return fmt.Sprintf("user-%03d", i*37%100)
		},
		"salted": func(i int) string { return fmt.Sprintf("%02x#%05d", i*167&255, i) },
	}
	for table := range loads {
		srv.createTable(t, table, "f")
	}
	for i := range seconds * each {
		for table, key := range loads {
			srv.set(t, table, key(i), btclient.Cell{Family: "f", Timestamp: 1000, Value: []byte("v")})
		}
		if i%each == each-1 {
			srv.lab.Clock().Advance(time.Second)
		}
	}
	p := open(t, ctx, srv)
	see := func(table string, marks ...string) []line {
		t.Helper()
		p.visit("/keys/tabletop/" + table)
		for _, want := range append(marks, "6,000 operations") {
			if got := ask[string](p, "document.querySelector('main').innerText"); !strings.Contains(got, want) {
				t.Errorf("%s: the page does not say %q: %s", table, want, got)
			}
		}
		if n := ask[int](p, "document.querySelectorAll('.note.warn').length"); n != min(len(marks), 1) {
			t.Errorf("%s: %d warnings", table, n)
		}
		if n := ask[int](p, "document.querySelectorAll('.beside > *').length"); n != min(len(marks), 1) {
			t.Errorf("%s: %d marks beside the map", table, n)
		}
		p.sound(table)
		p.shoot("keys-" + table)
		return ask[[]line](p, lightOf)
	}

	lines := see("sequential", "Writes move through the keys in order", "L03 key-starts-with-time", "L04 sequential-ids")
	for y, l := range lines {
		for _, x := range l.Lit {
			// A row of the map has the moments in which its keys were written: the diagonal,
			// one row of the map wide.
			if at, want := float64(x)/seconds, float64(y)/float64(len(lines)); at < want-0.02 || at > want+0.02 {
				t.Fatalf("sequential: line %d of %d is lit at %d of %d", y, len(lines), x, seconds)
			}
		}
	}

	lines = see("hot", "One row takes 30.0% of the operations: user-050", "L26 hot-key-range")
	if got := ask[string](p, "document.querySelector('.of-key .marked')?.textContent + ' ' + document.querySelector('[aria-label=\"Pages of the table\"] [aria-current=page]')?.textContent"); got != "user-050 Keys" {
		t.Errorf("hot: the label of its row and the tab are %s", got)
	}
	if got := ask[[]string](p, crowded); len(got) > 0 {
		t.Errorf("hot: labels overlap or differ in their rows: %q", got)
	}
	brightest := 0
	for y, l := range lines {
		if l.Bright > lines[brightest].Bright {
			brightest = y
		}
	}
	for y, l := range lines {
		if y == brightest && (l.Bright != seconds || len(l.Lit) != seconds) || y != brightest && l.Bright > seconds/each { // each other row is written in every tenth second
			t.Errorf("hot: line %d has %d bright moments of %d, the line of the hot row is %d", y, l.Bright, seconds, brightest)
		}
	}

	lines = see("salted")
	for y, l := range lines {
		// Its moments are spread over the whole time: each quarter has some.
		var quarters [4]int
		for _, x := range l.Lit {
			quarters[min(3, 4*x/seconds)]++
		}
		for i, n := range quarters {
			if n < len(l.Lit)/8 || n == 0 {
				t.Errorf("salted: line %d has %d of %d moments in the quarter %d", y, n, len(l.Lit), i)
			}
		}
	}
}

// TestKeys_Few: with few rows each has a large share. A row is hot if it has far more than the
// others.
func TestKeys_Few(t *testing.T) {
	ctx := browser(t)
	srv := start(t)
	for table, last := range map[string]int{"even": 40, "uneven": 400} {
		srv.createTable(t, table, "f")
		for i, writes := range []int{40, 40, 38, last} {
			for range writes {
				srv.set(t, table, fmt.Sprintf("row-%d", i), btclient.Cell{Family: "f", Timestamp: 1000, Value: []byte("v")})
			}
		}
	}
	p := open(t, ctx, srv)
	p.visit("/keys/tabletop/even?metric=reads")
	if got := ask[string](p, "document.querySelector('main').innerText"); strings.Contains(got, "L26") {
		t.Errorf("four rows with equal load: %s", got)
	}
	const field = "document.querySelector('.heat').checkVisibility()"
	if got := ask[string](p, "document.querySelector('main .note').textContent"); got != "No reads in this time range." || ask[bool](p, field) {
		t.Errorf("without reads the page says %q", got)
	}
	if n := ask[int](p, "document.querySelectorAll('main tbody tr').length"); n != 0 {
		t.Errorf("%d unread ranges are the busiest", n)
	}
	p.sound("even")
	p.shoot("keys-even")
	// All writes took some seconds: the map has the moments before them too.
	p.fill("[aria-label=Metric]", "writes")
	if n := ask[int](p, "document.querySelector('canvas[role=img]').width"); n < 60 || !ask[bool](p, field) {
		t.Errorf("the map of some seconds has %d moments", n)
	}
	if labels := ask[[]string](p, "[...document.querySelectorAll('.of-time .tick')].map((e) => e.textContent)"); len(labels) < 3 {
		t.Errorf("the labels of the moments are %q", labels)
	}
	p.shoot("keys-seconds")
	p.visit("/keys/tabletop/uneven")
	if got := ask[[]string](p, "[...document.querySelectorAll('.note.warn')].map((n) => n.textContent)"); len(got) != 1 || !strings.HasPrefix(got[0], "One row takes 77.2% of the operations: row-3.") {
		t.Errorf("one row of four has most of the load: %q", got)
	}
	p.sound("uneven")
}

// TestKeys_LargeRow: an oversized row is marked beside the map with its rule.
func TestKeys_LargeRow(t *testing.T) {
	ctx := browser(t)
	srv := start(t)
	srv.createTable(t, "events", "f")
	value := bytes.Repeat([]byte("x"), 26<<20)
	for i := range 4 {
		srv.set(t, "events", "day-12", btclient.Cell{Family: "f", Timestamp: int64(i+1) * 1000, Value: value})
	}
	srv.set(t, "events", "day-13", btclient.Cell{Family: "f", Timestamp: 1000, Value: []byte("v")})
	p := open(t, ctx, srv)
	p.visit("/keys/tabletop/events")
	const said = "A row has 104.0 MiB; the guides advise less than 100 MB: day-12. Lint: L41 row-too-large"
	if got := ask[string](p, "document.querySelector('main').innerText"); !strings.Contains(got, said) {
		t.Errorf("the page does not say %q: %s", said, got)
	}
	if got := ask[string](p, "document.querySelector('.beside').innerText"); !strings.Contains(got, "L41") {
		t.Errorf("beside the map: %q", got)
	}
	p.sound("keys")
	p.shoot("keys-large-row")
}

// TestQuery: a request is run, and its Bigtable calls are shown.
func TestQuery(t *testing.T) {
	ctx := browser(t)
	srv := startThings(t)
	srv.call(t, "PutItem", `{"TableName":"things","Item":{"id":{"S":"thing-1"},"total":{"N":"1"}}}`)
	srv.createTable(t, "_first", "f")
	p := open(t, ctx, srv)
	p.visit("/query")
	// The example request finds items, and is completely visible.
	p.until(inEditor("root.querySelector('.cm-line:nth-child(3)')"))
	if hidden := ask[int](p, inEditor("(({scrollHeight, clientHeight}) => scrollHeight - clientHeight)(root.querySelector('.cm-scroller'))")); hidden > 0 {
		t.Errorf("%d pixels of the request are hidden", hidden)
	}
	// Intercept files and the clipboard.
	ask[bool](p, `URL.createObjectURL = (blob) => { blob.text().then((text) => { globalThis.saved = text; }); return '#'; }, navigator.clipboard.writeText = async (text) => { globalThis.copied = text; }, true`)
	p.pushButton("Save access pattern")
	p.until("document.querySelector('.toast')?.innerText.includes('Run this request first')")
	p.pushButton("Run")
	// After a pause the endpoint reads the definition of the table too.
	p.until("/As Bigtable: [12] calls?\\n/.test(document.body.innerText) && /\\b1 item\\n/.test(document.body.innerText)")
	p.shoot("query")
	p.pushButton("Save access pattern")
	p.until("globalThis.saved?.includes('op: Query') && globalThis.saved.includes('thing-1')")
	p.pushButton("PartiQL")
	p.pushButton("Run")
	p.until("/\\b1 item\\n/.test(document.body.innerText)")
	p.pushButton("ReadRows")
	p.pushButton("Run")
	p.until("/\\b1 row\\n/.test(document.body.innerText)")
	p.fill("[aria-label='Matching']", "thing.*")
	p.fill("textarea[aria-label='A filter, as JSON']", `{"chain": {"filters": [{"familyNameRegexFilter": "d"}, {"cells_per_column_limit_filter": 1}]}}`)
	p.pushButton("Copy as Go")
	p.until("!!globalThis.copied")
	const want = `bigtable.RowFilter(bigtable.ChainFilters(bigtable.RowKeyFilter("thing.*"), bigtable.ChainFilters(bigtable.FamilyFilter("d"), bigtable.LatestNFilter(1))))`
	if got := ask[string](p, "globalThis.copied"); !strings.Contains(got, want) {
		t.Errorf("copied is %s, want %s", got, want)
	}
	p.sound("query")
}

// TestMigration: a fixture is verified and judged from the page.
func TestMigration(t *testing.T) {
	ctx := browser(t)
	p := open(t, ctx, start(t))
	p.visit("/migration?fixture=s5-order-entry")
	for _, verb := range []string{"Verify", "Lint", "Plan"} {
		p.pushButton(verb)
		p.until(fmt.Sprintf("document.querySelector('[data-report]')?.dataset.report === '%s s5-order-entry'", strings.ToLower(verb)))
		// Lint does not lay out items: it has no rows to count, and no differences.
		says := ask[string](p, "document.querySelector('main').innerText")
		if title := verb + " of s5-order-entry"; !strings.Contains(says, title) || strings.Contains(says, "private store") {
			t.Errorf("%s: whether it says %q alone: %s", verb, title, says)
		}
		for _, laidOut := range []string{"Differences\t", "Rows\t", " items in "} {
			if strings.Contains(says, laidOut) != (verb == "Verify") {
				t.Errorf("%s: whether it says %q: %s", verb, laidOut, says)
			}
		}
		p.sound(verb)
		p.shoot("migration-" + strings.ToLower(verb))
	}
}

// TestMigration_Progress: the progress of a run is visible on the page that started it, and on
// any other.
func TestMigration_Progress(t *testing.T) {
	ctx := browser(t)
	files := labserver.Hold(os.DirFS("../../fixtures/subjects"), "s2-video/expect/schema.golden")
	srv := serverOf(startWith(t, labserver.Options{Closed: true, Control: control.Options{Fixtures: files}}))
	mine, other := open(t, ctx, srv), open(t, ctx, srv)
	other.visit("/migration")
	mine.visit("/migration?fixture=s2-video")
	mine.pushButton("Verify")
	for _, p := range []*tab{mine, other} {
		p.until("document.querySelector('[data-run]')?.textContent.trim() === 'verify of s2-video: loading 9 of 9'")
		if got := ask[string](p, "((e) => [e.value, e.max, e.ariaLabel].join())(document.querySelector('progress'))"); got != "9,9,verify of s2-video" {
			t.Errorf("the bar is %s", got)
		}
	}
	mine.shoot("migration-progress")
	mine.resize(640, 800)
	mine.shoot("migration-progress-640")
	files.Give()
	mine.until("!!document.querySelector('[data-report]')")
	for _, p := range []*tab{mine, other} {
		p.until("!document.querySelector('[data-run]')")
		p.sound("progress")
	}
}

// TestNarrow: no element is wider than half a laptop's screen, and the first Tab reaches the
// link to the content.
func TestNarrow(t *testing.T) {
	ctx := browser(t)
	srv := start(t)
	srv.createTable(t, "rows", "f")
	srv.set(t, "rows", "a", btclient.Cell{Family: "f", Qualifier: []byte("q"), Timestamp: 1000, Value: []byte("v")})
	p := open(t, ctx, srv)
	p.resize(640, 800)
	for _, path := range []string{"/", "/requests", "/lab", "/query", "/migration", "/streams", "/t/tabletop/rows", "/t/tabletop/rows/rows", "/keys/tabletop/rows", "/history/tabletop/rows?key=a"} {
		p.visit(path)
		p.fits(path)
		if parts := ask[[]string](p, cut); len(parts) > 0 {
			t.Errorf("%s: cut are %q", path, parts)
		}
		if unnamed := ask[string](p, "[...document.querySelectorAll('input, select, textarea, button, a')].filter(e => !(e.ariaLabel || e.textContent.trim() || e.closest('label'))).map(e => e.outerHTML).join()"); unnamed != "" {
			t.Errorf("%s: without a name: %s", path, unnamed)
		}
		p.shoot("narrow-" + strings.Trim(strings.ReplaceAll(path, "/", "-"), "-"))
	}
}

// TestTable: families are created, changed and dropped on the page, rows are dropped, and the
// table is deleted.
func TestTable(t *testing.T) {
	ctx := browser(t)
	srv := start(t)
	srv.createTable(t, "t", "f")
	for _, key := range []string{"a1", "a2", "b"} {
		srv.set(t, "t", key, btclient.Cell{Family: "f", Timestamp: 1000, Value: []byte("v")})
	}
	p := open(t, ctx, srv)
	p.visit("/t/tabletop/t")
	p.pushButton("New family…")
	p.fill("input[aria-label=Family]", "g")
	p.fill("input[aria-label='Number of versions to keep']", "2")
	p.fill("input[aria-label^='Age']", "7d")
	p.shoot("table-family")
	p.pushButton("Create the family")
	p.until("document.body.innerText.includes('maxversions=2 or maxage=168h0m0s')")
	p.click("button[aria-label='Rule of g']")
	p.fill("input[aria-label='Number of versions to keep']", "3")
	p.pushButton("Save the rule")
	p.until("document.body.innerText.includes('versions beyond the newest 3')")
	p.click("button[aria-label='Drop g']")
	p.pushButton("Drop the family")
	p.until("!!document.querySelector(\"button[aria-label='Drop f']\") && !document.querySelector(\"button[aria-label='Drop g']\")")
	p.fill("input[aria-label='Prefix of the rows to drop']", "a")
	p.pushButton("Drop rows…")
	p.pushButton("Delete the rows")
	p.until("document.body.innerText.includes('The rows were deleted.') && !!document.querySelector(\"button[aria-label='Drop f']\")")
	p.sound("table")
	p.shoot("table-admin")
	p.visit("/t/tabletop/t/rows?match=.*")
	p.until("document.querySelectorAll(\"[aria-label='Row keys'] .line\").length === 1")
	p.visit("/t/tabletop/t")
	p.pushButton("Delete the table…")
	p.pushButton("Delete the table")
	p.ready("/")
	p.sound("a table that is gone")
	if _, err := srv.lab.DB().Table(srv.lab.TableName("t")); err == nil {
		t.Error("the table is still there")
	}
}
