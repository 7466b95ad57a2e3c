package console

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/internal/btclient"
)

// TestRequests_Live: what a client asks for appears without a reload, and a DynamoDB request opens into the calls of
// Bigtable that it became.
func TestRequests_Live(t *testing.T) {
	ctx := browser(t)
	srv := start(t)
	if err := srv.lab.Door().Open(); err != nil {
		t.Fatal(err)
	}
	srv.call(t, "CreateTable", createThings)
	p := open(t, ctx, srv)
	p.visit("/requests?f=" + url.QueryEscape("door:ddb"))
	p.until("document.body.innerText.includes('● live')")
	door := httptest.NewServer(srv.lab.Door())
	defer door.Close()
	for i := range 3 {
		ask := func(operation, body string) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, door.URL, strings.NewReader(body))
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
		t.Errorf("the calls of a Query do not show what is read: %s", calls)
	}
	p.click("[data-request] button")
	p.until("document.querySelectorAll('[data-request]').length > 6")
	p.sound("requests")
	p.shoot("requests-live")
}

// TestItem_Edit: an item that is put shows what would change before, and the table has it after.
func TestItem_Edit(t *testing.T) {
	ctx := browser(t)
	srv := start(t)
	if err := srv.lab.Door().Open(); err != nil {
		t.Fatal(err)
	}
	srv.call(t, "CreateTable", createThings)
	srv.call(t, "PutItem", `{"TableName":"things","Item":{"id":{"S":"a"},"same":{"S":"s"},"total":{"N":"1"}}}`)
	p := open(t, ctx, srv)
	p.visit("/d/things")
	p.click("tbody tr")
	p.fill("dialog textarea", `{"id":{"S":"a"},"same":{"S":"s"},"total":{"N":"2"}}`)
	diff := ask[string](p, "document.querySelector('dialog details > div').textContent")
	if !strings.Contains(diff, `- total: {"N":"1"}`) || !strings.Contains(diff, `+ total: {"N":"2"}`) || strings.Contains(diff, "same") {
		t.Errorf("the difference is %q", diff)
	}
	p.shoot("item-edit")
	p.click("dialog button.primary")
	p.until("!document.querySelector('dialog') && document.querySelector('tbody tr').innerText.includes('2')")
	p.sound("edit")
}

