package console

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// change replaces a piece of the edited mapping, as typing does, and waits for its preview.
func (p *tab) change(old, with string) {
	p.t.Helper()
	text := ask[string](p, "document.querySelector('textarea.code').value")
	if strings.Count(text, old) != 1 {
		p.t.Fatalf("%q is there %d times", old, strings.Count(text, old))
	}
	p.fill("textarea.code", strings.Replace(text, old, with, 1))
	p.until("!!document.querySelector('[data-previewed]')")
}

// TestWorkbench: a mapping is edited next to its rows: changes, losses, findings of lint, and
// the position of a fault. The saved text is the edited one; a difference of its verification
// leads to the item and its row.
func TestWorkbench(t *testing.T) {
	ctx := browser(t)
	p := open(t, ctx, start(t))
	p.visit("/migration?fixture=s2-video&edit=1")
	p.until("document.querySelector('[data-previewed]')?.dataset.previewed === 'own'")
	file, err := os.ReadFile("../../fixtures/subjects/s2-video/mapping.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if text := ask[string](p, "document.querySelector('textarea.code').value"); text != string(file) {
		t.Errorf("the text is not that of the file: %s", text)
	}
	if n := ask[int](p, "document.querySelectorAll('[data-item]').length"); n != 9 {
		t.Errorf("%d items are shown, want the nine", n)
	}
	if wrong := ask[[]string](p, `[...document.querySelectorAll('.preview [data-attribute]')].filter((a) => { a.dispatchEvent(new MouseEvent('mouseenter')); return a.dataset.attribute === 'Content' && a.closest('.preview').querySelectorAll('tr.lit').length !== 1; }).map((a) => a.textContent)`); len(wrong) > 0 {
		t.Errorf("pointing at an attribute lights no cell: %v", wrong)
	}
	// The values have room: about twenty characters in a line.
	if narrow := ask[[]string](p, "[...document.querySelectorAll('.preview [data-cell] td:last-child')].filter((td) => td.clientWidth < 165 && td.textContent.length > 12).map((td) => td.clientWidth + ' pixels: ' + td.textContent)"); len(narrow) > 0 {
		t.Errorf("values are cut into pieces: %s", strings.Join(narrow, "\n"))
	}
	p.sound("workbench")
	p.shoot("workbench")
	p.resize(640, 800)
	ask[bool](p, "document.querySelector('.preview').scrollIntoView(), true")
	p.shoot("workbench-640")
	p.resize(1280, 800)

	const counter = `put: [{attr: Count, cell: "a:Likes", codec: i64be}]`
	p.change(counter, `put: [{attr: Count, cell: "a:Likes", codec: json}]`)
	if got := ask[string](p, "[...document.querySelectorAll('[data-changed]')].map((e) => e.dataset.item).join()"); got != `{"PK":{"S":"0123"},"SK":{"S":"VideoStatsLikes"}}` {
		t.Errorf("changed: %s", got)
	}
	if got := ask[string](p, "document.querySelector('[data-changed] tr.new').innerText + '|' + document.querySelector('[data-changed] tr.gone').innerText"); !strings.Contains(got, "3|") || !strings.HasSuffix(got, "3 int64") {
		t.Errorf("the cell now and before: %q", got)
	}
	if got := ask[string](p, "document.querySelector('[data-finding]')?.innerText ?? ''"); !strings.Contains(got, "L46") || !strings.Contains(got, "line 27") {
		t.Errorf("lint says %q", got)
	}
	p.shoot("workbench-changed")
	p.until(inEditor("true"))
	p.pushButton("line 27")
	if got := ask[string](p, inEditor("root.getSelection().toString()")); !strings.HasPrefix(got, "{attr: Count") {
		t.Errorf("line 27 is %q", got)
	}
	saved := ask[string](p, `(async () => {
		let blob;
		const made = URL.createObjectURL;
		URL.createObjectURL = (b) => { blob = b; return made.call(URL, b); };
		HTMLAnchorElement.prototype.click = () => {};
		[...document.querySelectorAll('button')].find((b) => b.textContent === 'Save mapping.yaml').click();
		URL.createObjectURL = made;
		delete HTMLAnchorElement.prototype.click;
		return new TextDecoder('utf-8', { ignoreBOM: true }).decode(await blob.arrayBuffer());
	})()`)
	if want := strings.Replace(string(file), counter, `put: [{attr: Count, cell: "a:Likes", codec: json}]`, 1); saved != want {
		t.Errorf("saved is\n%s\nwant\n%s", saved, want)
	}
	if said := p.complaints(); len(said) > 0 {
		t.Error(said)
	}

	p.pushButton("Discard changes")
	p.until("document.querySelector('[data-previewed]')?.dataset.previewed === 'own'")
	p.change(`codec: json, ts: {attr: UploadDate, as: iso(s)}`, `codec: json`)
	if got := ask[string](p, "document.querySelector('[data-changed]').innerText"); !strings.Contains(got, "loses UploadDate") {
		t.Errorf("the lost attribute is not reported: %s", got)
	}
	p.change("apiVersion: migration/v1", "apiVersion: migration/v7")
	if got := ask[string](p, "document.querySelector('[data-problem]')?.innerText ?? ''"); !strings.Contains(got, "line 3") {
		t.Errorf("the text is wrong in line 3, and the page shows %q", got)
	}
	p.shoot("workbench-problem")

	p.pushButton("Discard changes")
	p.until("document.querySelector('[data-previewed]')?.dataset.previewed === 'own'")
	p.change(`cell: "c:UserComments"`, `cell: "c:Comments"`)
	ask[bool](p, "[...document.querySelectorAll('button')].filter((b) => b.textContent === 'Verify').at(-1).click(), true")
	p.until("!!document.querySelector('[data-report]') && document.querySelector('[data-report]').getBoundingClientRect().top < innerHeight / 2")
	p.shoot("workbench-differences")
	if n := ask[int](p, "document.querySelectorAll('.note.error').length"); n == 0 {
		t.Fatal("verify sees no difference to the golden rows")
	}
	key := ask[string](p, `((n) => { const key = n.querySelector('tr:has(th)') && [...n.querySelectorAll('tr')].find((r) => r.firstChild.textContent === 'itemKey').lastChild.textContent;
		[...n.querySelectorAll('button')].find((b) => b.textContent === 'Item and row').click(); return key; })([...document.querySelectorAll('.note.error')].find((n) => n.querySelector('button')))`)
	p.until("document.querySelector('[data-item]').dataset.item === " + quoted(key))
	if said := p.complaints(); len(said) > 0 {
		t.Error(said)
	}
}

