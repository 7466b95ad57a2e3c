package control_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"

	"github.com/tabletop-emu/tabletop/control/lab"
	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/internal/test/labserver"
)

type viewList struct {
	Lag   string
	Views []struct {
		Instance, View, Kind, Query, State string
		Reads                              []string
		Columns                            []struct{ Name, Type string }
		Hidden                             *time.Time
	}
}

// TestViews: the views are listed with their statement and state. Reads of a manual view change only by a refresh.
func TestViews(t *testing.T) {
	t.Parallel()
	e := newEnvOf(t, labserver.Options{ViewLag: emu.ManualViews})
	e.createRows("t", "a", "b1", "b2")
	var got viewList
	if e.must("GET", "views", "", &got); got.Lag != "manual" || got.Views == nil || len(got.Views) != 0 {
		t.Errorf("without views: %+v", got)
	}
	admin := btapb.NewBigtableInstanceAdminClient(e.lab.Bigtable().Conn())
	_, err := admin.CreateMaterializedView(lab.Probe(t.Context()), &btapb.CreateMaterializedViewRequest{
		Parent: "projects/p/instances/i", MaterializedViewId: "m", MaterializedView: &btapb.MaterializedView{Query: "SELECT SUBSTR(_key, 1, 1) AS c, COUNT(*) AS n FROM t GROUP BY c"},
	})
	if err == nil {
		_, err = admin.CreateLogicalView(t.Context(), &btapb.CreateLogicalViewRequest{
			Parent: "projects/p/instances/i", LogicalViewId: "l", LogicalView: &btapb.LogicalView{Query: "SELECT c FROM m"},
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	e.must("POST", "tables/i/t/rows", `{"rows":[{"key":{"text":"b3"},"cells":[{"family":"f","value":{"text":"x"}}]}]}`, nil)
	got = viewList{}
	e.must("GET", "views", "", &got)
	if len(got.Views) != 2 {
		t.Fatalf("the views are %+v", got)
	}
	l, m := got.Views[0], got.Views[1]
	if l.View != "l" || l.Kind != "logical" || l.Query != "SELECT c FROM m" || fmt.Sprint(l.Reads, l.Columns) != "[m] [{c BYTES}]" || l.State != "" || l.Hidden != nil {
		t.Errorf("the logical view is %+v", l)
	}
	if m.Instance != "i" || m.View != "m" || m.Kind != "materialized" || !strings.HasPrefix(m.Query, "SELECT SUBSTR") || fmt.Sprint(m.Reads, m.Columns) != "[t] [{c BYTES} {n INT64}]" || m.State != "complete" || m.Hidden == nil || m.Hidden.Sub(e.lab.Clock().Now()).Abs() > time.Second {
		t.Errorf("the materialized view is %+v", m)
	}
	rows := func(path string) (out []string) {
		t.Helper()
		var page struct {
			Rows []struct {
				Key   struct{ Text string }
				Cells []struct {
					Qualifier struct{ Text string }
					Value     struct{ Base64 string }
				}
			}
		}
		e.must("GET", path, "", &page)
		for _, r := range page.Rows {
			for _, c := range r.Cells {
				out = append(out, r.Key.Text+" "+c.Qualifier.Text+" "+c.Value.Base64)
			}
		}
		return out
	}
	if got := strings.Join(rows("views/i/m/rows"), "; "); got != "a  ; a n AAAAAAAAAAE=; b  ; b n AAAAAAAAAAI=" {
		t.Errorf("before the refresh the view has %s", got)
	}
	e.must("POST", "views/refresh", "", nil)
	for _, path := range []string{"views/i/m/rows?prefix=b", "tables/i/m/rows?prefix=b"} {
		if got := strings.Join(rows(path), "; "); got != "b  ; b n AAAAAAAAAAM=" {
			t.Errorf("after the refresh, %s has %s", path, got)
		}
	}
	got = viewList{}
	if e.must("GET", "views", "", &got); got.Views[1].Hidden != nil {
		t.Errorf("after the refresh: %+v", got.Views[1])
	}
	for _, c := range []struct{ method, path, want string }{
		{"DELETE", "tables/i/m", "m is a materialized view: \"tabletop ctl rows\" reads its rows, and the RPC DeleteMaterializedView deletes it"},
		{"GET", "tables/i/l/rows", "l is a logical view: \"tabletop sql\" queries it, and the RPC DeleteLogicalView deletes it"},
		{"DELETE", "tables/i/l", "l is a logical view: \"tabletop sql\" queries it, and the RPC DeleteLogicalView deletes it"},
	} {
		var refused failed
		if code := e.ask(c.method, c.path, "", &refused); code != http.StatusNotFound || refused.Error.Remedy != c.want {
			t.Errorf("%s %s: %d %+v", c.method, c.path, code, refused)
		}
	}
	var missing failed
	if code := e.ask("GET", "views/i/none/rows", "", &missing); code != http.StatusNotFound || !strings.Contains(missing.Error.Remedy, "views") {
		t.Errorf("%d %+v", code, missing)
	}
	if _, err := admin.DeleteMaterializedView(context.Background(), &btapb.DeleteMaterializedViewRequest{Name: "projects/p/instances/i/materializedViews/m"}); err != nil {
		t.Fatal(err)
	}
	got = viewList{}
	if e.must("GET", "views", "", &got); len(got.Views) != 1 || got.Views[0].Reads == nil || len(got.Views[0].Reads) != 0 {
		t.Errorf("a view of a deleted view: %+v", got)
	}
}
