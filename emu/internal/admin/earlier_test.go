package admin

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tabletop-emu/tabletop/emu/internal/instancedef"
	"github.com/tabletop-emu/tabletop/emu/internal/pending"
	"github.com/tabletop-emu/tabletop/emu/internal/replica"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/clock"
)

// newControl returns a control plane whose operations take a minute.
func newControl(t *testing.T) (*Control, *clock.Clock) {
	t.Helper()
	now := clock.NewFrozen(start)
	db, err := engine.Open(engine.Options{Now: now.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	s := &Control{DB: db, Clock: now, Logger: slog.New(slog.DiscardHandler), Delay: time.Minute}
	s.Replication, err = replica.NewControl(replica.Options{
		Now: now.Now, Last: db.JournalLast,
		Clusters: func(instance string) ([]*instancedef.StoredCluster, error) { return StoredClusters(db, instance) },
		Keep:     func(string, time.Duration) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Rows = replica.NewRows(replica.RowsOptions{DB: db, Control: s.Replication})
	return s, now
}

// hide stores a state in the unknown fields of a message, as earlier versions
// did.
func hide(m proto.Message, s pending.State) {
	var raw []byte
	if s.Note != nil {
		raw = protowire.AppendBytes(protowire.AppendTag(raw, protowire.MaxValidNumber-1, protowire.BytesType), s.Note)
	}
	if !s.At.IsZero() {
		raw = protowire.AppendVarint(protowire.AppendTag(raw, protowire.MaxValidNumber, protowire.VarintType), uint64(s.At.UnixMicro()))
	}
	m.ProtoReflect().SetUnknown(raw)
}

// recordKinds are the kinds of resources that are stored as records.
var recordKinds = map[string]proto.Message{
	kindInstance: &btapb.Instance{}, kindCluster: &btapb.Cluster{}, kindMemoryLayer: &btapb.MemoryLayer{},
	KindSnapshot: &btapb.Snapshot{}, kindOperation: &longrunningpb.Operation{},
}

// rewrite stores all records again, in the form of earlier versions or as
// records.
func rewrite(t *testing.T, s *Control, earlier bool) {
	t.Helper()
	marshal := proto.MarshalOptions{Deterministic: true}.Marshal
	err := s.DB.UpdateCatalog(t.Context(), func(tx *engine.CatalogTx) error {
		for kind, m := range recordKinds {
			found, err := tx.Resources(kind)
			if err != nil || len(found) == 0 {
				return fmt.Errorf("%d resources of kind %s: %w", len(found), kind, err)
			}
			for _, r := range found {
				m := m.ProtoReflect().New().Interface()
				state, err := pending.Decode(r.Value, m)
				if err != nil || pending.IsRecord(r.Value) != earlier {
					return fmt.Errorf("%s is %x: %w", r.Name, r.Value, err)
				}
				raw, err := pending.Encode(m, state)
				if earlier {
					hide(m, state)
					raw, err = marshal(m)
				}
				if err = errors.Join(err, tx.PutResource(r.Name, raw)); err != nil {
					return err
				}
			}
		}
		for _, found := range tx.Tables("") {
			_, err := tx.UpdateTable(found.Name, func(t *engine.Table) (err error) {
				set := settingsOf(t)
				if !earlier {
					t.Meta, err = set.encode()
					return err
				}
				hide(set.Table, pending.State{At: set.readyAt})
				if set.GetRestoreInfo() != nil {
					hide(set.GetRestoreInfo(), pending.State{At: set.optimizedAt})
				}
				if p := set.GetAutomatedBackupPolicy(); p != nil {
					hide(p, pending.State{At: set.planFrom})
				}
				t.Meta, err = marshal(set.Table)
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// shown returns the visible state of the control plane, and the work that is
// due.
func shown(t *testing.T, s *Control) string {
	t.Helper()
	var out strings.Builder
	resources, err := s.Resources()
	for _, r := range resources {
		fmt.Fprintln(&out, r.Kind, r.Name, r.Message)
	}
	ops, opsErr := operationsService{Control: s}.ListOperations(t.Context(), &longrunningpb.ListOperationsRequest{Name: "operations"})
	for _, op := range ops.GetOperations() {
		fmt.Fprintln(&out, op)
	}
	clusters, clustersErr := StoredClusters(s.DB, testInstance)
	for _, c := range clusters {
		fmt.Fprintf(&out, "%s %v %d\n", c.Message.GetName(), c.At, c.Note)
	}
	for _, table := range s.DB.Tables("") {
		fmt.Fprintln(&out, toTable(table, btapb.Table_FULL, messagesOf(clusters), s.now()))
	}
	err = errors.Join(err, opsErr, clustersErr)
	for _, w := range s.Work() {
		items, dueErr := w.Due()
		err = errors.Join(err, dueErr)
		fmt.Fprintln(&out, items)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

const testInstance = "projects/p/instances/i"

// fill creates a resource of each kind in recordKinds, and a restored table.
func fill(t *testing.T, s *Control, now *clock.Clock) {
	t.Helper()
	ctx, instances, tables := t.Context(), instanceAdminService{Control: s}, tableAdminService{Control: s}
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(instances.CreateInstance(ctx, &btapb.CreateInstanceRequest{
		Parent: "projects/p", InstanceId: "i", Instance: &btapb.Instance{},
		Clusters: map[string]*btapb.Cluster{"c1": {Location: "projects/p/locations/us-east1-b", ServeNodes: 1}},
	}))
	must(tables.CreateTable(ctx, &btapb.CreateTableRequest{Parent: testInstance, TableId: "t", Table: &btapb.Table{
		ColumnFamilies: map[string]*btapb.ColumnFamily{"f": {}}, AutomatedBackupConfig: &btapb.Table_AutomatedBackupPolicy_{AutomatedBackupPolicy: daily()},
	}}))
	now.AdvanceTo(start.Add(time.Minute))
	must(tables.CreateBackup(ctx, &btapb.CreateBackupRequest{Parent: testInstance + "/clusters/c1", BackupId: "b", Backup: &btapb.Backup{
		SourceTable: testInstance + "/tables/t", ExpireTime: timestamppb.New(start.Add(30 * day)),
	}}))
	now.AdvanceTo(start.Add(2 * time.Minute))
	must(tables.RestoreTable(ctx, &btapb.RestoreTableRequest{
		Parent: testInstance, TableId: "restored", Source: &btapb.RestoreTableRequest_Backup{Backup: testInstance + "/clusters/c1/backups/b"},
	}))
	must(instances.CreateCluster(ctx, &btapb.CreateClusterRequest{
		Parent: testInstance, ClusterId: "c2", Cluster: &btapb.Cluster{Location: "projects/p/locations/us-east1-c", ServeNodes: 1},
	}))
	must(instances.UpdateMemoryLayer(ctx, &btapb.UpdateMemoryLayerRequest{
		MemoryLayer: &btapb.MemoryLayer{Name: testInstance + "/clusters/c1/memoryLayer", MemoryConfig: &btapb.MemoryLayer_MemoryConfig{}},
	}))
	must(tables.SnapshotTable(ctx, &btapb.SnapshotTableRequest{Name: testInstance + "/tables/t", Cluster: testInstance + "/clusters/c1", SnapshotId: "s"}))
	now.AdvanceTo(start.Add(150 * time.Second))
}

// Stores of an earlier version and of this one show the same state at all
// times.
func TestEarlierStores(t *testing.T) {
	t.Parallel()
	s, now := newControl(t)
	fill(t, s, now)
	seen := map[string]bool{}
	for _, at := range []time.Duration{150 * time.Second, 180 * time.Second, 210 * time.Second, 240 * time.Second, day} {
		now.AdvanceTo(start.Add(at))
		want := shown(t, s)
		rewrite(t, s, true)
		if got := shown(t, s); got != want {
			t.Errorf("after %v an earlier store shows\n%s\nwant\n%s", at, got, want)
		}
		rewrite(t, s, false)
		if got := shown(t, s); got != want {
			t.Errorf("after %v a rewritten store shows\n%s\nwant\n%s", at, got, want)
		}
		seen[want] = true
	}
	if len(seen) < 4 {
		t.Errorf("%d states are shown: the times change nothing", len(seen))
	}
}

// Changing a resource of an earlier version stores a record with the same
// state.
func TestEarlierStores_Changed(t *testing.T) {
	t.Parallel()
	s, now := newControl(t)
	fill(t, s, now)
	rewrite(t, s, true)
	before, err := cluster(s.DB, testInstance+"/clusters/c2")
	if err != nil || before.Note == nil || before.At.IsZero() {
		t.Fatalf("c2 is %v, %v", before, err)
	}
	c := &btapb.Cluster{Name: before.Message.GetName(), ServeNodes: 3}
	if _, err := (instanceAdminService{Control: s}).UpdateCluster(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	_, err = tableAdminService{Control: s}.UpdateTable(t.Context(), &btapb.UpdateTableRequest{
		Table: &btapb.Table{Name: testInstance + "/tables/t", DeletionProtection: true}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"deletion_protection"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := s.DB.Resource(kindCluster + c.GetName())
	if err != nil || !pending.IsRecord(raw) {
		t.Errorf("c2 is stored as %x, %v", raw, err)
	}
	if after, err := cluster(s.DB, c.GetName()); err != nil || after.Message.GetServeNodes() != 3 || !after.At.Equal(before.At) || string(after.Note) != string(before.Note) {
		t.Errorf("c2 is %v, %v; was %v", after, err, before)
	}
	table, err := s.DB.Table(testInstance + "/tables/t")
	if err != nil || !pending.IsRecord(table.Meta) || !protected(table) || !AutomatedPlanOf(table).From.Equal(start) {
		t.Errorf("the table is %v, %v", table, err)
	}
}
