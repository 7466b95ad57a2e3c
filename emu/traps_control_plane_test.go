package emu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"cloud.google.com/go/iam/apiv1/iampb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/internal/test/race"
)

// updateTable updates table t and returns the response of the operation.
func (e *env) updateTable(to *btapb.Table, paths ...string) (*btapb.Table, error) {
	e.t.Helper()
	to.Name = testTable
	op, err := e.admin.UpdateTable(e.ctx(), &btapb.UpdateTableRequest{Table: to, UpdateMask: mask(paths...)})
	if err != nil {
		return nil, err
	}
	got := response[*btapb.Table](e, op, nil)
	meta, err := op.GetMetadata().UnmarshalNew()
	if m, ok := meta.(*btapb.UpdateTableMetadata); err != nil || !ok || m.GetName() != testTable || m.GetEndTime() == nil {
		e.t.Errorf("metadata: %v, %v", meta, err)
	}
	stored, err := e.admin.GetTable(e.ctx(), &btapb.GetTableRequest{Name: testTable})
	if err != nil || !proto.Equal(stored, got) {
		e.t.Errorf("the operation returned %v, the table is %v, %v", got, stored, err)
	}
	return got, nil
}

func TestTrap56_DeletionProtectionRaces(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for i := range 100 {
		e.createTable("t", "f")
		var protectErr, deleteErr error
		var group sync.WaitGroup
		group.Go(func() {
			_, protectErr = e.admin.UpdateTable(e.ctx(), &btapb.UpdateTableRequest{
				Table: &btapb.Table{Name: testTable, DeletionProtection: true}, UpdateMask: mask("deletion_protection"),
			})
		})
		group.Go(func() {
			_, deleteErr = e.admin.DeleteTable(e.ctx(), &btapb.DeleteTableRequest{Name: testTable})
		})
		group.Wait()
		// One of the calls was first; a protected table still exists.
		if (protectErr == nil) == (deleteErr == nil) {
			t.Fatalf("round %d: protecting: %v, deleting: %v", i, protectErr, deleteErr)
		}
		if protectErr == nil {
			wantCode(t, deleteErr, codes.FailedPrecondition)
			if _, err := e.updateTable(&btapb.Table{}, "deletion_protection"); err != nil {
				t.Fatal(err)
			}
			if _, err := e.admin.DeleteTable(e.ctx(), &btapb.DeleteTableRequest{Name: testTable}); err != nil {
				t.Fatal(err)
			}
		} else {
			wantCode(t, protectErr, codes.NotFound)
		}
	}
}

