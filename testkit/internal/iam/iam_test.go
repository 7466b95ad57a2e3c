package iam

import (
	"slices"
	"strings"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"cloud.google.com/go/iam/apiv1/iampb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	locationpb "google.golang.org/genproto/googleapis/cloud/location"
	"google.golang.org/genproto/googleapis/type/expr"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// TestNeeds: the table has exactly the RPCs of the services, with fields of their requests.
func TestNeeds(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, file := range []protoreflect.FileDescriptor{
		btapb.File_google_bigtable_admin_v2_bigtable_table_admin_proto, btapb.File_google_bigtable_admin_v2_bigtable_instance_admin_proto,
		btpb.File_google_bigtable_v2_bigtable_proto, longrunningpb.File_google_longrunning_operations_proto,
		locationpb.File_google_cloud_location_locations_proto, healthpb.File_grpc_health_v1_health_proto, reflectionpb.File_grpc_reflection_v1_reflection_proto,
	} {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				m := service.Methods().Get(j)
				method := string(service.Name()) + "/" + string(m.Name())
				spec, known := needs[method]
				if !known {
					t.Errorf("%s is not in the table", method)
					continue
				}
				seen++
				for part := range strings.SplitSeq(spec, ";") {
					field, _, _ := strings.Cut(strings.TrimSpace(part), " ")
					switch field {
					case "session", "":
					case "data":
						checkField(t, method, m.Input(), "table_name")
					case "operation", "project":
						checkField(t, method, m.Input(), "name")
					default:
						checkField(t, method, m.Input(), field)
					}
				}
			}
		}
	}
	if seen != len(needs) {
		t.Errorf("%d of %d entries are of existing RPCs", seen, len(needs))
	}
}

// checkField checks that a message has the field of a path: a set value can be read.
func checkField(t *testing.T, method string, m protoreflect.MessageDescriptor, field string) {
	t.Helper()
	req := dynamicpb.NewMessage(m)
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
		{"/google.bigtable.admin.v2.BigtableInstanceAdmin/CreateInstance", &btapb.CreateInstanceRequest{Parent: "projects/p"}, []Need{{"bigtable.instances.create", "projects/p"}}, true},
		{"/google.bigtable.admin.v2.BigtableInstanceAdmin/FormatDisk", &btapb.CreateInstanceRequest{}, nil, false},
		{"/google.bigtable.admin.v2.BigtableTableAdmin/RestoreTable", &btapb.RestoreTableRequest{Parent: "projects/p/instances/i", Source: &btapb.RestoreTableRequest_Backup{Backup: "b"}}, []Need{{"bigtable.tables.create", "projects/p/instances/i"}, {"bigtable.backups.restore", "b"}}, true},
		{"/google.longrunning.Operations/CancelOperation", &longrunningpb.CancelOperationRequest{Name: "operations/projects/p/instances/i/operations/5"}, []Need{{"bigtable.instances.update", "projects/p/instances/i"}}, true},
		{"/google.longrunning.Operations/ListOperations", &longrunningpb.ListOperationsRequest{Name: "operations/projects/p"}, []Need{{"bigtable.instances.get", "projects/p"}}, true},
		{"/google.longrunning.Operations/ListOperations", &longrunningpb.ListOperationsRequest{Name: "operations"}, []Need{{"bigtable.instances.get", "operations"}}, true},
		{"/google.cloud.location.Locations/GetLocation", &locationpb.GetLocationRequest{Name: "projects/p/locations/z"}, []Need{{"bigtable.locations.list", "projects/p"}}, true},
		{"/grpc.health.v1.Health/Check", &healthpb.HealthCheckRequest{}, nil, true},
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
