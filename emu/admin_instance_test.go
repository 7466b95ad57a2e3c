package emu

import (
	"strings"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"cloud.google.com/go/iam/apiv1/iampb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tabletop-emu/tabletop/emu/internal/admin"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/engine"
)

func (e *env) listInstances(project string) string {
	e.t.Helper()
	got, err := e.instances().ListInstances(e.ctx(), &btapb.ListInstancesRequest{Parent: project})
	if err != nil {
		e.t.Fatal(err)
	}
	var ids []string
	for _, in := range got.GetInstances() {
		ids = append(ids, resname.Last(in.GetName()))
	}
	return strings.Join(ids, " ")
}

// TestInstances_Implicit shows which instances exist before and after the first CreateInstance.
func TestInstances_Implicit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := newEnvWith(t, Options{}, engine.Options{Dir: dir})
	get := func(e *env, name string) error {
		_, err := e.instances().GetInstance(e.ctx(), &btapb.GetInstanceRequest{Name: name})
		return err
	}
	create := func(parent string) error {
		_, err := e.admin.CreateTable(e.ctx(), &btapb.CreateTableRequest{Parent: parent, TableId: "t"})
		return err
	}
	wantCode(t, get(e, "projects/p/instances/any"), codes.OK)
	if got := e.listInstances("projects/p"); got != "" {
		t.Errorf("instances: %s", got)
	}
	wantCode(t, create("projects/p/instances/used"), codes.OK)
	wantCode(t, create("projects/p/instances/{instance}"), codes.OK)
	if got := e.listInstances("projects/p"); got != "used" {
		t.Errorf("instances: %s", got)
	}
	got, err := e.instances().GetInstance(e.ctx(), &btapb.GetInstanceRequest{Name: "projects/p/instances/used"})
	if err != nil {
		t.Fatal(err)
	}
	wantProto(t, got, &btapb.Instance{
		Name: "projects/p/instances/used", DisplayName: "used", State: btapb.Instance_READY,
		Type: btapb.Instance_PRODUCTION, Edition: btapb.Instance_ENTERPRISE, CreateTime: &timestamppb.Timestamp{Nanos: 1},
	})

	// An instance with a table cannot be created again.
	wantCode(t, e.createInstance("used", nodes("z", 1)), codes.AlreadyExists)
	e.mustCreateInstance("made", nodes("z", 1))
	check := func(e *env, list string) {
		t.Helper()
		wantCode(t, get(e, "projects/p/instances/used"), codes.OK)
		wantCode(t, get(e, "projects/p/instances/{instance}"), codes.OK)
		wantCode(t, get(e, "projects/p/instances/any"), codes.NotFound)
		wantCode(t, get(e, "projects/other/instances/any"), codes.OK)
		if got := e.listInstances("projects/p"); got != list {
			t.Errorf("instances: %s, want %s", got, list)
		}
		_, err := e.admin.CreateTable(e.ctx(), &btapb.CreateTableRequest{Parent: "projects/p/instances/any", TableId: "t"})
		wantCode(t, err, codes.NotFound)
		_, err = e.admin.ListTables(e.ctx(), &btapb.ListTablesRequest{Parent: "projects/p/instances/any"})
		wantCode(t, err, codes.NotFound)
		_, err = e.data.PingAndWarm(e.ctx(), &btpb.PingAndWarmRequest{Name: "projects/p/instances/any"})
		wantCode(t, err, codes.NotFound)
	}
	check(e, "made used {instance}")
	e = e.restart(dir)
	check(e, "made used {instance}")
	// It does not reappear when the created one is deleted.
	if _, err := e.instances().DeleteInstance(e.ctx(), &btapb.DeleteInstanceRequest{Name: "projects/p/instances/made"}); err != nil {
		t.Fatal(err)
	}
	wantCode(t, get(e, "projects/p/instances/made"), codes.NotFound)
	check(e, "used {instance}")
}

