package emu

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"cloud.google.com/go/iam/apiv1/iampb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tabletop-emu/tabletop/emu/internal/admin"
	"github.com/tabletop-emu/tabletop/emu/internal/limits"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/engine"
)

const testCluster = testInstance + "/clusters/c"

// in returns the time after a duration.
func (e *env) in(d time.Duration) *timestamppb.Timestamp {
	return timestamppb.New(e.clock.Now().Add(d))
}

// tryBackup creates a backup of table t that expires in 8 hours, with a change.
func (e *env) tryBackup(id string, change func(*btapb.CreateBackupRequest)) error {
	req := &btapb.CreateBackupRequest{Parent: testCluster, BackupId: id, Backup: &btapb.Backup{SourceTable: testTable, ExpireTime: e.in(8 * time.Hour)}}
	if change != nil {
		change(req)
	}
	_, err := e.admin.CreateBackup(e.ctx(), req)
	return err
}

func (e *env) backup(id string, change func(*btapb.CreateBackupRequest)) string {
	e.t.Helper()
	if err := e.tryBackup(id, change); err != nil {
		e.t.Fatal(err)
	}
	return testCluster + "/backups/" + id
}

func hot(req *btapb.CreateBackupRequest) { req.Backup.BackupType = btapb.Backup_HOT }

func (e *env) getBackup(name string) *btapb.Backup {
	e.t.Helper()
	b, err := e.admin.GetBackup(e.ctx(), &btapb.GetBackupRequest{Name: name})
	if err != nil {
		e.t.Fatal(err)
	}
	return b
}

func (e *env) updateBackup(b *btapb.Backup, paths ...string) (*btapb.Backup, error) {
	return e.admin.UpdateBackup(e.ctx(), &btapb.UpdateBackupRequest{Backup: b, UpdateMask: mask(paths...)})
}

func (e *env) copyBackup(from, parent, id string) error {
	_, err := e.admin.CopyBackup(e.ctx(), &btapb.CopyBackupRequest{Parent: parent, BackupId: id, SourceBackup: from, ExpireTime: e.in(48 * time.Hour)})
	return err
}

// restore restores to another table of the instance and returns the operation's metadata.
func (e *env) restore(parent, backup, id string) (*btapb.RestoreTableMetadata, error) {
	e.t.Helper()
	op, err := e.admin.RestoreTable(e.ctx(), &btapb.RestoreTableRequest{Parent: parent, TableId: id, Source: &btapb.RestoreTableRequest_Backup{Backup: backup}})
	if err != nil {
		return nil, err
	}
	m := &btapb.RestoreTableMetadata{}
	if err := op.GetMetadata().UnmarshalTo(m); err != nil {
		e.t.Fatal(err)
	}
	return m, nil
}

func (e *env) mustRestore(backup, id string) {
	e.t.Helper()
	if _, err := e.restore(testInstance, backup, id); err != nil {
		e.t.Fatal(err)
	}
}

// rowsOf returns the text of a table's rows.
func (e *env) rowsOf(id string) string {
	e.t.Helper()
	return e.mustRead(&btpb.ReadRowsRequest{TableName: testInstance + "/tables/" + id}).text()
}

// listBackups returns the ids of the backups in a list.
func (e *env) listBackups(req *btapb.ListBackupsRequest) ([]string, error) {
	if req.Parent == "" {
		req.Parent = testCluster
	}
	var ids []string
	for {
		resp, err := e.admin.ListBackups(e.ctx(), req)
		if err != nil {
			return ids, err
		}
		for _, b := range resp.GetBackups() {
			ids = append(ids, resname.Last(b.GetName()))
		}
		if req.PageToken = resp.GetNextPageToken(); req.PageToken == "" {
			return ids, nil
		}
	}
}

func (e *env) wantBackups(req *btapb.ListBackupsRequest, want ...string) {
	e.t.Helper()
	if got, err := e.listBackups(req); err != nil || !slices.Equal(got, want) {
		e.t.Errorf("%v: %v, %v, want %v", req, got, err, want)
	}
}

