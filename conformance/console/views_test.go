package console

import (
	"strings"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/test/labserver"
)

// TestViews: Home and the page of a table show the views with their statement and state, and the page of a view its rows.
func TestViews(t *testing.T) {
	ctx := browser(t)
	srv := serverOf(startWith(t, labserver.Options{Closed: true, ViewLag: emu.ManualViews}))
	srv.createTable(t, "users", "f")
	srv.createTable(t, "other", "f")
	set := func(key, city string) {
		srv.set(t, "users", key, btclient.Cell{Family: "f", Qualifier: []byte("city"), Timestamp: 1000, Value: []byte(city)})
	}
	for key, city := range map[string]string{"u1": "Paris", "u2": "Rome", "u3": "Rome", "u4": "<img src=x>\u202e"} {
		set(key, city)
	}
	admin := btapb.NewBigtableInstanceAdminClient(srv.lab.Bigtable().Conn())
	const instance, counts = "projects/tabletop/instances/tabletop", "SELECT f['city'] AS city, COUNT(*) AS n FROM users GROUP BY city"
	_, err := admin.CreateMaterializedView(t.Context(), &btapb.CreateMaterializedViewRequest{Parent: instance, MaterializedViewId: "cities", MaterializedView: &btapb.MaterializedView{Query: counts}})
	if err != nil {
		t.Fatal(err)
	}
	p := open(t, ctx, srv)
	p.visit("/")
	// A view that a client creates appears on the open page.
	_, err = admin.CreateLogicalView(t.Context(), &btapb.CreateLogicalViewRequest{Parent: instance, LogicalViewId: "romans", LogicalView: &btapb.LogicalView{Query: "SELECT _key AS k FROM users WHERE f['city'] = 'Rome'"}})
	if err != nil {
		t.Fatal(err)
	}
	const lines = "[...document.querySelectorAll('[data-views] tbody tr')].map((tr) => tr.innerText.replace(/\\s+/g, ' '))"
	p.until(lines + ".length === 2")
	if got := ask[[]string](p, lines); !strings.Contains(got[0], "romans logical SELECT _key AS k") || !strings.Contains(got[1], "cities materialized "+counts+" complete") {
		t.Errorf("Home has the views %q", got)
	}
	p.sound("views on Home")
	p.fits("views on Home")
	p.shoot("views-home")

	set("u5", "Paris")
	p.visit("/t/tabletop/other")
	if n := ask[int](p, lines+".length"); n != 0 {
		t.Errorf("the page of another table has %d views", n)
	}
	p.visit("/t/tabletop/users")
	if got := ask[[]string](p, lines); len(got) != 2 || !strings.Contains(got[1], "does not show changes since 20") {
		t.Errorf("the page of the table has the views %q", got)
	}
	p.sound("views of a table")

	ask[bool](p, "[...document.querySelectorAll('[data-views] a')].find((a) => a.textContent === 'cities').click(), true")
	p.ready("/v/tabletop/cities")
	const keys, cells = "[...document.querySelectorAll('[aria-label=\"Row keys\"] .line')].map((e) => e.innerText)", "[...document.querySelectorAll('[aria-label=Cells] .line')].map((e) => e.innerText.replace(/\\s+/g, ' '))"
	p.until(keys + ".length === 3 && " + cells + ".length === 2")
	if got := ask[[]string](p, keys); !strings.HasPrefix(got[0], `<img src=x>\u{202e}`) || !strings.HasPrefix(got[1], "Paris") || !strings.HasPrefix(got[2], "Rome") {
		t.Errorf("the rows are %q", got)
	}
	ask[bool](p, "[...document.querySelectorAll('[aria-label=\"Row keys\"] .line')][1].click(), true")
	p.until(cells + "[1]?.includes('1 int64')")
	p.pushButton("Refresh views")
	p.until("document.querySelector('main').innerText.includes('complete')")
	p.fill("[aria-label=Prefix]", "Par")
	p.pushButton("Read")
	p.until(keys + ".length === 1 && " + cells + "[1]?.includes('default:n') && " + cells + "[1].includes('2 int64')")
	for _, wrong := range ask[[]string](p, structure) {
		t.Errorf("the page of a view: %s", wrong)
	}
	p.sound("the page of a view")
	p.fits("the page of a view")
	p.shoot("view")

	p.visit("/v/tabletop/romans")
	p.sound("the page of a logical view")
	ask[bool](p, "[...document.querySelectorAll('main a')].find((a) => a.textContent === 'Open in Query').click(), true")
	p.ready("/query")
	p.pushButton("Run")
	p.until("document.body.innerText.includes('2 rows, 5 rows of tables read')")
	p.sound("the query of a view")
	p.visit("/v/tabletop/none")
	if got := ask[string](p, "document.querySelector('.note.error').innerText"); !strings.Contains(got, "There is no view none") {
		t.Errorf("the page of a missing view says %s", got)
	}
}
