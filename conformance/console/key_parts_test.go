package console

import (
	"testing"
)

// TestKeyParts: the keys of mapped rows are split into their parts, which show their meaning
// under the pointer.
func TestKeyParts(t *testing.T) {
	ctx := browser(t)
	srv, m := startFixture(t, "s6-row-keys")
	p := open(t, ctx, srv)
	p.visit("/t/tabletop/" + m.TargetTable() + "/rows?prefix=revms")
	p.until("!!document.querySelector('[data-cell]')")
	const want = "v, encoded by revms(13): 2023-09-10T19:01:15Z"
	for _, at := range []string{"[aria-label='Row keys']", ".split > section.wide > h2"} {
		if got := ask[string](p, "document.querySelector(\""+at+" [data-part=v]\")?.title ?? 'none'"); got != want {
			t.Errorf("%s: the part says %q, want %q", at, got, want)
		}
	}
	p.sound("parts")
	p.shoot("key-parts")
	p.visit("/t/tabletop/" + m.TargetTable())
	if n := ask[int](p, "[...document.querySelectorAll('.part')].filter((e) => e.textContent === '{v:revms(13)}' && e.title.includes('greater values first')).length"); n != 1 {
		t.Errorf("the template of the rule revms is there %d times", n)
	}
	p.sound("templates")
	p.shoot("key-templates")
}
