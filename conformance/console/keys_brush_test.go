package console

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/internal/btclient"
)

// drag moves the pointer over the map, from one share of its width and height to another.
func (p *tab) drag(x1, y1, x2, y2 float64) {
	p.t.Helper()
	ask[bool](p, fmt.Sprintf(`((canvas) => {
		const box = canvas.getBoundingClientRect();
		const send = (type, x, y) => canvas.dispatchEvent(new PointerEvent(type, {bubbles: true, pointerId: 1, clientX: box.left + x * box.width, clientY: box.top + y * box.height}));
		send('pointerdown', %v, %v);
		send('pointermove', %[3]v, %[4]v);
		globalThis.brushed = !document.querySelector('.brush').hidden;
		send('pointerup', %[3]v, %[4]v);
		return true;
	})(document.querySelector('canvas[role=img]'))`, x1, y1, x2, y2))
	if !ask[bool](p, "globalThis.brushed") {
		p.t.Error("the brush is not seen")
	}
}

// TestKeys_Brush: a drag shows the moments, the keys or both that it crosses; the axes and the
// legend follow.
func TestKeys_Brush(t *testing.T) {
	const seconds, keys = 60, 40
	ctx := browser(t)
	srv := start(t)
	srv.lab.Clock().Freeze()
	srv.createTable(t, "rows", "f")
	for range seconds {
		for i := range keys {
			srv.set(t, "rows", fmt.Sprintf("key-%02d", i), btclient.Cell{Family: "f", Timestamp: 1000, Value: []byte("v")})
		}
		srv.lab.Clock().Advance(time.Second)
	}
	p := open(t, ctx, srv)
	p.visit("/keys/tabletop/rows?metric=rows")
	size := func() [2]int {
		return ask[[2]int](p, "((c) => [c.width, c.height])(document.querySelector('canvas[role=img]'))")
	}
	is := func(what string, want [2]int) {
		t.Helper()
		if got := size(); got != want {
			t.Errorf("%s: the map has %v moments and ranges, want %v", what, got, want)
		}
	}
	is("all", [2]int{seconds, keys})
	texts := func(selector string) []string {
		return ask[[]string](p, "[...document.querySelectorAll('"+selector+"')].map((e) => e.textContent).filter(Boolean)")
	}
	if ticks := texts(".of-time .tick"); len(ticks) < 3 || !strings.HasSuffix(ticks[0], "Z") {
		t.Errorf("the times are %q", ticks)
	}
	if labels := texts(".of-key .band"); len(labels) < 10 || labels[0] != "key-00" {
		t.Errorf("the keys are %q", labels)
	}
	if marks := texts(".legend .tick"); len(marks) < 2 || marks[0] != "0" || marks[len(marks)-1] != "1" {
		t.Errorf("the legend has %q", marks)
	}
	p.shoot("keys-axes")
	p.drag(0.251, 0.1, 0.748, 0.1)
	is("times", [2]int{30, keys})
	p.drag(0.5, 0.26, 0.5, 0.74)
	is("keys of these times", [2]int{30, 20})
	if labels := texts(".of-key .band"); labels[0] != "key-10" {
		t.Errorf("the keys are %q", labels)
	}
	if got := ask[string](p, "document.querySelector('.heat ~ div h2').textContent"); !strings.HasPrefix(got, "600 rows in 20 key ranges") {
		t.Errorf("the sum is %q", got)
	}
	p.shoot("keys-zoomed")
	p.press("Escape", "canvas[role=img]")
	is("all again", [2]int{seconds, keys})
	p.drag(0.251, 0.26, 0.748, 0.74)
	is("both", [2]int{30, 20})
	p.pushButton("Reset zoom")
	is("all by the button", [2]int{seconds, keys})
	// The keyboard selects moments too.
	p.press("ArrowLeft", "canvas[role=img]")
	for range 9 {
		ask[bool](p, "document.querySelector('canvas[role=img]').dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowLeft', shiftKey: true, bubbles: true})), true")
	}
	p.press("Enter", "canvas[role=img]")
	is("by the keyboard", [2]int{10, keys})
	p.sound("keys")
}

// TestKeys_Parts: the axis of a mapped table is cut into the parts of the mapping, each with its
// name, and a bulk load shows its rows.
func TestKeys_Parts(t *testing.T) {
	ctx := browser(t)
	srv, m := startFixture(t, "s5-order-entry")
	p := open(t, ctx, srv)
	p.visit("/keys/tabletop/" + m.TargetTable() + "?metric=rows")
	labels := ask[[]string](p, "[...document.querySelectorAll('.of-key .band')].map((e) => e.title)")
	columns := ask[int](p, "new Set([...document.querySelectorAll('.of-key .band')].map((e) => e.style.left)).size")
	if len(labels) < 2 || columns < 2 {
		t.Fatalf("the axis has %d columns: %q", columns, labels)
	}
	for _, label := range labels {
		if !strings.Contains(label, " ") {
			t.Errorf("the part %q has no name", label)
		}
	}
	p.shoot("keys-parts")
	for _, width := range []int64{1280, 640} {
		p.resize(width, 800)
		p.until(crowded + ".length === 0") // the labels follow a new width
	}
	const alone = "[...document.querySelectorAll('.of-key .band')].filter((e, i, all) => e.style.left === '0%' && !all.some((f) => f !== e && f.style.top === e.style.top)).map((e) => e.title)"
	if got := ask[[]string](p, alone); len(got) > 0 {
		t.Errorf("the parts %q have no label beside them", got)
	}
	p.shoot("keys-parts-narrow")
	p.fits("keys")
	p.sound("keys")
}
