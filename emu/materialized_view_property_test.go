package emu_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/faultdisk"
	"github.com/tabletop-emu/tabletop/internal/test/property"
)

// viewQueries are the views of the tests, of all shapes.
var viewQueries = map[string]string{
	"counts":  "SELECT info['city'] AS city, COUNT(*) AS n, MIN(info['name']) AS least, MAX(_key) AS last, SUM(total['n']) AS s, AVG(total['m']) AS a FROM g GROUP BY city",
	"cities":  "SELECT info['city'] AS city, _key AS k, info['name'] AS name, total['n'] AS n FROM g WHERE tags['a'] IS NULL ORDER BY city, k",
	"tagged":  "SELECT tag, LENGTH(_key) AS size, COUNT(*) AS n, COUNT(info['name']) AS names, COUNTIF(info['city'] = 'a') AS a, 2 * SUM(total['n']) + COUNT(*) AS s FROM g, UNNEST(MAP_KEYS(tags)) AS tag GROUP BY tag, size",
	"by_key":  "SELECT _key, COUNT(info['name']) AS n, LOGICAL_OR(info['city'] = 'a') AS a, MAX(WRITE_TIMESTAMP(info, 'name')) AS last FROM g GROUP BY _key",
	"by_tags": "SELECT _key AS k, tags FROM g ORDER BY k",
}

// viewLab is a server with views of the table g, and a clock.
type viewLab struct {
	tb    testing.TB
	now   *clock.Clock
	lag   time.Duration
	disk  *faultdisk.Memory
	db    *engine.DB
	srv   *emu.Server
	conn  grpc.ClientConnInterface
	data  btpb.BigtableClient
	admin btapb.BigtableTableAdminClient
	views btapb.BigtableInstanceAdminClient
	saved *engine.Snapshot
}

func newViewLab(tb testing.TB, lag time.Duration) *viewLab {
	tb.Helper()
	l := openViewLab(tb, lag)
	ctx := context.Background()
	// Clients use the cluster c, unless they name the app profile c2.
	_, err := l.views.CreateInstance(ctx, &btapb.CreateInstanceRequest{Parent: "projects/p", InstanceId: "i", Instance: &btapb.Instance{DisplayName: "two"}, Clusters: map[string]*btapb.Cluster{
		"c": {Location: "projects/p/locations/z1", ServeNodes: 1},
	}})
	if err == nil {
		_, err = l.views.CreateCluster(ctx, &btapb.CreateClusterRequest{Parent: sqlInstance, ClusterId: "c2", Cluster: &btapb.Cluster{Location: "projects/p/locations/z2", ServeNodes: 1}})
	}
	l.must(err)
	l.createProfile("c2")
	fillSQL(tb, l.conn)
	l.createViews()
	return l
}

// openViewLab is newViewLab without an instance and tables.
func openViewLab(tb testing.TB, lag time.Duration) *viewLab {
	tb.Helper()
	l := &viewLab{tb: tb, now: clock.NewFrozen(time.Unix(1_706_745_600, 0)), lag: lag, disk: faultdisk.NewMemory()}
	l.open()
	tb.Cleanup(func() { l.must(l.close()) })
	return l
}

// open opens the store on the disk.
func (l *viewLab) open() {
	l.tb.Helper()
	var err error
	l.db, err = engine.Open(engine.Options{Now: l.now.Now, FS: l.disk, Dir: "store"})
	l.must(err)
	l.srv, err = emu.New(emu.Options{DB: l.db, Clock: l.now, ViewLag: l.lag})
	l.must(err)
	l.connect()
}

func (l *viewLab) close() (err error) {
	if l.saved != nil {
		err = l.saved.Close()
		l.saved = nil
	}
	return errors.Join(err, l.srv.Close(), l.db.Close())
}

// createProfile creates an app profile that routes to the cluster with the same id.
func (l *viewLab) createProfile(cluster string) {
	l.tb.Helper()
	_, err := l.views.CreateAppProfile(context.Background(), &btapb.CreateAppProfileRequest{Parent: sqlInstance, AppProfileId: cluster, IgnoreWarnings: true, AppProfile: &btapb.AppProfile{
		RoutingPolicy: &btapb.AppProfile_SingleClusterRouting_{SingleClusterRouting: &btapb.AppProfile_SingleClusterRouting{ClusterId: cluster}},
	}})
	l.must(err)
}