// TestWorkbench_Draft: another page keeps the edited text and the chosen fixture, until the text is discarded.
func TestWorkbench_Draft(t *testing.T) {
	ctx := browser(t)
	p := open(t, ctx, start(t))
	p.visit("/migration?fixture=s2-video&edit=1")
	p.until("document.querySelector('[data-previewed]')?.dataset.previewed === 'own'")
	p.change(`"a:Likes", codec: i64be`, `"a:Likes", codec: json`)
	p.visit("/lab")
	p.visit("/migration")
	p.until("!!document.querySelector('[data-changed]')")
	if got := ask[string](p, "document.querySelector(\"[aria-label='Fixture']\").value"); got != "s2-video" || !ask[bool](p, "document.body.innerText.includes('Your changes from before are here again.')") {
		t.Errorf("the page shows %s", got)
	}
	if said := p.complaints(); len(said) > 0 {
		t.Error(said)
	}
	p.pushButton("Discard changes")
	p.until("document.querySelector('[data-previewed]')?.dataset.previewed === 'own'")
	p.visit("/migration")
	if ask[bool](p, "!!document.querySelector('.workbench')") {
		t.Error("the discarded text is still there")
	}
}

// TestWorkbench_Link: the address of an item of a fixture opens the workbench with it.
func TestWorkbench_Link(t *testing.T) {
	ctx := browser(t)
	p := open(t, ctx, start(t))
	const key = `{"PK":{"S":"0124"},"SK":{"S":"VideoStats"}}`
	if !json.Valid([]byte(key)) {
		t.Fatal(key)
	}
	p.visit("/migration?fixture=s2-video&item=" + `%7B%22PK%22:%7B%22S%22:%220124%22%7D,%22SK%22:%7B%22S%22:%22VideoStats%22%7D%7D`)
	p.until("document.querySelector('[data-item]')?.dataset.item === " + quoted(key))
	p.sound("link")
}
