package emu

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/test/race"
)

// mutateVia mutates a row through an app profile.
func (e *env) mutateVia(profile, row string, muts ...*btpb.Mutation) {
	e.t.Helper()
	_, err := e.data.MutateRow(e.ctx(), &btpb.MutateRowRequest{
		TableName: testTable, AppProfileId: profile, RowKey: []byte(row), Mutations: muts,
	})
	e.must(err)
}

// seenVia reads the table through an app profile and returns its cells as text, without
// columns.
func (e *env) seenVia(profile string, req *btpb.ReadRowsRequest) string {
	e.t.Helper()
	if req == nil {
		req = &btpb.ReadRowsRequest{}
	}
	req.TableName, req.AppProfileId = testTable, profile
	var out []string
	for _, row := range e.mustRead(req).rows {
		for _, c := range row.cells {
			out = append(out, fmt.Sprintf("%s@%d=%s", row.key, c.micros, c.value))
		}
	}
	return strings.Join(out, " ")
}

// wantSeen reads through the profiles c1, c2, … and compares each result.
func (e *env) wantSeen(what string, want ...string) {
	e.t.Helper()
	for i, w := range want {
		profile := fmt.Sprintf("c%d", i+1)
		if got := e.seenVia(profile, nil); got != w {
			e.t.Errorf("%s: %s sees %q, want %q", what, profile, got, w)
		}
	}
}

// transactIn creates an app profile that routes to a cluster and allows transactions.
func (e *env) transactIn(cluster, profile string) {
	e.t.Helper()
	_, err := e.instances().CreateAppProfile(e.ctx(), &btapb.CreateAppProfileRequest{
		Parent: testInstance, AppProfileId: profile, AppProfile: singleCluster(cluster, true), IgnoreWarnings: true,
	})
	e.must(err)
}

func TestTrap150_LagHidesWrites(t *testing.T) {
	t.Parallel()
	e := newReplicated(t, Options{}, 2)
	e.mutateVia("c1", "m", set("a", "q", 1000, "old"))
	e.must(e.clusters().Lag(time.Minute))
	e.mutateVia("c1", "m", set("a", "q", 2000, "new"))
	e.mutateVia("c1", "a", set("a", "q", 1000, "x"))
	e.mutateVia("c2", "z", set("a", "q", 1000, "y"))
	one, two := "a@1000=x m@2000=new m@1000=old", "m@1000=old z@1000=y"
	e.wantSeen("at once", one, two)
	e.clock.Advance(59 * time.Second)
	e.wantSeen("after 59 s", one, two)
	for name, req := range map[string]*btpb.ReadRowsRequest{
		"m@1000=old": {RowsLimit: 1},
		"":           {Rows: &btpb.RowSet{RowKeys: [][]byte{[]byte("a")}}},
		"z@1000=y":   {Rows: &btpb.RowSet{RowKeys: [][]byte{[]byte("a"), []byte("z")}}},
	} {
		if got := e.seenVia("c2", req); got != name {
			t.Errorf("c2 sees %q of %v, want %q", got, req, name)
		}
	}
	back, err := readRows(withFeatures(e.ctx(), &btpb.FeatureFlags{ReverseScans: true}, base64.URLEncoding), e.data, &btpb.ReadRowsRequest{
		TableName: testTable, AppProfileId: "c2", Reversed: true,
	})
	if err != nil || len(back.rows) != 2 || back.rows[0].key != "z" || back.rows[1].cells[0].value != "old" {
		t.Errorf("reversed, c2 sees\n%s%v", back.text(), err)
	}
	e.clock.Advance(time.Second)
	all := "a@1000=x m@2000=new m@1000=old z@1000=y"
	e.wantSeen("after a minute", all, all)
}

func TestTrap151_LastCommitWins(t *testing.T) {
	t.Parallel()
	for _, late := range []string{"c1", "c2"} {
		e := newReplicated(t, Options{}, 2)
		other := map[string]string{"c1": "c2", "c2": "c1"}[late]
		e.must(e.clusters().LagBetween(late, other, time.Hour))
		e.must(e.clusters().LagBetween(other, late, time.Minute))
		e.mutateVia("c1", "r", set("a", "q", 1000, "first"))
		e.mutateVia("c2", "r", set("a", "q", 1000, "second"))
		e.wantSeen("at once", "r@1000=first", "r@1000=second")
		e.clock.Advance(time.Hour)
		e.wantSeen("in the end", "r@1000=second", "r@1000=second")
	}
}