func TestTrap68_RestoreOfADeletedTable(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	e.mustMutate("r", set("f", "q", 1000, "v"))
	want := e.rowsOf("t")
	b := e.backup("b", nil)
	e.mustMutate("r", set("f", "q", 2000, "later"))
	if _, err := e.admin.DeleteTable(e.ctx(), &btapb.DeleteTableRequest{Name: testTable}); err != nil {
		t.Fatal(err)
	}
	e.mustRestore(b, "t2")
	if got := e.rowsOf("t2"); got != want {
		t.Errorf("restored\n%swant\n%s", got, want)
	}
}

func TestTrap73_HotBackupAfterItsExpiry(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	name := e.backup("b", func(req *btapb.CreateBackupRequest) {
		hot(req)
		req.Backup.HotToStandardTime = e.in(48 * time.Hour)
	})
	later := e.in(5 * 24 * time.Hour)
	b, err := e.updateBackup(&btapb.Backup{Name: name, HotToStandardTime: later}, "hot_to_standard_time")
	if err != nil || !proto.Equal(b.GetHotToStandardTime(), later) {
		t.Errorf("%v, %v", b, err)
	}
	b, err = e.updateBackup(&btapb.Backup{Name: name}, "hot_to_standard_time")
	if err != nil || b.GetHotToStandardTime() != nil || b.GetBackupType() != btapb.Backup_HOT {
		t.Errorf("%v, %v", b, err)
	}
	// After that time the backup becomes a standard one.
	name = e.backup("b2", func(req *btapb.CreateBackupRequest) {
		hot(req)
		req.Backup.HotToStandardTime, req.Backup.ExpireTime = e.in(24*time.Hour), e.in(72*time.Hour)
	})
	e.clock.Advance(24 * time.Hour)
	if b := e.getBackup(name); b.GetBackupType() != btapb.Backup_STANDARD || b.GetHotToStandardTime() != nil {
		t.Errorf("%v", b)
	}
}

func TestTrap74_LeastTimesFromBeforeTheCall(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	expire, standard := e.in(6*time.Hour), e.in(24*time.Hour)
	e.clock.Advance(30 * time.Second)
	e.backup("b", func(req *btapb.CreateBackupRequest) {
		hot(req)
		req.Backup.ExpireTime, req.Backup.HotToStandardTime = expire, standard
	})
	e.clock.Advance(time.Minute)
	wantCode(t, e.tryBackup("b2", func(req *btapb.CreateBackupRequest) { req.Backup.ExpireTime = expire }), codes.InvalidArgument)
	wantCode(t, e.tryBackup("b2", func(req *btapb.CreateBackupRequest) {
		hot(req)
		req.Backup.HotToStandardTime = standard
	}), codes.InvalidArgument)
}

func TestTrap75_SizeComesLater(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	e.mustMutate("r", set("f", "q", 1000, big(10<<10)))
	name := e.backup("b", nil)
	if n := e.getBackup(name).GetSizeBytes(); n != 0 {
		t.Errorf("%d bytes, want 0", n)
	}
	e.clock.Advance(time.Minute)
	if n := e.getBackup(name).GetSizeBytes(); n < 10<<10 || n > 11<<10 {
		t.Errorf("%d bytes, want some 10 KiB", n)
	}
}

func TestTrap76_EndTimeWhileCreating(t *testing.T) {
	t.Parallel()
	stored := &btapb.Backup{StartTime: timestamppb.New(start), EndTime: timestamppb.New(start.Add(time.Hour)), SizeBytes: 5}
	b := admin.BackupAt(stored, start)
	if b.GetState() != btapb.Backup_CREATING || !proto.Equal(b.GetEndTime(), stored.GetStartTime()) || b.GetSizeBytes() != 0 {
		t.Errorf("%v", b)
	}
	if b := admin.BackupAt(stored, start.Add(time.Hour)); b.GetState() != btapb.Backup_READY || !proto.Equal(b.GetEndTime(), stored.GetEndTime()) {
		t.Errorf("%v", b)
	}
}

// newBackups creates backup a of table t, and b and c of table u, a second apart.
func newBackups(t *testing.T) *env {
	t.Helper()
	e := newTable(t, "f")
	e.createTable("u", "f")
	for _, id := range []string{"a", "b", "c"} {
		e.backup(id, func(req *btapb.CreateBackupRequest) {
			if id != "a" {
				req.Backup.SourceTable = testInstance + "/tables/u"
			}
			req.Parent = testInstance + "/clusters/" + map[string]string{"a": "c", "b": "c", "c": "d"}[id]
		})
		e.clock.Advance(time.Second)
	}
	return e
}

