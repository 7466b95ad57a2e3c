package emu

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/iam/apiv1/iampb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/emu/internal/admin"
	"github.com/tabletop-emu/tabletop/emu/internal/limits"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/engine"
)

const day = 24 * time.Hour

// advance moves the clock by d, and does due work at each due time.
func (e *env) advance(d time.Duration) {
	e.t.Helper()
	for end := e.clock.Now().Add(d); ; {
		next, ok, err := e.srv.NextDue()
		if err != nil {
			e.t.Fatal(err)
		}
		if !ok || next.After(end) {
			next = end
		}
		e.clock.AdvanceTo(next)
		if err := e.srv.RunDue(e.ctx()); err != nil {
			e.t.Fatal(err)
		}
		if after, ok, err := e.srv.NextDue(); err != nil || ok && !after.After(e.clock.Now()) {
			e.t.Fatalf("at %v something is still due, at %v, %v", e.clock.Now(), after, err)
		}
		if !e.clock.Now().Before(end) {
			return
		}
	}
}

// setPolicy sets the automated backup policy of table t; nil removes it.
func (e *env) setPolicy(p *btapb.Table_AutomatedBackupPolicy) {
	e.t.Helper()
	table := &btapb.Table{}
	if p != nil {
		table = withBackupPolicy(p)
	}
	if _, err := e.updateTable(table, "automated_backup_policy"); err != nil {
		e.t.Fatal(err)
	}
}

func keep(n int) *btapb.Table_AutomatedBackupPolicy {
	return &btapb.Table_AutomatedBackupPolicy{RetentionPeriod: days(n)}
}

// backups returns the backups of the instance, oldest first.
func (e *env) backups() []*btapb.Backup {
	e.t.Helper()
	resp, err := e.admin.ListBackups(e.ctx(), &btapb.ListBackupsRequest{Parent: testInstance + "/clusters/-", OrderBy: "start_time, name"})
	if err != nil {
		e.t.Fatal(err)
	}
	return resp.GetBackups()
}

// startedAfter returns the start times of backups, in days after the start of the test.
func startedAfter(all []*btapb.Backup) []float64 {
	var out []float64
	for _, b := range all {
		out = append(out, b.GetStartTime().AsTime().Sub(start).Hours()/24)
	}
	return out
}

func TestTrap89_AutomatedBackups(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.mustCreateInstance("i", nodes("z1", 1), nodes("z2", 1))
	e.createTable("t", "f")
	e.setPolicy(keep(3))
	e.mustMutate("r", set("f", "q", 1000, "v"))
	want := e.rowsOf("t")
	if err := e.srv.RunDue(e.ctx()); err != nil || len(e.backups()) != 0 {
		t.Errorf("with the clock at rest: %v, %v", e.backups(), err)
	}
	e.advance(day - time.Microsecond)
	if n := len(e.backups()); n != 0 {
		t.Errorf("%d backups before the first day has passed", n)
	}
	e.advance(72*time.Hour - day + time.Microsecond)
	all := e.backups()
	// The first one expires a day later.
	if got := startedAfter(all); !slices.Equal(got, []float64{1, 1, 2, 2, 3, 3}) {
		t.Fatalf("backups of the days %v", got)
	}
	for i, b := range all {
		cluster := fmt.Sprintf("c%d", i%2+1)
		id := "t-auto-" + b.GetStartTime().AsTime().Format("20060102T150405Z")
		if b.GetName() != testInstance+"/clusters/"+cluster+"/backups/"+id || b.GetSourceTable() != testTable || b.GetBackupType() != btapb.Backup_STANDARD ||
			b.GetState() != btapb.Backup_READY || b.GetExpireTime().AsTime().Sub(b.GetStartTime().AsTime()) != 3*day || !b.GetEndTime().AsTime().Equal(b.GetStartTime().AsTime()) {
			t.Errorf("%v", b)
		}
	}
	e.mustMutate("r", set("f", "q", 1000, "later"))
	e.mustRestore(all[0].GetName(), "t2")
	if got := e.rowsOf("t2"); got != want {
		t.Errorf("restored\n%swant\n%s", got, want)
	}
	e.setPolicy(&btapb.Table_AutomatedBackupPolicy{Disabled: true})
	for left := 3; left > 0; left-- {
		if n := len(e.backups()); n != 2*left {
			t.Errorf("%d backups, want %d", n, 2*left)
		}
		e.advance(day)
		if n := len(e.db.Backups().List("")); n != 2*(left-1) {
			t.Errorf("%d are kept, want %d", n, 2*(left-1))
		}
	}
}

