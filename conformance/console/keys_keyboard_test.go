package console

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/tabletop-emu/tabletop/internal/btclient"
)

// TestKeys_Keyboard: in the heat map arrows move a mark, whose place the page announces, Shift
// selects a range, Enter shows only that, and Escape shows all again.
func TestKeys_Keyboard(t *testing.T) {
	ctx := browser(t)
	srv := start(t)
	srv.createTable(t, "rows", "f")
	for i := range 40 {
		srv.set(t, "rows", fmt.Sprintf("key-%02d", i), btclient.Cell{Family: "f", Timestamp: 1000, Value: []byte("v")})
	}
	p := open(t, ctx, srv)
	p.visit("/keys/tabletop/rows")
	const canvas = "canvas[role=img]"
	height := func() int { return ask[int](p, "document.querySelector('"+canvas+"').height") }
	all := height()
	if all < 5 {
		t.Fatalf("the map has %d ranges", all)
	}
	tip := func() string { return ask[string](p, "document.querySelector('.tip').textContent") }
	p.press("ArrowDown", canvas)
	first := tip()
	p.press("ArrowDown", canvas)
	if second := tip(); first == second || !ask[bool](p, "/key-\\d\\d.* reads?, .* writes?/.test(document.querySelector('.tip').textContent)") {
		t.Errorf("the arrow announces %q and then %q", first, second)
	}
	p.shoot("keys-keyboard")
	for range 2 {
		ask[bool](p, "document.querySelector('"+canvas+"').dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowDown', shiftKey: true, bubbles: true})), true")
	}
	p.press("Enter", canvas)
	if got := height(); got != 3 {
		t.Errorf("after Enter %d ranges are seen, want 3", got)
	}
	p.press("Escape", canvas)
	if got := height(); got != all {
		t.Errorf("after Escape %d ranges are seen, want %d", got, all)
	}
	p.sound("keys")
}

// TestKeys_Pin: a click keeps a place of the heat map with links to its row, until a second one; a warning links to the
// document of its rule.
func TestKeys_Pin(t *testing.T) {
	ctx := browser(t)
	srv := start(t)
	srv.createTable(t, "rows", "f")
	for i := range 200 {
		srv.set(t, "rows", fmt.Sprintf("key-%d", max(0, i-150)), btclient.Cell{Family: "f", Timestamp: 1000, Value: []byte("v")})
	}
	p := open(t, ctx, srv)
	p.visit("/keys/tabletop/rows")
	click := func(y float64) {
		ask[bool](p, fmt.Sprintf(`((canvas) => {
			const box = canvas.getBoundingClientRect();
			for (const type of ['pointermove', 'pointerdown', 'pointerup', 'pointermove']) canvas.dispatchEvent(new PointerEvent(type, {bubbles: true, pointerId: 1, clientX: box.right - 2, clientY: box.top + (type === 'pointermove' ? 0.9 : %v) * box.height}));
			return true;
		})(document.querySelector('canvas[role=img]'))`, y))
	}
	const tip = "document.querySelector('.tip').innerText.replaceAll(/\\s+/g, ' ')"
	click(0)
	if got := ask[string](p, tip); !containsAll(got, "key-0 ", "Rows · History") {
		t.Errorf("the place is %q", got)
	}
	p.sound("a place")
	p.shoot("keys-pinned")
	click(0)
	if got := ask[string](p, tip); strings.Contains(got, "Rows") || strings.Contains(got, "key-0 ") {
		t.Errorf("after a second click the place is %q", got)
	}
	if !ask[bool](p, "((link) => { document.querySelector('input[type=range]').dispatchEvent(new Event('input')); return link.isConnected; })(document.querySelector('.sums a'))") {
		t.Error("a link is replaced when the map is drawn again, and would lose the focus")
	}
	// After the shortest time range the page opens with a longer one.
	srv.lab.Clock().Advance(20 * time.Minute)
	p.visit("/keys/tabletop/rows")
	if got := ask[string](p, "document.querySelector('[aria-label=\"Time range\"]').value + ' ' + document.querySelector('.heat').checkVisibility()"); got != "an hour true" {
		t.Errorf("twenty minutes later the page shows %s", got)
	}
	if got := ask[string](p, "document.querySelector('.note.warn a').getAttribute('href')"); got != "/docs/lint#l26-hot-key-range" {
		t.Errorf("the rule is at %s", got)
	}
	p.click(".note.warn a")
	p.do(chromedp.WaitReady("#l26-hot-key-range"))
	p.ready("/docs/lint")
	p.until("document.getElementById('l26-hot-key-range').getBoundingClientRect().top < 400")
}
