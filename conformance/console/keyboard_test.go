package console

import (
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/tabletop-emu/tabletop/internal/btclient"
)

// unreached is a script that returns the elements that Tab has yet to reach. In a list of tabs it reaches one, and
// arrows reach the others.
const unreached = `[...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')]
	.filter((e) => e.checkVisibility() && !e.disabled && e.tabIndex >= 0 && !e.dataset.reached)`

// edited is an expression that is true when each field in the window has its editor, which is loaded when the field
// is first visible.
const edited = `[...document.querySelectorAll('[data-field]')].every((e) => e.querySelector('.editor') || !e.checkVisibility() || e.getBoundingClientRect().top >= innerHeight)`

// skippedByTab reports whether an element has the tabindex -1. Such an element without a role, like the scroller of an
// editor, needs no name.
func (p *tab) skippedByTab(id cdp.BackendNodeID) bool {
	p.t.Helper()
	d, err := chromedp.Call(p.ctx, dom.DescribeNode, dom.DescribeNodeParams{BackendNodeID: id})
	if err != nil {
		p.t.Fatal(err)
	}
	for pair := range slices.Chunk(d.Node.Attributes, 2) {
		if pair[0] == "tabindex" {
			return pair[1] == "-1"
		}
	}
	return false
}

// TestKeyboard: on each page every control has a name and can be reached with Tab, and the
// parts of the page are landmarks.
func TestKeyboard(t *testing.T) {
	ctx := browser(t)
	srv := start(t)
	if err := srv.ddb.Open(); err != nil {
		t.Fatal(err)
	}
	srv.createTable(t, "rows", "f")
	srv.set(t, "rows", "a", btclient.Cell{Family: "f", Qualifier: []byte("q"), Timestamp: 1000, Value: []byte("v")})
	srv.call(t, "CreateTable", createThings)
	srv.call(t, "PutItem", `{"TableName":"things","Item":{"id":{"S":"a"},"total":{"N":"1"}}}`)
	p := open(t, ctx, srv)
	for _, path := range []string{"/", "/requests", "/lab", "/query", "/migration", "/streams", "/t/tabletop/rows", "/t/tabletop/rows/rows", "/keys/tabletop/rows", "/history/tabletop/rows?key=a", "/d/things"} {
		p.visit(path)
		if path == "/t/tabletop/rows/rows" {
			p.until("!!document.querySelector('[data-cell]')")
		}
		p.until(edited)
		tree, err := chromedp.Call(p.ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
		if err != nil {
			t.Fatal(err)
		}
		text := func(v *accessibility.Value) string {
			if v == nil {
				return ""
			}
			return strings.Trim(string(v.Value), `"`)
		}
		landmarks := map[string]int{}
		for _, n := range tree.Nodes {
			role := text(n.Role)
			landmarks[role]++
			for _, is := range n.Properties {
				if is.Name == "focusable" && !n.Ignored && role != "RootWebArea" && role != "main" && strings.TrimSpace(text(n.Name)) == "" && (role != "generic" || !p.skippedByTab(n.BackendDOMNodeID)) {
					t.Errorf("%s: something of the role %s has no name", path, role)
				}
			}
		}
		if landmarks["main"] != 1 || landmarks["banner"] != 1 || landmarks["navigation"] < 1 {
			t.Errorf("%s: the landmarks are %v", path, landmarks)
		}
		p.until("document.querySelectorAll('main h1').length === 1")
		for range ask[int](p, unreached+".length") + 20 {
			p.do(chromedp.KeyEvent(kb.Tab))
			ask[bool](p, "(document.activeElement.dataset.reached = '1', true)")
		}
		if left := ask[[]string](p, unreached+".map((e) => e.outerHTML.slice(0, 200))"); len(left) > 0 {
			t.Errorf("%s: Tab does not reach %s", path, strings.Join(left, "\n"))
		}
		p.sound(path)
	}

	// A script moves the focus to the page: no outline surrounds it. Controls have one.
	p.visit("/")
	p.do(chromedp.KeyEvent(kb.Tab))
	ask[bool](p, "document.querySelector('nav a[href=\"/requests\"]').focus(), true")
	const outline = "getComputedStyle(document.activeElement).outlineStyle"
	if got := ask[string](p, outline); got != "solid" {
		t.Errorf("the outline of a link is %s", got)
	}
	p.do(chromedp.KeyEvent(kb.Enter))
	p.ready("/requests")
	if got := ask[string](p, "document.activeElement.id + ' ' + document.activeElement.matches(':focus-visible') + ' ' + "+outline); got != "main true none" {
		t.Errorf("after Enter the focus is at %s", got)
	}
}