func (l *viewLab) connect() {
	l.conn = l.srv.Conn()
	l.data, l.admin, l.views = btpb.NewBigtableClient(l.conn), btapb.NewBigtableTableAdminClient(l.conn), btapb.NewBigtableInstanceAdminClient(l.conn)
}

func (l *viewLab) must(err error) {
	l.tb.Helper()
	if err != nil {
		l.tb.Fatal(err)
	}
}

func (l *viewLab) createViews() {
	l.tb.Helper()
	for id, query := range viewQueries {
		mustCreateView(l.tb, l.conn, id, query)
	}
}

func (l *viewLab) deleteViews() {
	l.tb.Helper()
	for id := range viewQueries {
		_, err := l.views.DeleteMaterializedView(context.Background(), &btapb.DeleteMaterializedViewRequest{Name: sqlInstance + "/materializedViews/" + id})
		l.must(err)
	}
}

// text returns the result of a query with sorted rows.
func (l *viewLab) text(query string) string {
	lines := strings.SplitAfter(queryText(context.Background(), l.conn, query, nil), "\n")
	slices.Sort(lines[1:])
	return strings.Join(lines, "")
}

// rowsIn returns the number of rows that a read finds in a cluster.
func (l *viewLab) rowsIn(cluster string, req *btpb.ReadRowsRequest) (rows int) {
	l.tb.Helper()
	req.AppProfileId = cluster
	stream, err := l.data.ReadRows(context.Background(), req)
	for err == nil {
		var m *btpb.ReadRowsResponse
		m, err = stream.Recv()
		for _, c := range m.GetChunks() {
			if c.GetCommitRow() {
				rows++
			}
		}
	}
	if !errors.Is(err, io.EOF) {
		l.tb.Fatal(err)
	}
	return rows
}

// all returns the rows of all views, as SQL reads them; expected is what the queries return now.
func (l *viewLab) all() (got, expected map[string]string) {
	got, expected = map[string]string{}, map[string]string{}
	for id, query := range viewQueries {
		got[id], expected[id] = l.text("SELECT * FROM "+id), l.text(query)
	}
	return got, expected
}

// check fails if a view differs from its query, once all clusters have all writes.
func (l *viewLab) check(after string) {
	l.tb.Helper()
	l.must(l.srv.Replication(sqlInstance).DeliverAll())
	got, expected := l.all()
	for id := range viewQueries {
		if got[id] != expected[id] {
			l.tb.Fatalf("after %s, %s has\n%s\nwant\n%s", after, id, got[id], expected[id])
		}
		if strings.HasPrefix(got[id], "error") {
			l.tb.Fatalf("after %s: %s", after, got[id])
		}
	}
}

const viewTable = sqlInstance + "/tables/g"

func setCell(family, qualifier, v string, at int64) *btpb.Mutation {
	return &btpb.Mutation{Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{FamilyName: family, ColumnQualifier: []byte(qualifier), TimestampMicros: at, Value: []byte(v)}}}
}

func addToTotal(qualifier string, n int64) *btpb.Mutation {
	raw := func(b string) *btpb.Value { return &btpb.Value{Kind: &btpb.Value_RawValue{RawValue: []byte(b)}} }
	return &btpb.Mutation{Mutation: &btpb.Mutation_AddToCell_{AddToCell: &btpb.Mutation_AddToCell{
		FamilyName: "total", ColumnQualifier: raw(qualifier), Timestamp: &btpb.Value{Kind: &btpb.Value_RawTimestampMicros{}},
		Input: &btpb.Value{Kind: &btpb.Value_IntValue{IntValue: n}},
	}}}
}

func (l *viewLab) modify(m *btapb.ModifyColumnFamiliesRequest_Modification) error {
	_, err := l.admin.ModifyColumnFamilies(context.Background(), &btapb.ModifyColumnFamiliesRequest{Name: viewTable, Modifications: []*btapb.ModifyColumnFamiliesRequest_Modification{m}})
	return err
}

