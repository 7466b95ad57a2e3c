package iam

import (
	"slices"
	"strings"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"cloud.google.com/go/iam/apiv1/iampb"
	"google.golang.org/genproto/googleapis/type/expr"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// TestNeeds: the table names RPCs that there are and fields that their requests
// have; what it leaves to the owner is what is meant to be.
func TestNeeds(t *testing.T) {
	t.Parallel()
	left := map[string]bool{}
	for _, m := range strings.Fields(`
		BigtableTableAdmin/SnapshotTable BigtableTableAdmin/GetSnapshot BigtableTableAdmin/ListSnapshots BigtableTableAdmin/DeleteSnapshot
		BigtableTableAdmin/CreateTableFromSnapshot
		BigtableInstanceAdmin/CreateInstance BigtableInstanceAdmin/ListInstances
		BigtableInstanceAdmin/GetMemoryLayer BigtableInstanceAdmin/ListMemoryLayers BigtableInstanceAdmin/UpdateMemoryLayer
		Bigtable/PrepareQuery Bigtable/ExecuteQuery Bigtable/OpenMaterializedView`) {
		left[m] = true
	}
	seen := 0
	for _, services := range []protoreflect.ServiceDescriptors{btapb.File_google_bigtable_admin_v2_bigtable_table_admin_proto.Services(), btapb.File_google_bigtable_admin_v2_bigtable_instance_admin_proto.Services(), btpb.File_google_bigtable_v2_bigtable_proto.Services()} {
		for i := range services.Len() {
			methods := services.Get(i).Methods()
			for j := range methods.Len() {
				m := methods.Get(j)
				method := string(services.Get(i).Name()) + "/" + string(m.Name())
				spec, known := needs[method]
				switch {
				case left[method] || strings.HasSuffix(method, "View") && strings.Contains(method, "InstanceAdmin") || strings.HasSuffix(method, "Views") && strings.Contains(method, "InstanceAdmin"):
					if known {
						t.Errorf("%s is meant for the owner", method)
					}
					continue
				case !known:
					t.Errorf("%s has no permission", method)
					continue
				}
				seen++
				field, _, _ := strings.Cut(spec, " ")
				if field == "data" {
					field = "table_name"
				}
				if field == "session" {
					continue
				}
				// The field is there if what is set can be read.
				req := dynamicpb.NewMessage(m.Input())
				at := req.ProtoReflect()
				names := strings.Split(field, ".")
				for i, name := range names {
					f := at.Descriptor().Fields().ByName(protoreflect.Name(name))
					if f == nil {
						t.Fatalf("%s has no field %s", method, field)
					}
					if i == len(names)-1 {
						at.Set(f, protoreflect.ValueOfString("x"))
					} else {
						at = at.Mutable(f).Message()
					}
				}
				if got := text(req, field); got != "x" {
					t.Errorf("%s: %s is %q", method, field, got)
				}
			}
		}
	}
	if seen != len(needs) {
		t.Errorf("%d of %d entries are of RPCs that there are", seen, len(needs))
	}
}

func TestNeedsOf(t *testing.T) {
	t.Parallel()
	const table = "projects/p/instances/i/tables/t"
	open, err := proto.Marshal(&btpb.OpenAuthorizedViewRequest{AuthorizedViewName: table + "/authorizedViews/v", Permission: btpb.OpenAuthorizedViewRequest_PERMISSION_READ})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method string
		req    proto.Message
		want   []Need
		known  bool
	}{
		{"/google.bigtable.v2.Bigtable/ReadRows", &btpb.ReadRowsRequest{TableName: table}, []Need{{"bigtable.tables.readRows", table}}, true},
		{"/google.bigtable.v2.Bigtable/MutateRow", &btpb.MutateRowRequest{AuthorizedViewName: table + "/authorizedViews/v"}, []Need{{"bigtable.authorizedViews.mutateRows", table + "/authorizedViews/v"}}, true},
		{"/google.bigtable.admin.v2.BigtableTableAdmin/GetIamPolicy", &iampb.GetIamPolicyRequest{Resource: "projects/p/instances/i/clusters/c/backups/b"}, []Need{{"bigtable.backups.getIamPolicy", "projects/p/instances/i/clusters/c/backups/b"}}, true},
		{"/google.bigtable.admin.v2.BigtableTableAdmin/TestIamPermissions", &iampb.TestIamPermissionsRequest{Resource: table}, nil, true},
		{"/google.bigtable.admin.v2.BigtableInstanceAdmin/CreateInstance", &btapb.CreateInstanceRequest{}, nil, false},
		{"/google.bigtable.v2.Bigtable/OpenAuthorizedView", &btpb.SessionRequest{Payload: &btpb.SessionRequest_OpenSession{OpenSession: &btpb.OpenSessionRequest{Payload: open}}}, []Need{{"bigtable.authorizedViews.readRows", table + "/authorizedViews/v"}}, true},
		{"/google.bigtable.v2.Bigtable/ReadRows", nil, nil, false},
	} {
		if got, known := NeedsOf(c.method, c.req); known != c.known || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v; want %v, %v", c.method, got, known, c.want, c.known)
		}
	}
	if got := Above(table + "/authorizedViews/v"); !slices.Equal(got, []string{table + "/authorizedViews/v", table, "projects/p/instances/i"}) {
		t.Errorf("got %v", got)
	}
	if got := Above("projects/p/instances/i/clusters/c/backups/b"); len(got) != 2 {
		t.Errorf("got %v", got)
	}
}

func TestGrants(t *testing.T) {
	t.Parallel()
	r := &Roles{}
	r.Define("mine", "bigtable.tables.get")
	const me = "user:a@example.com"
	for _, c := range []struct {
		role, member, permission string
		want                     bool
	}{
		{"mine", me, "bigtable.tables.get", true},
		{"mine", me, "bigtable.tables.list", false},
		{"mine", "user:b@example.com", "bigtable.tables.get", false},
		{"mine", "domain:example.com", "bigtable.tables.get", true},
		{"mine", "domain:ample.com", "bigtable.tables.get", false},
		{"mine", "group:a@example.com", "bigtable.tables.get", false},
		{"mine", "allUsers", "bigtable.tables.get", true},
		{"roles/bigtable.viewer", me, "bigtable.tables.readRows", false},
		{"roles/bigtable.reader", me, "bigtable.tables.readRows", true},
		{"roles/bigtable.reader", me, "bigtable.tables.mutateRows", false},
		{"roles/bigtable.user", me, "bigtable.authorizedViews.mutateRows", true},
		{"roles/bigtable.user", me, "bigtable.tables.create", false},
		{"roles/bigtable.admin", me, "bigtable.tables.create", true},
		{"roles/bigtable.admin", me, "spanner.databases.create", false},
		{"roles/none", me, "bigtable.tables.get", false},
	} {
		b := &iampb.Binding{Role: c.role, Members: []string{c.member}}
		if got := r.Grants(&iampb.Policy{Bindings: []*iampb.Binding{b}}, me, c.permission); got != c.want {
			t.Errorf("%+v: got %v", c, got)
		}
		b.Condition = &expr.Expr{Expression: "true"}
		if r.Grants(&iampb.Policy{Bindings: []*iampb.Binding{b}}, me, c.permission) {
			t.Errorf("%+v: granted on a condition", c)
		}
	}
}
