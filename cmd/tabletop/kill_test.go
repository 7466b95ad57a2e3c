package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"cloud.google.com/go/iam/apiv1/iampb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
)

// killed runs servers on one directory, one after another, each killed before the next.
type killed struct {
	t          *testing.T
	server     *server
	tables     btapb.BigtableTableAdminClient
	instances  btapb.BigtableInstanceAdminClient
	operations longrunningpb.OperationsClient
	data       btpb.BigtableClient
}

func serveKilled(t *testing.T, dir string) *killed {
	t.Helper()
	s := serve(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "off", "--data", dir)
	conn := s.dial(t)
	return &killed{
		t: t, server: s,
		tables:     btapb.NewBigtableTableAdminClient(conn),
		instances:  btapb.NewBigtableInstanceAdminClient(conn),
		operations: longrunningpb.NewOperationsClient(conn),
		data:       btpb.NewBigtableClient(conn),
	}
}

// ask makes a call that must succeed.
func ask[Req, Resp any](k *killed, call func(context.Context, Req, ...grpc.CallOption) (Resp, error), req Req) Resp {
	k.t.Helper()
	resp, err := call(k.t.Context(), req)
	if err != nil {
		k.t.Fatal(err)
	}
	return resp
}

// cells returns the mutations that put value in four cells of two families.
func cells(value string) []*btpb.Mutation {
	var muts []*btpb.Mutation
	for _, family := range []string{"f", "g"} {
		for _, qualifier := range []string{"a", "b"} {
			muts = append(muts, &btpb.Mutation{Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{
				FamilyName: family, ColumnQualifier: []byte(qualifier), TimestampMicros: 1000, Value: []byte(value),
			}}})
		}
	}
	return muts
}

// values returns the values of the cells of a table's rows.
func (k *killed) values(table string) map[string][]string {
	k.t.Helper()
	stream, err := k.data.ReadRows(k.t.Context(), &btpb.ReadRowsRequest{TableName: table})
	if err != nil {
		k.t.Fatal(err)
	}
	rows := map[string][]string{}
	row := ""
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return rows
		}
		if err != nil {
			k.t.Fatal(err)
		}
		for _, c := range resp.GetChunks() {
			if len(c.GetRowKey()) > 0 {
				row = string(c.GetRowKey())
			}
			rows[row] = append(rows[row], string(c.GetValue()))
		}
	}
}

const (
	killProject  = "projects/p"
	killInstance = killProject + "/instances/one"
	killTable    = killInstance + "/tables/t"
	killCluster  = killInstance + "/clusters/c1"
)

// state returns everything that a server answers about its stored state.
func (k *killed) state() []proto.Message {
	k.t.Helper()
	all := []proto.Message{
		ask(k, k.instances.ListInstances, &btapb.ListInstancesRequest{Parent: killProject}),
		ask(k, k.instances.ListClusters, &btapb.ListClustersRequest{Parent: killProject + "/instances/-"}),
		ask(k, k.instances.ListAppProfiles, &btapb.ListAppProfilesRequest{Parent: killProject + "/instances/-"}),
		ask(k, k.tables.ListTables, &btapb.ListTablesRequest{Parent: killInstance, View: btapb.Table_FULL}),
		ask(k, k.instances.GetIamPolicy, &iampb.GetIamPolicyRequest{Resource: killInstance}),
		ask(k, k.tables.GetIamPolicy, &iampb.GetIamPolicyRequest{Resource: killTable}),
		ask(k, k.operations.ListOperations, &longrunningpb.ListOperationsRequest{Name: "operations"}),
		ask(k, k.tables.ListAuthorizedViews, &btapb.ListAuthorizedViewsRequest{Parent: killTable, View: btapb.AuthorizedView_FULL}),
		ask(k, k.tables.GetIamPolicy, &iampb.GetIamPolicyRequest{Resource: killTable + "/authorizedViews/v"}),
		ask(k, k.tables.ListSchemaBundles, &btapb.ListSchemaBundlesRequest{Parent: killTable}),
		ask(k, k.tables.ListBackups, &btapb.ListBackupsRequest{Parent: killInstance + "/clusters/-"}),
	}
	return all
}