// TestLab: a fault that the page arms strikes, its hits are counted, and a snapshot is come back to.
func TestLab(t *testing.T) {
	ctx := browser(t)
	srv := start(t)
	srv.createTable(t, "rows", "f")
	set := func(key string) error {
		return srv.client().MutateRow(t.Context(), "rows", []byte(key), []*btpb.Mutation{btclient.SetCell("f", []byte("q"), 1000, []byte("v"))})
	}
	p := open(t, ctx, srv)
	p.visit("/lab")
	p.fill("textarea", `{"door":"bigtable","method":"MutateRow","effect":"fail","code":"UNAVAILABLE","times":1,"behindDynamoDB":true}`) // in this process there are no others
	p.pushButton("Arm")
	p.until("!!document.querySelector('[data-fault]')")
	if err := set("a"); err == nil {
		t.Error("the fault does not strike")
	}
	p.pushButton("Count again")
	p.until("document.querySelector('[data-fault] .num').textContent === '1'")
	p.pushButton("Take")
	p.until("document.body.innerText.includes('Restore')")
	if err := set("b"); err != nil {
		t.Fatal(err)
	}
	p.pushButton("Restore")
	p.until("document.body.innerText.includes('All is as it was')")
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

// TestKeys: the map of known load has a bright line for one hot row and a dark rest, the sums are those of the
// requests, and the hot row is named.
func TestKeys(t *testing.T) {
	ctx := browser(t)
	srv := start(t)
	srv.createTable(t, "keys", "f")
	srv.lab.Clock().Freeze()
	for second := range 60 {
		for i := range 7 {
			srv.set(t, "keys", fmt.Sprintf("row-%03d", (second*7+i)*37%420), btclient.Cell{Family: "f", Timestamp: 1000, Value: []byte("v")})
		}
		for range 3 {
			srv.set(t, "keys", "row-200", btclient.Cell{Family: "f", Timestamp: 1000, Value: []byte("v")})
		}
		if _, err := srv.lab.Advance(time.Second); err != nil {
			t.Fatal(err)
		}
	}
	p := open(t, ctx, srv)
	p.visit("/keys/tabletop/keys")
	if got := ask[string](p, "document.querySelector('main').innerText"); !strings.Contains(got, "600 operations") || !strings.Contains(got, "L26 hot-key-range: row-200") && !strings.Contains(got, "at one place: row-200") {
		t.Errorf("the page says %s", got)
	}
	// By row of pixels, how many are brighter than the ground.
	lit := ask[[]int](p, `((c) => { const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
		return Array.from({length: c.height}, (_, y) => Array.from({length: c.width}, (_, x) => d[4 * (y * c.width + x)] > 200 ? 1 : 0).reduce((a, b) => a + b)); })(document.querySelector('canvas'))`)
	most, at := 0, 0
	for y, n := range lit {
		if n > most {
			most, at = n, y
		}
	}
	if most != 60 {
		t.Errorf("the brightest line has %d bright moments of 60", most)
	}
	for y, n := range lit {
		if y != at && n > 3 {
			t.Errorf("line %d has %d bright moments too", y, n)
		}
	}
	p.sound("keys")
	p.shoot("keys")
}

// TestQuery: a request is run, and the calls of Bigtable that it became are shown.
func TestQuery(t *testing.T) {
	ctx := browser(t)
	srv := start(t)
	if err := srv.lab.Door().Open(); err != nil {
		t.Fatal(err)
	}
	srv.call(t, "CreateTable", createThings)
	srv.call(t, "PutItem", `{"TableName":"things","Item":{"id":{"S":"a"},"total":{"N":"1"}}}`)
	p := open(t, ctx, srv)
	p.visit("/query")
	p.pushButton("Run")
	p.until("document.body.innerText.includes('As Bigtable') && document.body.innerText.includes('1 items')")
	p.shoot("query")
	p.pushButton("PartiQL")
	p.pushButton("Run")
	p.until("document.body.innerText.includes('1 items')")
	p.pushButton("ReadRows")
	p.pushButton("Run")
	p.until("document.body.innerText.includes('1 rows')")
	p.sound("query")
}

// TestMigration: a fixture is verified and judged from the page.
func TestMigration(t *testing.T) {
	ctx := browser(t)
	p := open(t, ctx, start(t))
	p.visit("/migration?fixture=s5-order-entry")
	for _, verb := range []string{"Verify", "Lint", "Plan"} {
		p.pushButton(verb)
		p.until(fmt.Sprintf("document.body.innerText.includes('%s of s5-order-entry')", strings.ToLower(verb)))
		p.sound(verb)
		p.shoot("migration-" + strings.ToLower(verb))
	}
}

// TestNarrow: nothing is wider than half a laptop's screen, and the first Tab reaches the link to the content.
func TestNarrow(t *testing.T) {
	ctx := browser(t)
	srv := start(t)
	srv.createTable(t, "rows", "f")
	srv.set(t, "rows", "a", btclient.Cell{Family: "f", Qualifier: []byte("q"), Timestamp: 1000, Value: []byte("v")})
	p := open(t, ctx, srv)
	p.resize(640, 800)
	for _, path := range []string{"/", "/requests", "/lab", "/query", "/migration", "/t/tabletop/rows", "/t/tabletop/rows/rows", "/keys/tabletop/rows"} {
		p.visit(path)
		if over := ask[int](p, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
			t.Errorf("%s is %d pixels too wide", path, over)
		}
		if unnamed := ask[string](p, "[...document.querySelectorAll('input, select, textarea, button, a')].filter(e => !(e.ariaLabel || e.textContent.trim() || e.closest('label'))).map(e => e.outerHTML).join()"); unnamed != "" {
			t.Errorf("%s: without a name: %s", path, unnamed)
		}
		p.shoot("narrow-" + strings.Trim(strings.ReplaceAll(path, "/", "-"), "-"))
	}
}