func TestTrap57_UpdateTable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := newEnvWith(t, Options{}, engine.Options{Dir: dir})
	e.createTable("t", "f")
	got, err := e.updateTable(&btapb.Table{DeletionProtection: true}, "deletion_protection")
	if err != nil || !got.GetDeletionProtection() || got.GetColumnFamilies()["f"] == nil {
		t.Errorf("got %v, %v", got, err)
	}
	// A mask without protection leaves it unchanged, whatever its value in the request.
	got, err = e.updateTable(&btapb.Table{ChangeStreamConfig: &btapb.ChangeStreamConfig{RetentionPeriod: days(1)}}, "change_stream_config")
	if err != nil || !got.GetDeletionProtection() || got.GetChangeStreamConfig().GetRetentionPeriod().AsDuration() != 24*time.Hour {
		t.Errorf("got %v, %v", got, err)
	}
	odd := durationpb.New(70*time.Hour + 1500)
	got, err = e.updateTable(&btapb.Table{ChangeStreamConfig: &btapb.ChangeStreamConfig{RetentionPeriod: odd}}, "change_stream_config.retention_period")
	if err != nil || got.GetChangeStreamConfig().GetRetentionPeriod().AsDuration() != 70*time.Hour+time.Microsecond {
		t.Errorf("got %v, %v", got, err)
	}
	got, err = e.updateTable(withBackupPolicy(&btapb.Table_AutomatedBackupPolicy{RetentionPeriod: days(3)}), "automated_backup_policy")
	if err != nil || got.GetAutomatedBackupPolicy().GetFrequency().AsDuration() != 24*time.Hour || !proto.Equal(got.GetAutomatedBackupPolicy(), got.GetEffectiveAutomatedBackupPolicy()) {
		t.Errorf("got %v, %v", got, err)
	}
	got, err = e.updateTable(withBackupPolicy(&btapb.Table_AutomatedBackupPolicy{RetentionPeriod: days(90), KeepHotDuration: days(10)}),
		"automated_backup_policy.retention_period", "automated_backup_policy.keep_hot_duration")
	if err != nil || got.GetAutomatedBackupPolicy().GetRetentionPeriod().AsDuration() != 90*24*time.Hour || got.GetChangeStreamConfig() == nil {
		t.Errorf("got %v, %v", got, err)
	}
	tiered := &btapb.TieredStorageConfig{InfrequentAccess: &btapb.TieredStorageRule{Rule: &btapb.TieredStorageRule_IncludeIfOlderThan{IncludeIfOlderThan: days(30)}}}
	if got, err = e.updateTable(&btapb.Table{TieredStorageConfig: tiered}, "tiered_storage_config"); err != nil || !proto.Equal(got.GetTieredStorageConfig(), tiered) {
		t.Errorf("got %v, %v", got, err)
	}
	// They survive a restart.
	e = e.restart(dir)
	stored, err := e.admin.GetTable(e.ctx(), &btapb.GetTableRequest{Name: testTable})
	if err != nil || !proto.Equal(stored, got) {
		t.Errorf("got %v, %v; want %v", stored, err, got)
	}
	got, err = e.updateTable(&btapb.Table{}, "change_stream_config", "automated_backup_policy", "tiered_storage_config", "deletion_protection")
	if err != nil || got.GetChangeStreamConfig() != nil || got.GetAutomatedBackupPolicy() != nil || got.GetEffectiveAutomatedBackupPolicy() != nil ||
		got.GetTieredStorageConfig() != nil || got.GetDeletionProtection() {
		t.Errorf("got %v, %v", got, err)
	}

	for _, paths := range [][]string{nil, {"*"}, {"name"}, {"granularity"}, {"cluster_states"}, {"restore_info"}, {"deletion_protection.x"}, {"change_stream_config.x"}, {"row_key_schema.fields"}, {"effective_automated_backup_policy"}} {
		_, err := e.updateTable(&btapb.Table{}, paths...)
		wantCode(t, err, codes.InvalidArgument)
	}
	for _, paths := range [][]string{{"column_families"}, {"deletion_protection", "column_families.f.gc_rule"}} {
		_, err := e.updateTable(&btapb.Table{DeletionProtection: true}, paths...)
		wantCode(t, err, codes.Unimplemented)
	}
	stream := func(d time.Duration) *btapb.Table {
		return &btapb.Table{ChangeStreamConfig: &btapb.ChangeStreamConfig{RetentionPeriod: durationpb.New(d)}}
	}
	tier := func(d time.Duration) *btapb.Table {
		return &btapb.Table{TieredStorageConfig: &btapb.TieredStorageConfig{InfrequentAccess: &btapb.TieredStorageRule{Rule: &btapb.TieredStorageRule_IncludeIfOlderThan{IncludeIfOlderThan: durationpb.New(d)}}}}
	}
	const day = 24 * time.Hour
	for _, c := range []struct {
		path string
		to   *btapb.Table
	}{
		{"change_stream_config", stream(day - 1)},
		{"change_stream_config", stream(7*day + 1)},
		{"change_stream_config", &btapb.Table{ChangeStreamConfig: &btapb.ChangeStreamConfig{}}},
		{"tiered_storage_config", tier(30*day - 1)},
		{"tiered_storage_config", &btapb.Table{TieredStorageConfig: &btapb.TieredStorageConfig{}}},
		{"automated_backup_policy", withBackupPolicy(&btapb.Table_AutomatedBackupPolicy{})},
		{"automated_backup_policy", withBackupPolicy(&btapb.Table_AutomatedBackupPolicy{RetentionPeriod: days(2)})},
		{"automated_backup_policy", withBackupPolicy(&btapb.Table_AutomatedBackupPolicy{RetentionPeriod: days(91)})},
		{"automated_backup_policy", withBackupPolicy(&btapb.Table_AutomatedBackupPolicy{RetentionPeriod: days(3), Frequency: days(2)})},
		{"automated_backup_policy", withBackupPolicy(&btapb.Table_AutomatedBackupPolicy{RetentionPeriod: days(3), KeepHotDuration: days(4)})},
		{"automated_backup_policy", withBackupPolicy(&btapb.Table_AutomatedBackupPolicy{RetentionPeriod: days(3), Locations: []string{"z"}})},
		{"automated_backup_policy", withBackupPolicy(&btapb.Table_AutomatedBackupPolicy{RetentionPeriod: days(3), Disabled: true})},
	} {
		_, err := e.updateTable(c.to, c.path)
		wantCode(t, err, codes.InvalidArgument)
	}
	_, err = e.admin.UpdateTable(e.ctx(), &btapb.UpdateTableRequest{Table: &btapb.Table{Name: testTable + "x"}, UpdateMask: mask("deletion_protection")})
	wantCode(t, err, codes.NotFound)
	_, err = e.admin.UpdateTable(e.ctx(), &btapb.UpdateTableRequest{UpdateMask: mask("deletion_protection")})
	wantCode(t, err, codes.InvalidArgument)
}