// TestKill_Everything: all kinds of stored state survive a kill -9.
func TestKill_Everything(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	k := serveKilled(t, dir)
	ask(k, k.instances.CreateInstance, &btapb.CreateInstanceRequest{
		Parent: killProject, InstanceId: "one", Instance: &btapb.Instance{DisplayName: "One", Labels: map[string]string{"a": "b"}},
		Clusters: map[string]*btapb.Cluster{"c1": {Location: killProject + "/locations/z1", ServeNodes: 1}},
	})
	ask(k, k.instances.CreateCluster, &btapb.CreateClusterRequest{
		Parent: killInstance, ClusterId: "c2", Cluster: &btapb.Cluster{Location: killProject + "/locations/z2", ServeNodes: 2},
	})
	ask(k, k.instances.CreateAppProfile, &btapb.CreateAppProfileRequest{
		Parent: killInstance, AppProfileId: "any", AppProfile: &btapb.AppProfile{
			RoutingPolicy: &btapb.AppProfile_MultiClusterRoutingUseAny_{MultiClusterRoutingUseAny: &btapb.AppProfile_MultiClusterRoutingUseAny{}},
		},
	})
	families := map[string]*btapb.ColumnFamily{
		"f": {GcRule: &btapb.GcRule{Rule: &btapb.GcRule_MaxNumVersions{MaxNumVersions: 3}}}, "g": {},
	}
	for _, id := range []string{"t", "deleted"} {
		ask(k, k.tables.CreateTable, &btapb.CreateTableRequest{
			Parent: killInstance, TableId: id, Table: &btapb.Table{ColumnFamilies: families},
			InitialSplits: []*btapb.CreateTableRequest_Split{{Key: []byte("m")}},
		})
		ask(k, k.data.MutateRow, &btpb.MutateRowRequest{TableName: killInstance + "/tables/" + id, RowKey: []byte("r"), Mutations: cells("v")})
	}
	ask(k, k.tables.ModifyColumnFamilies, &btapb.ModifyColumnFamiliesRequest{
		Name: killTable, Modifications: []*btapb.ModifyColumnFamiliesRequest_Modification{{
			Id: "h", Mod: &btapb.ModifyColumnFamiliesRequest_Modification_Create{Create: &btapb.ColumnFamily{}},
		}},
	})
	ask(k, k.tables.UpdateTable, &btapb.UpdateTableRequest{
		Table: &btapb.Table{Name: killTable, DeletionProtection: true}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"deletion_protection"}},
	})
	ask(k, k.tables.DeleteTable, &btapb.DeleteTableRequest{Name: killInstance + "/tables/deleted"})
	policy := &iampb.Policy{Bindings: []*iampb.Binding{{Role: "roles/bigtable.user", Members: []string{"user:a@b.c"}}}}
	ask(k, k.tables.SetIamPolicy, &iampb.SetIamPolicyRequest{Resource: killTable, Policy: policy})
	ask(k, k.instances.SetIamPolicy, &iampb.SetIamPolicyRequest{Resource: killInstance, Policy: policy})
	once := &btpb.MutateRowRequest{
		TableName: killTable, RowKey: []byte("once"), Mutations: cells("first"), Idempotency: &btpb.Idempotency{Token: bytes.Repeat([]byte("t"), 16)},
	}
	ask(k, k.data.MutateRow, once)
	backedUp := k.values(killTable)
	began := k.dress(policy)
	want, wantRows, wantChanges := k.state(), k.values(killTable), k.changes("m", began, "")
	k.server.end(t, syscall.SIGKILL)

	k = serveKilled(t, dir)
	if diff := cmp.Diff(want, k.state(), protocmp.Transform()); diff != "" {
		t.Errorf("after the kill (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(wantRows, k.values(killTable)); diff != "" || len(wantRows["once"]) != 4 {
		t.Errorf("rows after the kill (-before +after):\n%s", diff)
	}
	if got := k.changes("m", began, ""); fmt.Sprint(got) != fmt.Sprint(wantChanges) || len(got) != 2 {
		t.Errorf("the stream has %v after the kill, and had %v", got, wantChanges)
	}
	if got := k.changes("m", nil, wantChanges[0].token); len(got) != 1 || got[0].row != wantChanges[1].row {
		t.Errorf("after the token of the first record of %v comes %v", wantChanges, got)
	}
	ask(k, k.tables.RestoreTable, &btapb.RestoreTableRequest{
		Parent: killInstance, TableId: "restored", Source: &btapb.RestoreTableRequest_Backup{Backup: killCluster + "/backups/b"},
	})
	if diff := cmp.Diff(backedUp, k.values(killInstance+"/tables/restored")); diff != "" {
		t.Errorf("restored backup (-before +after):\n%s", diff)
	}
	// The token still stands for its write.
	once.Mutations = cells("second")
	ask(k, k.data.MutateRow, once)
	if got := k.values(killTable)["once"]; got[0] != "first" {
		t.Errorf("the write of a token that was used is made again: %q", got)
	}
	// The deleted table can still be undeleted, with its rows.
	if _, err := k.tables.GetTable(t.Context(), &btapb.GetTableRequest{Name: killInstance + "/tables/deleted"}); status.Code(err) != codes.NotFound {
		t.Errorf("the deleted table: %v", err)
	}
	ask(k, k.tables.UndeleteTable, &btapb.UndeleteTableRequest{Name: killInstance + "/tables/deleted"})
	if got := k.values(killInstance + "/tables/deleted"); len(got["r"]) != 4 {
		t.Errorf("rows of the table brought back: %v", got)
	}
}

