package console

import (
	"fmt"
	"testing"

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
	tip := func() string { return ask[string](p, "document.querySelector('.heat ~ p').textContent") }
	p.press("ArrowDown", canvas)
	first := tip()
	p.press("ArrowDown", canvas)
	if second := tip(); first == second || !ask[bool](p, "/key-\\d\\d.* reads?, .* writes?/.test(document.querySelector('.heat ~ p').textContent)") {
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
