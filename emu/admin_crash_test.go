package emu

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"cloud.google.com/go/iam/apiv1/iampb"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tabletop-emu/tabletop/emu/internal/admin"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/faultdisk"
	"github.com/tabletop-emu/tabletop/internal/test/long"
)

// step is one call of a script.
type step struct {
	name string
	run  func(e *env) error
}

// changeScript is a script in which every RPC that writes to the store changes rows or
// settings.
func changeScript() []step {
	const in, table = "projects/p/instances/in", "projects/p/instances/in/tables/t"
	family := func(id string, drop bool) *btapb.ModifyColumnFamiliesRequest_Modification {
		m := &btapb.ModifyColumnFamiliesRequest_Modification{Id: id}
		if drop {
			m.Mod = &btapb.ModifyColumnFamiliesRequest_Modification_Drop{Drop: true}
		} else {
			m.Mod = &btapb.ModifyColumnFamiliesRequest_Modification_Create{Create: &btapb.ColumnFamily{}}
		}
		return m
	}
	protect := func(on bool) func(*env) error {
		return func(e *env) error {
			_, err := e.admin.UpdateTable(e.ctx(), &btapb.UpdateTableRequest{
				Table: &btapb.Table{Name: table, DeletionProtection: on}, UpdateMask: mask("deletion_protection"),
			})
			return err
		}
	}
	policy := &iampb.Policy{Bindings: []*iampb.Binding{{Role: "roles/bigtable.user", Members: []string{"user:a@b.c"}}}}
	create := func(parent, id string) func(*env) error {
		return func(e *env) error {
			_, err := e.admin.CreateTable(e.ctx(), &btapb.CreateTableRequest{
				Parent: parent, TableId: id, Table: &btapb.Table{ColumnFamilies: map[string]*btapb.ColumnFamily{"f": {}, "g": {}}},
			})
			return err
		}
	}
	createView := func(e *env) error {
		_, err := e.admin.CreateAuthorizedView(e.ctx(), &btapb.CreateAuthorizedViewRequest{
			Parent: table, AuthorizedViewId: "v", AuthorizedView: viewOf(subset([]string{"r"}, columns("f", "", ""))),
		})
		return err
	}
	deleteTable := func(e *env) error {
		_, err := e.admin.DeleteTable(e.ctx(), &btapb.DeleteTableRequest{Name: table})
		return err
	}
	write := func(e *env) error {
		set := func(family string) *btpb.Mutation {
			return &btpb.Mutation{Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{FamilyName: family, Value: []byte("v")}}}
		}
		_, err := e.data.MutateRow(e.ctx(), &btpb.MutateRowRequest{
			TableName: table, RowKey: []byte("r"), Mutations: []*btpb.Mutation{set("f"), set("g")},
			Idempotency: &btpb.Idempotency{Token: []byte("a token, once")},
		})
		return err
	}
	profile, backup := in+"/appProfiles/many", in+"/clusters/c1/backups/b"
	return []step{
		{"CreateTable implicit", create("projects/p/instances/held", "t")},
		{"CreateInstance", func(e *env) error { return e.createInstance("in", nodes("z1", 1)) }},
		{"CreateCluster", func(e *env) error {
			_, err := e.instances().CreateCluster(e.ctx(), &btapb.CreateClusterRequest{Parent: in, ClusterId: "c2", Cluster: nodes("z2", 3)})
			return err
		}},
		{"UpdateCluster", func(e *env) error {
			_, err := e.instances().UpdateCluster(e.ctx(), &btapb.Cluster{Name: in + "/clusters/c2", ServeNodes: 5})
			return err
		}},
		{"PartialUpdateInstance", func(e *env) error {
			_, err := e.instances().PartialUpdateInstance(e.ctx(), &btapb.PartialUpdateInstanceRequest{
				Instance: &btapb.Instance{Name: in, DisplayName: "another"}, UpdateMask: mask("display_name"),
			})
			return err
		}},
		{"CreateAppProfile", func(e *env) error { return e.createAppProfile(in, "many", anyCluster()) }},
		{"UpdateAppProfile", func(e *env) error {
			_, err := e.instances().UpdateAppProfile(e.ctx(), &btapb.UpdateAppProfileRequest{
				AppProfile: &btapb.AppProfile{Name: profile, Description: "to any"}, UpdateMask: mask("description"),
			})
			return err
		}},
		{"CreateTable", create(in, "t")},
		{"CreateTable another", create(in, "t2")},
		{"MutateRow", write},
		{"SetIamPolicy table", func(e *env) error {
			_, err := e.admin.SetIamPolicy(e.ctx(), &iampb.SetIamPolicyRequest{Resource: table, Policy: proto.CloneOf(policy)})
			return err
		}},
		{"SetIamPolicy instance", func(e *env) error {
			_, err := e.instances().SetIamPolicy(e.ctx(), &iampb.SetIamPolicyRequest{Resource: in, Policy: proto.CloneOf(policy)})
			return err
		}},
		{"ModifyColumnFamilies", func(e *env) error {
			_, err := e.admin.ModifyColumnFamilies(e.ctx(), &btapb.ModifyColumnFamiliesRequest{
				Name: table, Modifications: []*btapb.ModifyColumnFamiliesRequest_Modification{family("g", true), family("g", false), family("h", false)},
			})
			return err
		}},
		{"UpdateTable protect", protect(true)},
		{"UpdateTable", protect(false)},
		{"UpdateTable stream", func(e *env) error {
			_, err := e.admin.UpdateTable(e.ctx(), &btapb.UpdateTableRequest{
				Table:      &btapb.Table{Name: table, ChangeStreamConfig: &btapb.ChangeStreamConfig{RetentionPeriod: durationpb.New(admin.MinChangeStreamRetention)}},
				UpdateMask: mask("change_stream_config"),
			})
			return err
		}},
		{"MutateRow recorded", func(e *env) error {
			_, err := e.data.MutateRow(e.ctx(), &btpb.MutateRowRequest{TableName: table, RowKey: []byte("s"), Mutations: []*btpb.Mutation{
				set("h", "q", 1000, "v"), {Mutation: &btpb.Mutation_DeleteFromRow_{DeleteFromRow: &btpb.Mutation_DeleteFromRow{}}}, set("g", "q", 1000, "v"),
			}})
			return err
		}},
		{"CreateBackup", func(e *env) error {
			_, err := e.admin.CreateBackup(e.ctx(), &btapb.CreateBackupRequest{
				Parent: in + "/clusters/c1", BackupId: "b", Backup: &btapb.Backup{SourceTable: table, ExpireTime: e.in(48 * time.Hour)},
			})
			return err
		}},
		{"UpdateBackup", func(e *env) error {
			_, err := e.updateBackup(&btapb.Backup{Name: backup, ExpireTime: e.in(72 * time.Hour)}, "expire_time")
			return err
		}},
		{"CopyBackup", func(e *env) error { return e.copyBackup(backup, in+"/clusters/c2", "b2") }},
		{"DropRowRange recorded", func(e *env) error {
			_, err := e.admin.DropRowRange(e.ctx(), &btapb.DropRowRangeRequest{Name: table, Target: &btapb.DropRowRangeRequest_RowKeyPrefix{RowKeyPrefix: []byte("s")}})
			return err
		}},
		{"DeleteBackup", func(e *env) error {
			_, err := e.admin.DeleteBackup(e.ctx(), &btapb.DeleteBackupRequest{Name: backup})
			return err
		}},
		{"RestoreTable", func(e *env) error {
			_, err := e.restore(in, in+"/clusters/c2/backups/b2", "restored")
			return err
		}},
		{"DeleteBackup of the copy", func(e *env) error {
			_, err := e.admin.DeleteBackup(e.ctx(), &btapb.DeleteBackupRequest{Name: in + "/clusters/c2/backups/b2"})
			return err
		}},
		{"CreateAuthorizedView", createView},
		{"SetIamPolicy view", func(e *env) error {
			_, err := e.admin.SetIamPolicy(e.ctx(), &iampb.SetIamPolicyRequest{Resource: table + "/authorizedViews/v", Policy: proto.CloneOf(policy)})
			return err
		}},
		{"UpdateAuthorizedView", func(e *env) error {
			_, err := e.admin.UpdateAuthorizedView(e.ctx(), &btapb.UpdateAuthorizedViewRequest{
				AuthorizedView: &btapb.AuthorizedView{Name: table + "/authorizedViews/v", AuthorizedView: viewOf(subset(nil)).GetAuthorizedView()},
			})
			return err
		}},
		{"DeleteAuthorizedView", func(e *env) error {
			_, err := e.admin.DeleteAuthorizedView(e.ctx(), &btapb.DeleteAuthorizedViewRequest{Name: table + "/authorizedViews/v"})
			return err
		}},
		{"CreateAuthorizedView again", createView},
		{"UpdateTable no stream", func(e *env) error {
			_, err := e.admin.UpdateTable(e.ctx(), &btapb.UpdateTableRequest{Table: &btapb.Table{Name: table}, UpdateMask: mask("change_stream_config")})
			return err
		}},
		{"CreateSchemaBundle", func(e *env) error {
			_, err := e.admin.CreateSchemaBundle(e.ctx(), &btapb.CreateSchemaBundleRequest{Parent: table, SchemaBundleId: "s", SchemaBundle: avroBundle(`"int"`)})
			return err
		}},
		{"UpdateSchemaBundle", func(e *env) error {
			b := avroBundle(`"long"`)
			b.Name = table + "/schemaBundles/s"
			_, err := e.admin.UpdateSchemaBundle(e.ctx(), &btapb.UpdateSchemaBundleRequest{SchemaBundle: b})
			return err
		}},
		{"DeleteSchemaBundle", func(e *env) error {
			_, err := e.admin.DeleteSchemaBundle(e.ctx(), &btapb.DeleteSchemaBundleRequest{Name: table + "/schemaBundles/s"})
			return err
		}},
		{"DeleteTable", deleteTable},
		{"UndeleteTable", func(e *env) error {
			_, err := e.admin.UndeleteTable(e.ctx(), &btapb.UndeleteTableRequest{Name: table})
			return err
		}},
		{"DeleteTable again", deleteTable},
		{"CreateTable again", create(in, "t")}, // forgets the policy and the view
		{"CreateAuthorizedView of the last", createView},
		{"MutateRow again", write},
		{"DropRowRange", func(e *env) error {
			_, err := e.admin.DropRowRange(e.ctx(), &btapb.DropRowRangeRequest{
				Name: table, Target: &btapb.DropRowRangeRequest_DeleteAllDataFromTable{DeleteAllDataFromTable: true},
			})
			return err
		}},
		{"DeleteAppProfile", func(e *env) error {
			_, err := e.instances().DeleteAppProfile(e.ctx(), &btapb.DeleteAppProfileRequest{Name: profile, IgnoreWarnings: true})
			return err
		}},
		{"DeleteCluster", func(e *env) error {
			_, err := e.instances().DeleteCluster(e.ctx(), &btapb.DeleteClusterRequest{Name: in + "/clusters/c2"})
			return err
		}},
		{"DeleteInstance", func(e *env) error {
			_, err := e.instances().DeleteInstance(e.ctx(), &btapb.DeleteInstanceRequest{Name: in})
			return err
		}},
	}
}