// TestKill_Writing: a server killed during writes keeps every acknowledged one, no partial
// ones, and for tables the operation with the change.
func TestKill_Writing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	k := serveKilled(t, dir)
	create := func(id string) error {
		_, err := k.tables.CreateTable(t.Context(), &btapb.CreateTableRequest{
			Parent: killInstance, TableId: id, Table: &btapb.Table{ColumnFamilies: map[string]*btapb.ColumnFamily{"f": {}, "g": {}}},
		})
		return err
	}
	if err := create("t"); err != nil {
		t.Fatal(err)
	}
	put := func(row, value string) error {
		_, err := k.data.MutateRow(t.Context(), &btpb.MutateRowRequest{TableName: killTable, RowKey: []byte(row), Mutations: cells(value)})
		return err
	}
	// Each writer writes new rows, and overwrites one row each time. One goroutine creates
	// tables, as many as fit in a page, and protects them.
	const writers, enough, tablesEnough = 4, 50, 5
	var mu sync.Mutex // guards the acknowledged numbers
	var written [writers]int
	protected := 0
	progress := make(chan struct{}, 1)
	acknowledge := func(what *int, n int) {
		mu.Lock()
		*what = n
		mu.Unlock()
		select {
		case progress <- struct{}{}:
		default:
		}
	}
	var all sync.WaitGroup
	stopped := make(chan error, writers+1) // by the kill, or earlier
	for w := range writers {
		all.Go(func() {
			for i := 1; ; i++ {
				row := fmt.Sprintf("%d-%06d", w, i)
				err := put(row, row)
				if err == nil {
					err = put(fmt.Sprint("over", w), fmt.Sprintf("%06d", i))
				}
				if err != nil {
					stopped <- err
					return
				}
				acknowledge(&written[w], i)
			}
		})
	}
	all.Go(func() {
		for i := 1; i < 500; i++ {
			id := fmt.Sprintf("p%d", i)
			err := create(id)
			if err == nil {
				_, err = k.tables.UpdateTable(t.Context(), &btapb.UpdateTableRequest{
					Table:      &btapb.Table{Name: killInstance + "/tables/" + id, DeletionProtection: true},
					UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"deletion_protection"}},
				})
			}
			if err != nil {
				stopped <- err
				return
			}
			acknowledge(&protected, i)
		}
	})
	for done := false; !done; {
		select {
		case <-progress:
		case err := <-stopped:
			t.Fatal(err)
		}
		mu.Lock()
		done = protected >= tablesEnough
		for _, n := range written {
			done = done && n >= enough
		}
		mu.Unlock()
	}
	k.server.end(t, syscall.SIGKILL)
	all.Wait()

	k = serveKilled(t, dir)
	rows := k.values(killTable)
	for row, values := range rows {
		if len(values) != 4 || values[0] != values[1] || values[0] != values[2] || values[0] != values[3] {
			t.Errorf("half of a write: row %s holds %q", row, values)
		}
	}
	for w, n := range written {
		for i := 1; i <= n; i++ {
			if row := fmt.Sprintf("%d-%06d", w, i); len(rows[row]) == 0 || rows[row][0] != row {
				t.Errorf("row %s was acknowledged and holds %q", row, rows[row])
			}
		}
		if row := rows[fmt.Sprint("over", w)]; len(row) == 0 || row[0] < fmt.Sprintf("%06d", n) {
			t.Errorf("writer %d: overwritten last with %q, acknowledged was %06d", w, row, n)
		}
	}
	list := ask(k, k.tables.ListTables, &btapb.ListTablesRequest{Parent: killInstance, View: btapb.Table_SCHEMA_VIEW})
	are := map[string]bool{}
	for _, table := range list.GetTables() {
		if table.GetDeletionProtection() {
			are[table.GetName()] = true
		}
	}
	listed := map[string]bool{}
	for _, op := range ask(k, k.operations.ListOperations, &longrunningpb.ListOperationsRequest{Name: "operations"}).GetOperations() {
		table := &btapb.Table{}
		if err := op.GetResponse().UnmarshalTo(table); err != nil {
			t.Fatal(err)
		}
		listed[table.GetName()] = true
	}
	if diff := cmp.Diff(listed, are); diff != "" || len(are) < protected {
		t.Errorf("%d changes of tables were acknowledged; of operations and tables (-operations +tables):\n%s", protected, diff)
	}
}