// viewChanges is everything that changes rows of a table. Each draws its inputs from pick, which returns a
// number below n.
var viewChanges = map[string]func(l *viewLab, pick func(n int) int) error{
	"MutateRow": func(l *viewLab, pick func(int) int) error {
		_, err := l.data.MutateRow(context.Background(), &btpb.MutateRowRequest{TableName: viewTable, RowKey: someRow(pick), Mutations: someMutations(pick)})
		return err
	},
	"MutateRows": func(l *viewLab, pick func(int) int) error {
		req := &btpb.MutateRowsRequest{TableName: viewTable}
		for range 1 + pick(4) {
			req.Entries = append(req.Entries, &btpb.MutateRowsRequest_Entry{RowKey: someRow(pick), Mutations: someMutations(pick)})
		}
		stream, err := l.data.MutateRows(context.Background(), req)
		for err == nil {
			_, err = stream.Recv()
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	},
	"CheckAndMutateRow": func(l *viewLab, pick func(int) int) error {
		_, err := l.data.CheckAndMutateRow(context.Background(), &btpb.CheckAndMutateRowRequest{TableName: viewTable, RowKey: someRow(pick), TrueMutations: someMutations(pick), FalseMutations: someMutations(pick)})
		return err
	},
	"ReadModifyWriteRow": func(l *viewLab, pick func(int) int) error {
		_, err := l.data.ReadModifyWriteRow(context.Background(), &btpb.ReadModifyWriteRowRequest{TableName: viewTable, RowKey: someRow(pick), Rules: []*btpb.ReadModifyWriteRule{
			{FamilyName: "info", ColumnQualifier: []byte("city"), Rule: &btpb.ReadModifyWriteRule_AppendValue{AppendValue: []byte("x")}},
		}})
		return err
	},
	"DropRowRange": func(l *viewLab, pick func(int) int) error {
		req := &btapb.DropRowRangeRequest{Name: viewTable, Target: &btapb.DropRowRangeRequest_RowKeyPrefix{RowKeyPrefix: []byte("uvw"[pick(3):][:1])}}
		if pick(3) == 0 {
			req.Target = &btapb.DropRowRangeRequest_DeleteAllDataFromTable{DeleteAllDataFromTable: true}
		}
		_, err := l.admin.DropRowRange(context.Background(), req)
		return err
	},
	"a dropped family": func(l *viewLab, pick func(int) int) error {
		family := []string{"info", "tags"}[pick(2)]
		if err := l.modify(&btapb.ModifyColumnFamiliesRequest_Modification{Id: family, Mod: &btapb.ModifyColumnFamiliesRequest_Modification_Drop{Drop: true}}); err != nil {
			return err
		}
		if pick(2) == 0 { // views can be read without the family
			if got := l.text("SELECT * FROM counts"); strings.HasPrefix(got, "error") {
				return errors.New(got)
			}
		}
		return l.modify(&btapb.ModifyColumnFamiliesRequest_Modification{Id: family, Mod: &btapb.ModifyColumnFamiliesRequest_Modification_Create{Create: &btapb.ColumnFamily{}}})
	},
	"garbage collection": func(l *viewLab, pick func(int) int) error {
		rule := &btapb.GcRule{Rule: &btapb.GcRule_MaxAge{MaxAge: durationpb.New(time.Hour)}}
		family := []string{"info", "tags", "stats"}[pick(3)]
		if err := l.modify(&btapb.ModifyColumnFamiliesRequest_Modification{Id: family, Mod: &btapb.ModifyColumnFamiliesRequest_Modification_Update{Update: &btapb.ColumnFamily{GcRule: rule}}}); err != nil {
			return err
		}
		_, err := l.srv.RunGC(context.Background())
		return err
	},
	"time and garbage collection": func(l *viewLab, _ func(int) int) error {
		l.now.Advance(26 * time.Hour) // the journal no longer reaches back
		_, err := l.srv.RunGC(context.Background())
		return err
	},
	"RestoreTable": func(l *viewLab, _ func(int) int) error {
		ctx := context.Background()
		backup := sqlInstance + "/clusters/c/backups/b"
		_, err := l.admin.CreateBackup(ctx, &btapb.CreateBackupRequest{Parent: sqlInstance + "/clusters/c", BackupId: "b", Backup: &btapb.Backup{SourceTable: viewTable, ExpireTime: inAMonth(l.now)}})
		if err != nil {
			return err
		}
		l.deleteViews()
		if _, err := l.admin.DeleteTable(ctx, &btapb.DeleteTableRequest{Name: viewTable}); err != nil {
			return err
		}
		_, err = l.admin.RestoreTable(ctx, &btapb.RestoreTableRequest{Parent: sqlInstance, TableId: "g", Source: &btapb.RestoreTableRequest_Backup{Backup: backup}})
		if err == nil {
			_, err = l.admin.DeleteBackup(ctx, &btapb.DeleteBackupRequest{Name: backup})
		}
		if err == nil {
			l.createViews()
		}
		return err
	},
	"UndeleteTable": func(l *viewLab, _ func(int) int) error {
		l.deleteViews()
		if _, err := l.admin.DeleteTable(context.Background(), &btapb.DeleteTableRequest{Name: viewTable}); err != nil {
			return err
		}
		if _, err := l.admin.UndeleteTable(context.Background(), &btapb.UndeleteTableRequest{Name: viewTable}); err != nil {
			return err
		}
		l.createViews()
		return nil
	},
	"a write of another cluster": func(l *viewLab, pick func(int) int) error {
		if err := l.srv.Replication(sqlInstance).Lag(time.Hour); err != nil {
			return err
		}
		_, err := l.data.MutateRow(context.Background(), &btpb.MutateRowRequest{TableName: viewTable, AppProfileId: "c2", RowKey: someRow(pick), Mutations: someMutations(pick)})
		return err
	},
	"a restart": func(l *viewLab, _ func(int) int) error {
		err := l.close()
		l.open()
		return err
	},
	"a crash": func(l *viewLab, pick func(int) int) error {
		// Half of the data that was not synced is lost, or all.
		clone := l.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50 * pick(2), RNG: rand.New(rand.NewPCG(uint64(pick(100)), 1))}) //nolint:gosec // less than 100
		err := l.close()
		l.disk = &faultdisk.Memory{MemFS: clone}
		l.open()
		return err
	},
	"a snapshot of the store": func(l *viewLab, _ func(int) int) (err error) {
		if l.saved != nil {
			if err := l.saved.Close(); err != nil {
				return err
			}
		}
		l.saved, err = l.db.Snapshot(context.Background())
		return err
	},
	"a restore of the store": func(l *viewLab, _ func(int) int) error {
		if l.saved == nil {
			var err error
			if l.saved, err = l.db.Snapshot(context.Background()); err != nil {
				return err
			}
			mutate(l.tb, l.conn, "u#001", &btpb.Mutation{Mutation: &btpb.Mutation_DeleteFromRow_{}})
			l.all() // the views follow before they are restored
		}
		return l.db.Restore(context.Background(), l.saved)
	},
}