// A policy's schedule begins when it is enabled: a changed policy continues the schedule, a
// disabled one begins again.
func TestAutomatedBackups_Plan(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		change func(e *env) // after half a day
		want   []float64    // days with backups, of 3 days
	}{
		{"none", func(*env) {}, []float64{1, 2, 3}},
		{"retention", func(e *env) {
			if _, err := e.updateTable(withBackupPolicy(keep(9)), "automated_backup_policy.retention_period"); err != nil {
				e.t.Error(err)
			}
		}, []float64{1, 2, 3}},
		{"other settings", func(e *env) { e.setRetention(day) }, []float64{1, 2, 3}},
		{"again", func(e *env) { e.setPolicy(keep(4)) }, []float64{1, 2, 3}},
		{"cleared", func(e *env) { e.setPolicy(nil) }, nil},
		{"off and on", func(e *env) {
			e.setPolicy(&btapb.Table_AutomatedBackupPolicy{Disabled: true})
			e.setPolicy(keep(4))
		}, []float64{1.5, 2.5}},
		{"deleted", func(e *env) { e.mustDeleteTable("t") }, nil},
		{"deleted for a day", func(e *env) {
			e.mustDeleteTable("t")
			e.advance(day)
			if _, err := e.admin.UndeleteTable(e.ctx(), &btapb.UndeleteTableRequest{Name: testTable}); err != nil {
				e.t.Error(err)
			}
		}, []float64{2, 3}},
		{"another of the name", func(e *env) {
			e.mustDeleteTable("t")
			e.createTable("t", "f")
		}, nil},
		{"restored", func(e *env) {
			name := e.backup("b", nil)
			e.mustRestore(name, "t2")
			e.mustDeleteTable("t")
			e.mustRestore(name, "t")
		}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			e := newTable(t, "f")
			e.setPolicy(keep(30))
			e.advance(day / 2)
			tc.change(e)
			e.advance(start.Add(3 * day).Sub(e.clock.Now()))
			if got := startedAfter(e.backups()); !slices.Equal(got, tc.want) {
				t.Errorf("backups of the days %v, want %v", got, tc.want)
			}
			if items, err := (admin.AutomatedBackups{Control: e.srv.control}).Due(); err != nil || (len(items) > 0) != (len(tc.want) > 0) {
				t.Errorf("due: %v, %v", items, err)
			}
		})
	}
}

func (e *env) mustDeleteTable(id string) {
	e.t.Helper()
	if _, err := e.admin.DeleteTable(e.ctx(), &btapb.DeleteTableRequest{Name: testInstance + "/tables/" + id}); err != nil {
		e.t.Fatal(err)
	}
}