func keySchema(enc *btapb.Type_Struct_Encoding, fields ...string) *btapb.Type_Struct {
	s := &btapb.Type_Struct{Encoding: enc}
	for _, f := range fields {
		s.Fields = append(s.Fields, &btapb.Type_Struct_Field{FieldName: f, Type: &btapb.Type{Kind: &btapb.Type_StringType{StringType: &btapb.Type_String{
			Encoding: &btapb.Type_String_Encoding{Encoding: &btapb.Type_String_Encoding_Utf8Bytes_{Utf8Bytes: &btapb.Type_String_Encoding_Utf8Bytes{}}},
		}}}})
	}
	return s
}

func delimited(d string) *btapb.Type_Struct_Encoding {
	return &btapb.Type_Struct_Encoding{Encoding: &btapb.Type_Struct_Encoding_DelimitedBytes_{DelimitedBytes: &btapb.Type_Struct_Encoding_DelimitedBytes{Delimiter: []byte(d)}}}
}

func TestTrap57_RowKeySchema(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	singleton := &btapb.Type_Struct_Encoding{Encoding: &btapb.Type_Struct_Encoding_Singleton_{Singleton: &btapb.Type_Struct_Encoding_Singleton{}}}
	untyped := keySchema(delimited("#"), "a")
	untyped.Fields[0].Type = &btapb.Type{Kind: &btapb.Type_StringType{StringType: &btapb.Type_String{}}}
	for name, s := range map[string]*btapb.Type_Struct{
		"no encoding":    keySchema(nil, "a"),
		"no fields":      keySchema(delimited("#")),
		"no delimiter":   keySchema(delimited(""), "a"),
		"long delimiter": keySchema(delimited(strings.Repeat("#", 51)), "a"),
		"singleton of 2": keySchema(singleton, "a", "b"),
		"no name":        keySchema(delimited("#"), "a", ""),
		"twice":          keySchema(delimited("#"), "a", "a"),
		"family":         keySchema(delimited("#"), "f"),
		"_key":           keySchema(delimited("#"), "_key"),
		"_timestamp":     keySchema(delimited("#"), "_timestamp"),
		"no type":        untyped,
	} {
		if _, err := e.updateTable(&btapb.Table{RowKeySchema: s}, "row_key_schema"); err == nil {
			t.Errorf("%s was accepted", name)
		} else {
			wantCode(t, err, codes.InvalidArgument)
		}
		_, err := e.admin.CreateTable(e.ctx(), &btapb.CreateTableRequest{Parent: testInstance, TableId: "u", Table: &btapb.Table{
			RowKeySchema: s, ColumnFamilies: map[string]*btapb.ColumnFamily{"f": {}},
		}})
		wantCode(t, err, codes.InvalidArgument)
	}
	first := keySchema(delimited("#"), "a", "b")
	if _, err := e.updateTable(&btapb.Table{RowKeySchema: first}, "row_key_schema"); err != nil {
		t.Fatal(err)
	}
	if _, err := e.updateTable(&btapb.Table{RowKeySchema: first}, "row_key_schema"); err != nil {
		t.Errorf("the same schema again: %v", err)
	}
	_, err := e.updateTable(&btapb.Table{RowKeySchema: keySchema(singleton, "a")}, "row_key_schema")
	wantCode(t, err, codes.InvalidArgument)
	// A family cannot have the name of a field.
	_, err = e.admin.ModifyColumnFamilies(e.ctx(), &btapb.ModifyColumnFamiliesRequest{
		Name: testTable, Modifications: []*btapb.ModifyColumnFamiliesRequest_Modification{createFamily("b", &btapb.ColumnFamily{})},
	})
	wantCode(t, err, codes.InvalidArgument)
	// Removing it causes a warning.
	_, err = e.updateTable(&btapb.Table{}, "row_key_schema")
	wantCode(t, err, codes.InvalidArgument)
	op, err := e.admin.UpdateTable(e.ctx(), &btapb.UpdateTableRequest{Table: &btapb.Table{Name: testTable}, UpdateMask: mask("row_key_schema"), IgnoreWarnings: true})
	if got := response[*btapb.Table](e, op, err); got.GetRowKeySchema() != nil {
		t.Errorf("got %v", got)
	}
}