func someRow(pick func(int) int) []byte {
	return []byte("uvw"[pick(3):][:1] + "#00" + "123"[pick(3):][:1])
}

func someMutations(pick func(int) int) []*btpb.Mutation {
	var out []*btpb.Mutation
	for range 1 + pick(3) {
		v := []string{"", "a", "b\x00", "\x00"}[pick(4)]
		out = append(out, []*btpb.Mutation{
			setCell("info", "city", v, 1_699_990_000_000_000+int64(pick(3))*1000), setCell("info", "name", v, 1000), setCell("tags", "ab"[pick(2):][:1], v, 1_699_999_999_000_000),
			addToTotal("nm"[pick(2):][:1], int64(pick(5))-2),
			{Mutation: &btpb.Mutation_DeleteFromFamily_{DeleteFromFamily: &btpb.Mutation_DeleteFromFamily{FamilyName: "info"}}},
			{Mutation: &btpb.Mutation_DeleteFromColumn_{DeleteFromColumn: &btpb.Mutation_DeleteFromColumn{FamilyName: "tags", ColumnQualifier: []byte("a")}}},
			{Mutation: &btpb.Mutation_DeleteFromRow_{}},
		}[pick(7)])
	}
	return out
}

// Each change of rows reaches the views, whoever makes it.
func TestMaterializedViews_Changes(t *testing.T) {
	t.Parallel()
	same := map[string]bool{"RestoreTable": true, "UndeleteTable": true, "a snapshot of the store": true, "a restore of the store": true, "a restart": true, "a crash": true, "time and garbage collection": true}
	for name, change := range viewChanges {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newViewLab(t, 0)
			l.check("creation")
			before, _ := l.all()
			n := 0
			l.must(change(l, func(limit int) int { n++; return n % limit }))
			l.check(name)
			if after, _ := l.all(); maps.Equal(before, after) != same[name] {
				t.Errorf("%s leaves the views as\n%v\nof\n%v", name, after, before)
			}
		})
	}
}

