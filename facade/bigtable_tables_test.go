package facade

import (
	"maps"
	"slices"
	"strings"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/test/peer"
)

// BigtableTables returns the tables and their rules without a server.
func TestBigtableTables(t *testing.T) {
	t.Parallel()
	if peer.IsRemote() {
		t.Skip("the instance has the tables of other tests too")
	}
	conn := peer.Bigtable(t, clock.NewFrozen(testTime))
	rules := func() map[string]map[string]*btapb.GcRule {
		all := map[string]map[string]*btapb.GcRule{}
		for table, err := range BigtableTables(t.Context(), Options{Conn: conn, Project: "tabletop", Instance: "tabletop"}) {
			if err != nil {
				t.Fatal(err)
			}
			all[table.ID] = map[string]*btapb.GcRule{}
			for _, f := range table.Families {
				all[table.ID][f.Name] = btclient.GCRule(layout.GC{Versions: f.Versions, MaxAge: f.MaxAge})
			}
		}
		return all
	}
	if got := slices.Collect(maps.Keys(rules())); !slices.Equal(got, []string{"_tabletop.catalog"}) {
		t.Errorf("before there is a catalog: %q", got)
	}
	s := newTestServer(t, func(o *Options) { o.Conn = conn })
	must(t, s, "CreateTable", `{"TableName": "all", "BillingMode": "PAY_PER_REQUEST", "StreamSpecification": {"StreamEnabled": true, "StreamViewType": "KEYS_ONLY"},
		"AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}, {"AttributeName": "at", "AttributeType": "N"}, {"AttributeName": "v", "AttributeType": "N"}],
		"KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}, {"AttributeName": "at", "KeyType": "RANGE"}],
		"LocalSecondaryIndexes": [{"IndexName": "local", "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}, {"AttributeName": "v", "KeyType": "RANGE"}], "Projection": {"ProjectionType": "KEYS_ONLY"}}],
		"GlobalSecondaryIndexes": [{"IndexName": "global", "KeySchema": [{"AttributeName": "v", "KeyType": "HASH"}], "Projection": {"ProjectionType": "ALL"}}]}`)
	must(t, s, "UpdateTimeToLive", `{"TableName": "all", "TimeToLiveSpecification": {"Enabled": true, "AttributeName": "due"}}`)
	must(t, s, "CreateTable", `{"TableName": "plain", "BillingMode": "PAY_PER_REQUEST",
		"AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}], "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]}`)

	admin := btapb.NewBigtableTableAdminClient(conn)
	there, err := admin.ListTables(t.Context(), &btapb.ListTablesRequest{Parent: "projects/tabletop/instances/tabletop", View: btapb.Table_NAME_ONLY}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]*btapb.GcRule{}
	for _, listed := range there.GetTables() {
		table, err := admin.GetTable(t.Context(), &btapb.GetTableRequest{Name: listed.GetName(), View: btapb.Table_SCHEMA_VIEW})
		if err != nil {
			t.Fatal(err)
		}
		id := table.GetName()[strings.LastIndexByte(table.GetName(), '/')+1:]
		want[id] = map[string]*btapb.GcRule{}
		for name, family := range table.GetColumnFamilies() {
			want[id][name] = family.GetGcRule()
		}
	}
	if len(want) != 7 { // the catalog, two tables, two indexes, due times, a log
		t.Errorf("the server made %q", slices.Collect(maps.Keys(want)))
	}
	if d := gocmp.Diff(want, rules(), protocmp.Transform()); d != "" {
		t.Errorf("(-made +told)\n%s", d)
	}
}