func TestCreateInstance(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.clock.Freeze()
	op, err := e.instances().CreateInstance(e.ctx(), &btapb.CreateInstanceRequest{
		Parent: "projects/p", InstanceId: "made", Instance: &btapb.Instance{DisplayName: "Made", Labels: map[string]string{"k": "v"}},
		Clusters: map[string]*btapb.Cluster{"c1": nodes("z1", 3), "c2": nodes("z2", 1)},
	})
	in := response[*btapb.Instance](e, op, err)
	want := &btapb.Instance{
		Name: "projects/p/instances/made", DisplayName: "Made", State: btapb.Instance_READY, Type: btapb.Instance_PRODUCTION,
		Edition: btapb.Instance_ENTERPRISE, Labels: map[string]string{"k": "v"}, CreateTime: timestamppb.New(start),
	}
	wantProto(t, in, want)
	meta, err := op.GetMetadata().UnmarshalNew()
	if m, ok := meta.(*btapb.CreateInstanceMetadata); err != nil || !ok || m.GetOriginalRequest().GetInstanceId() != "made" || m.GetFinishTime() == nil {
		t.Errorf("metadata: %v, %v", meta, err)
	}
	got, err := e.instances().GetInstance(e.ctx(), &btapb.GetInstanceRequest{Name: want.GetName()})
	if err != nil {
		t.Fatal(err)
	}
	wantProto(t, got, want)
	wantCode(t, e.createInstance("made", nodes("z", 1)), codes.AlreadyExists)

	long := strings.Repeat("a", 34)
	label := func(k, v string) *btapb.Instance { return &btapb.Instance{Labels: map[string]string{k: v}} }
	one := map[string]*btapb.Cluster{"c": nodes("z", 1)}
	for name, req := range map[string]*btapb.CreateInstanceRequest{
		"no parent":           {InstanceId: "x", Instance: &btapb.Instance{}, Clusters: one},
		"no id":               {Parent: "projects/p", Instance: &btapb.Instance{}, Clusters: one},
		"capital id":          {Parent: "projects/p", InstanceId: "Xx", Instance: &btapb.Instance{}, Clusters: one},
		"long id":             {Parent: "projects/p", InstanceId: long, Instance: &btapb.Instance{}, Clusters: one},
		"no instance":         {Parent: "projects/p", InstanceId: "x", Clusters: one},
		"no clusters":         {Parent: "projects/p", InstanceId: "x", Instance: &btapb.Instance{}},
		"unknown type":        {Parent: "projects/p", InstanceId: "x", Instance: &btapb.Instance{Type: 9}, Clusters: one},
		"unknown edition":     {Parent: "projects/p", InstanceId: "x", Instance: &btapb.Instance{Edition: 9}, Clusters: one},
		"capital label":       {Parent: "projects/p", InstanceId: "x", Instance: label("K", "v"), Clusters: one},
		"label with a digit":  {Parent: "projects/p", InstanceId: "x", Instance: label("1k", "v"), Clusters: one},
		"long label":          {Parent: "projects/p", InstanceId: "x", Instance: label("k", strings.Repeat("v", 64)), Clusters: one},
		"cluster id":          {Parent: "projects/p", InstanceId: "x", Instance: &btapb.Instance{}, Clusters: map[string]*btapb.Cluster{"C": nodes("z", 1)}},
		"no location":         {Parent: "projects/p", InstanceId: "x", Instance: &btapb.Instance{}, Clusters: map[string]*btapb.Cluster{"c": {ServeNodes: 1}}},
		"nil cluster":         {Parent: "projects/p", InstanceId: "x", Instance: &btapb.Instance{}, Clusters: map[string]*btapb.Cluster{"c": nil}},
		"one zone":            {Parent: "projects/p", InstanceId: "x", Instance: &btapb.Instance{}, Clusters: map[string]*btapb.Cluster{"c": nodes("z", 1), "d": nodes("z", 1)}},
		"development nodes":   {Parent: "projects/p", InstanceId: "x", Instance: &btapb.Instance{Type: btapb.Instance_DEVELOPMENT}, Clusters: one},
		"development cluster": {Parent: "projects/p", InstanceId: "x", Instance: &btapb.Instance{Type: btapb.Instance_DEVELOPMENT}, Clusters: map[string]*btapb.Cluster{"c": nodes("y", 0), "d": nodes("z", 0)}},
	} {
		if _, err := e.instances().CreateInstance(e.ctx(), req); err == nil {
			t.Errorf("%s was accepted", name)
		} else {
			wantCode(t, err, codes.InvalidArgument)
		}
	}
}