// TestMaterializedViews_Property: after random changes the rows of a view are those of its query: at once, after
// the lag, or after a refresh.
func TestMaterializedViews_Property(t *testing.T) {
	t.Parallel()
	names := make([]string, 0, len(viewChanges))
	for name := range viewChanges {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, lag := range []time.Duration{0, time.Minute, emu.ManualViews} {
		t.Run(lag.String(), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, property.First(6, func(r *rapid.T) {
				t.Run("case", func(t *testing.T) {
					l := newViewLab(t, lag)
					for range rapid.IntRange(1, 25).Draw(r, "rounds") {
						made := false
						var after []string
						var before map[string]string
						if lag != 0 {
							before, _ = l.all()
						}
						for range rapid.IntRange(1, 4).Draw(r, "changes") {
							name := rapid.SampledFrom(names).Draw(r, "change")
							if rapid.Bool().Draw(r, "plain") {
								name = "MutateRow"
							}
							after = append(after, name)
							made = made || !strings.HasPrefix(name, "Mutate")
							l.must(viewChanges[name](l, func(n int) int { return rapid.IntRange(0, n-1).Draw(r, "choice") }))
						}
						if lag != 0 && !made {
							for id, got := range first(l.all()) {
								if got != before[id] {
									t.Fatalf("after %v, %s changed too early:\n%s\nwas\n%s", after, id, got, before[id])
								}
							}
						}
						switch {
						case lag > 0:
							l.now.Advance(lag)
						case lag < 0:
							l.must(l.srv.RefreshViews(context.Background()))
						}
						l.check(strings.Join(after, ", "))
					}
				})
			}))
		})
	}
}

func first(got, _ map[string]string) map[string]string { return got }

func inAMonth(now *clock.Clock) *timestamppb.Timestamp {
	return timestamppb.New(now.Now().Add(30 * 24 * time.Hour))
}

// A table without views records nothing, even after its last view was deleted.
func TestMaterializedViews_Cost(t *testing.T) {
	t.Parallel()
	l := newViewLab(t, 0)
	recorded := func() uint64 {
		before, _ := l.db.JournalLast()
		for range 10 {
			mutate(t, l.conn, "u#001", setCell("info", "city", "x", 1000))
			l.text("SELECT info['city'] FROM g")
		}
		after, _ := l.db.JournalLast()
		return after - before
	}
	if n := recorded(); n != 10 {
		t.Errorf("10 writes of a table with views are %d records", n)
	}
	l.deleteViews()
	if n := recorded(); n != 0 {
		t.Errorf("10 writes of a table without views are %d records", n)
	}
}

