package btkit_test

import (
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/bigtable"
	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/iam"
	"cloud.google.com/go/iam/apiv1/iampb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	locationpb "google.golang.org/genproto/googleapis/cloud/location"
	"google.golang.org/genproto/googleapis/type/expr"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/test/faketb"
	"github.com/tabletop-emu/tabletop/testkit/btkit"
)

// TestWithIAM: an account with access to a view has no access to its table.
func TestWithIAM(t *testing.T) {
	t.Parallel()
	env := btkit.Start(t, btkit.WithIAM())
	ctx := t.Context()
	admin := env.BigtableAdmin(t)
	if err := admin.CreateTableFromConf(ctx, &bigtable.TableConf{TableID: "t", Families: map[string]bigtable.GCPolicy{"f": bigtable.NoGcPolicy()}}); err != nil {
		t.Fatal(err)
	}
	subset := &bigtable.SubsetViewConf{}
	subset.AddRowPrefix([]byte("tenant1#"))
	subset.AddFamilySubsetQualifierPrefix("f", []byte(""))
	if err := admin.CreateAuthorizedView(ctx, &bigtable.AuthorizedViewConf{TableID: "t", AuthorizedViewID: "v", AuthorizedView: subset, DeletionProtection: bigtable.Unprotected}); err != nil {
		t.Fatal(err)
	}
	write := func(tbl bigtable.TableAPI) error {
		m := bigtable.NewMutation()
		m.Set("f", "q", 0, []byte("v"))
		return tbl.Apply(ctx, "tenant1#a", m)
	}
	if err := write(env.Bigtable(t).OpenTable("t")); err != nil { // the owner
		t.Fatal(err)
	}
	const tenant = "serviceAccount:tenant1@p.iam.gserviceaccount.com"
	client := env.BigtableAs(t, tenant)
	table, view := client.OpenTable("t"), client.OpenAuthorizedView("t", "v")
	denied := func(what string, err error, permission string) {
		t.Helper()
		if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), permission) || !strings.Contains(err.Error(), tenant) {
			t.Errorf("%s: %v, want a denial that names %s", what, err, permission)
		}
	}
	read := func(tbl bigtable.TableAPI) (bigtable.Row, error) { return tbl.ReadRow(ctx, "tenant1#a") }
	_, err := read(view)
	denied("no policy", err, "bigtable.authorizedViews.readRows")

	bind := func(handle *iam.Handle, role iam.RoleName, member string) {
		t.Helper()
		p, err := handle.Policy(ctx)
		if err != nil {
			t.Fatal(err)
		}
		p.Add(member, role)
		if err := handle.SetPolicy(ctx, p); err != nil {
			t.Fatal(err)
		}
	}
	bind(admin.AuthorizedViewIAM("t", "v"), "roles/bigtable.reader", tenant)
	if row, err := read(view); err != nil || len(row) != 1 {
		t.Errorf("got %v, %v", row, err)
	}
	denied("a reader writes", write(view), "bigtable.authorizedViews.mutateRows")
	_, err = read(table)
	denied("the table", err, "bigtable.tables.readRows")
	_, err = table.SampleRowKeys(ctx)
	denied("samples of the table", err, "bigtable.tables.sampleRowKeys")

	// A custom role on the table also applies to the view below.
	env.DefineRole("roles/writer", "bigtable.tables.mutateRows", "bigtable.authorizedViews.mutateRows")
	bind(admin.TableIAM("t"), "roles/writer", "allUsers")
	if err := write(table); err != nil {
		t.Error(err)
	}
	if err := write(view); err != nil {
		t.Error(err)
	}
	_, err = read(table)
	denied("a writer reads", err, "bigtable.tables.readRows")
	rmw := bigtable.NewReadModifyWrite()
	rmw.AppendValue("f", "q", []byte("x"))
	_, err = table.ApplyReadModifyWrite(ctx, "tenant1#a", rmw)
	denied("a change that reads", err, "bigtable.tables.readRows")

	// Administration, and the tests of its permissions.
	adminAs := env.BigtableAdminAs(t, tenant)
	denied("DeleteTable", adminAs.DeleteTable(ctx, "t"), "bigtable.tables.delete")
	permissions := []string{"bigtable.tables.readRows", "bigtable.tables.mutateRows"}
	if got, err := adminAs.TableIAM("t").TestPermissions(ctx, permissions); err != nil || !slices.Equal(got, permissions[1:]) {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := admin.TableIAM("t").TestPermissions(ctx, permissions); err != nil || !slices.Equal(got, permissions) {
		t.Errorf("the owner: got %v, %v", got, err)
	}
	// A role on the instance applies to everything below.
	instance := "projects/" + env.Project() + "/instances/" + env.Instance()
	instances := btapb.NewBigtableInstanceAdminClient(env.Conn())
	policy := &iampb.Policy{Version: 3, Bindings: []*iampb.Binding{{Role: "roles/bigtable.admin", Members: []string{"domain:p.iam.gserviceaccount.com"}, Condition: &expr.Expr{Expression: "true"}}}}
	if _, err := instances.SetIamPolicy(ctx, &iampb.SetIamPolicyRequest{Resource: instance, Policy: policy}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a condition: %v", err)
	}
	policy.Bindings[0].Condition = nil
	if _, err := instances.SetIamPolicy(ctx, &iampb.SetIamPolicyRequest{Resource: instance, Policy: policy}); err != nil {
		t.Fatal(err)
	}
	if _, err := read(table); err != nil {
		t.Error(err)
	}
	if err := adminAs.DeleteTable(ctx, "t"); err != nil {
		t.Error(err)
	}
}