func lines(text string) []string { return strings.Split(text, "\n") }

// storeText returns the whole content of a store as text.
func storeText(t *testing.T, db *engine.DB) string {
	t.Helper()
	var b strings.Builder
	rows := func(name string) {
		s, err := db.Scan(t.Context(), name, engine.ScanOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for s.NextRow() {
			for s.NextCell() {
				fmt.Fprintf(&b, "  %q %s:%q @%d %q\n", s.Row(), s.Cell().Family, s.Cell().Qualifier, s.Cell().Timestamp, s.Cell().Value)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range db.Tables("") {
		fmt.Fprintf(&b, "table %+v\n", *x)
		rows(x.Name)
	}
	for _, x := range db.Tables("") {
		r, err := db.ReadJournal(x.Name, engine.JournalOptions{})
		if errors.Is(err, engine.ErrNoJournal) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for r.Next() {
			fmt.Fprintf(&b, "record %+v\n", *r.Record())
		}
		if r.Close(); r.Err() != nil {
			t.Fatal(r.Err())
		}
	}
	for _, x := range db.Backups().List("") {
		fmt.Fprintf(&b, "backup %s of %d bytes %+v\n", x.Name, x.Bytes, *x.Table)
	}
	for _, x := range db.DeletedTables("") {
		fmt.Fprintf(&b, "deleted %+v at %v\n", *x.Table, x.Deleted.UnixMicro())
	}
	all, err := db.Resources("")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		fmt.Fprintf(&b, "resource %s %x\n", r.Name, r.Value)
	}
	return b.String()
}

// TestCrash_ControlPlane crashes a server before every disk operation of a script of changes.
// Each change, with its table, operation, policy and settings, survives whole or not at all.
// Acknowledged changes survive.
func TestCrash_ControlPlane(t *testing.T) {
	t.Parallel()
	disk := faultdisk.NewCrashing(1)
	e := newEnvWith(t, Options{}, engine.Options{Dir: "data", FS: disk.FS(), MemTableBytes: faultdisk.MemTableBytes})
	run := faultdisk.Script{Disk: disk, Text: func() string { return storeText(t, e.db) }}
	for _, st := range changeScript() {
		run.Steps = append(run.Steps, faultdisk.Step{Name: st.name, Do: func() error { return st.run(e) }})
	}
	run.Reopen = func(x faultdisk.Crash) (string, error) {
		db, err := engine.Open(engine.Options{Dir: "data", FS: x.FS, Now: clock.NewFrozen(start).Now, MemTableBytes: faultdisk.MemTableBytes})
		if err != nil {
			return "", err
		}
		return storeText(t, db), db.Close()
	}
	crashes, err := run.Run()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d crashes", crashes)
}

// TestFaults_ControlPlane makes the disk fail from the n-th write of a change, for every n; the
// quick tier takes every third n. The disk holds the change whole or not at all. The store's
// answers match the disk, or report the failure.
func TestFaults_ControlPlane(t *testing.T) {
	t.Parallel()
	script := changeScript()
	e := newEnv(t)
	states := []string{storeText(t, e.db)} // after each number of changes
	for _, st := range script {
		if err := st.run(e); err != nil {
			t.Fatalf("%s: %v", st.name, err)
		}
		states = append(states, storeText(t, e.db))
	}
	every := 3
	if long.Enabled() {
		every = 1
	}
	for i, st := range script {
		t.Run(st.name, func(t *testing.T) {
			t.Parallel()
			n := 0
			for failAt(t, script[:i], st, n, states[i], states[i+1]) {
				n += every
			}
			if n == 0 {
				t.Error("nothing was written")
			}
		})
	}
}

// failAt runs the changes before st, then st with a disk that fails from the n-th write. It
// reports whether the disk failed.
func failAt(t *testing.T, before []step, st step, n int, old, changed string) bool {
	t.Helper()
	mem := vfs.NewCrashableMem()
	var mu sync.Mutex // guards the variables below
	failing, left, failed := false, n, false
	fs := faultdisk.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if !failing || op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
			return nil
		}
		if left--; left >= 0 {
			return nil
		}
		failed = true
		return errorfs.ErrInjected
	}))
	c := clock.NewFrozen(start)
	db, err := engine.Open(engine.Options{Dir: "data", FS: fs, Now: c.Now, MemTableBytes: faultdisk.MemTableBytes})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // may report the failure
	srv, err := New(Options{DB: db, Clock: c})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = srv.Close() }()
	e := &env{
		t: t, clock: c, db: db, srv: srv,
		data: btpb.NewBigtableClient(srv.Conn()), admin: btapb.NewBigtableTableAdminClient(srv.Conn()),
	}
	for _, b := range before {
		if err := b.run(e); err != nil {
			t.Fatalf("%s: %v", b.name, err)
		}
	}
	mu.Lock()
	failing = true
	mu.Unlock()
	answer := st.run(e)
	mu.Lock()
	failing = false
	isFailed, crashed := failed, mem.CrashClone(vfs.CrashCloneCfg{})
	mu.Unlock()

	again, err := engine.Open(engine.Options{Dir: "data", FS: crashed, Now: c.Now, MemTableBytes: faultdisk.MemTableBytes})
	if err != nil {
		t.Fatalf("write %d: %v", n, err)
	}
	defer func() { _ = again.Close() }()
	onDisk := storeText(t, again)
	if onDisk != old && onDisk != changed {
		t.Errorf("write %d: half of the change is on disk; beside all of it:\n%s", n, cmp.Diff(lines(changed), lines(onDisk)))
	}
	if answer == nil && onDisk != changed {
		t.Errorf("write %d: acknowledged and lost", n)
	}
	if _, err := db.Resources(""); err != nil {
		if answer == nil {
			answer = st.run(e)
		}
		if answer == nil {
			t.Errorf("write %d: a change is acknowledged by a store that has failed", n)
		}
		return isFailed
	}
	if inMemory := storeText(t, db); inMemory != onDisk || (answer == nil) != (onDisk == changed) {
		t.Errorf("write %d: answered %v; in memory and on disk:\n%s", n, answer, cmp.Diff(lines(inMemory), lines(onDisk)))
	}
	return isFailed
}