// TestTrap58_Settings creates a table with everything that can be set.
func TestTrap58_Settings(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	in := withBackupPolicy(&btapb.Table_AutomatedBackupPolicy{RetentionPeriod: days(7), Frequency: days(1)})
	in.ColumnFamilies = map[string]*btapb.ColumnFamily{"f": {GcRule: maxVersions(1)}}
	in.Granularity = btapb.Table_MICROS
	in.ChangeStreamConfig = &btapb.ChangeStreamConfig{RetentionPeriod: days(7)}
	in.RowKeySchema = keySchema(delimited("#"), "a")
	in.DeletionProtection = true
	want := proto.CloneOf(in)
	want.Name, want.EffectiveAutomatedBackupPolicy = testTable, in.GetAutomatedBackupPolicy()
	created, err := e.admin.CreateTable(e.ctx(), &btapb.CreateTableRequest{Parent: testInstance, TableId: "t", Table: in})
	if err != nil {
		t.Fatal(err)
	}
	wantProto(t, created, want)
	for view, fields := range map[btapb.Table_View]bool{btapb.Table_SCHEMA_VIEW: true, btapb.Table_FULL: true, btapb.Table_NAME_ONLY: false, btapb.Table_REPLICATION_VIEW: false} {
		got, err := e.admin.GetTable(e.ctx(), &btapb.GetTableRequest{Name: testTable, View: view})
		if err != nil || (got.GetChangeStreamConfig() != nil) != fields || (got.GetRowKeySchema() != nil) != fields || got.GetDeletionProtection() != fields {
			t.Errorf("%v: got %v, %v", view, got, err)
		}
	}
}

// TestTrap60_ClusterStates gets a table with the views that list its clusters.
func TestTrap60_ClusterStates(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	key, other := nodes("l-2", 1), nodes("m-1", 1)
	key.EncryptionConfig = &btapb.Cluster_EncryptionConfig{KmsKeyName: "projects/p/locations/l/keyRings/r/cryptoKeys/k"}
	other.EncryptionConfig = &btapb.Cluster_EncryptionConfig{KmsKeyName: "projects/p/locations/m/keyRings/r/cryptoKeys/k"}
	e.mustCreateInstance("i", other, key)
	e.mustCreateInstance("plain", nodes("z1", 1))
	e.createTable("t")
	if _, err := e.admin.CreateTable(e.ctx(), &btapb.CreateTableRequest{Parent: "projects/p/instances/plain", TableId: "t"}); err != nil {
		t.Fatal(err)
	}
	ready := btapb.Table_ClusterState_READY
	google := []*btapb.EncryptionInfo{{EncryptionType: btapb.EncryptionInfo_GOOGLE_DEFAULT_ENCRYPTION}}
	got, err := e.admin.GetTable(e.ctx(), &btapb.GetTableRequest{Name: testTable, View: btapb.Table_REPLICATION_VIEW})
	if err != nil {
		t.Fatal(err)
	}
	wantProto(t, got, &btapb.Table{Name: testTable, ClusterStates: map[string]*btapb.Table_ClusterState{"c1": {ReplicationState: ready}, "c2": {ReplicationState: ready}}})
	list, err := e.admin.ListTables(e.ctx(), &btapb.ListTablesRequest{Parent: testInstance, View: btapb.Table_REPLICATION_VIEW})
	if err != nil || len(list.GetTables()) != 1 {
		t.Fatal(list, err)
	}
	wantProto(t, list.GetTables()[0], got)
	for _, view := range []btapb.Table_View{btapb.Table_ENCRYPTION_VIEW, btapb.Table_FULL} {
		got, err := e.admin.GetTable(e.ctx(), &btapb.GetTableRequest{Name: testTable, View: view})
		if err != nil {
			t.Fatal(err)
		}
		plain, err := e.admin.GetTable(e.ctx(), &btapb.GetTableRequest{Name: "projects/p/instances/plain/tables/t", View: view})
		if err != nil {
			t.Fatal(err)
		}
		c1, c2 := plain.GetClusterStates()["c1"], got.GetClusterStates()["c2"]
		wantProto(t, &btapb.Table_ClusterState{EncryptionInfo: c1.GetEncryptionInfo()}, &btapb.Table_ClusterState{EncryptionInfo: google})
		if len(c2.GetEncryptionInfo()) != 1 || c2.GetEncryptionInfo()[0].GetEncryptionType() != btapb.EncryptionInfo_CUSTOMER_MANAGED_ENCRYPTION ||
			!strings.HasPrefix(c2.GetEncryptionInfo()[0].GetKmsKeyVersion(), key.GetEncryptionConfig().GetKmsKeyName()+"/") {
			t.Errorf("%v: got %v", view, c2)
		}
	}
}