// While a large table fills a view in chunks, writes go on, and none of them is missed.
func TestMaterializedViews_FillAndWrite(t *testing.T) {
	t.Parallel()
	l := newViewLab(t, 0)
	l.deleteViews()
	req := &btpb.MutateRowsRequest{TableName: viewTable}
	for i := range 3000 {
		req.Entries = append(req.Entries, &btpb.MutateRowsRequest_Entry{RowKey: fmt.Appendf(nil, "u#%05d", i), Mutations: []*btpb.Mutation{setCell("info", "city", string(rune('a'+i%3)), 1000)}})
	}
	stream, err := l.data.MutateRows(t.Context(), req)
	for err == nil {
		_, err = stream.Recv()
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := range 200 {
				row := fmt.Appendf(nil, "u#%05d", (i*17+w*750)%3000)
				m := []*btpb.Mutation{setCell("info", "city", "d", 2000)}
				if i%5 == 0 {
					m = []*btpb.Mutation{{Mutation: &btpb.Mutation_DeleteFromRow_{}}}
				}
				if _, err := l.data.MutateRow(t.Context(), &btpb.MutateRowRequest{TableName: viewTable, RowKey: row, Mutations: m}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	l.createViews()
	writers.Wait()
	l.check("writes during the fill")
}

// An unread view catches up with the time, once, and then has nothing to do.
func TestMaterializedViews_Due(t *testing.T) {
	t.Parallel()
	l := newViewLab(t, 0)
	if at, ok, err := l.srv.NextDue(); ok || err != nil {
		t.Errorf("views without changes are due at %v, %v", at, err)
	}
	mutate(t, l.conn, "u#001", setCell("info", "city", "x", 1000))
	at, ok, err := l.srv.NextDue()
	if !ok || err != nil || at.Sub(l.now.Now()) > 40*time.Minute {
		t.Errorf("after a change, views are due at %v, %t, %v", at, ok, err)
	}
	l.now.Advance(40 * time.Minute)
	l.must(l.srv.RunDue(t.Context()))
	if at, ok, err := l.srv.NextDue(); ok || err != nil {
		t.Errorf("after the work, views are due at %v, %v", at, err)
	}
	l.now.Advance(40 * time.Minute) // the record is too old to be read now
	l.check("the work")

	// The second read within a minute does not store its position: the work does.
	for _, city := range []string{"y", "z"} {
		mutate(t, l.conn, "u#001", setCell("info", "city", city, 1000))
		l.check("a change to " + city)
	}
	if _, ok, err := l.srv.NextDue(); !ok || err != nil {
		t.Errorf("after a read, views are due: %t, %v", ok, err)
	}
	l.now.Advance(40 * time.Minute)
	l.must(l.srv.RunDue(t.Context()))
	if at, ok, err := l.srv.NextDue(); ok || err != nil {
		t.Errorf("after the second work, views are due at %v, %v", at, err)
	}
}

// After a restart or a crash, views have the changes that nobody has read from them, and follow later ones.
func TestMaterializedViews_Restart(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a restart", "a crash"} {
		l := newViewLab(t, 0)
		mutate(t, l.conn, "u#001", &btpb.Mutation{Mutation: &btpb.Mutation_DeleteFromRow_{}})
		l.must(viewChanges[name](l, func(int) int { return 0 }))
		l.check(name)
		mutate(t, l.conn, "w#001", setCell("info", "city", "x", 1000))
		l.check("a write after " + name)
	}
}

// Views have the writes of all clusters at once. What a deleted cluster loses, they lose.
func TestMaterializedViews_Replication(t *testing.T) {
	t.Parallel()
	l := openViewLab(t, 0)
	ctx := t.Context()
	_, err := l.views.CreateInstance(ctx, &btapb.CreateInstanceRequest{Parent: "projects/p", InstanceId: "i", Instance: &btapb.Instance{DisplayName: "two"}, Clusters: map[string]*btapb.Cluster{
		"c1": {Location: "projects/p/locations/z1", ServeNodes: 1}, "c2": {Location: "projects/p/locations/z2", ServeNodes: 1},
	}})
	l.must(err)
	for _, c := range []string{"c1", "c2"} {
		l.createProfile(c)
	}
	fillSQL(t, l.conn)
	l.createViews()
	replication := l.srv.Replication(sqlInstance)
	l.must(replication.Lag(time.Hour))
	write := func(cluster, row, city string) {
		_, err := l.data.MutateRow(ctx, &btpb.MutateRowRequest{TableName: viewTable, AppProfileId: cluster, RowKey: []byte(row), Mutations: []*btpb.Mutation{setCell("info", "city", city, 1000)}})
		l.must(err)
	}
	write("c1", "u#002", "city x")
	write("c2", "v#001", "city y")
	if got := l.text("SELECT k FROM cities WHERE STARTS_WITH(city, 'city ')"); got != "k BYTES\n(b'v#001')\n" { // u#002 has a tag
		t.Errorf("before the writes arrive, a view has %s", got)
	}
	// On the service each cluster has a copy of its own, which follows the rows of the cluster.
	for _, cluster := range []string{"c1", "c2"} {
		got := l.rowsIn(cluster, &btpb.ReadRowsRequest{MaterializedViewName: sqlInstance + "/materializedViews/counts", Rows: &btpb.RowSet{RowKeys: [][]byte{[]byte("city x"), []byte("city y")}}})
		rows := l.rowsIn(cluster, &btpb.ReadRowsRequest{TableName: viewTable, Filter: &btpb.RowFilter{Filter: &btpb.RowFilter_ValueRegexFilter{ValueRegexFilter: []byte("city [xy]")}}})
		if got != 2 || rows != 1 {
			t.Errorf("in %s, a view has %d of the writes, and the table %d; want both and its own", cluster, got, rows)
		}
	}
	l.must(replication.DeliverAll())
	l.check("the delivery")
	write("c2", "w#001", "lost")
	l.all() // the views have it
	_, err = l.views.DeleteAppProfile(ctx, &btapb.DeleteAppProfileRequest{Name: sqlInstance + "/appProfiles/c2", IgnoreWarnings: true})
	l.must(err)
	_, err = l.views.DeleteCluster(ctx, &btapb.DeleteClusterRequest{Name: sqlInstance + "/clusters/c2"})
	l.must(err)
	l.must(replication.DeliverAll())
	l.check("the deletion of a cluster")
	if got := l.text("SELECT k FROM cities WHERE city = 'lost'"); got != "k BYTES\n" {
		t.Errorf("a view has what a cluster lost: %s", got)
	}
}