// After a pause, each missed day gets its backup unless it would have expired; no backup is
// made twice.
func TestAutomatedBackups_Restart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := newEnvWith(t, Options{}, engine.Options{Dir: dir})
	e.mustCreateInstance("i", nodes("z1", 1), nodes("z2", 1))
	e.createTable("t", "f")
	e.setPolicy(keep(3))
	e.advance(day)
	e = e.restart(dir)
	e.clock.Advance(6*day + time.Hour)
	// One due backup was made before the server stopped.
	p := admin.AutomatedPlanOf(e.db.Tables(testTable)[0]).Policy
	made := admin.AutomatedBackup(p, testTable, e.cluster(testInstance+"/clusters/c1"), start.Add(5*day))
	if err := (admin.AutomatedBackups{Control: e.srv.control}).Make(e.ctx(), made); err != nil {
		t.Fatal(err)
	}
	if err := e.srv.RunDue(e.ctx()); err != nil {
		t.Fatal(err)
	}
	all := e.backups()
	if got := startedAfter(all); !slices.Equal(got, []float64{4, 4, 5, 5, 6, 6}) {
		t.Errorf("backups of the days %v", got)
	}
	for _, b := range all {
		if end := b.GetEndTime().AsTime(); !end.Equal(e.clock.Now()) {
			t.Errorf("what was made now is of %v", end)
		}
	}
	before := e.db.Backups().List("")
	if err := e.srv.RunDue(e.ctx()); err != nil || len(e.db.Backups().List("")) != len(before) {
		t.Errorf("made again: %v, %v", e.backups(), err)
	}
	if at, ok, err := e.srv.NextDue(); err != nil || !ok || !at.Equal(start.Add(7*day)) {
		t.Errorf("next is %v, %v, %v", at, ok, err)
	}
}