func TestTrap152_DeletesByCommit(t *testing.T) {
	t.Parallel()
	e := newReplicated(t, Options{}, 2)
	e.mutateVia("c1", "r", set("a", "q", 2000, "before"))
	e.must(e.clusters().Lag(time.Minute))
	e.mutateVia("c1", "r", deleteRow())
	e.mutateVia("c2", "r", set("a", "q", 1000, "set"))
	e.wantSeen("delete, set", "", "r@2000=before r@1000=set")
	e.clock.Advance(time.Minute)
	e.wantSeen("delete, set, in the end", "r@1000=set", "r@1000=set")

	e.mutateVia("c2", "r", set("a", "q", 3000, "again"))
	e.mutateVia("c1", "r", deleteRow())
	e.wantSeen("set, delete", "", "r@3000=again r@1000=set")
	e.clock.Advance(time.Minute)
	e.wantSeen("set, delete, in the end", "", "")
}

func TestTrap153_Increments(t *testing.T) {
	t.Parallel()
	e := newReplicated(t, Options{}, 2)
	e.transactIn("c2", "t2")
	e.modifyFamilies("t", createFamily("sum", aggregateOf("sum", int64Type())))
	e.must(e.clusters().Lag(time.Minute))
	for _, profile := range []string{"c1", "t2"} {
		resp, err := e.data.ReadModifyWriteRow(e.ctx(), &btpb.ReadModifyWriteRowRequest{
			TableName: testTable, AppProfileId: profile, RowKey: []byte("n"), Rules: []*btpb.ReadModifyWriteRule{{
				FamilyName: "a", ColumnQualifier: []byte("q"), Rule: &btpb.ReadModifyWriteRule_IncrementAmount{IncrementAmount: 1},
			}},
		})
		e.must(err)
		if got := resp.GetRow().GetFamilies()[0].GetColumns()[0].GetCells()[0].GetValue(); got[7] != 1 {
			t.Errorf("%s: the increment is answered by %x, want 1", profile, got)
		}
		e.mutateVia(profile, "s", addTo("sum", "q", 1000, intValueOf(1)))
	}
	sums := func(profile string) (n, s byte) {
		got := strings.Fields(e.seenVia(profile, &btpb.ReadRowsRequest{Filter: columnLimitOf(1)}))
		if len(got) != 2 {
			t.Fatalf("%s sees %q", profile, got)
		}
		return got[0][len(got[0])-1], got[1][len(got[1])-1]
	}
	for _, profile := range []string{"c1", "c2"} {
		if n, s := sums(profile); n != 1 || s != 1 {
			t.Errorf("%s sees %d and %d inside the lag, want 1 and 1", profile, n, s)
		}
	}
	e.clock.Advance(time.Minute)
	for _, profile := range []string{"c1", "c2"} {
		if n, s := sums(profile); n != 1 || s != 2 {
			t.Errorf("%s sees %d and %d in the end, want 1, one is lost, and 2", profile, n, s)
		}
	}
}

func TestDivergence_CheckAndMutate(t *testing.T) {
	t.Parallel()
	e := newReplicated(t, Options{}, 2)
	e.transactIn("c2", "t2")
	e.must(e.clusters().Lag(time.Minute))
	e.mutateVia("c1", "r", set("a", "q", 1000, "v"))
	for profile, want := range map[string]bool{"c1": true, "t2": false} {
		resp, err := e.data.CheckAndMutateRow(e.ctx(), &btpb.CheckAndMutateRowRequest{
			TableName: testTable, AppProfileId: profile, RowKey: []byte("r"), TrueMutations: []*btpb.Mutation{set("a", "q", 1000, "v")},
		})
		if err != nil || resp.GetPredicateMatched() != want {
			t.Errorf("%s: %v, %v; want %v", profile, resp.GetPredicateMatched(), err, want)
		}
	}
}