func TestTrap77_FiltersOfBackups(t *testing.T) {
	t.Parallel()
	e := newBackups(t)
	all := testInstance + "/clusters/-"
	e.wantBackups(&btapb.ListBackupsRequest{Parent: all, Filter: "source_table:" + testTable}, "a")
	e.wantBackups(&btapb.ListBackupsRequest{Parent: all, Filter: "(source_table:" + testInstance + "/tables/u) AND (name:/backups/b)"}, "b")
	e.wantBackups(&btapb.ListBackupsRequest{Parent: all, Filter: `name:"b"`})
	e.wantBackups(&btapb.ListBackupsRequest{Parent: all, Filter: "name:backups/b OR name:backups/c"}, "c", "b")
	e.wantBackups(&btapb.ListBackupsRequest{Parent: all, Filter: "state:ready NOT name:backups/b"}, "c", "a")
	e.wantBackups(&btapb.ListBackupsRequest{Parent: all, Filter: fmt.Sprintf("start_time > %q", start.UTC().Format(time.RFC3339))}, "c", "b")
	_, err := e.listBackups(&btapb.ListBackupsRequest{Filter: "nothing"})
	wantCode(t, err, codes.InvalidArgument)
}

func TestTrap78_PageSizes(t *testing.T) {
	t.Parallel()
	e := newBackups(t)
	for _, size := range []int32{-1, 0, 1} {
		e.wantBackups(&btapb.ListBackupsRequest{Parent: testInstance + "/clusters/-", PageSize: size}, "c", "b", "a")
	}
	resp, err := e.admin.ListBackups(e.ctx(), &btapb.ListBackupsRequest{Parent: testCluster, PageSize: 1})
	if err != nil || resp.GetNextPageToken() == "" {
		t.Fatal(resp, err)
	}
	for _, req := range []*btapb.ListBackupsRequest{
		{Parent: testCluster, PageToken: resp.GetNextPageToken(), OrderBy: "name"},
		{Parent: testInstance + "/clusters/d", PageToken: resp.GetNextPageToken()},
		{Parent: testCluster, PageToken: "?"},
	} {
		_, err := e.admin.ListBackups(e.ctx(), req)
		wantCode(t, err, codes.InvalidArgument)
	}
}

func TestTrap79_OrdersOfBackups(t *testing.T) {
	t.Parallel()
	e := newBackups(t)
	e.wantBackups(&btapb.ListBackupsRequest{}, "b", "a")
	e.wantBackups(&btapb.ListBackupsRequest{OrderBy: "size_bytes desc, name"}, "a", "b")
	e.wantBackups(&btapb.ListBackupsRequest{OrderBy: "  source_table   desc ,name ", PageSize: 1}, "b", "a")
	_, err := e.listBackups(&btapb.ListBackupsRequest{OrderBy: "nothing"})
	wantCode(t, err, codes.InvalidArgument)
}

func TestTrap80_MasksOfUpdateBackup(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	name := e.backup("b", hot)
	expire, standard := e.in(10*time.Hour), e.in(30*time.Hour)
	b, err := e.updateBackup(&btapb.Backup{Name: name, ExpireTime: expire, HotToStandardTime: standard}, "expire_time", "hot_to_standard_time")
	if err != nil || !proto.Equal(b.GetExpireTime(), expire) || !proto.Equal(b.GetHotToStandardTime(), standard) {
		t.Errorf("%v, %v", b, err)
	}
	for _, paths := range [][]string{nil, {"source_table"}, {"*"}, {"expire_time.seconds"}} {
		_, err := e.updateBackup(&btapb.Backup{Name: name, ExpireTime: e.in(20 * time.Hour)}, paths...)
		wantCode(t, err, codes.InvalidArgument)
	}
	_, err = e.updateBackup(&btapb.Backup{Name: name}, "expire_time")
	wantCode(t, err, codes.InvalidArgument)
	plain := e.backup("plain", nil)
	before := e.getBackup(plain)
	_, err = e.updateBackup(&btapb.Backup{Name: plain, ExpireTime: expire, HotToStandardTime: standard}, "expire_time", "hot_to_standard_time")
	wantCode(t, err, codes.InvalidArgument)
	if after := e.getBackup(plain); !proto.Equal(before, after) {
		t.Errorf("a refused update made %v of %v", after, before)
	}
}

