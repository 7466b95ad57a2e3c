package console

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/control"
)

// control calls the control API like another program.
func (s *server) control(t *testing.T, method, path, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+control.Prefix+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s", method, path, resp.Status)
	}
}

// TestLab_Live: changes of the clock, faults and snapshots by others appear without a reload,
// the shown clock runs with the clock, and the page does not poll.
func TestLab_Live(t *testing.T) {
	ctx := browser(t)
	srv := start(t)
	p := open(t, ctx, srv)
	p.visit("/lab")
	const clock = "document.querySelector('.card p .mono').textContent"
	first := ask[string](p, clock)
	p.until(clock + " !== " + quoted(first))
	header := ask[string](p, "document.querySelector('header .state a').textContent")
	p.until("document.querySelector('header .state a').textContent !== " + quoted(header))

	srv.control(t, "POST", "faults", `{"endpoint":"bigtable","method":"MutateRow","effect":"duplicate"}`)
	p.until("document.querySelectorAll('[data-fault]').length === 1 && document.querySelector('header .state a').textContent.includes('1 fault armed')")
	srv.control(t, "POST", "snapshots", `{"name":"theirs"}`)
	p.until("document.querySelector('main').textContent.includes('theirs')")
	srv.control(t, "DELETE", "faults", "")
	p.until("document.querySelectorAll('[data-fault]').length === 0 && !document.querySelector('header .state a').textContent.includes('fault')")
	srv.control(t, "POST", "clock", `{"freeze":true}`)
	srv.control(t, "POST", "clock", `{"set":"2071-02-03T04:05:06Z"}`)
	p.until(clock + " === '2071-02-03 04:05:06 UTC, frozen'")
	p.until("document.querySelector('header .state a').textContent === '2071-02-03 04:05:06 UTC · frozen'")
	p.sound("lab")

	// Typed text survives changes by others.
	p.fill("[aria-label='Advance by']", "7d")
	srv.control(t, "POST", "clock", `{"run":true}`)
	p.until(clock + ".endsWith('running')")
	if got := ask[string](p, "document.querySelector(\"[aria-label='Advance by']\").value"); got != "7d" {
		t.Errorf("the typed text is %q now", got)
	}

	ask[bool](p, `globalThis.asked = 0, ((ask) => { globalThis.fetch = (...to) => { globalThis.asked++; return ask(...to); }; })(fetch), true`)
	second := ask[string](p, clock)
	p.until(clock + " !== " + quoted(second) + " && " + clock + " > " + quoted("2071-02-03 04:05:08"))
	if n := ask[int](p, "globalThis.asked"); n != 0 {
		t.Errorf("while the clock runs the page polls %d times", n)
	}

	// The header of another page is notified too.
	p.visit("/query")
	srv.control(t, "POST", "clock", `{"set":"2072-01-01T00:00:00Z"}`)
	p.until("document.querySelector('header .state a').textContent.includes('2072-01-01 00:00:0')")
	p.visit("/requests")
	srv.control(t, "POST", "faults", `{"endpoint":"bigtable","method":"MutateRow","effect":"duplicate"}`)
	p.until("document.querySelector('header .state a').textContent.includes('1 fault armed')")
	p.sound("requests")
}

// beyond is a script that returns the elements of cards that stick out of their cards, and column heads with
// vertical text.
const beyond = `(() => {
	const out = [];
	for (const card of document.querySelectorAll('.card')) {
		const right = card.getBoundingClientRect().right;
		for (const el of card.querySelectorAll('*')) {
			let scrolls = false;
			for (let up = el.parentElement; up !== card; up = up.parentElement) scrolls ||= getComputedStyle(up).overflowX !== 'visible';
			if (!scrolls && el.getBoundingClientRect().right > right) out.push(el.outerHTML.slice(0, 100));
		}
	}
	for (const th of document.querySelectorAll('main thead th')) if (th.getBoundingClientRect().height > 45) out.push(th.outerHTML);
	return out;
})()`

// covered is a script that returns the labels of fields with a control over their text.
const covered = `[...document.querySelectorAll('.field')].filter((e) => e.checkVisibility()).filter((e) => {
	const text = document.createRange();
	text.selectNodeContents(e.firstChild);
	const a = text.getBoundingClientRect(), b = e.lastElementChild.getBoundingClientRect();
	return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}).map((e) => e.innerText)`

// TestLab_Width: the faults stay inside their card, whatever their conditions, in a wide and
// in a narrow window.
func TestLab_Width(t *testing.T) {
	ctx := browser(t)
	srv := startThings(t)
	for _, fault := range []string{
		`{"endpoint":"bigtable","method":"BigtableTableAdmin/GetIamPolicy","effect":"fail","code":"UNAVAILABLE","applied":true,"times":100,"probability":0.25}`,
		`{"endpoint":"bigtable","method":"ReadRows","effect":"cut","code":"UNAVAILABLE","rows":2,"row":{"text":"` + strings.Repeat("long", 50) + `"},"times":1}`,
		`{"endpoint":"dynamodb","method":"TransactWriteItems","effect":"fail","code":"ProvisionedThroughputExceeded","table":"things","item":{"id":{"S":"a"}},"times":1}`,
	} {
		srv.control(t, "POST", "faults", fault)
	}
	srv.control(t, "POST", "snapshots", `{"name":"a-snapshot-with-a-long-name-that-says-what-for"}`)
	p := open(t, ctx, srv)
	for _, width := range []int64{1280, 640} {
		p.resize(width, 800)
		p.visit("/lab")
		if out := ask[[]string](p, beyond); len(out) > 0 {
			t.Errorf("%d pixels: %s", width, strings.Join(out, "\n"))
		}
		if covered := ask[[]string](p, covered); len(covered) > 0 {
			t.Errorf("%d pixels: controls cover the labels %q", width, covered)
		}
		p.sound("lab")
		p.shoot(fmt.Sprintf("lab-top-%d", width))
		ask[bool](p, "document.querySelector('[data-fault]').scrollIntoView({ block: 'center' }), true")
		p.shoot(fmt.Sprintf("lab-faults-%d", width))
	}
}

// TestHome_Live: created and deleted tables appear and disappear without a reload, and the
// text in the filter stays.
func TestHome_Live(t *testing.T) {
	ctx := browser(t)
	srv := start(t)
	if err := srv.ddb.Open(); err != nil {
		t.Fatal(err)
	}
	p := open(t, ctx, srv)
	p.visit("/")
	srv.createTable(t, "theirs", "f")
	p.until("document.querySelector('main').textContent.includes('theirs')")
	p.fill("input[type=search]", "thin")
	ask[bool](p, "document.querySelector('input[type=search]').focus(), true")
	srv.call(t, "CreateTable", createThings)
	p.until("document.querySelector('main').textContent.includes('things')")
	if got := ask[string](p, "((e) => e.value + (e === document.activeElement))(document.querySelector('input[type=search]'))"); got != "thintrue" {
		t.Errorf("the filter is %s", got)
	}
	srv.control(t, "POST", "reset", "")
	p.until("document.querySelector('main').textContent.includes('There are no tables yet')")
	p.sound("home")
}