// Pending writes survive a restart, and arrive in time even while the server is down.
func TestTrap150_Restart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := newEnvWith(t, Options{ReplicationLag: time.Minute}, engine.Options{Dir: dir})
	e.replicate(2)
	e.mutateVia("c1", "r", set("a", "q", 1000, "old"))
	e.clock.Advance(time.Minute)
	e.mutateVia("c1", "r", deleteRow())
	e.mutateVia("c1", "r", set("a", "q", 2000, "new"))
	e.wantSeen("before", "r@2000=new", "r@1000=old")
	again := func() {
		now := e.clock.Now()
		e.must(errors.Join(e.srv.Close(), e.db.Close()))
		e = newEnvWith(t, Options{ReplicationLag: time.Minute}, engine.Options{Dir: dir})
		e.clock.Advance(now.Sub(e.clock.Now()))
	}
	again()
	e.wantSeen("after a restart", "r@2000=new", "r@1000=old")
	e.mutateVia("c2", "r", set("a", "q", 3000, "other"))
	e.wantSeen("and a write", "r@2000=new", "r@3000=other r@1000=old")
	again()
	e.wantSeen("after another one", "r@2000=new", "r@3000=other r@1000=old")
	e.clock.Advance(time.Minute)
	e.wantSeen("in the end", "r@3000=other r@2000=new", "r@3000=other r@2000=new")
	e.must(e.srv.RunDue(e.ctx()))
	if images, err := e.db.Resources("replicated/"); err != nil || len(images) > 0 {
		t.Errorf("%d images are left, %v", len(images), err)
	}
}

// Deleting a cluster loses its undelivered writes.
func TestDivergence_DeleteCluster(t *testing.T) {
	t.Parallel()
	e := newReplicated(t, Options{}, 3)
	e.must(e.clusters().Lag(time.Hour))
	e.must(e.clusters().LagBetween("c3", "c2", time.Minute))
	e.mutateVia("c1", "r", set("a", "q", 1000, "base"))
	e.mutateVia("c3", "r", set("a", "q", 2000, "early"))
	e.clock.Advance(time.Minute)
	e.mutateVia("c3", "r", deleteRow())
	e.mutateVia("c3", "s", set("a", "q", 1000, "lost"))
	e.mutateVia("c1", "r", set("a", "q", 3000, "after"))
	e.wantSeen("before", "r@3000=after r@1000=base", "r@2000=early", "s@1000=lost")
	_, err := e.instances().DeleteAppProfile(e.ctx(), &btapb.DeleteAppProfileRequest{Name: testInstance + "/appProfiles/c3", IgnoreWarnings: true})
	e.must(err)
	_, err = e.instances().DeleteCluster(e.ctx(), &btapb.DeleteClusterRequest{Name: testInstance + "/clusters/c3"})
	e.must(err)
	e.wantSeen("after", "r@3000=after r@2000=early r@1000=base", "r@2000=early")
	e.clock.Advance(time.Hour)
	all := "r@3000=after r@2000=early r@1000=base"
	e.wantSeen("in the end", all, all)
}

// Rows are dropped in all clusters at once, and garbage is collected in each cluster
// separately.
func TestDivergence_DropAndCollect(t *testing.T) {
	t.Parallel()
	e := newReplicated(t, Options{}, 2)
	e.must(e.clusters().Lag(time.Minute))
	e.mutateVia("c1", "a1", set("a", "q", 1000, "v"))
	e.mutateVia("c1", "b1", set("a", "q", 1000, "v"))
	_, err := e.admin.DropRowRange(e.ctx(), &btapb.DropRowRangeRequest{
		Name: testTable, Target: &btapb.DropRowRangeRequest_RowKeyPrefix{RowKeyPrefix: []byte("a")},
	})
	e.must(err)
	e.wantSeen("dropped", "b1@1000=v", "")
	e.mutateVia("c2", "a1", set("a", "q", 2000, "w"))
	e.wantSeen("written again", "b1@1000=v", "a1@2000=w")
	e.clock.Advance(time.Minute)
	both := "a1@2000=w b1@1000=v"
	e.wantSeen("in the end", both, both)

	e.modifyFamilies("t", updateFamily("a", &btapb.ColumnFamily{GcRule: maxVersions(1)}))
	e.mutateVia("c1", "b1", set("a", "q", 2000, "newer"))
	_, err = e.srv.RunGC(e.ctx())
	e.must(err)
	e.wantSeen("collected", "a1@2000=w b1@2000=newer", both)
	e.clock.Advance(time.Minute)
	one := "a1@2000=w b1@2000=newer"
	e.wantSeen("collected, in the end", one, one)
}

