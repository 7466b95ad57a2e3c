package console

import (
	"fmt"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// press sends a key to an element.
func (p *tab) press(key, selector string) {
	p.t.Helper()
	ask[bool](p, fmt.Sprintf(`document.querySelector(%q).dispatchEvent(new KeyboardEvent('keydown', {key: %q, bubbles: true})), true`, selector, key))
}

func (p *tab) click(selector string) {
	p.t.Helper()
	ask[bool](p, fmt.Sprintf(`document.querySelector(%q).click(), true`, selector))
}

// frame waits until the page has drawn its changes.
func (p *tab) frame() {
	p.t.Helper()
	ask[bool](p, `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
}

// point moves the pointer to an element, if it exists, and keeps it there.
func (p *tab) point(selector string) {
	p.t.Helper()
	ask[any](p, fmt.Sprintf(`document.querySelector(%q)?.dispatchEvent(new MouseEvent('mouseenter'))`, selector))
	p.frame()
}

// pushButton clicks the first visible button with a label.
func (p *tab) pushButton(label string) {
	p.t.Helper()
	if !ask[bool](p, fmt.Sprintf(`((b) => { b?.click(); return !!b; })([...document.querySelectorAll('button')].find((b) => b.textContent === %q))`, label)) {
		p.t.Fatalf("button %q not found", label)
	}
}

// asJSON opens the JSON of the item in the dialog.
func (p *tab) asJSON() {
	p.t.Helper()
	p.until("!!document.querySelector('dialog [role=tab]')")
	ask[bool](p, "[...document.querySelectorAll('dialog [role=tab]')].find((b) => b.textContent === 'JSON').click(), !!document.querySelector('dialog textarea')")
}

// resize changes the size of the window.
func (p *tab) resize(width, height int64) {
	p.t.Helper()
	p.do(chromedp.EmulateViewport(width, height))
}

// fill sets the value of a field, as typing does.
func (p *tab) fill(selector, value string) {
	p.t.Helper()
	ask[bool](p, fmt.Sprintf(`((e) => { e.value = %q; e.dispatchEvent(new Event('input', {bubbles: true})); e.dispatchEvent(new Event('change', {bubbles: true})); return true; })(document.querySelector(%q))`, value, selector))
}

// dragBy presses the pointer on the middle of an element, and releases it to the right.
func (p *tab) dragBy(selector string, right float64) {
	p.t.Helper()
	at := ask[[]float64](p, fmt.Sprintf("((r) => [(r.left + r.right) / 2, (r.top + r.bottom) / 2])(document.querySelector(%q).getBoundingClientRect())", selector))
	for i, kind := range []input.DispatchMouseEventType{input.DispatchMouseEventTypeMousePressed, input.DispatchMouseEventTypeMouseMoved, input.DispatchMouseEventTypeMouseReleased} {
		event := input.DispatchMouseEventParams{Type: kind, X: at[0], Y: at[1], Button: input.MouseButtonLeft, Buttons: 1, ClickCount: 1}
		if i > 0 {
			event.X += right
		}
		if _, err := chromedp.Call(p.ctx, input.DispatchMouseEvent, event); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *tab) scrollTo(selector string, top int) {
	p.t.Helper()
	ask[int](p, fmt.Sprintf(`document.querySelector(%q).scrollTop = %d`, selector, top))
}

// hoverAll is a script that points at each attribute of the open row, and at each visible cell, and returns
// highlights that differ from the API's.
const hoverAll = `(async () => {
	const real = requestAnimationFrame;
	const frame = () => new Promise((done) => real(() => real(done)));
	globalThis.requestAnimationFrame = (then) => { queueMicrotask(then); return 1; }; // only what is scrolled needs real frames
	const wrong = [];
	const enter = (el) => el.dispatchEvent(new MouseEvent('mouseenter'));
	const leave = (el) => el.dispatchEvent(new MouseEvent('mouseleave'));
	const attributes = [...document.querySelectorAll('[data-attribute]')];
	const of = (await (await fetch(%q)).json()).items.flatMap((item) => item.attributes);
	if (!attributes.length || of.length !== attributes.length) wrong.push(attributes.length + ' attributes are shown of ' + of.length);
	of.forEach((a, i) => {
		const shown = attributes[i]?.dataset;
		if (a.name !== shown?.attribute || a.cells.join(' ') !== shown.cells) wrong.push(a.name + ': is shown with the cells ' + shown?.cells);
	});
	for (const a of attributes) {
		enter(a);
		const want = new Set(a.dataset.cells.split(' ').filter(Boolean));
		await null;
		if ([...want].some((cell) => !document.querySelector('[data-cell="' + cell + '"]'))) await frame();
		for (const cell of document.querySelectorAll('[data-cell]')) {
			if (cell.classList.contains('lit') !== want.has(cell.dataset.cell)) wrong.push(a.dataset.attribute + ': cell ' + cell.dataset.cell);
		}
		leave(a);
	}
	globalThis.requestAnimationFrame = real;
	await frame();
	for (const cell of document.querySelectorAll('[data-cell]')) {
		enter(cell);
		for (const a of document.querySelectorAll('[data-attribute]')) {
			if (a.classList.contains('lit') !== a.dataset.cells.split(' ').includes(cell.dataset.cell)) wrong.push('cell ' + cell.dataset.cell + ': ' + a.dataset.attribute);
		}
		leave(cell);
	}
	return wrong;
})()`

// editAll is a script that removes each attribute from the open item, and returns shown cells that differ from
// the API's.
const editAll = `(async () => {
	const area = document.querySelector('dialog textarea');
	const whole = JSON.parse(area.value);
	let seen = 0, taken = 0;
	for (const name of Object.keys(whole)) {
		const put = { ...whole };
		delete put[name];
		const response = await fetch(%q, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ put }) });
		const answer = await response.json();
		if (!response.ok) return 'without ' + name + ': ' + JSON.stringify(answer);
		area.value = JSON.stringify(put);
		area.dispatchEvent(new Event('input', { bubbles: true }));
		const want = (answer.before ?? []).length + (answer.after ?? []).length;
		const right = () => {
			const shown = [...document.querySelectorAll('[data-edited]')];
			return shown.length === want && (want > 0 || document.querySelector('[data-edit]').textContent.includes(answer.refused?.slice(0, 60) ?? 'No cell changes'));
		};
		for (let i = 0; i < 12_000 && !right(); i++) await new Promise((done) => setTimeout(done, 25));
		if (!right()) return 'without ' + name + ': ' + document.querySelector('[data-edit]').textContent + ', want ' + want + ' cells';
		seen += want;
		if (!answer.refused) taken++;
	}
	return seen || !taken ? '' : 'no attribute is in a cell';
})()`
