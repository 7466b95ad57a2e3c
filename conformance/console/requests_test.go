package console

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/internal/btclient"
)

// send sends a DynamoDB request as a client, with further headers.
func (s *server) send(t *testing.T, operation, body string, headers ...string) {
	t.Helper()
	endpoint := httptest.NewServer(s.ddb)
	defer endpoint.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
}

// TestRequests_Own: the console's own requests are hidden, and left out of the numbers of
// Requests and Home, until the toggle shows them; Clear forgets all requests.
func TestRequests_Own(t *testing.T) {
	ctx := browser(t)
	srv := startThings(t)
	p := open(t, ctx, srv)
	ask[bool](p, "fetch('/api/v1/requests', {method: 'DELETE'}).then((r) => r.ok)")
	srv.send(t, "PutItem", `{"TableName":"things","Item":{"id":{"S":"a"}}}`)
	p.visit("/d/things")
	p.until("document.querySelectorAll('tbody tr').length === 1")
	p.visit("/")
	if got := ask[string](p, "document.querySelector('main').innerText"); !strings.Contains(got, "1 request in the last 5 minutes, 0 failed") {
		t.Errorf("Home counts %s", got)
	}
	p.visit("/requests?f=" + url.QueryEscape("endpoint:ddb"))
	p.until("document.querySelectorAll('[data-request]').length === 1")
	const toggle = "[...document.querySelectorAll('label')].find((l) => l.textContent.includes('Console requests')).querySelector('input')"
	ask[bool](p, "("+toggle+".click(), true)")
	p.until("document.querySelectorAll('[data-request]').length > 1 && document.querySelectorAll('[data-request] .own').length === document.querySelectorAll('[data-request]').length - 1")
	n := ask[int](p, "document.querySelectorAll('[data-request]').length")
	ask[bool](p, "fetch('/api/v1/query', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify({operation: 'Scan', request: {TableName: 'things'}, own: true})}).then((r) => r.ok)")
	p.until(fmt.Sprintf("document.querySelectorAll('[data-request] .own').length === %d", n)) // live
	p.shoot("requests-own")
	if at := ask[string](p, "location.search"); !strings.Contains(at, "own=true") {
		t.Errorf("the address is %s", at)
	}
	p.pushButton("Clear")
	p.until("document.querySelectorAll('[data-request]').length === 0")
	p.visit("/requests?own=true")
	p.until("document.body.innerText.includes('● Live')")
	if n := ask[int](p, "document.querySelectorAll('[data-request]').length"); n != 0 {
		t.Errorf("%d requests are back", n)
	}
	p.sound("requests")
}

// TestRequests_Shown: a line has the key of its item, a retry, and a read that its caller
// stopped, without alarm; the filter finds them.
func TestRequests_Shown(t *testing.T) {
	ctx := browser(t)
	srv := startThings(t)
	srv.createTable(t, "large", "f")
	for _, key := range []string{"a", "b", "c"} {
		srv.set(t, "large", key, btclient.Cell{Family: "f", Timestamp: 1000, Value: make([]byte, 4<<20)})
	}
	for _, err := range srv.client().Read(t.Context(), btclient.Read{Table: "large", Spans: []btclient.Span{{}}}) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	srv.send(t, "PutItem", `{"TableName":"things","Item":{"id":{"S":"a"},"other":{"S":"value"}}}`, "amz-sdk-request", "attempt=2; max=3")
	srv.send(t, "BatchWriteItem", `{"RequestItems":{"things":[{"PutRequest":{"Item":{"id":{"S":"b"}}}},{"DeleteRequest":{"Key":{"id":{"S":"c"}}}}]}}`)
	p := open(t, ctx, srv)
	line := func(filter string) string {
		t.Helper()
		p.visit("/requests?f=" + url.QueryEscape(filter))
		p.until("document.querySelectorAll('[data-request]').length === 1")
		return ask[string](p, "[...document.querySelector('[data-request]').children].map((e) => e.textContent).join('|')")
	}
	if got := line("op:PutItem attempt:2"); !strings.Contains(got, `|id="a"|OK ↻2|`) {
		t.Errorf("the retry is %s", got)
	}
	if got := line("op:BatchWriteItem"); !strings.Contains(got, `|things|id="b" and 1 other|`) {
		t.Errorf("the batch is %s", got)
	}
	p.click("[data-request]")
	p.until("document.querySelectorAll('.touched li').length === 2")
	p.sound("a batch")
	p.shoot("requests-batch")
	if got := line("op:ReadRows table:large status:stopped"); !strings.Contains(got, "|stopped early|") {
		t.Errorf("the stopped read is %s", got)
	}
	if kind := ask[string](p, "[...document.querySelector('[data-request]').querySelectorAll('.pill')].find((e) => e.textContent === 'stopped early').className"); !strings.Contains(kind, "soft") || strings.Contains(kind, "bad") {
		t.Errorf("its status is shown as %q", kind)
	}
	p.visit("/requests?f=" + url.QueryEscape("status:!ok"))
	if n := ask[int](p, "document.querySelectorAll('[data-request]').length"); n != 0 {
		t.Errorf("%d requests count as failed", n)
	}
	p.sound("a stopped read")
}