func TestTrap163_LagBackToZero(t *testing.T) {
	t.Parallel()
	e := newReplicated(t, Options{}, 2)
	e.must(e.clusters().Lag(time.Minute))
	e.mutateVia("c1", "r", set("a", "q", 1000, "1"))
	e.must(e.clusters().Lag(0))
	e.wantSeen("on its way still", "r@1000=1", "")
	e.mutateVia("c2", "s", set("a", "q", 1000, "2"))
	e.wantSeen("at once", "r@1000=1 s@1000=2", "s@1000=2")
	e.mutateVia("c1", "r", set("a", "q", 2000, "3"))
	e.wantSeen("not before what went before", "r@2000=3 r@1000=1 s@1000=2", "s@1000=2")
	e.clock.Advance(time.Minute)
	all := "r@2000=3 r@1000=1 s@1000=2"
	e.wantSeen("when it was due", all, all)

	e.must(e.clusters().Lag(time.Hour))
	e.mutateVia("c2", "r", deleteRow())
	e.wantSeen("deleted in c2", all, "s@1000=2")
	e.must(e.clusters().Lag(0))
	e.must(e.clusters().DeliverAll())
	e.wantSeen("all delivered", "s@1000=2", "s@1000=2")
	e.mutateVia("c2", "r", set("a", "q", 3000, "4"))
	e.wantSeen("no lag", "r@3000=4 s@1000=2", "r@3000=4 s@1000=2")
}

// A failed cluster gets no automated backup.
func TestAutomatedBackups_FailedCluster(t *testing.T) {
	t.Parallel()
	e := newReplicated(t, Options{}, 2)
	e.setPolicy(keep(9))
	e.must(e.clusters().Fail("c2"))
	e.advance(day)
	e.must(e.clusters().Recover("c2"))
	e.advance(day)
	var in []string
	for _, b := range e.backups() {
		in = append(in, b.GetStartTime().AsTime().Sub(e.clock.Now()).String()+" "+strings.Split(b.GetName(), "/")[5])
	}
	if got := strings.Join(in, ", "); got != "-24h0m0s c1, 0s c1, 0s c2" {
		t.Errorf("there are backups of %s", got)
	}
}

// The pending rows of a deleted table or instance are removed in time.
func TestDivergence_Deleted(t *testing.T) {
	t.Parallel()
	e := newReplicated(t, Options{}, 2)
	e.must(e.clusters().Lag(time.Minute))
	empty := func(when string) {
		t.Helper()
		if images, err := e.db.Resources("replicated/"); err != nil || len(images) > 0 {
			t.Errorf("%s: %d images are left, %v", when, len(images), err)
		}
	}
	e.mutateVia("c1", "r", set("a", "q", 1000, "v"))
	_, err := e.admin.DeleteTable(e.ctx(), &btapb.DeleteTableRequest{Name: testTable})
	e.must(err)
	_, err = e.admin.UndeleteTable(e.ctx(), &btapb.UndeleteTableRequest{Name: testTable})
	e.must(err)
	e.wantSeen("undeleted", "r@1000=v", "")
	_, err = e.admin.DeleteTable(e.ctx(), &btapb.DeleteTableRequest{Name: testTable})
	e.must(err)
	e.advance(time.Hour)
	empty("deleted")
	_, err = e.admin.UndeleteTable(e.ctx(), &btapb.UndeleteTableRequest{Name: testTable})
	e.must(err)
	e.wantSeen("undeleted after an hour", "r@1000=v", "r@1000=v")
	e.mutateVia("c1", "r", set("a", "q", 2000, "w"))
	_, err = e.instances().DeleteInstance(e.ctx(), &btapb.DeleteInstanceRequest{Name: testInstance})
	e.must(err)
	e.advance(time.Hour)
	empty("without an instance")
}

// Lost writes are not in change streams either.
func TestDivergence_LostInStreams(t *testing.T) {
	t.Parallel()
	e := newReplicated(t, Options{}, 2)
	e.setRetention(24 * time.Hour)
	e.must(e.clusters().Lag(time.Minute))
	_, err := e.instances().DeleteAppProfile(e.ctx(), &btapb.DeleteAppProfileRequest{Name: testInstance + "/appProfiles/c2", IgnoreWarnings: true})
	e.must(err)
	e.mustProfile("away", singleCluster("c2", false))
	e.mutateVia("away", "r", set("a", "q", 1000, "lost"))
	_, err = e.instances().DeleteAppProfile(e.ctx(), &btapb.DeleteAppProfileRequest{Name: testInstance + "/appProfiles/away", IgnoreWarnings: true})
	e.must(err)
	_, err = e.instances().DeleteCluster(e.ctx(), &btapb.DeleteClusterRequest{Name: testInstance + "/clusters/c2"})
	e.must(err)
	e.mutateVia("c1", "s", set("a", "q", 1000, "kept"))
	if got := e.seen("c1", &btpb.ReadChangeStreamRequest{}).take(1); got[0].cluster != "c1" {
		t.Errorf("the first change is of %s", got[0].cluster)
	}
	e.wantSeen("rows", "s@1000=kept")
}