func TestUpdateInstance(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := newEnvWith(t, Options{}, engine.Options{Dir: dir})
	const name = "projects/p/instances/made"
	_, err := e.instances().CreateInstance(e.ctx(), &btapb.CreateInstanceRequest{
		Parent: "projects/p", InstanceId: "made", Clusters: map[string]*btapb.Cluster{"c": nodes("z", 0)},
		Instance: &btapb.Instance{DisplayName: "Made", Type: btapb.Instance_DEVELOPMENT, Labels: map[string]string{"k": "v"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	// The full update changes only the display name and the type.
	in, err := e.instances().UpdateInstance(e.ctx(), &btapb.Instance{Name: name, DisplayName: "New", Labels: map[string]string{"x": "y"}})
	if err != nil || in.GetDisplayName() != "New" || in.GetType() != btapb.Instance_DEVELOPMENT || in.GetLabels()["k"] != "v" {
		t.Errorf("got %v, %v", in, err)
	}
	_, err = e.instances().UpdateInstance(e.ctx(), &btapb.Instance{Name: name})
	wantCode(t, err, codes.InvalidArgument)

	partial := func(in *btapb.Instance, paths ...string) (*btapb.Instance, error) {
		in.Name = name
		op, err := e.instances().PartialUpdateInstance(e.ctx(), &btapb.PartialUpdateInstanceRequest{Instance: in, UpdateMask: mask(paths...)})
		if err != nil {
			return nil, err
		}
		return response[*btapb.Instance](e, op, err), nil
	}
	in, err = partial(&btapb.Instance{DisplayName: "not named", Type: btapb.Instance_PRODUCTION}, "type", "labels")
	if err != nil || in.GetDisplayName() != "New" || in.GetType() != btapb.Instance_PRODUCTION || len(in.GetLabels()) != 0 {
		t.Errorf("got %v, %v", in, err)
	}
	_, err = partial(&btapb.Instance{Type: btapb.Instance_DEVELOPMENT}, "type")
	wantCode(t, err, codes.FailedPrecondition)
	for _, paths := range [][]string{nil, {"*"}, {"name"}, {"state"}, {"create_time"}, {"display_name.x"}, {"display_name"}} {
		_, err = partial(&btapb.Instance{}, paths...)
		wantCode(t, err, codes.InvalidArgument)
	}
	got, err := e.restart(dir).instances().GetInstance(t.Context(), &btapb.GetInstanceRequest{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	wantProto(t, got, in)
	_, err = e.instances().PartialUpdateInstance(t.Context(), &btapb.PartialUpdateInstanceRequest{UpdateMask: mask("type")})
	if err == nil {
		t.Error("an update of nothing was accepted")
	}
}

func TestDeleteInstance(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.mustCreateInstance("keep", nodes("z", 1))
	e.mustCreateInstance("i", nodes("z", 1))
	e.createTable("t", "f")
	e.createTable("gone")
	if err := e.createAppProfile(testInstance, "profile", anyCluster()); err != nil {
		t.Fatal(err)
	}
	drop := func(table string) error {
		_, err := e.admin.DeleteTable(e.ctx(), &btapb.DeleteTableRequest{Name: testInstance + "/tables/" + table})
		return err
	}
	wantCode(t, drop("gone"), codes.OK)
	protect := func(v bool) {
		t.Helper()
		_, err := e.admin.UpdateTable(e.ctx(), &btapb.UpdateTableRequest{
			Table: &btapb.Table{Name: testTable, DeletionProtection: v}, UpdateMask: mask("deletion_protection"),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	del := func() error {
		_, err := e.instances().DeleteInstance(e.ctx(), &btapb.DeleteInstanceRequest{Name: testInstance})
		return err
	}
	protect(true)
	wantCode(t, del(), codes.FailedPrecondition)
	e.mustMutate("r", set("f", "q", 0, "kept"))
	protect(false)
	wantCode(t, del(), codes.OK)
	wantCode(t, del(), codes.NotFound)
	if got := e.listInstances("projects/p"); got != "keep" {
		t.Errorf("instances: %s", got)
	}
	_, err := e.read(&btpb.ReadRowsRequest{})
	wantCode(t, err, codes.NotFound)

	// A new instance of the same name inherits nothing.
	e.mustCreateInstance("i", nodes("z", 1))
	for _, table := range []string{"t", "gone"} {
		_, err := e.admin.UndeleteTable(e.ctx(), &btapb.UndeleteTableRequest{Name: testInstance + "/tables/" + table})
		wantCode(t, err, codes.NotFound)
	}
	profiles, err := e.instances().ListAppProfiles(e.ctx(), &btapb.ListAppProfilesRequest{Parent: testInstance})
	if err != nil || len(profiles.GetAppProfiles()) != 1 {
		t.Errorf("got %v, %v", profiles, err)
	}
}

// TestCreateInstance_Fresh creates an instance under a name that was used before, implicitly or
// until DeleteInstance: it inherits nothing.
func TestCreateInstance_Fresh(t *testing.T) {
	t.Parallel()
	for _, was := range []string{"implicit", "deleted"} {
		t.Run(was, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			const parent, table = "projects/p/instances/in", "projects/p/instances/in/tables/t"
			if was == "deleted" {
				e.mustCreateInstance("in", nodes("z", 1))
			}
			if _, err := e.admin.CreateTable(e.ctx(), &btapb.CreateTableRequest{Parent: parent, TableId: "t"}); err != nil {
				t.Fatal(err)
			}
			policy := func() *iampb.Policy {
				return &iampb.Policy{Bindings: []*iampb.Binding{{Role: "roles/viewer", Members: []string{"allUsers"}}}}
			}
			if _, err := e.instances().SetIamPolicy(e.ctx(), &iampb.SetIamPolicyRequest{Resource: parent, Policy: policy()}); err != nil {
				t.Fatal(err)
			}
			if _, err := e.admin.SetIamPolicy(e.ctx(), &iampb.SetIamPolicyRequest{Resource: table, Policy: policy()}); err != nil {
				t.Fatal(err)
			}
			if _, err := e.admin.DeleteTable(e.ctx(), &btapb.DeleteTableRequest{Name: table}); err != nil {
				t.Fatal(err)
			}
			if was == "deleted" {
				if _, err := e.instances().DeleteInstance(e.ctx(), &btapb.DeleteInstanceRequest{Name: parent}); err != nil {
					t.Fatal(err)
				}
			}
			e.mustCreateInstance("in", nodes("z", 1))
			_, err := e.admin.UndeleteTable(e.ctx(), &btapb.UndeleteTableRequest{Name: table})
			wantCode(t, err, codes.NotFound)
			got, err := e.instances().GetIamPolicy(e.ctx(), &iampb.GetIamPolicyRequest{Resource: parent})
			if err != nil {
				t.Fatal(err)
			}
			wantProto(t, got, &iampb.Policy{Etag: []byte{0x00, 0x20, 0x01}})
			kept, err := e.db.Resources(admin.KindPolicy)
			if err != nil || len(kept) > 0 {
				t.Errorf("policies %v, error %v", kept, err)
			}
		})
	}
}

// TestDeleteInstance_Protected: an instance with a protected table cannot be deleted, and stays
// complete.
func TestDeleteInstance_Protected(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.mustCreateInstance("in", nodes("z", 1))
	const parent = "projects/p/instances/in"
	for _, id := range []string{"a", "b", "c"} {
		if _, err := e.admin.CreateTable(e.ctx(), &btapb.CreateTableRequest{Parent: parent, TableId: id, Table: &btapb.Table{DeletionProtection: id == "b"}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.admin.DeleteTable(e.ctx(), &btapb.DeleteTableRequest{Name: parent + "/tables/c"}); err != nil {
		t.Fatal(err)
	}
	before := storeText(t, e.db)
	_, err := e.instances().DeleteInstance(e.ctx(), &btapb.DeleteInstanceRequest{Name: parent})
	wantCode(t, err, codes.FailedPrecondition)
	if after := storeText(t, e.db); after != before {
		t.Errorf("a refused DeleteInstance changes\n%s\nto\n%s", before, after)
	}
	// Each check covers all tables: the protection of the second is reported before the stream
	// of the first.
	if _, err := e.admin.UpdateTable(e.ctx(), &btapb.UpdateTableRequest{
		Table:      &btapb.Table{Name: parent + "/tables/a", ChangeStreamConfig: &btapb.ChangeStreamConfig{RetentionPeriod: durationpb.New(24 * time.Hour)}},
		UpdateMask: mask("change_stream_config"),
	}); err != nil {
		t.Fatal(err)
	}
	_, err = e.instances().DeleteInstance(e.ctx(), &btapb.DeleteInstanceRequest{Name: parent})
	wantCode(t, err, codes.FailedPrecondition)
	if text := status.Convert(err).Message(); !strings.Contains(text, parent+"/tables/b") || strings.Contains(text, "stream") {
		t.Errorf("%q does not name the protected table first", text)
	}
}