// TestRequests_Many: a full list of requests, and the history of their row, can be scrolled to
// their ends with few elements. The time of tasks is logged, as in TestScroll.
func TestRequests_Many(t *testing.T) {
	ctx := browser(t)
	srv := start(t)
	srv.createTable(t, "rows", "f")
	for range 5000 {
		srv.set(t, "rows", "k", btclient.Cell{Family: "f", Timestamp: 1000, Value: []byte("v")})
	}
	p := open(t, ctx, srv)
	for path, list := range map[string]struct {
		label string
		lines int
	}{"/requests": {"Requests, the newest first", 5000}, "/history/tabletop/rows?key=k": {"Events, the newest first", 1001}} {
		p.visit(path)
		p.until(fmt.Sprintf("document.querySelector(\"[aria-label='%s'] .line\")?.ariaSetSize === '%d'", list.label, list.lines))
		got := ask[struct {
			Nodes, Seen   int
			Opening, Long []int
		}](p, fmt.Sprintf(scrollAll, list.label, list.lines))
		if got.Seen != list.lines || got.Nodes > 1500 {
			t.Errorf("%s: seen are %d lines of %d, with %d elements", path, got.Seen, list.lines, got.Nodes)
		}
		t.Logf("%s: %d elements at most, tasks above 50 ms: %v, at the opening %v", path, got.Nodes, got.Long, got.Opening)
		p.sound(path)
	}
}

// TestHistory: an item, its row and a request lead to one history, which has the requests, the
// cells and the records of both streams in one list.
func TestHistory(t *testing.T) {
	ctx := browser(t)
	srv := start(t)
	if err := srv.ddb.Open(); err != nil {
		t.Fatal(err)
	}
	srv.call(t, "CreateTable", strings.TrimSuffix(createThings, "}")+`,"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"}}`)
	m, err := srv.ddb.Mapping(t.Context(), "things")
	if err != nil {
		t.Fatal(err)
	}
	srv.changeStream(t, m.TargetTable())
	srv.send(t, "PutItem", `{"TableName":"things","Item":{"id":{"S":"a"},"n":{"N":"1"}}}`)
	srv.send(t, "PutItem", `{"TableName":"things","Item":{"id":{"S":"other"}}}`)
	srv.send(t, "GetItem", `{"TableName":"things","Key":{"id":{"S":"a"}}}`)
	p := open(t, ctx, srv)
	see := func(from string) {
		t.Helper()
		p.until("location.pathname.startsWith('/history/') && document.querySelectorAll('[data-event]').length > 3")
		kinds := ask[[]string](p, "[...document.querySelectorAll('[data-event]')].map((e) => e.dataset.event).sort()")
		if got := strings.Join(kinds, ", "); got != "both streams, cells, request, request" && got != "both streams, cells, cells, request, request" {
			t.Errorf("from %s: the events are %s", from, got)
		}
		if got := ask[string](p, "document.querySelector('main').innerText"); strings.Contains(got, "other") {
			t.Errorf("from %s: another row is here: %s", from, got)
		}
		p.sound(from)
	}
	p.visit("/d/things")
	p.until("!!document.querySelector('tbody tr')")
	p.click("tbody tr")
	p.click("dialog a[href^='/history/']")
	see("an item")
	if ask[bool](p, "!!document.querySelector('dialog')") {
		t.Error("the dialog of the item stays")
	}
	p.click("[data-event=request]")
	p.until("document.body.innerText.includes('As Bigtable')")
	p.click("[data-event='both streams']")
	p.until("!!document.querySelector('[data-entry]') && !!document.querySelector('[data-attribute]')")
	p.shoot("history")
	p.resize(640, 800)
	p.shoot("history-narrow")
	p.fits("the history")
	p.resize(1280, 800)
	p.click("[data-event=cells]")
	p.until("!!document.querySelector('[data-writer]')")
	if got := ask[string](p, "document.querySelector('.split').innerText"); !strings.Contains(got, "Written by PutItem") {
		t.Errorf("the cells are %s", got)
	}
	ask[bool](p, "[...document.querySelectorAll('label')].find((l) => l.textContent.includes('Writes only')).querySelector('input').click(), true")
	p.until("document.querySelectorAll('[data-event=request]').length === 1 && document.querySelector('[data-event=request]').innerText.includes('PutItem')")
	p.visit("/requests?f=" + url.QueryEscape("op:GetItem"))
	p.until("!!document.querySelector('[data-request]')")
	p.click("[data-request]")
	p.until("!!document.querySelector('.touched a')")
	p.click(".touched a[href^='/history/']")
	see("a request")
	p.visit("/t/tabletop/" + m.TargetTable() + "/rows?prefix=a")
	p.until("!!document.querySelector('[data-cell]')")
	p.click(".wide a[href^='/history/']")
	see("a row")
	p.visit("/history/tabletop/" + m.TargetTable() + "?key=none")
	p.until("document.body.innerText.includes('this row does not exist') && document.body.innerText.includes('0 events')")
	p.sound("no row")
}