// Sessions and authorized views read the state of their cluster.
func TestDivergence_SessionsAndViews(t *testing.T) {
	t.Parallel()
	e := newReplicated(t, Options{}, 2)
	e.mutateVia("c1", "r", set("a", "q", 1000, "old"))
	view := e.mustCreateView("v", viewOf(subset([]string{"r"}, columns("a", "q"))))
	e.must(e.clusters().Lag(time.Minute))
	e.mutateVia("c1", "r", set("a", "q", 1000, "new"), set("a", "other", 1000, "x"))
	for profile, want := range map[string]string{"c1": "new", "c2": "old"} {
		stream, err := btpb.NewBigtableClient(e.dial()).OpenTable(e.ctx())
		e.must(err)
		payload, err := proto.Marshal(&btpb.OpenTableRequest{TableName: testTable, AppProfileId: profile, Permission: btpb.OpenTableRequest_PERMISSION_READ_WRITE})
		e.must(err)
		ss := testSession{t, stream}
		ss.send(&btpb.SessionRequest{Payload: &btpb.SessionRequest_OpenSession{OpenSession: &btpb.OpenSessionRequest{Payload: payload}}})
		for range 2 { // the opening, and the parameters
			_, err := stream.Recv()
			e.must(err)
		}
		ss.sendRPC(1, sessionRead("r", qualifierRegexOf("q")))
		answer, err := stream.Recv()
		e.must(err)
		read := &btpb.TableResponse{}
		e.must(proto.Unmarshal(answer.GetVirtualRpc().GetPayload(), read))
		if got := read.GetReadRow().GetRow().GetFamilies()[0].GetColumns()[0].GetCells()[0].GetValue(); string(got) != want {
			t.Errorf("a session through %s reads %q, want %q", profile, got, want)
		}
		got, err := readRows(e.ctx(), e.data, &btpb.ReadRowsRequest{AuthorizedViewName: view, AppProfileId: profile})
		if err != nil || len(got.rows) != 1 || len(got.rows[0].cells) != 1 || got.rows[0].cells[0].value != want {
			t.Errorf("through %s and a view there is\n%s%v", profile, got.text(), err)
		}
	}
}

// Without lag, nothing is recorded or stored, and calls allocate as in an instance without
// replication settings. It is not parallel, since it counts allocations of the whole process.
func TestDivergence_NoneCostsNothing(t *testing.T) { //nolint:paralleltest // see above
	if race.Enabled {
		t.Skip("the race detector allocates too")
	}
	never, once := newReplicated(t, Options{}, 2), newReplicated(t, Options{}, 2)
	once.must(once.clusters().Lag(time.Minute))
	once.mutateVia("c1", "r", set("a", "q", 1000, "v"))
	once.must(once.clusters().Lag(0))
	once.must(once.clusters().DeliverAll())
	once.advance(time.Minute)
	calls := func(e *env) (allocations [4]float64) {
		for i, call := range []func(){
			func() { e.mutateVia("c1", "r", set("a", "q", 1000, "v")) },
			func() { e.seenVia("c2", nil) },
			func() {
				_, err := e.data.CheckAndMutateRow(t.Context(), &btpb.CheckAndMutateRowRequest{
					TableName: testTable, AppProfileId: "c1", RowKey: []byte("r"), TrueMutations: []*btpb.Mutation{set("a", "q", 1000, "v")},
				})
				e.must(err)
			},
			func() {
				_, err := e.data.ReadModifyWriteRow(t.Context(), &btpb.ReadModifyWriteRowRequest{
					TableName: testTable, AppProfileId: "c1", RowKey: []byte("n"), Rules: []*btpb.ReadModifyWriteRule{{
						FamilyName: "a", ColumnQualifier: []byte("n"), Rule: &btpb.ReadModifyWriteRule_IncrementAmount{IncrementAmount: 1},
					}},
				})
				e.must(err)
			},
		} {
			allocations[i] = fewestAllocations(call)
		}
		return allocations
	}
	want, got := calls(never), calls(once)
	t.Logf("MutateRow, ReadRows, CheckAndMutateRow and ReadModifyWriteRow allocate %v", want)
	for i := range want {
		if got[i] > want[i]+1 {
			t.Errorf("calls allocate %v after a lag, %v without", got, want)
		}
	}
	for _, e := range []*env{never, once} {
		table, err := e.db.Table(testTable)
		images, imagesErr := e.db.Resources("replicated/")
		if e.must(errors.Join(err, imagesErr)); table.Journal != (engine.Journal{}) || len(images) > 0 {
			t.Errorf("the journal is %v, and there are %d images", table.Journal, len(images))
		}
	}
}