// TestWithIAM_Project: requests on a project, and on resources without a policy of their own,
// follow the roles on the project and the instance.
func TestWithIAM_Project(t *testing.T) {
	t.Parallel()
	env := btkit.Start(t, btkit.WithIAM())
	ctx := t.Context()
	project := "projects/" + env.Project()
	instances, tables := btapb.NewBigtableInstanceAdminClient(env.Conn()), btapb.NewBigtableTableAdminClient(env.Conn())
	op, err := instances.CreateInstance(ctx, &btapb.CreateInstanceRequest{
		Parent: project, InstanceId: "made", Instance: &btapb.Instance{}, Clusters: map[string]*btapb.Cluster{"c": {Location: project + "/locations/us-east1-b", ServeNodes: 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	made := project + "/instances/made"
	const who = "user:a@example.com"
	as := metadata.AppendToOutgoingContext(ctx, btkit.PrincipalHeader, who)
	calls := map[string]func() error{
		"bigtable.instances.list": func() error {
			_, err := instances.ListInstances(as, &btapb.ListInstancesRequest{Parent: project})
			return err
		},
		"bigtable.instances.get": func() error {
			_, err := longrunningpb.NewOperationsClient(env.Conn()).GetOperation(as, &longrunningpb.GetOperationRequest{Name: op.GetName()})
			return err
		},
		"bigtable.clusters.get": func() error {
			_, err := instances.GetMemoryLayer(as, &btapb.GetMemoryLayerRequest{Name: made + "/clusters/c/memoryLayer"})
			return err
		},
		"bigtable.backups.list": func() error {
			_, err := tables.ListSnapshots(as, &btapb.ListSnapshotsRequest{Parent: made + "/clusters/c"})
			return err
		},
		"bigtable.locations.list": func() error {
			_, err := locationpb.NewLocationsClient(env.Conn()).ListLocations(as, &locationpb.ListLocationsRequest{Name: project})
			return err
		},
	}
	check := func(granted func(permission string) bool) {
		t.Helper()
		for permission, call := range calls {
			err := call()
			if granted(permission) && err != nil || !granted(permission) && (status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), permission)) {
				t.Errorf("%s, granted: %v: %v", permission, granted(permission), err)
			}
		}
	}
	check(func(string) bool { return false })
	if _, err := instances.SetIamPolicy(ctx, &iampb.SetIamPolicyRequest{Resource: made, Policy: &iampb.Policy{Bindings: []*iampb.Binding{{Role: "roles/bigtable.viewer", Members: []string{who}}}}}); err != nil {
		t.Fatal(err)
	}
	check(func(p string) bool { return p != "bigtable.instances.list" && p != "bigtable.locations.list" })
	env.GrantProject("roles/bigtable.viewer", "user:b@example.com", who)
	check(func(string) bool { return true })
	_, err = instances.CreateInstance(as, &btapb.CreateInstanceRequest{Parent: project, InstanceId: "more"})
	if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "bigtable.instances.create") {
		t.Errorf("a viewer makes an instance: %v", err)
	}
	if _, err := instances.ListInstances(as, &btapb.ListInstancesRequest{Parent: "projects/other"}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("another project: %v", err)
	}
}

// TestWithoutIAM: policies are stored, and a client on behalf of a principal is an error,
// since it would suggest that they are enforced.
func TestWithoutIAM(t *testing.T) {
	t.Parallel()
	env := btkit.Start(t)
	got := faketb.Failure(t, func(tb testing.TB) { tb.Helper(); env.BigtableAs(tb, "user:a@example.com") })
	if !strings.Contains(got, "WithIAM") {
		t.Errorf("got %q", got)
	}
}

// TestWithLoadCounts: the hot keys of a design are counted in the default instance.
func TestWithLoadCounts(t *testing.T) {
	t.Parallel()
	env := btkit.Start(t, btkit.WithLoadCounts())
	ctx := t.Context()
	if err := env.BigtableAdmin(t).CreateTableFromConf(ctx, &bigtable.TableConf{TableID: "t", Families: map[string]bigtable.GCPolicy{"f": bigtable.NoGcPolicy()}}); err != nil {
		t.Fatal(err)
	}
	if _, err := env.Bigtable(t).Open("t").ReadRow(ctx, "hot"); err != nil {
		t.Fatal(err)
	}
	instances := btapb.NewBigtableInstanceAdminClient(env.Conn())
	parent := "projects/" + env.Project() + "/instances/" + env.Instance()
	clusters, err := instances.ListClusters(ctx, &btapb.ListClustersRequest{Parent: parent})
	if err != nil {
		t.Fatal(err)
	}
	got, err := instances.ListHotTablets(ctx, &btapb.ListHotTabletsRequest{Parent: clusters.GetClusters()[0].GetName()})
	if err != nil || len(got.GetHotTablets()) != 1 || got.GetHotTablets()[0].GetStartKey() != "hot" {
		t.Errorf("got %v, %v", got, err)
	}
}