// TestRequests_Tools: the tools are on one line, toggles and words of a request change the filter, and
// columns without data are left out.
func TestRequests_Tools(t *testing.T) {
	ctx := browser(t)
	srv := startThings(t)
	srv.send(t, "PutItem", `{"TableName":"things","Item":{"id":{"S":"a"}}}`)
	srv.send(t, "GetItem", `{"TableName":"nothing","Key":{"id":{"S":"a"}}}`, "X-Tabletop-Test", "TestNothing")
	p := open(t, ctx, srv)
	p.visit("/requests?f=op:PutItem")
	const lines = "document.querySelectorAll('[data-request]').length"
	p.until(lines + " === 1")
	const heads = "[...document.querySelectorAll('.line-head > span')].filter((e) => e.checkVisibility()).map((e) => e.innerText).filter(Boolean).join(' ')"
	if got := ask[string](p, heads); got != "Time Operation Table Key Status Duration" {
		t.Errorf("the columns of a write are %q", got)
	}
	if n := ask[int](p, "new Set([...document.querySelectorAll('.tools > *')].filter((e) => e.innerText || e.matches('input, button')).map((e) => { const r = e.getBoundingClientRect(); return Math.round((r.top + r.bottom) / 2); })).size"); n != 1 {
		t.Errorf("the tools are on %d lines", n)
	}
	p.shoot("requests-tools")
	p.fill("input[type=search]", "endpoint:ddb")
	p.pushButton("Errors")
	p.until(lines + " === 1")
	if got := ask[string](p, heads+" + ' ' + document.querySelector('[data-request]').innerText.replaceAll(/\\s+/g, ' ')"); !containsAll(got, "Duration Test", "ddb", "GetItem nothing", "ResourceNotFoundException", "TestNothing") {
		t.Errorf("the failed request is shown as %q", got)
	}
	p.pushButton("Errors")
	p.until(lines + " > 1")
	if got := ask[string](p, "document.querySelector('input[type=search]').value"); got != "endpoint:ddb" {
		t.Errorf("without the toggle the filter is %q", got)
	}
	p.click("[data-request]")
	p.until("!!document.querySelector('button.word')")
	ask[bool](p, "([...document.querySelectorAll('button.word')].forEach((b) => { b.click(); b.click(); }), true)")
	if got := ask[string](p, "document.querySelector('input[type=search]').value"); got != "endpoint:ddb op:GetItem status:ResourceNotFoundException table:nothing key:id=\"a\" test:TestNothing" {
		t.Errorf("the words of a request make the filter %q", got)
	}
	p.pushButton("Save as…")
	p.until("[...document.querySelectorAll('dialog .foot button')].map((b) => b.textContent).join() === 'Close,NDJSON,Trace'")
	p.sound("the tools")
}

// TestRequests_Hidden: the history of a row leads to its calls, which also find their DynamoDB request. The list
// says which matches it hides, and shows them.
func TestRequests_Hidden(t *testing.T) {
	ctx := browser(t)
	srv := startPairs(t)
	srv.send(t, "PutItem", `{"TableName":"pairs","Item":{"a":{"S":"x"},"b":{"S":"1"}}}`)
	p := open(t, ctx, srv)
	ask[bool](p, "fetch('/api/v1/query', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify({operation: 'PutItem', request: {TableName: 'pairs', Item: {a: {S: 'x'}, b: {S: '1'}}}, own: true})}).then((r) => r.ok)")
	const (
		lines = "document.querySelectorAll('[data-request]').length"
		own   = "document.querySelectorAll('[data-request] .own').length"
		said  = "(document.querySelector('main > [aria-live] > .note')?.innerText ?? '')"
		boxes = "[...document.querySelectorAll('.tools input[type=checkbox]')].map((e) => e.checked).join()"
	)
	p.visit("/history/pairs?item=" + url.QueryEscape(`{"a":{"S":"x"},"b":{"S":"1"}}`))
	p.until("document.querySelectorAll('[data-event]').length > 1")
	p.click("main > .bar a[href^='/requests']")
	p.until("location.pathname === '/requests' && " + lines + " > 0 && " + said + ".includes('hidden')")
	if got := ask[string](p, said+" + '|' + "+boxes); !strings.Contains(got, "console request") || !strings.HasSuffix(got, "Show them|true,false") && !strings.HasSuffix(got, "Show it|true,false") {
		t.Errorf("the requests for the row say %q", got)
	}
	p.shoot("requests-hidden")
	p.click("main > [aria-live] > .note button")
	p.until(own + " > 0 && " + said + " === '' && " + boxes + " === 'true,true'")
	ask[bool](p, "([...document.querySelectorAll('.tools input[type=checkbox]')].forEach((e) => e.click()), true)")
	p.until(lines + " === 1 && document.querySelector('[data-request]').innerText.includes('PutItem')")
	p.sound("the requests of a row")

	p.visit("/requests?f=key:none")
	p.until(said + " === '0 requests match the filter.'")
	p.sound("no request")
}
