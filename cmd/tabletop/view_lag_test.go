package main

import (
	"strings"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// TestServe_ManualViews: with --view-lag manual, a materialized view changes only by ctl refresh.
func TestServe_ManualViews(t *testing.T) {
	t.Parallel()
	s := serveHere(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "off", "--console", "127.0.0.1:0", "--view-lag", "manual")
	conn := s.dial(t)
	const instance = "projects/tabletop/instances/tabletop"
	_, err := btapb.NewBigtableTableAdminClient(conn).CreateTable(t.Context(), &btapb.CreateTableRequest{
		Parent: instance, TableId: "t", Table: &btapb.Table{ColumnFamilies: map[string]*btapb.ColumnFamily{"f": {}}},
	})
	if err == nil {
		_, err = btapb.NewBigtableInstanceAdminClient(conn).CreateMaterializedView(t.Context(), &btapb.CreateMaterializedViewRequest{
			Parent: instance, MaterializedViewId: "v", MaterializedView: &btapb.MaterializedView{Query: "SELECT f['q'] AS q, _key AS k FROM t ORDER BY q, k"},
		})
	}
	if err == nil {
		_, err = btpb.NewBigtableClient(conn).MutateRow(t.Context(), &btpb.MutateRowRequest{TableName: instance + "/tables/t", RowKey: []byte("r"), Mutations: cells("v")[:1]})
	}
	if err != nil {
		t.Fatal(err)
	}
	check := func(when, count string, hidden bool) {
		t.Helper()
		if out := ctl(t, s, exitEqual, "views"); !strings.Contains(out, `"lag": "manual"`) || !strings.Contains(out, `"state": "complete"`) || strings.Contains(out, `"hidden"`) != hidden {
			t.Errorf("%s: %s", when, out)
		}
		if out, code := tabletop(t, "sql", "--target", s.env["BIGTABLE_EMULATOR_HOST"], "--format", "csv", "SELECT COUNT(*) AS n FROM v"); code != exitEqual || !strings.Contains(out, "n\n"+count) {
			t.Errorf("%s: %s", when, out)
		}
	}
	check("before the refresh", "0", true)
	ctl(t, s, exitEqual, "refresh")
	check("after the refresh", "1", false)
}
