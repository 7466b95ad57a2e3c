package console

import (
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/internal/btclient"
)

// TestChanges: the lab shows the changes since a snapshot, as rows with the changed cells and
// as items.
func TestChanges(t *testing.T) {
	ctx := browser(t)
	srv := startThings(t)
	srv.call(t, "PutItem", `{"TableName":"things","Item":{"id":{"S":"a"},"same":{"S":"s"},"total":{"N":"1"}}}`)
	srv.createTable(t, "rows", "f")
	p := open(t, ctx, srv)
	p.visit("/lab")
	p.pushButton("Take snapshot")
	p.until("document.body.innerText.includes('Restore')")
	p.pushButton("Changes")
	p.until("document.body.innerText.includes('nothing changed')")

	srv.call(t, "PutItem", `{"TableName":"things","Item":{"id":{"S":"a"},"same":{"S":"s"},"total":{"N":"2"}}}`)
	srv.set(t, "rows", texts[0], btclient.Cell{Family: "f", Qualifier: []byte(texts[1]), Timestamp: 1000, Value: []byte(texts[2])})
	p.pushButton("Compare")
	p.until("!!document.querySelector('[data-changes]')")
	got := ask[string](p, "document.querySelector('[data-changes]').innerText")
	for _, want := range []string{"rows: 1 changed; items: 1 changed", "rows: 1 added", "± item of things", "N 1", "N 2", texts[0]} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not shown: %s", want, got)
		}
	}
	if item := ask[string](p, "document.querySelector('[data-row=changed] > div').innerText"); !strings.Contains(item, "total") || strings.Contains(item, "same") {
		t.Errorf("unchanged attributes of the item are shown: %s", item)
	}
	p.sound("changes")
	p.shoot("changes")
	p.click("[data-row=added] a")
	p.until("!!document.querySelector('[data-cell]')")
	p.sound("the row")
}
