package console

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// inEditor is an expression over the root of the first visible editor.
func inEditor(expression string) string {
	return fmt.Sprintf("((root) => root && (%s))([...document.querySelectorAll('.editor')].find((e) => e.checkVisibility())?.shadowRoot)", expression)
}

// focusEditor waits for the first visible editor, and moves the cursor to its end.
func (p *tab) focusEditor() {
	p.t.Helper()
	p.until(inEditor("root.querySelector('.cm-content')"))
	ask[bool](p, inEditor("(root.querySelector('.cm-content').focus(), true)"))
	p.do(chromedp.KeyEvent(kb.End, chromedp.KeyModifiers(chromedp.ModifierCtrl)))
}

// TestEditor_Complete: the editor of a mapping offers the keys and values of its schema.
func TestEditor_Complete(t *testing.T) {
	ctx := browser(t)
	p := open(t, ctx, start(t))
	p.visit("/migration?fixture=s2-video&edit=1")
	p.focusEditor()
	p.fill("textarea.code", "apiVersion: migration/v1\nsource:\n  key: {hash: PK}\n  table: t\n  ")
	p.focusEditor()
	options := func() []string {
		t.Helper()
		p.until(inEditor("root.querySelector('.cm-completionLabel')"))
		return ask[[]string](p, inEditor("[...root.querySelectorAll('.cm-completionLabel')].map((e) => e.textContent)"))
	}
	p.do(chromedp.KeyEvent(" ", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	if got := options(); !slices.Equal(got, []string{"schema", "ttl", "gsis"}) {
		t.Errorf("in source the completions are %q, want the keys that it lacks", got)
	}
	p.until(inEditor("root.querySelector('.cm-completionInfo')?.textContent.includes('The type of each attribute')"))
	p.shoot("editor-completion")
	if got := ask[string](p, inEditor("root.querySelector('.cm-content').ariaLabel")); got != "The mapping, as YAML" {
		t.Errorf("the name of the editor is %q", got)
	}
	p.do(chromedp.KeyEvent("tt"))
	p.complete("ttl")
	p.until("document.querySelector('textarea.code').value.endsWith('  ttl: ')")
	p.fill("textarea.code", "apiVersion: migration/v1\n")
	p.focusEditor()
	p.do(chromedp.KeyEvent("fid"))
	p.complete("fidelity")
	p.until(inEditor("root.querySelectorAll('.cm-completionLabel').length === 3"))
	if got := options(); !slices.Equal(got, []string{"typed", "idiomatic", "blob"}) {
		t.Errorf("the values of fidelity are %q", got)
	}
	p.complete("idiomatic")
	p.until("document.querySelector('textarea.code').value.endsWith('v1\\nfidelity: idiomatic')")
	if said := p.complaints(); len(said) > 0 {
		t.Error(said)
	}
}

// complete waits for a completion, and takes it with the pointer: the editor ignores Enter while a
// list is new.
func (p *tab) complete(label string) {
	p.t.Helper()
	p.until(inEditor(fmt.Sprintf("[...root.querySelectorAll('[role=option]')].find((e) => e.querySelector('.cm-completionLabel').textContent === %q)?.dispatchEvent(new MouseEvent('mousedown', {bubbles: true, cancelable: true})) === false", label)))
}

// TestEditor_Schema: the completions at places of a mapping, each marked with ~, are those of its schema.
func TestEditor_Schema(t *testing.T) {
	ctx := browser(t)
	p := open(t, ctx, start(t))
	ask[bool](p, `Promise.all([import('/static/schema.js'), fetch('/static/mapping.schema.json').then((r) => r.json())]).then(([m, schema]) => {
		globalThis.labels = (text) => { const at = text.indexOf('~'); return (m.completions(text.replace('~', ''), at, schema, true)?.options ?? []).map((o) => o.label).join(' '); };
		return true;
	})`)
	const top = "apiVersion compat source target fidelity timestamps on accept_loss rules patterns lint"
	for text, want := range map[string]string{
		"~": top, "ap~": top, "apiVersion: ~": "migration/v1", "fidelity: ~ # why": "typed idiomatic blob",
		"target:\n  families:\n    a: {}\n~":                    "apiVersion compat source fidelity timestamps on accept_loss rules patterns lint",
		"source:\n  key: {hash: PK, ~}":                         "range",
		"source:\n  key:\n    hash: {name: a, type: ~}":         "S N B",
		"source:\n  table: x\n  ~\n  ttl: null\ntarget:":        "key schema gsis",
		"source: {ttl: {~}}":                                    "attribute mode",
		"target:\n  families:\n    a: {gc: {~}}":                "versions maxAge",
		"target: {table: t, families: {a: {gc: {}}}, shar~}":    "joiner shared max_families names prefixes",
		"rules:\n  - name: x\n    ~\n    put: [{attr: a}]":      "when schema ttl derive row latest tag",
		"rules:\n- name: x\n  ro~\n  put: [{attr: a}]":          "when schema ttl derive row latest tag",
		"rules:\n- name: x\n- ~":                                "name when schema ttl derive row put latest tag",
		"rules:\n- name: x\n  put:\n  - {attr: a,\n     ~}":     "cell codec order ts",
		"rules:\n- name: x\n  put:\n  - attr: a\n    codec: i~": "s n b bool text b64 i64be f64be nord json ddbjson flatten omit proto(",
		"rules:\n- name: x\n  tag: ~":                           "true false",
		// In comments, quoted texts and blocks of text there are none.
		"# a ~": "", "source:\n  table: \"a: ~\"": "", "a: |\n  so~\n": "", "nothing: {~}": "",
	} {
		if got := ask[string](p, fmt.Sprintf("labels(%q)", text)); got != want {
			t.Errorf("%q: the completions are %q, want %q", text, got, want)
		}
	}
}

// underlined is a script that returns the text of the first mistake that the editor underlines, and the number of its line.
const underlined = `((e) => e && e.closest('.cm-line').textContent + '|' + e.textContent + '|' + ([...root.querySelectorAll('.cm-line')].indexOf(e.closest('.cm-line')) + 1))(root.querySelector('.cm-lintRange-error'))`

// TestEditor_Mistake: mistakes of a mapping and of JSON are underlined at their place, and marked
// beside their line.
func TestEditor_Mistake(t *testing.T) {
	ctx := browser(t)
	p := open(t, ctx, start(t))
	p.visit("/migration?fixture=s2-video&edit=1")
	p.focusEditor()
	const counter = `put: [{attr: Count, cell: "a:Likes", codec: i64be}]`
	p.change(counter, `put: [{attr: Count, cell: "a:Likes", codec: json}]`)
	p.until(inEditor("root.querySelector('.cm-lintRange')?.closest('.cm-line').textContent.includes('Likes')"))
	p.change("apiVersion: migration/v1", "apiVersion: migration/v7")
	p.until(inEditor(underlined + " === 'apiVersion: migration/v7|migration/v7|3' && root.querySelector('.cm-lint-marker-error')"))
	p.shoot("editor-mistake")
	p.pushButton("Discard changes")
	p.until(inEditor("!root.querySelector('.cm-lintRange-error, .cm-lint-marker-error')"))

	p.visit("/query")
	p.focusEditor()
	for text, want := range map[string]string{
		"{\n  \"TableName\": orders,\n  \"Limit\": 1\n}":        "  \"TableName\": orders,|o|2",
		"{\n  \"TableName\": \"orders\",\n  \"Limit\": 1,\n}\n": "}|}|4",
		"{\n  \"TableName\": \"orders\"\n":                      "  \"TableName\": \"orders\"|\"|2",
	} {
		p.fill("textarea", text)
		p.until(inEditor(fmt.Sprintf("%s === %q", underlined, want)))
	}
	p.shoot("editor-json")
	p.fill("textarea", "{}")
	p.until(inEditor("!root.querySelector('.cm-lintRange-error, .cm-lint-marker-error')"))
	p.sound("query")
}

// TestEditor_Type: the request holds the text that was typed into the editor, and Tab leaves the
// editor.
func TestEditor_Type(t *testing.T) {
	ctx := browser(t)
	srv := startThings(t)
	for _, id := range []string{"a", "b"} {
		srv.call(t, "PutItem", `{"TableName":"things","Item":{"id":{"S":"`+id+`"}}}`)
	}
	p := open(t, ctx, srv)
	p.visit("/query")
	p.fill("[aria-label=Operation]", "Scan")
	p.focusEditor()
	const shown = "[...root.querySelectorAll('.cm-line')].map((e) => e.textContent).join('\\n')"
	p.until(inEditor(shown + " === document.querySelector('textarea').value && " + shown + ".includes('Limit')"))
	const request = `{"TableName":"things","Limit":1}`
	p.do(chromedp.KeyEvent("a", chromedp.KeyModifiers(chromedp.ModifierCtrl)), chromedp.KeyEvent("x"), chromedp.KeyEvent(kb.Backspace), chromedp.KeyEvent(request))
	if got := ask[string](p, "document.querySelector('textarea').value"); got != request {
		t.Errorf("the field has %q", got)
	}
	p.do(chromedp.KeyEvent(kb.Tab))
	if got := ask[string](p, "document.activeElement.textContent"); got != "Run" {
		t.Errorf("Tab leads to %q", got)
	}
	p.do(chromedp.KeyEvent(kb.Enter))
	p.until("/\\b1 item\\n/.test(document.body.innerText)")
	p.sound("query")
	p.shoot("editor-query")
}

// TestEditor_Large: the editor shows a large request with few elements. The time of tasks is
// logged, as in TestScroll.
func TestEditor_Large(t *testing.T) {
	ctx := browser(t)
	p := open(t, ctx, start(t))
	ask[bool](p, "(globalThis.long = [], new PerformanceObserver((some) => long.push(...some.getEntries().map((e) => Math.round(e.duration)))).observe({type: 'longtask'}), true)")
	p.click("nav a[href='/query']")
	p.ready("/query")
	p.focusEditor()
	ask[bool](p, "(globalThis.opened = long.length, true)")
	p.fill("textarea", "[\n"+strings.Repeat("  {\"S\": \"a text of a usual length\"},\n", 10_000)+"  0\n]")
	p.until(inEditor("root.querySelectorAll('.cm-line').length > 5"))
	p.focusEditor()
	p.until(inEditor("[...root.querySelectorAll('.cm-line')].at(-1).textContent === ']'"))
	if n := ask[int](p, inEditor("root.querySelectorAll('*').length")); n > 1500 {
		t.Errorf("the editor has %d elements", n)
	}
	t.Logf("tasks above 50 ms: %v, the first %d at the opening", ask[[]int](p, "long"), ask[int](p, "opened"))
	p.sound("query")
}

// TestEditor_Missing: without the editor the text field works.
func TestEditor_Missing(t *testing.T) {
	ctx := browser(t)
	p := open(t, ctx, start(t))
	if _, err := chromedp.Call(p.ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(p.ctx, network.SetBlockedURLs, network.SetBlockedURLsParams{URLPatterns: []*network.BlockPattern{{URLPattern: "*://*:*/static/codemirror.js", Block: true}}}); err != nil {
		t.Fatal(err)
	}
	p.visit("/migration?fixture=s2-video&edit=1")
	p.until("!!document.querySelector('[data-plain] > textarea.code')?.checkVisibility()")
	p.change("codec: i64be}]\n- name: views\n", "codec: json}]\n- name: views\n")
	p.until("!!document.querySelector('[data-finding]')")
	p.pushButton("line 27")
	if got := ask[string](p, "((e) => e.value.slice(e.selectionStart, e.selectionEnd))(document.querySelector('textarea.code'))"); !strings.HasPrefix(got, "{attr: Count") {
		t.Errorf("line 27 is %q", got)
	}
	p.pushButton("Discard changes")
	p.until("document.querySelector('[data-previewed]')?.dataset.previewed === 'own'")
}