func TestTrap62_Operations(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := newEnvWith(t, Options{}, engine.Options{Dir: dir})
	e.createTable("t", "f")
	for range 3 {
		if _, err := e.updateTable(&btapb.Table{DeletionProtection: true}, "deletion_protection"); err != nil {
			t.Fatal(err)
		}
	}
	e.mustCreateInstance("other", nodes("z", 1))
	e = e.restart(dir)
	list := func(name string, size int32) (ops []*longrunningpb.Operation) {
		t.Helper()
		req := &longrunningpb.ListOperationsRequest{Name: name, PageSize: size}
		for {
			resp, err := e.operations().ListOperations(e.ctx(), req)
			if err != nil {
				t.Fatal(err)
			}
			ops = append(ops, resp.GetOperations()...)
			if req.PageToken = resp.GetNextPageToken(); req.GetPageToken() == "" {
				return ops
			}
		}
	}
	for name, want := range map[string]int{
		"operations": 4, "operations/projects/p": 4, "operations/" + testInstance: 3,
		"operations/projects/p/instances/other": 1, "operations/projects/p2": 0, "operations/projects/p/instances/oth": 0,
	} {
		for _, size := range []int32{0, 1, 2} {
			if got := list(name, size); len(got) != want {
				t.Errorf("%s: %d operations, want %d", name, len(got), want)
			}
		}
	}
	op := list("operations/"+testInstance, 0)[1]
	got, err := e.operations().WaitOperation(e.ctx(), &longrunningpb.WaitOperationRequest{Name: op.GetName(), Timeout: durationpb.New(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	wantProto(t, got, op)
	_, err = e.operations().CancelOperation(e.ctx(), &longrunningpb.CancelOperationRequest{Name: op.GetName()})
	wantCode(t, err, codes.OK)
	response[*btapb.Table](e, op, nil) // unchanged

	_, err = e.operations().DeleteOperation(e.ctx(), &longrunningpb.DeleteOperationRequest{Name: op.GetName()})
	wantCode(t, err, codes.OK)
	for _, name := range []string{op.GetName(), "operations/projects/p/instances/wrong/operations/1", "operations/projects/p/instances/i/operations/x", "operations/projects/p/instances/i/operations/99"} {
		_, err := e.operations().GetOperation(e.ctx(), &longrunningpb.GetOperationRequest{Name: name})
		wantCode(t, err, codes.NotFound)
		_, err = e.operations().DeleteOperation(e.ctx(), &longrunningpb.DeleteOperationRequest{Name: name})
		wantCode(t, err, codes.NotFound)
		_, err = e.operations().CancelOperation(e.ctx(), &longrunningpb.CancelOperationRequest{Name: name})
		wantCode(t, err, codes.NotFound)
	}
	_, err = e.operations().GetOperation(e.ctx(), &longrunningpb.GetOperationRequest{})
	wantCode(t, err, codes.InvalidArgument)
	_, err = e.operations().ListOperations(e.ctx(), &longrunningpb.ListOperationsRequest{Name: "operations", Filter: "done=true"})
	wantCode(t, err, codes.InvalidArgument)
	_, err = e.operations().WaitOperation(e.ctx(), &longrunningpb.WaitOperationRequest{Name: op.GetName(), Timeout: durationpb.New(-1)})
	wantCode(t, err, codes.InvalidArgument)
	// Numbers are not reused.
	last := list("operations", 0)
	if _, err := e.operations().DeleteOperation(e.ctx(), &longrunningpb.DeleteOperationRequest{Name: last[len(last)-1].GetName()}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.updateTable(&btapb.Table{}, "deletion_protection"); err != nil {
		t.Fatal(err)
	}
	if got := list("operations/"+testInstance, 0); !strings.HasSuffix(got[len(got)-1].GetName(), "/operations/5") {
		t.Errorf("the newest operation is %s", got[len(got)-1].GetName())
	}
}

func TestTrap63_ConsistencyTokens(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := newEnvWith(t, Options{}, engine.Options{Dir: dir})
	e.createTable("t")
	e.createTable("u")
	token := func(id string) string {
		t.Helper()
		resp, err := e.admin.GenerateConsistencyToken(e.ctx(), &btapb.GenerateConsistencyTokenRequest{Name: testInstance + "/tables/" + id})
		if err != nil {
			t.Fatal(err)
		}
		return resp.GetConsistencyToken()
	}
	check := func(id, token string) error {
		resp, err := e.admin.CheckConsistency(e.ctx(), &btapb.CheckConsistencyRequest{
			Name: testInstance + "/tables/" + id, ConsistencyToken: token,
			Mode: &btapb.CheckConsistencyRequest_DataBoostReadLocalWrites{DataBoostReadLocalWrites: &btapb.DataBoostReadLocalWrites{}},
		})
		if err == nil && !resp.GetConsistent() {
			t.Error("a token is not consistent")
		}
		return err
	}
	ofT := token("t")
	wantCode(t, check("t", ofT), codes.OK)
	wantCode(t, check("u", ofT), codes.InvalidArgument)
	wantCode(t, check("nope", ofT), codes.NotFound)
	for _, bad := range []string{"", "x", ofT + "A", ofT[1:], strings.ToLower(ofT) + "="} {
		wantCode(t, check("t", bad), codes.InvalidArgument)
	}
	_, err := e.admin.GenerateConsistencyToken(e.ctx(), &btapb.GenerateConsistencyTokenRequest{Name: testTable + "x"})
	wantCode(t, err, codes.NotFound)
	e = e.restart(dir)
	wantCode(t, check("t", ofT), codes.OK)
	// A new table of the same name is a different table.
	if _, err := e.admin.DeleteTable(e.ctx(), &btapb.DeleteTableRequest{Name: testTable}); err != nil {
		t.Fatal(err)
	}
	e.createTable("t")
	wantCode(t, check("t", ofT), codes.InvalidArgument)
	// 90 days.
	ofU := token("u")
	e.clock.Advance(90 * 24 * time.Hour)
	wantCode(t, check("u", ofU), codes.OK)
	e.clock.Advance(time.Microsecond)
	wantCode(t, check("u", ofU), codes.InvalidArgument)
}

// TestTrap64_AdminRacesData interleaves every RPC that administers a table with data requests.
// None may deadlock or race.
func TestTrap64_AdminRacesData(t *testing.T) {
	t.Parallel()
	var called sync.Map // by method name
	e := newEnvWith(t, Options{UnaryInterceptor: func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		called.Store(strings.TrimPrefix(info.FullMethod, "/google.bigtable.admin.v2."), true)
		return handler(ctx, req)
	}}, engine.Options{})
	e.mustCreateInstance("i", nodes("z", 1), nodes("z2", 1))
	e.createTable("t", "f")
	rounds := 20
	if long.Enabled() && !race.Enabled {
		rounds = 100
	}
	ctx := e.ctx()
	instances, operations := e.instances(), e.operations()
	modify := func(mods ...*btapb.ModifyColumnFamiliesRequest_Modification) error {
		_, err := e.admin.ModifyColumnFamilies(ctx, &btapb.ModifyColumnFamiliesRequest{Name: testTable, Modifications: mods})
		return err
	}
	calls := map[string]func(i int) error{
		"UpdateTable": func(i int) error {
			op, err := e.admin.UpdateTable(ctx, &btapb.UpdateTableRequest{Table: &btapb.Table{Name: testTable, DeletionProtection: i%4 == 0}, UpdateMask: mask("deletion_protection")})
			if err == nil {
				_, err = operations.GetOperation(ctx, &longrunningpb.GetOperationRequest{Name: op.GetName()})
			}
			return err
		},
		"ModifyColumnFamilies": func(int) error {
			return modify(createFamily("g", &btapb.ColumnFamily{}), updateFamily("f", &btapb.ColumnFamily{GcRule: maxVersions(1)}), dropFamily("g"))
		},
		"DropRowRange": func(i int) error {
			_, err := e.admin.DropRowRange(ctx, &btapb.DropRowRangeRequest{Name: testTable, Target: &btapb.DropRowRangeRequest_RowKeyPrefix{RowKeyPrefix: fmt.Appendf(nil, "r%d", i%8)}})
			return err
		},
		"DeleteTable": func(i int) error {
			if i%5 != 0 {
				return nil
			}
			_, deleted := e.admin.DeleteTable(ctx, &btapb.DeleteTableRequest{Name: testTable})
			if i%2 == 0 {
				_, err := e.admin.UndeleteTable(ctx, &btapb.UndeleteTableRequest{Name: testTable})
				return cmp.Or(deleted, err)
			}
			_, err := e.admin.CreateTable(ctx, &btapb.CreateTableRequest{Parent: testInstance, TableId: "t", Table: &btapb.Table{ColumnFamilies: map[string]*btapb.ColumnFamily{"f": {}}}})
			return cmp.Or(deleted, err)
		},
		"GetTable": func(int) error {
			_, err := e.admin.GetTable(ctx, &btapb.GetTableRequest{Name: testTable, View: btapb.Table_FULL})
			return err
		},
		"ListTables": func(int) error {
			_, err := e.admin.ListTables(ctx, &btapb.ListTablesRequest{Parent: testInstance, View: btapb.Table_REPLICATION_VIEW})
			return err
		},
		"consistency": func(int) error {
			resp, made := e.admin.GenerateConsistencyToken(ctx, &btapb.GenerateConsistencyTokenRequest{Name: testTable})
			_, err := e.admin.CheckConsistency(ctx, &btapb.CheckConsistencyRequest{Name: testTable, ConsistencyToken: resp.GetConsistencyToken()})
			if status.Code(err) == codes.InvalidArgument {
				err = nil // the table was missing, or was replaced
			}
			return cmp.Or(made, err)
		},
		"policy": func(int) error {
			_, set := e.admin.SetIamPolicy(ctx, &iampb.SetIamPolicyRequest{Resource: testTable, Policy: &iampb.Policy{}})
			_, get := e.admin.GetIamPolicy(ctx, &iampb.GetIamPolicyRequest{Resource: testTable})
			_, test := e.admin.TestIamPermissions(ctx, &iampb.TestIamPermissionsRequest{Resource: testTable, Permissions: []string{"bigtable.tables.readRows"}})
			return cmp.Or(set, get, test)
		},
		"policy of the instance": func(int) error {
			_, set := instances.SetIamPolicy(ctx, &iampb.SetIamPolicyRequest{Resource: testInstance, Policy: &iampb.Policy{}})
			_, get := instances.GetIamPolicy(ctx, &iampb.GetIamPolicyRequest{Resource: testInstance})
			_, test := instances.TestIamPermissions(ctx, &iampb.TestIamPermissionsRequest{Resource: testInstance, Permissions: []string{"bigtable.instances.get"}})
			return cmp.Or(set, get, test)
		},
		"backups":   func(i int) error { return e.raceBackups(ctx, i) },
		"snapshots": func(i int) error { return e.raceSnapshots(ctx, i) },
		"clusters": func(i int) error {
			_, err := instances.UpdateCluster(ctx, &btapb.Cluster{Name: testInstance + "/clusters/c1", ServeNodes: int32(i%9 + 1)})
			return err
		},
		"profiles": func(i int) error {
			id := fmt.Sprintf("p%d", i)
			if _, err := instances.CreateAppProfile(ctx, &btapb.CreateAppProfileRequest{Parent: testInstance, AppProfileId: id, AppProfile: singleCluster("c1", true)}); err != nil {
				return err
			}
			_, err := instances.DeleteAppProfile(ctx, &btapb.DeleteAppProfileRequest{Name: testInstance + "/appProfiles/" + id, IgnoreWarnings: true})
			return err
		},
		"bundles": func(i int) error {
			id := fmt.Sprintf("s%d", i%2)
			name := testTable + "/schemaBundles/" + id
			_, created := e.admin.CreateSchemaBundle(ctx, &btapb.CreateSchemaBundleRequest{Parent: testTable, SchemaBundleId: id, SchemaBundle: avroBundle(`"int"`)})
			updated := avroBundle(`"long"`)
			updated.Name = name
			_, changed := e.admin.UpdateSchemaBundle(ctx, &btapb.UpdateSchemaBundleRequest{SchemaBundle: updated})
			_, got := e.admin.GetSchemaBundle(ctx, &btapb.GetSchemaBundleRequest{Name: name})
			_, listed := e.admin.ListSchemaBundles(ctx, &btapb.ListSchemaBundlesRequest{Parent: testTable})
			_, deleted := e.admin.DeleteSchemaBundle(ctx, &btapb.DeleteSchemaBundleRequest{Name: name})
			for _, err := range []error{created, changed, got, listed, deleted} {
				if code := status.Code(err); code != codes.NotFound && code != codes.AlreadyExists && err != nil {
					return err
				}
			}
			return nil
		},
		"views": func(i int) error {
			id := fmt.Sprintf("v%d", i%2)
			name := testTable + "/authorizedViews/" + id
			_, created := e.admin.CreateAuthorizedView(ctx, &btapb.CreateAuthorizedViewRequest{Parent: testTable, AuthorizedViewId: id, AuthorizedView: viewOf(subset([]string{""}, columns("f", "", "")))})
			_, updated := e.admin.UpdateAuthorizedView(ctx, &btapb.UpdateAuthorizedViewRequest{AuthorizedView: &btapb.AuthorizedView{Name: name, DeletionProtection: i%4 == 0}, UpdateMask: mask("deletion_protection")})
			_, got := e.admin.GetAuthorizedView(ctx, &btapb.GetAuthorizedViewRequest{Name: name})
			_, listed := e.admin.ListAuthorizedViews(ctx, &btapb.ListAuthorizedViewsRequest{Parent: testTable})
			_, wrote := e.data.MutateRow(ctx, &btpb.MutateRowRequest{AuthorizedViewName: name, RowKey: fmt.Appendf(nil, "r%d", i%16), Mutations: []*btpb.Mutation{set("f", "q", 0, "v")}})
			_, deleted := e.admin.DeleteAuthorizedView(ctx, &btapb.DeleteAuthorizedViewRequest{Name: name})
			for _, err := range []error{created, updated, got, listed, wrote, deleted} {
				if code := status.Code(err); code != codes.NotFound && code != codes.AlreadyExists && code != codes.FailedPrecondition && err != nil {
					return err
				}
			}
			return nil
		},
		"GC": func(int) error { _, err := e.srv.RunGC(ctx); return err },
		"MutateRow": func(i int) error {
			_, err := e.data.MutateRow(ctx, &btpb.MutateRowRequest{TableName: testTable, RowKey: fmt.Appendf(nil, "r%d", i%16), Mutations: []*btpb.Mutation{set("f", "q", 0, "v")}})
			return err
		},
		"CheckAndMutateRow": func(i int) error {
			_, err := e.data.CheckAndMutateRow(ctx, &btpb.CheckAndMutateRowRequest{TableName: testTable, AppProfileId: fmt.Sprintf("p%d", i), RowKey: fmt.Appendf(nil, "r%d", i%16), TrueMutations: []*btpb.Mutation{deleteRow()}, FalseMutations: []*btpb.Mutation{set("f", "q", 0, "v")}})
			return err
		},
		"ReadRows": func(int) error {
			stream, err := e.data.ReadRows(ctx, &btpb.ReadRowsRequest{TableName: testTable})
			for err == nil {
				_, err = stream.Recv()
			}
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return err
		},
	}
	var group sync.WaitGroup
	for name, call := range calls {
		for range 2 {
			group.Go(func() {
				for i := range rounds {
					// The table is created, deleted, protected and unprotected.
					allowed := []codes.Code{codes.OK, codes.NotFound, codes.AlreadyExists, codes.FailedPrecondition}
					if err := call(i); !slices.Contains(allowed, status.Code(err)) {
						t.Errorf("%s: %v", name, err)
						return
					}
				}
			})
		}
	}
	group.Wait()
	for _, f := range Support() {
		if _, ok := called.Load(f.Group + "/" + f.Name); !ok && f.Group == "BigtableTableAdmin" && f.Status == Served {
			t.Errorf("%s is not among the calls", f.Name)
		}
	}
}

func TestTrap65_TokensRaceCreateTable(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	var group sync.WaitGroup
	for w := range 8 {
		group.Go(func() {
			for i := range 20 {
				id := fmt.Sprintf("t%d-%d", w, i)
				_, err := e.admin.CreateTable(e.ctx(), &btapb.CreateTableRequest{Parent: testInstance, TableId: id})
				wantCode(t, err, codes.OK)
				_, err = e.admin.GenerateConsistencyToken(e.ctx(), &btapb.GenerateConsistencyTokenRequest{Name: testInstance + "/tables/" + id})
				wantCode(t, err, codes.OK)
				// All create one name: one call succeeds.
				_, err = e.admin.CreateTable(e.ctx(), &btapb.CreateTableRequest{Parent: testInstance, TableId: "all"})
				wantCode(t, err, codes.OK, codes.AlreadyExists)
			}
		})
	}
	group.Wait()
	list, err := e.admin.ListTables(e.ctx(), &btapb.ListTablesRequest{Parent: testInstance})
	if err != nil || len(list.GetTables()) != 161 {
		t.Errorf("%d tables, %v", len(list.GetTables()), err)
	}
}

func TestUndeleteTable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := newEnvWith(t, Options{}, engine.Options{Dir: dir})
	e.createTable("t", "f")
	e.mustMutate("r", set("f", "q", 0, "kept"))
	policy, err := e.admin.SetIamPolicy(e.ctx(), &iampb.SetIamPolicyRequest{Resource: testTable, Policy: &iampb.Policy{Bindings: []*iampb.Binding{{Role: "roles/viewer", Members: []string{"allUsers"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	undelete := func() (*longrunningpb.Operation, error) {
		return e.admin.UndeleteTable(e.ctx(), &btapb.UndeleteTableRequest{Name: testTable})
	}
	del := func() {
		t.Helper()
		if _, err := e.admin.DeleteTable(e.ctx(), &btapb.DeleteTableRequest{Name: testTable}); err != nil {
			t.Fatal(err)
		}
	}
	_, err = undelete()
	wantCode(t, err, codes.AlreadyExists)
	del()
	e = e.restart(dir)
	op, err := undelete()
	if got := response[*btapb.Table](e, op, err); got.GetName() != testTable || got.GetColumnFamilies()["f"] == nil {
		t.Errorf("got %v", got)
	}
	meta, err := op.GetMetadata().UnmarshalNew()
	if m, ok := meta.(*btapb.UndeleteTableMetadata); err != nil || !ok || m.GetName() != testTable {
		t.Errorf("metadata: %v, %v", meta, err)
	}
	e.wantCells(nil, "r f:q@0=kept")
	got, err := e.admin.GetIamPolicy(e.ctx(), &iampb.GetIamPolicyRequest{Resource: testTable})
	if err != nil {
		t.Fatal(err)
	}
	wantProto(t, got, policy)
	// A new table of the same name inherits nothing.
	del()
	e.createTable("t")
	got, err = e.admin.GetIamPolicy(e.ctx(), &iampb.GetIamPolicyRequest{Resource: testTable})
	if err != nil || len(got.GetBindings()) != 0 {
		t.Errorf("got %v, %v", got, err)
	}
	del()
	// Seven days.
	e.clock.Advance(7*24*time.Hour + 1)
	_, err = undelete()
	wantCode(t, err, codes.NotFound)
	_, err = e.admin.UndeleteTable(e.ctx(), &btapb.UndeleteTableRequest{})
	wantCode(t, err, codes.InvalidArgument)
}