// Backups beyond the size limit are skipped, with a log entry that names the remedy. The next
// day tries again.
func TestAutomatedBackups_Bound(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	e := newEnvWith(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, engine.Options{BackupBytes: 2500})
	e.createTable("t", "f")
	e.mustMutate("r", set("f", "q", 0, big(1000)))
	e.setPolicy(keep(5))
	e.advance(2 * day)
	if log.Len() > 0 {
		t.Errorf("logged: %s", &log)
	}
	e.advance(day)
	text := log.String()
	for _, want := range []string{"--backup-bytes", testTable, "t-auto-20231117T", "level=WARN"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
	e.advance(day)
	if n := strings.Count(log.String(), "\n"); n != 2 {
		t.Errorf("%d lines are logged for two backups", n)
	}
	if got := startedAfter(e.backups()); !slices.Equal(got, []float64{1, 2}) {
		t.Errorf("backups of the days %v", got)
	}
	e.advance(2 * day) // the first expires before the backup of day 6
	if got := startedAfter(e.backups()); !slices.Equal(got, []float64{2, 6}) {
		t.Errorf("backups of the days %v", got)
	}
}

// The limit on a table's backups includes automated ones.
func TestAutomatedBackups_Count(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	e := newEnvWith(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, engine.Options{})
	e.createTable("t", "f")
	p := keep(10)
	p.KeepHotDuration = days(1)
	e.setPolicy(p)
	for n := range limits.MaxHotBackups {
		e.backup(fmt.Sprint("h", n), func(req *btapb.CreateBackupRequest) {
			hot(req)
			req.Backup.ExpireTime = e.in(36 * time.Hour)
		})
	}
	e.advance(day)
	if n := len(e.backups()); n != limits.MaxHotBackups || !strings.Contains(log.String(), "was skipped") {
		t.Errorf("%d backups; logged %q", n, &log)
	}
	e.advance(day)
	if got := startedAfter(e.backups()); !slices.Equal(got, []float64{2}) {
		t.Errorf("backups of the days %v", got)
	}
}

// The clusters and types of backups.
func TestAutomatedBackups_Places(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	hdd := nodes("z2", 1)
	hdd.DefaultStorageType = btapb.StorageType_HDD
	op, err := e.instances().CreateInstance(e.ctx(), &btapb.CreateInstanceRequest{
		Parent: "projects/p", InstanceId: "i", Instance: &btapb.Instance{Edition: btapb.Instance_ENTERPRISE_PLUS},
		Clusters: map[string]*btapb.Cluster{"c1": nodes("z1", 1), "c2": hdd},
	})
	response[*btapb.Instance](e, op, err)
	e.createTable("t", "f")
	hot := func(locations ...string) *btapb.Table {
		p := keep(3)
		p.KeepHotDuration, p.Locations = days(2), locations
		return withBackupPolicy(p)
	}
	_, err = e.updateTable(hot(), "automated_backup_policy")
	wantCode(t, err, codes.InvalidArgument) // c2 has no SSDs
	create := func(instance string, table *btapb.Table) error {
		_, err := e.admin.CreateTable(e.ctx(), &btapb.CreateTableRequest{Parent: instance, TableId: "t2", Table: table})
		return err
	}
	wantCode(t, create(testInstance, hot()), codes.InvalidArgument)
	e.mustCreateInstance("plain", nodes("z1", 1))
	// An update of other settings does not validate the policy again.
	wantCode(t, create("projects/p/instances/plain", hot("projects/p/locations/z1")), codes.InvalidArgument)
	if _, err := e.updateTable(hot("projects/p/locations/z1", "projects/p/locations/z3"), "automated_backup_policy"); err != nil {
		t.Fatal(err)
	}
	e.advance(day)
	all := e.backups()
	if len(all) != 1 || all[0].GetBackupType() != btapb.Backup_HOT || all[0].GetHotToStandardTime().AsTime().Sub(all[0].GetStartTime().AsTime()) != 2*day ||
		!strings.HasPrefix(all[0].GetName(), testInstance+"/clusters/c1/") {
		t.Errorf("%v", all)
	}
	// The storage type of a later cluster decides its type of backups.
	hdd = nodes("z3", 1)
	hdd.DefaultStorageType = btapb.StorageType_HDD
	if _, err := e.instances().CreateCluster(e.ctx(), &btapb.CreateClusterRequest{Parent: testInstance, ClusterId: "c3", Cluster: hdd}); err != nil {
		t.Fatal(err)
	}
	e.advance(day)
	var types []string
	for _, b := range e.backups() {
		types = append(types, resname.First(b.GetName(), 6)[len(testInstance):]+" "+b.GetBackupType().String())
	}
	if want := []string{"/clusters/c1 HOT", "/clusters/c1 HOT", "/clusters/c3 STANDARD"}; !slices.Equal(types, want) {
		t.Errorf("%v, want %v", types, want)
	}
	e.advance(day)
	if b := e.getBackup(all[0].GetName()); b.GetBackupType() != btapb.Backup_STANDARD {
		t.Errorf("%v", b)
	}
}

// Unknown fields from a client have no effect and are not returned.
func TestAutomatedBackups_HiddenFields(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	table := withBackupPolicy(keep(3))
	late := protowire.AppendVarint(protowire.AppendTag(nil, protowire.MaxValidNumber, protowire.VarintType), uint64(start.Add(400*day).UnixMicro()))
	table.ProtoReflect().SetUnknown(late)
	table.GetAutomatedBackupPolicy().ProtoReflect().SetUnknown(late)
	made, err := e.admin.CreateTable(e.ctx(), &btapb.CreateTableRequest{Parent: testInstance, TableId: "t", Table: table})
	if err != nil {
		t.Fatal(err)
	}
	check := func(got *btapb.Table) {
		t.Helper()
		for _, m := range []proto.Message{got, got.GetAutomatedBackupPolicy(), got.GetEffectiveAutomatedBackupPolicy()} {
			if n := len(m.ProtoReflect().GetUnknown()); n != 0 {
				t.Errorf("%d bytes are shown that the API does not have: %v", n, m)
			}
		}
	}
	check(made)
	if at := admin.AutomatedPlanOf(e.db.Tables(testTable)[0]).From; !at.Equal(start) {
		t.Errorf("planned from %v", at)
	}
	updated, err := e.updateTable(table, "automated_backup_policy")
	if err != nil {
		t.Fatal(err)
	}
	check(updated)
	got, err := e.admin.GetTable(e.ctx(), &btapb.GetTableRequest{Name: testTable, View: btapb.Table_FULL})
	if err != nil || got.GetClusterStates()["cluster-1"].GetReplicationState() == btapb.Table_ClusterState_INITIALIZING {
		t.Fatal(got, err)
	}
	check(got)
	e.advance(day)
	if got := startedAfter(e.backups()); !slices.Equal(got, []float64{1}) {
		t.Errorf("backups of the days %v", got)
	}
}

// A stored policy without a schedule begins when it is first loaded.
func TestAutomatedBackups_WithoutPlan(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	e.setPolicy(keep(3))
	err := e.db.UpdateCatalog(e.ctx(), func(tx *engine.CatalogTx) error {
		_, err := tx.UpdateTable(testTable, func(t *engine.Table) error {
			return admin.Replan(t, func(p *admin.AutomatedPlan) { p.From = time.Time{} })
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	e.clock.Advance(day / 2)
	e.advance(2 * day)
	if got := startedAfter(e.backups()); !slices.Equal(got, []float64{1.5, 2.5}) {
		t.Errorf("backups of the days %v", got)
	}
}

// Due work frees the space of expired backups without RunGC.
func TestRunDue_Expiries(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	e.mustMutate("r", set("f", "q", 0, "v"))
	name := e.backup("b", nil)
	if _, err := e.admin.SetIamPolicy(e.ctx(), &iampb.SetIamPolicyRequest{Resource: name, Policy: &iampb.Policy{Version: 1}}); err != nil {
		t.Fatal(err)
	}
	if err := e.snapshotTable(e.ctx(), testCluster, "s", nil); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		by   time.Duration
		left []string
	}{
		{8*time.Hour - time.Microsecond, []string{"b", "s"}},
		{time.Microsecond, []string{"s"}},
		{16*time.Hour - time.Microsecond, []string{"s"}},
		{time.Microsecond, nil},
	} {
		e.advance(tc.by)
		var left []string
		for _, b := range e.db.Backups().List("") {
			left = append(left, resname.Last(b.Name))
		}
		if !slices.Equal(left, tc.left) {
			t.Errorf("at %v: %v, want %v", e.clock.Now(), left, tc.left)
		}
	}
	if found, err := e.db.Resources(admin.KindPolicy); err != nil || len(found) != 0 {
		t.Errorf("left: %v, %v", found, err)
	}
}

// A deleted table is removed, with its views, bundles and policies, when the time to undelete
// it ends. Other tables are unaffected.
func TestRunDue_Purges(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	leave := func(id string) {
		t.Helper()
		e.createTable(id, "f")
		name := testInstance + "/tables/" + id
		if _, err := e.admin.CreateAuthorizedView(e.ctx(), &btapb.CreateAuthorizedViewRequest{
			Parent: name, AuthorizedViewId: "v", AuthorizedView: viewOf(&btapb.AuthorizedView_SubsetView{}),
		}); err != nil {
			t.Fatal(err)
		}
		for _, resource := range []string{name, name + "/authorizedViews/v"} {
			if _, err := e.admin.SetIamPolicy(e.ctx(), &iampb.SetIamPolicyRequest{Resource: resource, Policy: &iampb.Policy{Version: 1}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	left := func() int {
		n := 0
		for _, kind := range []string{admin.KindAuthorizedView, admin.KindPolicy} {
			found, err := e.db.Resources(kind)
			if err != nil {
				t.Fatal(err)
			}
			n += len(found)
		}
		return n
	}
	leave("live")
	leave("t")
	e.backup("b", func(req *btapb.CreateBackupRequest) { req.Backup.ExpireTime = e.in(20 * day) })
	if _, err := e.admin.SetIamPolicy(e.ctx(), &iampb.SetIamPolicyRequest{Resource: testCluster + "/backups/b", Policy: &iampb.Policy{Version: 1}}); err != nil {
		t.Fatal(err)
	}
	e.mustDeleteTable("t")
	e.advance(day)
	leave("u")
	e.mustDeleteTable("u")
	for _, want := range []struct {
		by   time.Duration
		left int
	}{{6*day - time.Microsecond, 10}, {time.Microsecond, 7}, {day, 4}} {
		e.advance(want.by)
		if n := left(); n != want.left {
			t.Errorf("at %v: %d resources, want %d", e.clock.Now(), n, want.left)
		}
	}
	if at, ok := e.db.NextPurge(); ok {
		t.Errorf("something is to be purged at %v", at)
	}
}