func TestTrap81_BoundsCountFromCreation(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	name := e.backup("b", func(req *btapb.CreateBackupRequest) { req.Backup.ExpireTime = e.in(90 * 24 * time.Hour) })
	wantCode(t, e.tryBackup("c", func(req *btapb.CreateBackupRequest) { req.Backup.ExpireTime = e.in(90*24*time.Hour + time.Second) }), codes.InvalidArgument)
	e.clock.Advance(89 * 24 * time.Hour)
	_, err := e.updateBackup(&btapb.Backup{Name: name, ExpireTime: e.in(48 * time.Hour)}, "expire_time")
	wantCode(t, err, codes.InvalidArgument)
	if _, err = e.updateBackup(&btapb.Backup{Name: name, ExpireTime: e.in(time.Hour)}, "expire_time"); err != nil {
		t.Error(err)
	}
	_, err = e.updateBackup(&btapb.Backup{Name: name, ExpireTime: e.in(-time.Hour)}, "expire_time")
	wantCode(t, err, codes.InvalidArgument)
}

func TestTrap82_CopiesAnywhere(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	name := e.backup("b", func(req *btapb.CreateBackupRequest) {
		hot(req)
		req.Backup.ExpireTime = e.in(72 * time.Hour)
	})
	for _, parent := range []string{testCluster, testInstance + "/clusters/d", "projects/p/instances/j/clusters/c", "projects/q/instances/i/clusters/c"} {
		op, err := e.admin.CopyBackup(e.ctx(), &btapb.CopyBackupRequest{Parent: parent, BackupId: "copy", SourceBackup: name, ExpireTime: e.in(6 * time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		m := &btapb.CopyBackupMetadata{}
		if err := op.GetMetadata().UnmarshalTo(m); err != nil || m.GetName() != parent+"/backups/copy" || m.GetSourceBackupInfo().GetBackup() != name || !op.GetDone() {
			t.Errorf("%v, %v", m, err)
		}
		if b := e.getBackup(parent + "/backups/copy"); b.GetSourceBackup() != name || b.GetSourceTable() != testTable || b.GetBackupType() != btapb.Backup_STANDARD {
			t.Errorf("%v", b)
		}
	}
	_, err := e.admin.CopyBackup(e.ctx(), &btapb.CopyBackupRequest{Parent: testCluster, BackupId: "long", SourceBackup: name, ExpireTime: e.in(31 * 24 * time.Hour)})
	wantCode(t, err, codes.InvalidArgument)
}

func TestTrap83_CopiesAreIndependent(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	e.mustMutate("r", set("f", "q", 1000, "v"))
	name := e.backup("b", func(req *btapb.CreateBackupRequest) { req.Backup.ExpireTime = e.in(72 * time.Hour) })
	const other = "projects/p/instances/j"
	if err := e.copyBackup(name, other+"/clusters/c", "copy"); err != nil {
		t.Fatal(err)
	}
	// Belief: copies, and backups that expire within a day, cannot be copied.
	wantBelief(t, "a copy of a copy", func() string {
		return status.Code(e.copyBackup(other+"/clusters/c/backups/copy", testCluster, "again")).String()
	}, "FailedPrecondition", "InvalidArgument")
	if _, err := e.admin.DeleteBackup(e.ctx(), &btapb.DeleteBackupRequest{Name: name}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.instances().DeleteInstance(e.ctx(), &btapb.DeleteInstanceRequest{Name: testInstance}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.restore(other, other+"/clusters/c/backups/copy", "t2"); err != nil {
		t.Fatal(err)
	}
	if got := e.mustRead(&btpb.ReadRowsRequest{TableName: other + "/tables/t2"}).text(); !strings.Contains(got, `f:q @1000 = "v"`) {
		t.Errorf("restored\n%s", got)
	}
}

func TestTrap84_RestoresAreIndependent(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	e.mustMutate("r", set("f", "q", 1000, "v"))
	want := e.rowsOf("t")
	name := e.backup("b", nil)
	e.mustMutate("r", set("f", "q", 1000, "later"))
	e.mustRestore(name, "t1")
	if _, err := e.admin.DropRowRange(e.ctx(), &btapb.DropRowRangeRequest{Name: testInstance + "/tables/t1", Target: &btapb.DropRowRangeRequest_DeleteAllDataFromTable{DeleteAllDataFromTable: true}}); err != nil {
		t.Fatal(err)
	}
	e.mustRestore(name, "t2")
	if got := e.rowsOf("t2"); got != want {
		t.Errorf("restored\n%swant\n%s", got, want)
	}
}

func TestTrap85_WhatIsRestored(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	table := withBackupPolicy(&btapb.Table_AutomatedBackupPolicy{RetentionPeriod: days(7)})
	table.Granularity, table.DeletionProtection = btapb.Table_MICROS, true
	sum := &btapb.Type{Kind: &btapb.Type_AggregateType{AggregateType: &btapb.Type_Aggregate{
		Aggregator: &btapb.Type_Aggregate_Sum_{Sum: &btapb.Type_Aggregate_Sum{}},
		InputType:  &btapb.Type{Kind: &btapb.Type_Int64Type{Int64Type: &btapb.Type_Int64{Encoding: &btapb.Type_Int64_Encoding{Encoding: &btapb.Type_Int64_Encoding_BigEndianBytes_{BigEndianBytes: &btapb.Type_Int64_Encoding_BigEndianBytes{}}}}}},
	}}}
	table.ColumnFamilies = map[string]*btapb.ColumnFamily{"f": {GcRule: maxVersions(1)}, "s": {ValueType: sum}}
	was, err := e.admin.CreateTable(e.ctx(), &btapb.CreateTableRequest{Parent: testInstance, TableId: "t", Table: table, InitialSplits: []*btapb.CreateTableRequest_Split{{Key: []byte("m")}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.admin.SetIamPolicy(e.ctx(), &iampb.SetIamPolicyRequest{Resource: testTable, Policy: &iampb.Policy{Version: 1}}); err != nil {
		t.Fatal(err)
	}
	name := e.backup("b", nil)
	e.mustRestore(name, "t2")
	e.clock.Advance(8 * time.Hour)
	got, err := e.admin.GetTable(e.ctx(), &btapb.GetTableRequest{Name: testInstance + "/tables/t2", View: btapb.Table_FULL})
	if err != nil {
		t.Fatal(err)
	}
	if got.GetGranularity() != btapb.Table_MICROS || !proto.Equal(got.GetColumnFamilies()["s"].GetValueType(), was.GetColumnFamilies()["s"].GetValueType()) {
		t.Errorf("restored: %v", got)
	}
	if got.GetRestoreInfo().GetBackupInfo().GetBackup() != name || got.GetRestoreInfo().GetSourceType() != btapb.RestoreSourceType_BACKUP {
		t.Errorf("restore_info: %v", got.GetRestoreInfo())
	}
	// Belief: the settings that are not restored.
	if got.GetDeletionProtection() || got.GetAutomatedBackupPolicy() != nil || got.GetColumnFamilies()["f"].GetGcRule().GetRule() != nil {
		t.Errorf("restored: %v", got)
	}
	p, err := e.admin.GetIamPolicy(e.ctx(), &iampb.GetIamPolicyRequest{Resource: got.GetName()})
	if err != nil || p.GetVersion() != 0 {
		t.Errorf("policy %v, %v", p, err)
	}
	samples, err := e.data.SampleRowKeys(e.ctx(), &btpb.SampleRowKeysRequest{TableName: got.GetName()})
	if err != nil {
		t.Fatal(err)
	}
	if first, err := samples.Recv(); err != nil || string(first.GetRowKey()) != "m" {
		t.Errorf("samples begin with %v, %v", first, err)
	}
}

func TestTrap86_OptimizeOperation(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	hdd := nodes("z", 1)
	hdd.DefaultStorageType = btapb.StorageType_HDD
	e.mustCreateInstance("hdd", hdd)
	e.mustCreateInstance("i", nodes("z", 1))
	e.createTable("t", "f")
	in1 := func(req *btapb.CreateBackupRequest) { req.Parent = testInstance + "/clusters/c1" }
	if err := e.tryBackup("b", in1); err != nil {
		t.Fatal(err)
	}
	name := testInstance + "/clusters/c1/backups/b"
	m, err := e.restore(testInstance, name, "t2")
	if err != nil {
		t.Fatal(err)
	}
	op, err := e.operations().GetOperation(e.ctx(), &longrunningpb.GetOperationRequest{Name: m.GetOptimizeTableOperationName()})
	if err != nil || !op.GetDone() || !op.GetMetadata().MessageIs(&btapb.OptimizeRestoredTableMetadata{}) {
		t.Errorf("%v, %v", op, err)
	}
	if m, err := e.restore("projects/p/instances/hdd", name, "t2"); err != nil || m.GetOptimizeTableOperationName() != "" {
		t.Errorf("%v, %v", m, err)
	}
	err = e.tryBackup("hot", func(req *btapb.CreateBackupRequest) {
		hot(req)
		req.Parent = "projects/p/instances/hdd/clusters/c1"
		req.Backup.SourceTable = "projects/p/instances/hdd/tables/t2"
	})
	wantCode(t, err, codes.InvalidArgument)
}

func TestTrap87_RestoreOntoANameThatWas(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	name := e.backup("b", nil)
	_, err := e.restore(testInstance, name, "t")
	wantCode(t, err, codes.AlreadyExists)
	if _, err := e.admin.DeleteTable(e.ctx(), &btapb.DeleteTableRequest{Name: testTable}); err != nil {
		t.Fatal(err)
	}
	e.mustRestore(name, "t")
	_, err = e.admin.UndeleteTable(e.ctx(), &btapb.UndeleteTableRequest{Name: testTable})
	wantCode(t, err, codes.AlreadyExists)
}

func TestTrap88_Expired(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	name := e.backup("b", nil)
	if _, err := e.admin.SetIamPolicy(e.ctx(), &iampb.SetIamPolicyRequest{Resource: name, Policy: &iampb.Policy{Version: 1}}); err != nil {
		t.Fatal(err)
	}
	if p, err := e.admin.TestIamPermissions(e.ctx(), &iampb.TestIamPermissionsRequest{Resource: name, Permissions: []string{"bigtable.backups.get"}}); err != nil || len(p.GetPermissions()) != 1 {
		t.Errorf("%v, %v", p, err)
	}
	e.clock.Advance(8*time.Hour - time.Second)
	e.getBackup(name)
	e.clock.Advance(time.Second)
	_, get := e.admin.GetBackup(e.ctx(), &btapb.GetBackupRequest{Name: name})
	_, update := e.updateBackup(&btapb.Backup{Name: name, ExpireTime: e.in(9 * time.Hour)}, "expire_time")
	_, restore := e.restore(testInstance, name, "t2")
	_, policy := e.admin.GetIamPolicy(e.ctx(), &iampb.GetIamPolicyRequest{Resource: name})
	_, deleted := e.admin.DeleteBackup(e.ctx(), &btapb.DeleteBackupRequest{Name: name})
	for _, err := range []error{get, update, restore, policy, deleted, e.copyBackup(name, testCluster, "copy")} {
		wantCode(t, err, codes.NotFound)
	}
	e.wantBackups(&btapb.ListBackupsRequest{})
	if _, err := e.srv.RunGC(e.ctx()); err != nil {
		t.Fatal(err)
	}
	if n := len(e.db.Backups().List("")); n != 0 {
		t.Errorf("%d backups are kept after a collection", n)
	}
	e.backup("b", nil) // the name is available
	if p, err := e.admin.GetIamPolicy(e.ctx(), &iampb.GetIamPolicyRequest{Resource: name}); err != nil || p.GetVersion() != 0 {
		t.Errorf("the policy of a backup that was: %v, %v", p, err)
	}
}

func TestTrap90_PolicyOfAutomatedBackups(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	update := func(p *btapb.Table_AutomatedBackupPolicy, paths ...string) error {
		table := withBackupPolicy(p)
		table.Name = testTable
		_, err := e.admin.UpdateTable(e.ctx(), &btapb.UpdateTableRequest{Table: table, UpdateMask: mask(paths...)})
		return err
	}
	if err := update(&btapb.Table_AutomatedBackupPolicy{RetentionPeriod: days(7)}, "automated_backup_policy"); err != nil {
		t.Fatal(err)
	}
	if err := update(&btapb.Table_AutomatedBackupPolicy{Frequency: days(1)}, "automated_backup_policy.frequency"); err != nil {
		t.Fatal(err)
	}
	got, err := e.admin.GetTable(e.ctx(), &btapb.GetTableRequest{Name: testTable})
	if err != nil || got.GetAutomatedBackupPolicy().GetRetentionPeriod().AsDuration() != 7*24*time.Hour {
		t.Errorf("%v, %v", got, err)
	}
	wantCode(t, update(&btapb.Table_AutomatedBackupPolicy{RetentionPeriod: days(7), Disabled: true}, "automated_backup_policy"), codes.InvalidArgument)
	for _, n := range []int{2, 91} {
		wantCode(t, update(&btapb.Table_AutomatedBackupPolicy{RetentionPeriod: days(n)}, "automated_backup_policy.retention_period"), codes.InvalidArgument)
	}
}

func TestTrap91_DeletesOfWhatHoldsBackups(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.mustCreateInstance("i", nodes("z", 1), nodes("z2", 1))
	e.createTable("t", "f")
	if err := e.tryBackup("b", func(req *btapb.CreateBackupRequest) { req.Parent = testInstance + "/clusters/c2" }); err != nil {
		t.Fatal(err)
	}
	if _, err := e.admin.DeleteTable(e.ctx(), &btapb.DeleteTableRequest{Name: testTable}); err != nil {
		t.Fatal(err)
	}
	deleteCluster := func() error {
		_, err := e.instances().DeleteCluster(e.ctx(), &btapb.DeleteClusterRequest{Name: testInstance + "/clusters/c2"})
		return err
	}
	deleteInstance := func() error {
		_, err := e.instances().DeleteInstance(e.ctx(), &btapb.DeleteInstanceRequest{Name: testInstance})
		return err
	}
	for _, del := range []func() error{deleteCluster, deleteInstance} {
		wantBelief(t, "a delete", func() string { return status.Code(del()).String() }, "FailedPrecondition")
	}
	e.clock.Advance(8 * time.Hour)
	for _, del := range []func() error{deleteCluster, deleteInstance} {
		if err := del(); err != nil {
			t.Error(err)
		}
	}
}

func TestTrap92_WrongPlaces(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	wantCode(t, e.tryBackup("b", func(req *btapb.CreateBackupRequest) { req.Parent = "projects/p/instances/j/clusters/c" }), codes.InvalidArgument)
	wantCode(t, e.tryBackup("b", func(req *btapb.CreateBackupRequest) { req.Backup.SourceTable = "projects/p/instances/j/tables/t" }), codes.InvalidArgument)
	for _, id := range []string{"", ".b", "a/b", strings.Repeat("b", 51)} {
		wantCode(t, e.tryBackup(id, nil), codes.InvalidArgument)
	}
	e.backup("b", nil)
	wantCode(t, e.tryBackup("b", nil), codes.AlreadyExists)
	if _, err := e.admin.DeleteTable(e.ctx(), &btapb.DeleteTableRequest{Name: testTable}); err != nil {
		t.Fatal(err)
	}
	wantCode(t, e.tryBackup("b2", nil), codes.NotFound)
}

func TestTrap93_BackupBesideWriters(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f", "g")
	row := func(w int) string { return fmt.Sprint("w", w) }
	write := func(w, n int) error {
		return e.mutate(row(w), set("f", "q", 0, fmt.Sprint(n)), set("g", "q", 0, fmt.Sprint(n)))
	}
	const writers = 4
	for w := range writers {
		if err := write(w, 0); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 5 {
		var group sync.WaitGroup
		for w := range writers {
			if err := write(w, 1000*round); err != nil { // acknowledged before the request
				t.Fatal(err)
			}
			group.Go(func() {
				for n := range 50 {
					if err := write(w, 1000*round+n); err != nil {
						t.Error(err)
					}
				}
			})
		}
		id := fmt.Sprint("b", round)
		name := e.backup(id, nil)
		group.Wait()
		e.mustRestore(name, id)
		res := e.mustRead(&btpb.ReadRowsRequest{TableName: testInstance + "/tables/" + id})
		if len(res.rows) != writers {
			t.Fatalf("%d rows", len(res.rows))
		}
		for _, r := range res.rows {
			var n int
			if _, err := fmt.Sscan(r.cells[0].value, &n); err != nil || len(r.cells) != 2 || r.cells[0].value != r.cells[1].value || n < 1000*round {
				t.Errorf("round %d: %v", round, r)
			}
		}
	}
}

// TestBackupLimits covers the number of backups of a table, and their bytes.
func TestBackupLimits(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	for n := range limits.MaxHotBackups {
		e.backup(fmt.Sprint("h", n), hot)
	}
	wantCode(t, e.tryBackup("h", hot), codes.ResourceExhausted)
	e.backup("standard", nil)

	e = newEnvWith(t, Options{}, engine.Options{BackupBytes: 1000})
	e.createTable("t", "f")
	e.mustMutate("r", set("f", "q", 0, big(600)))
	name := e.backup("b", nil)
	err := e.tryBackup("b2", nil)
	wantCode(t, err, codes.ResourceExhausted)
	if !strings.Contains(err.Error(), "--backup-bytes") {
		t.Errorf("no remedy in %v", err)
	}
	e.mustRestore(name, "t2") // a table does not count
	e.clock.Advance(8 * time.Hour)
	e.backup("b2", nil) // the other has expired
}

func TestTrap168_BackupUnderAKey(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	c := nodes("us-east1-b", 1)
	c.EncryptionConfig = &btapb.Cluster_EncryptionConfig{KmsKeyName: "projects/p/locations/us-east1/keyRings/r/cryptoKeys/k"}
	e.mustCreateInstance("i", c)
	e.createTable("t", "f")
	if err := e.tryBackup("b", func(req *btapb.CreateBackupRequest) { req.Parent = testInstance + "/clusters/c1" }); err != nil {
		t.Fatal(err)
	}
	info := e.getBackup(testInstance + "/clusters/c1/backups/b").GetEncryptionInfo()
	if s := info.GetEncryptionStatus(); s.GetCode() != 2 || s.GetMessage() != "Status of the associated key version is not tracked." || info.GetEncryptionType() != btapb.EncryptionInfo_CUSTOMER_MANAGED_ENCRYPTION {
		t.Errorf("%v", info)
	}
	table, err := e.admin.GetTable(e.ctx(), &btapb.GetTableRequest{Name: testTable, View: btapb.Table_ENCRYPTION_VIEW})
	if err != nil || info.GetKmsKeyVersion() == "" || table.GetClusterStates()["c1"].GetEncryptionInfo()[0].GetKmsKeyVersion() != info.GetKmsKeyVersion() {
		t.Errorf("%v, the backup has %v, %v", table, info, err)
	}
}

// raceBackups creates backups of table t during its other changes, and calls all backup RPCs.
// Of two concurrent calls, either may win.
func (e *env) raceBackups(ctx context.Context, i int) error {
	parent := testInstance + "/clusters/c1"
	name, expire := parent+"/backups/b", e.in(48*time.Hour)
	id := fmt.Sprint("restored", i)
	_, create := e.admin.CreateBackup(ctx, &btapb.CreateBackupRequest{Parent: parent, BackupId: "b", Backup: &btapb.Backup{SourceTable: testTable, ExpireTime: expire}})
	_, get := e.admin.GetBackup(ctx, &btapb.GetBackupRequest{Name: name})
	_, update := e.admin.UpdateBackup(ctx, &btapb.UpdateBackupRequest{Backup: &btapb.Backup{Name: name, ExpireTime: expire}, UpdateMask: mask("expire_time")})
	_, list := e.admin.ListBackups(ctx, &btapb.ListBackupsRequest{Parent: parent})
	_, copied := e.admin.CopyBackup(ctx, &btapb.CopyBackupRequest{Parent: parent, BackupId: "copy", SourceBackup: name, ExpireTime: expire})
	_, restore := e.admin.RestoreTable(ctx, &btapb.RestoreTableRequest{Parent: testInstance, TableId: id, Source: &btapb.RestoreTableRequest_Backup{Backup: name}})
	_, drop := e.admin.DeleteTable(ctx, &btapb.DeleteTableRequest{Name: resname.TablesOf(testInstance) + id})
	_, deleteCopy := e.admin.DeleteBackup(ctx, &btapb.DeleteBackupRequest{Name: parent + "/backups/copy"})
	_, deleted := e.admin.DeleteBackup(ctx, &btapb.DeleteBackupRequest{Name: name})
	for _, err := range []error{create, get, update, list, copied, restore, drop, deleteCopy, deleted} {
		if c := status.Code(err); c != codes.NotFound && c != codes.AlreadyExists && err != nil {
			return err
		}
	}
	return nil
}
