package emu

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tabletop-emu/tabletop/emu/internal/instancedef"
	"github.com/tabletop-emu/tabletop/engine"
)

// newReplicated returns an instance with clusters c1, c2, …, a table, an app profile for each
// cluster with its name, and the profile multi for any cluster.
func newReplicated(t *testing.T, o Options, clusters int) *env {
	t.Helper()
	e := newEnvWith(t, o, engine.Options{})
	e.replicate(clusters)
	return e
}

func (e *env) replicate(clusters int) {
	e.t.Helper()
	var defs []*btapb.Cluster
	for i := range clusters {
		defs = append(defs, nodes(fmt.Sprintf("us-east%d-b", i+1), 1))
	}
	e.mustCreateInstance("i", defs...)
	e.createTable("t", "a")
	for i := range clusters {
		id := fmt.Sprintf("c%d", i+1)
		e.mustProfile(id, singleCluster(id, i == 0))
	}
	e.mustProfile("multi", anyCluster())
}

func (e *env) mustProfile(id string, p *btapb.AppProfile) {
	e.t.Helper()
	if err := e.createAppProfile(testInstance, id, p); err != nil {
		e.t.Fatal(err)
	}
}

func (e *env) clusters() Replication { return e.srv.Replication(testInstance) }

func (e *env) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

// write sets a cell through an app profile.
func (e *env) write(profile, row, value string) error {
	_, err := e.data.MutateRow(e.ctx(), &btpb.MutateRowRequest{
		TableName: testTable, AppProfileId: profile, RowKey: []byte(row), Mutations: []*btpb.Mutation{set("a", "q", 1000, value)},
	})
	return err
}

func (e *env) token() string {
	e.t.Helper()
	resp, err := e.admin.GenerateConsistencyToken(e.ctx(), &btapb.GenerateConsistencyTokenRequest{Name: testTable})
	e.must(err)
	return resp.GetConsistencyToken()
}

func (e *env) wantConsistent(token string, want bool) {
	e.t.Helper()
	for _, req := range []*btapb.CheckConsistencyRequest{{}, {Mode: &btapb.CheckConsistencyRequest_StandardReadRemoteWrites{}}} {
		req.Name, req.ConsistencyToken = testTable, token
		if got, err := e.admin.CheckConsistency(e.ctx(), req); err != nil || got.GetConsistent() != want {
			e.t.Errorf("consistent: %v, %v; want %v", got.GetConsistent(), err, want)
		}
	}
}

func TestTrap154_TokensWait(t *testing.T) {
	t.Parallel()
	e := newReplicated(t, Options{}, 3)
	e.must(e.clusters().Lag(time.Minute))
	e.must(e.clusters().LagBetween("c1", "c3", 2*time.Minute))
	e.must(e.write("c1", "r", "1"))
	before := e.token()
	e.must(e.write("c3", "r", "2")) // at the same time of the frozen clock
	both := e.token()
	e.wantConsistent(before, false)
	e.clock.Advance(time.Minute)
	e.must(e.write("c2", "r", "3"))
	e.wantConsistent(before, false)
	e.wantConsistent(both, false)
	e.clock.Advance(time.Minute - time.Millisecond)
	e.wantConsistent(before, false)
	e.clock.Advance(time.Millisecond)
	e.wantConsistent(before, true)
	e.wantConsistent(both, true)
	// Later writes have no effect on the result.
	e.must(e.write("c1", "r", "4"))
	e.wantConsistent(before, true)
	e.wantConsistent(e.token(), false)

	// Only a late record from before the token counts.
	e.must(e.clusters().DeliverAll())
	old := e.token()
	e.must(e.write("c1", "r", "5"))
	e.wantConsistent(old, true)

	for name, fail := range map[string][2]func() error{
		"failed": {func() error { return e.clusters().Fail("c2") }, func() error { return e.clusters().Recover("c2") }},
		"paused": {func() error { return e.clusters().Pause("c1", "c2") }, func() error { return e.clusters().Resume("c1", "c2") }},
	} {
		e.must(e.clusters().DeliverAll())
		e.must(fail[0]())
		e.must(e.write("c1", "r", name))
		token := e.token()
		e.clock.Advance(100 * 24 * time.Hour / 2)
		e.wantConsistent(token, false)
		e.must(fail[1]())
		e.wantConsistent(token, true)
	}
}

func TestTrap155_NoFixedWait(t *testing.T) {
	t.Parallel()
	e := newReplicated(t, Options{ReplicationLag: time.Minute}, 2)
	e.wantConsistent(e.token(), true) // without writes
	e.must(e.write("c1", "r", "1"))
	e.wantConsistent(e.token(), false)
	e.clock.Advance(time.Minute)
	e.wantConsistent(e.token(), true)
	e.must(e.write("multi", "r", "2"))
	e.must(e.clusters().DeliverAll())
	e.wantConsistent(e.token(), true)
	e.must(e.clusters().Lag(0))
	e.must(e.write("multi", "r", "3"))
	e.wantConsistent(e.token(), true)

	// Tables of other instances have no pending writes.
	one := newTable(t, "a")
	one.mustMutate("r", set("a", "q", 1000, "v"))
	one.wantConsistent(one.token(), true)
}

// Pending writes are on disk and survive a restart.
func TestTrap154_Restart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := newEnvWith(t, Options{ReplicationLag: time.Minute}, engine.Options{Dir: dir})
	e.replicate(2)
	e.must(e.write("c1", "r", "1"))
	token, now := e.token(), e.clock.Now()
	e.must(errors.Join(e.srv.Close(), e.db.Close()))
	e = newEnvWith(t, Options{ReplicationLag: time.Minute}, engine.Options{Dir: dir})
	e.clock.AdvanceTo(now.Add(59 * time.Second))
	e.wantConsistent(token, false)
	e.clock.Advance(time.Second)
	e.wantConsistent(token, true)

	// Without lag, nothing is recorded for replication.
	e.must(errors.Join(e.srv.Close(), e.db.Close()))
	e = newEnvWith(t, Options{}, engine.Options{Dir: dir})
	e.wantConsistent(token, true)
	e.must(e.write("c1", "r", "2"))
	e.wantKept(false)
}

// wantKept checks whether changes of table t are recorded for replication.
func (e *env) wantKept(want bool) {
	e.t.Helper()
	table, err := e.db.Table(testTable)
	if e.must(err); table.Journal[engine.JournalReplication].Keep > 0 != want {
		e.t.Errorf("the journal is %v; want one for replication: %v", table.Journal, want)
	}
}

// Only tables of instances with lag between clusters are recorded.
func TestReplication_CostsWhoUsesIt(t *testing.T) {
	t.Parallel()
	e := newReplicated(t, Options{}, 2)
	e.must(e.write("c1", "r", "1"))
	e.wantKept(false)
	if e.srv.replication.View(testInstance) != nil {
		t.Error("there is a state, and nothing was said")
	}
	e.must(e.clusters().Lag(time.Second))
	e.wantKept(true)
	// A table that is created or restored later is recorded from its first write.
	base, err := e.db.Snapshot(e.ctx())
	e.must(err)
	_, err = e.admin.DeleteTable(e.ctx(), &btapb.DeleteTableRequest{Name: testTable})
	e.must(err)
	e.createTable("t", "a")
	e.wantKept(false)
	e.must(e.write("c1", "r", "2"))
	e.wantKept(true)
	e.wantConsistent(e.token(), false)
	e.must(e.db.Restore(e.ctx(), base))
	e.must(e.write("c1", "r", "2"))
	e.wantKept(true)
	e.must(e.clusters().Lag(0))
	e.wantConsistent(e.token(), false)
	e.clock.Advance(time.Second)
	e.must(e.write("c1", "r", "3"))
	e.wantKept(false)
	e.wantConsistent(e.token(), true)

	one := newEnvWith(t, Options{ReplicationLag: time.Minute}, engine.Options{})
	one.mustCreateInstance("i", nodes("z", 1))
	one.createTable("t", "a")
	one.must(one.write("", "r", "1"))
	one.wantKept(false)
	one.wantConsistent(one.token(), true)
}

func TestDataBoostLag(t *testing.T) {
	t.Parallel()
	e := newReplicated(t, Options{}, 2)
	check := func(token string, want bool) {
		t.Helper()
		got, err := e.admin.CheckConsistency(e.ctx(), &btapb.CheckConsistencyRequest{
			Name: testTable, ConsistencyToken: token, Mode: &btapb.CheckConsistencyRequest_DataBoostReadLocalWrites{},
		})
		if err != nil || got.GetConsistent() != want {
			t.Errorf("got %v, %v; want %v", got, err, want)
		}
	}
	check(e.token(), true)
	e.must(e.clusters().DataBoostLag(30 * time.Minute))
	e.must(e.clusters().Fail("c2")) // is not used
	e.must(e.write("c1", "r", "1"))
	token := e.token()
	check(token, false)
	e.clock.Advance(30*time.Minute - time.Millisecond)
	check(token, false)
	e.clock.Advance(time.Millisecond)
	check(token, true)
}

// answeredIn sends a request over a wire and returns the answering cluster.
func (e *env) answeredIn(send func(c btpb.BigtableClient, opts ...grpc.CallOption) error) func() (string, error) {
	client := btpb.NewBigtableClient(e.dial())
	return func() (string, error) {
		var header metadata.MD
		err := send(client, grpc.Header(&header))
		where := &btpb.ResponseParams{}
		if values := header.Get(locationHeader); len(values) == 1 {
			e.must(proto.Unmarshal([]byte(values[0]), where))
		}
		return where.GetClusterId(), err
	}
}

func TestTrap156_FailOver(t *testing.T) {
	t.Parallel()
	e := newReplicated(t, Options{}, 3)
	e.mustProfile("late", anyCluster("c3", "c2"))
	client := btpb.NewBigtableClient(e.dial())
	calls := map[string]func(profile string, o grpc.CallOption) error{
		"ReadRows": func(profile string, o grpc.CallOption) error {
			return drained(client.ReadRows(e.ctx(), &btpb.ReadRowsRequest{TableName: testTable, AppProfileId: profile}, o))
		},
		"SampleRowKeys": func(profile string, o grpc.CallOption) error {
			return drained(client.SampleRowKeys(e.ctx(), &btpb.SampleRowKeysRequest{TableName: testTable, AppProfileId: profile}, o))
		},
		"MutateRow": func(profile string, o grpc.CallOption) error {
			_, err := client.MutateRow(e.ctx(), &btpb.MutateRowRequest{TableName: testTable, AppProfileId: profile, RowKey: []byte("r"), Mutations: []*btpb.Mutation{set("a", "q", 0, "")}}, o)
			return err
		},
		"MutateRows": func(profile string, o grpc.CallOption) error {
			return drained(client.MutateRows(e.ctx(), &btpb.MutateRowsRequest{TableName: testTable, AppProfileId: profile, Entries: []*btpb.MutateRowsRequest_Entry{entry("r", set("a", "q", 0, ""))}}, o))
		},
		"PingAndWarm": func(profile string, o grpc.CallOption) error {
			_, err := client.PingAndWarm(e.ctx(), &btpb.PingAndWarmRequest{Name: testInstance, AppProfileId: profile}, o)
			return err
		},
	}
	check := func(want map[string]string) {
		t.Helper()
		for name, call := range calls {
			for profile, cluster := range want {
				var header metadata.MD
				err := call(profile, grpc.Header(&header))
				if cluster == "" {
					wantCode(t, err, codes.Unavailable)
					if header.Get(locationHeader) != nil {
						t.Errorf("%s through %s: answered, by nobody", name, profile)
					}
				} else if got := answered(t, header, nil); err != nil || !strings.HasPrefix(got, cluster+" ") {
					t.Errorf("%s through %s: %s, %v; want %s", name, profile, got, err, cluster)
				}
			}
		}
	}
	states := func(want string) {
		t.Helper()
		table, err := e.admin.GetTable(e.ctx(), &btapb.GetTableRequest{Name: testTable, View: btapb.Table_REPLICATION_VIEW})
		e.must(err)
		listed, err := e.admin.ListTables(e.ctx(), &btapb.ListTablesRequest{Parent: testInstance, View: btapb.Table_REPLICATION_VIEW})
		e.must(err)
		wantProto(t, listed.GetTables()[0], table)
		var got []string
		for _, id := range []string{"c1", "c2", "c3"} {
			got = append(got, table.GetClusterStates()[id].GetReplicationState().String())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("states %v, want %s", got, want)
		}
	}
	check(map[string]string{"": "c1", "multi": "c1", "late": "c3", "c1": "c1", "c2": "c2"})
	states("READY READY READY")
	e.must(e.clusters().Fail("c1"))
	check(map[string]string{"": "c2", "multi": "c2", "late": "c3", "c1": "", "c2": "c2"})
	states("STATE_NOT_KNOWN READY READY")
	e.must(e.clusters().Fail("c3"))
	check(map[string]string{"multi": "c2", "late": "c2", "c3": ""})
	e.must(e.clusters().Fail("c2"))
	check(map[string]string{"": "", "multi": "", "late": "", "c1": "", "c2": ""})
	states("STATE_NOT_KNOWN STATE_NOT_KNOWN STATE_NOT_KNOWN")
	// Administration still works.
	if got := e.cluster(testInstance + "/clusters/c1"); got.GetState() != btapb.Cluster_READY {
		t.Errorf("%v", got)
	}
	e.must(e.clusters().Recover("c1"))
	e.must(e.clusters().Recover("c2"))
	check(map[string]string{"": "c1", "multi": "c1", "late": "c2", "c1": "c1", "c3": ""})

	// A missing table is not found rather than unavailable.
	_, err := e.data.MutateRow(e.ctx(), &btpb.MutateRowRequest{TableName: testTable, AppProfileId: "nope"})
	wantCode(t, err, codes.NotFound)
	// A new cluster with the name of a deleted failed cluster has not failed.
	_, err = e.instances().DeleteAppProfile(e.ctx(), &btapb.DeleteAppProfileRequest{Name: testInstance + "/appProfiles/late", IgnoreWarnings: true})
	e.must(err)
	_, err = e.instances().DeleteAppProfile(e.ctx(), &btapb.DeleteAppProfileRequest{Name: testInstance + "/appProfiles/c3", IgnoreWarnings: true})
	e.must(err)
	_, err = e.instances().DeleteCluster(e.ctx(), &btapb.DeleteClusterRequest{Name: testInstance + "/clusters/c3"})
	e.must(err)
	if err := e.clusters().Recover("c3"); err == nil || !strings.Contains(err.Error(), `no cluster "c3"; it has c1, c2`) {
		t.Errorf("got %v", err)
	}
	op, err := e.instances().CreateCluster(e.ctx(), &btapb.CreateClusterRequest{Parent: testInstance, ClusterId: "c3", Cluster: nodes("us-east3-b", 1)})
	response[*btapb.Cluster](e, op, err)
	states("READY READY READY")
}

// The cluster of an implicit instance can fail too.
func TestTrap156_ImplicitInstance(t *testing.T) {
	t.Parallel()
	e := newTable(t, "a")
	e.must(e.clusters().Fail(instancedef.ImplicitCluster))
	wantCode(t, e.mutate("r", set("a", "q", 0, "")), codes.Unavailable)
	e.must(e.clusters().Recover(instancedef.ImplicitCluster))
	e.mustMutate("r", set("a", "q", 0, ""))
	e.must(e.clusters().Fail(instancedef.ImplicitCluster))
	e.srv.ResetReplication()
	e.mustMutate("r", set("a", "q", 0, ""))
	if err := e.srv.Replication("nonsense").Fail("c"); err == nil {
		t.Error("a name that is none of an instance is accepted")
	}
}

// failing fails a cluster when a scan sends its first rows.
type failing struct {
	grpc.ServerStream
	fail func()
}

func (f failing) SendMsg(m any) error {
	if _, ok := m.(*btpb.ReadRowsResponse); ok {
		f.fail()
	}
	return f.ServerStream.SendMsg(m)
}

// A scan in a failing cluster ends after its current row; a scan in another cluster continues.
func TestTrap156_ScansUnderWay(t *testing.T) {
	t.Parallel()
	var e *env
	e = newReplicated(t, Options{StreamInterceptor: func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		return handler(srv, failing{ss, func() { _ = e.clusters().Fail("c1") }})
	}}, 2)
	value := strings.Repeat("v", 200_000)
	for i := range 50 {
		e.must(e.write("c1", fmt.Sprintf("r%02d", i), value))
	}
	for profile, want := range map[string]codes.Code{"c1": codes.Unavailable, "c2": codes.OK} {
		e.must(e.clusters().Recover("c1"))
		got, err := readRows(e.ctx(), e.data, &btpb.ReadRowsRequest{TableName: testTable, AppProfileId: profile})
		wantCode(t, err, want)
		if n := len(got.rows); n == 0 || (n < 50) != (want == codes.Unavailable) {
			t.Errorf("%d rows through %s", n, profile)
		}
		for i, r := range got.rows {
			if r.key != fmt.Sprintf("r%02d", i) || len(r.cells) != 1 || len(r.cells[0].value) != len(value) {
				t.Fatalf("row %d is %.30q", i, r.key)
			}
		}
	}
}

// A session stays with its cluster.
func TestTrap156_Sessions(t *testing.T) {
	t.Parallel()
	e := newReplicated(t, Options{}, 2)
	e.setRetention(24 * time.Hour)
	stream, err := btpb.NewBigtableClient(e.dial()).OpenTable(e.ctx())
	e.must(err)
	payload, err := proto.Marshal(&btpb.OpenTableRequest{TableName: testTable, AppProfileId: "c2", Permission: btpb.OpenTableRequest_PERMISSION_READ_WRITE})
	e.must(err)
	ss := testSession{t, stream}
	ss.send(&btpb.SessionRequest{Payload: &btpb.SessionRequest_OpenSession{OpenSession: &btpb.OpenSessionRequest{Payload: payload}}})
	for range 2 { // it is opened, and the parameters
		_, err := stream.Recv()
		e.must(err)
	}
	ss.sendRPC(1, sessionMutate("r", set("a", "q", 1000, "v")))
	if answer, err := stream.Recv(); err != nil || answer.GetVirtualRpc() == nil {
		t.Errorf("got %v, %v", answer, err)
	}
	e.must(e.clusters().Fail("c2"))
	ss.sendRPC(2, sessionRead("r", nil))
	answer, err := stream.Recv()
	if e.must(err); codes.Code(answer.GetError().GetStatus().GetCode()) != codes.Unavailable {
		t.Errorf("got %v", answer)
	}
	e.must(e.clusters().Recover("c2"))
	ss.sendRPC(3, sessionRead("r", nil))
	if answer, err := stream.Recv(); err != nil || answer.GetVirtualRpc() == nil {
		t.Errorf("got %v, %v", answer, err)
	}
	if got := e.seen("c1", &btpb.ReadChangeStreamRequest{}).take(1); got[0].cluster != "c2" {
		t.Errorf("a session through c2 writes as %s", got[0].cluster)
	}
}

func TestTrap157_RowAffinity(t *testing.T) {
	t.Parallel()
	e := newReplicated(t, Options{}, 3)
	p := anyCluster()
	p.GetMultiClusterRoutingUseAny().Affinity = &btapb.AppProfile_MultiClusterRoutingUseAny_RowAffinity_{RowAffinity: &btapb.AppProfile_MultiClusterRoutingUseAny_RowAffinity{}}
	e.mustProfile("affine", p)
	client := btpb.NewBigtableClient(e.dial())
	where := func(row string, reads bool) string {
		t.Helper()
		var header metadata.MD
		var err error
		if reads {
			err = drained(client.ReadRows(e.ctx(), &btpb.ReadRowsRequest{TableName: testTable, AppProfileId: "affine", Rows: &btpb.RowSet{RowKeys: [][]byte{[]byte(row)}}}, grpc.Header(&header)))
		} else {
			_, err = client.MutateRow(e.ctx(), &btpb.MutateRowRequest{TableName: testTable, AppProfileId: "affine", RowKey: []byte(row), Mutations: []*btpb.Mutation{set("a", "q", 0, "")}}, grpc.Header(&header))
		}
		e.must(err)
		return answered(t, header, nil)
	}
	was, seen := map[string]string{}, map[string]bool{}
	for i := range 60 {
		row := fmt.Sprintf("row%d", i)
		was[row] = where(row, false)
		seen[was[row]] = true
		if got := where(row, true); got != was[row] {
			t.Errorf("%s is read in %s and written in %s", row, got, was[row])
		}
	}
	if len(seen) != 3 {
		t.Errorf("the rows are in %v", seen)
	}
	// Requests for several rows go to any cluster: the first.
	got, err := answeringCluster(t, e, client, &btpb.ReadRowsRequest{TableName: testTable, AppProfileId: "affine", Rows: &btpb.RowSet{RowKeys: [][]byte{[]byte("row0"), []byte("row1")}}})
	if err != nil || !strings.HasPrefix(got, "c1 ") {
		t.Errorf("%s, %v", got, err)
	}
	e.must(e.clusters().Fail("c3"))
	moved := 0
	for row, cluster := range was {
		switch got := where(row, true); {
		case strings.HasPrefix(cluster, "c3 "):
			moved++
			if strings.HasPrefix(got, "c3 ") {
				t.Errorf("%s stays in a cluster that has failed", row)
			}
		case got != cluster:
			t.Errorf("%s moves from %s to %s", row, cluster, got)
		}
	}
	if moved == 0 {
		t.Error("nothing was in c3")
	}
}

func TestTrap158_ProfilesHoldTheirClusters(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.mustCreateInstance("i", nodes("us-east1-b", 1), nodes("us-east2-b", 1))
	e.mustProfile("some", anyCluster("c1"))
	_, err := e.instances().DeleteCluster(e.ctx(), &btapb.DeleteClusterRequest{Name: testInstance + "/clusters/c1"})
	wantCode(t, err, codes.FailedPrecondition)
	_, err = e.instances().DeleteCluster(e.ctx(), &btapb.DeleteClusterRequest{Name: testInstance + "/clusters/c2"})
	wantCode(t, err, codes.OK)
	_, err = e.instances().DeleteCluster(e.ctx(), &btapb.DeleteClusterRequest{Name: testInstance + "/clusters/c1"})
	wantCode(t, err, codes.FailedPrecondition) // even the last one
}

func TestTrap159_TransactionsNeedASingleCluster(t *testing.T) {
	t.Parallel()
	e := newReplicated(t, Options{}, 2)
	check := func() {
		t.Helper()
		_, err := e.data.CheckAndMutateRow(e.ctx(), &btpb.CheckAndMutateRowRequest{
			TableName: testTable, AppProfileId: "multi", RowKey: []byte("r"), FalseMutations: []*btpb.Mutation{set("a", "q", 0, "")},
		})
		wantCode(t, err, codes.FailedPrecondition)
	}
	check()
	e.must(e.clusters().Fail("c1"))
	check()
	e.must(e.clusters().Fail("c2"))
	check()
}

func TestTrap160_NewCluster(t *testing.T) {
	t.Parallel()
	e := newReplicated(t, Options{AdminDelay: time.Hour}, 1)
	e.clock.Advance(time.Hour)
	e.must(e.write("", "r", "1"))
	_, err := e.instances().CreateCluster(e.ctx(), &btapb.CreateClusterRequest{Parent: testInstance, ClusterId: "b2", Cluster: nodes("us-east9-b", 1)})
	e.must(err)
	e.mustProfile("b2", singleCluster("b2", false))
	where := e.answeredIn(func(c btpb.BigtableClient, opts ...grpc.CallOption) error {
		return drained(c.ReadRows(e.ctx(), &btpb.ReadRowsRequest{TableName: testTable, AppProfileId: "multi"}, opts...))
	})
	state := func() btapb.Table_ClusterState_ReplicationState {
		table, err := e.admin.GetTable(e.ctx(), &btapb.GetTableRequest{Name: testTable, View: btapb.Table_REPLICATION_VIEW})
		e.must(err)
		return table.GetClusterStates()["b2"].GetReplicationState()
	}
	token := e.token()
	if got, err := where(); got != "c1" || err != nil {
		t.Errorf("answered by %s, %v", got, err)
	}
	wantCode(t, e.write("b2", "r", "2"), codes.Unavailable)
	if state() != btapb.Table_ClusterState_INITIALIZING {
		t.Errorf("state %v", state())
	}
	e.wantConsistent(token, false)
	e.clock.Advance(time.Hour)
	if got, err := where(); got != "b2" || err != nil { // by name
		t.Errorf("answered by %s, %v", got, err)
	}
	if state() != btapb.Table_ClusterState_READY {
		t.Errorf("state %v", state())
	}
	e.wantConsistent(token, true)
	got, err := readRows(e.ctx(), e.data, &btpb.ReadRowsRequest{TableName: testTable, AppProfileId: "b2"})
	if err != nil || len(got.rows) != 1 {
		t.Errorf("%v, %v", got.rows, err)
	}
}

// A new cluster starts with the state of the nearest cluster at the time it is READY, and keeps
// it after a restart. Pending writes arrive there as in other clusters.
func TestTrap160_Lag(t *testing.T) {
	t.Parallel()
	const lag, delay = time.Hour, 10 * time.Minute
	o, dir := Options{AdminDelay: delay, ReplicationLag: lag}, t.TempDir()
	e := newEnvWith(t, o, engine.Options{Dir: dir})
	e.replicate(2)
	e.clock.Advance(delay)
	e.must(e.write("c1", "of c1", "1"))
	e.must(e.write("c2", "of c2", "1"))
	for id, zone := range map[string]string{"like1": "us-east1-c", "like2": "us-east2-c", "far": "asia-east1-a"} {
		_, err := e.instances().CreateCluster(e.ctx(), &btapb.CreateClusterRequest{Parent: testInstance, ClusterId: id, Cluster: nodes(zone, 1)})
		e.must(err)
		e.mustProfile(id, singleCluster(id, false))
	}
	e.clock.Advance(delay - time.Minute)
	e.must(e.write("c1", "of c1, meanwhile", "1"))
	e.clock.Advance(time.Minute)
	e.must(e.write("c1", "of c1, later", "1"))
	want := func(rows map[string]string) {
		t.Helper()
		for id, want := range rows {
			got, err := readRows(e.ctx(), e.data, &btpb.ReadRowsRequest{TableName: testTable, AppProfileId: id})
			var keys []string
			for _, r := range got.rows {
				keys = append(keys, r.key)
			}
			if keys := strings.Join(keys, "; "); err != nil || keys != want {
				t.Errorf("%s sees %s, %v; want %s", id, keys, err, want)
			}
		}
	}
	begin := map[string]string{
		"c1": "of c1; of c1, later; of c1, meanwhile", "c2": "of c2",
		"like1": "of c1; of c1, meanwhile", "like2": "of c2", "far": "of c1; of c1, meanwhile",
	}
	want(begin)
	e.wantConsistent(e.token(), false)
	now := e.clock.Now()
	e.must(errors.Join(e.srv.Close(), e.db.Close()))
	e = newEnvWith(t, o, engine.Options{Dir: dir})
	e.clock.AdvanceTo(now)
	want(begin)
	e.clock.Advance(lag - delay) // after the first ones
	begin["c1"] += "; of c2"
	begin["c2"], begin["like2"] = "of c1; of c2", "of c1; of c2"
	begin["like1"], begin["far"] = begin["like1"]+"; of c2", begin["far"]+"; of c2"
	want(begin)
	e.clock.Advance(delay)
	for id := range begin {
		begin[id] = "of c1; of c1, later; of c1, meanwhile; of c2"
	}
	want(begin)
	e.wantConsistent(e.token(), true)
}

// A new cluster with the name of a deleted one does not inherit its state.
func TestTrap160_AgainOfTheName(t *testing.T) {
	t.Parallel()
	e := newReplicated(t, Options{}, 3)
	again := func() {
		t.Helper()
		_, err := e.instances().CreateCluster(e.ctx(), &btapb.CreateClusterRequest{Parent: testInstance, ClusterId: "b", Cluster: nodes("us-east9-b", 1)})
		e.must(err)
	}
	again()
	e.mustProfile("b", singleCluster("b", false))
	e.must(e.clusters().Lag(time.Hour))
	e.must(e.clusters().LagBetween("c2", "b", 0))
	e.must(e.write("c2", "r", "1"))
	want := func(rows int) {
		t.Helper()
		got, err := readRows(e.ctx(), e.data, &btpb.ReadRowsRequest{TableName: testTable, AppProfileId: "b"})
		if err != nil || len(got.rows) != rows {
			t.Errorf("%v, %v; want %d", got.rows, err, rows)
		}
	}
	want(1)
	_, err := e.instances().DeleteAppProfile(e.ctx(), &btapb.DeleteAppProfileRequest{Name: testInstance + "/appProfiles/b", IgnoreWarnings: true})
	e.must(err)
	_, err = e.instances().DeleteCluster(e.ctx(), &btapb.DeleteClusterRequest{Name: testInstance + "/clusters/b"})
	e.must(err)
	again()
	e.mustProfile("b", singleCluster("b", false))
	want(0) // like c1, the first one
	e.clock.Advance(time.Hour)
	want(1)
}

// seen reads a table's changes in a cluster, from a time or a token, up to a time.
func (e *env) seen(profile string, req *btpb.ReadChangeStreamRequest) *changeReader {
	e.t.Helper()
	req.AppProfileId, req.Partition = profile, partition("", "")
	if req.StartFrom == nil {
		req.StartFrom = fromTime(start)
	}
	return e.changes(req)
}

func TestTrap161_ChangesArriveLate(t *testing.T) {
	t.Parallel()
	e := newReplicated(t, Options{}, 2)
	e.setRetention(24 * time.Hour)
	e.must(e.clusters().Lag(time.Minute))
	one, two := e.seen("c1", &btpb.ReadChangeStreamRequest{}), e.seen("c2", &btpb.ReadChangeStreamRequest{HeartbeatDuration: durationpb.New(time.Second)})
	e.must(e.write("c1", "r", "1"))
	e.must(e.write("c2", "r", "2"))
	e.must(e.write("c1", "s", "3"))
	texts := func(recs []*changeRecord) string {
		var out []string
		for _, r := range recs {
			out = append(out, fmt.Sprintf("%s %s by %s", r.row, r.muts[0].GetSetCell().GetValue(), r.cluster))
		}
		return strings.Join(out, ", ")
	}
	mine := one.take(2)
	if got := texts(mine); got != "r 1 by c1, s 3 by c1" {
		t.Errorf("at once in c1: %s", got)
	}
	if got := texts(two.take(1)); got != "r 2 by c2" {
		t.Errorf("at once in c2: %s", got)
	}
	for range 59 {
		e.clock.Advance(time.Second)
		rec, beat, _, err := two.next()
		if rec != nil || beat == nil {
			t.Fatalf("before its time: %v, %v", rec, err)
		}
		if low := beat.GetEstimatedLowWatermark().AsTime().UnixMicro(); low > mine[0].micros {
			t.Fatalf("the low watermark is %d before a record of %d", low, mine[0].micros)
		}
	}
	e.clock.Advance(time.Second)
	late := two.take(2)
	if got := texts(late); got != "r 1 by c1, s 3 by c1" || late[0].micros != mine[0].micros || late[1].micros != mine[1].micros {
		t.Errorf("in c2, a minute later: %s", got)
	}
	if got := texts(one.take(1)); got != "r 2 by c2" {
		t.Errorf("in c1, a minute later: %s", got)
	}
	// To c2, pending writes are not older than the lag.
	for range 3 { // a heartbeat reports the state at the previous heartbeat
		now := e.clock.Advance(time.Second)
		_, beat, _, err := two.next()
		e.must(err)
		if got := beat.GetEstimatedLowWatermark().AsTime(); got.After(now.Add(-time.Minute)) || got.Before(now.Add(-62*time.Second)) {
			t.Errorf("the low watermark is %v at %v", got, now)
		}
	}
	// A second read returns all records in the order of visibility. Every token returns exactly
	// the rest, in another partition too.
	for profile, want := range map[string]string{"c1": "r 1 by c1, s 3 by c1, r 2 by c2", "c2": "r 2 by c2, r 1 by c1, s 3 by c1"} {
		all := e.seen(profile, &btpb.ReadChangeStreamRequest{}).take(3)
		if got := texts(all); got != want {
			t.Errorf("%s has seen %s, want %s", profile, got, want)
		}
		for i, r := range all {
			rest := e.seen(profile, &btpb.ReadChangeStreamRequest{StartFrom: fromToken("", "", r.token)}).take(2 - i)
			if got, want := texts(rest), texts(all[i+1:]); got != want {
				t.Errorf("%s sees %s after record %d, want %s", profile, got, i, want)
			}
		}
	}
}

// An end_time closes a stream once all earlier commits have arrived.
func TestTrap161_EndTime(t *testing.T) {
	t.Parallel()
	e := newReplicated(t, Options{}, 2)
	e.setRetention(24 * time.Hour)
	e.must(e.clusters().Lag(time.Minute))
	r := e.seen("c2", &btpb.ReadChangeStreamRequest{EndTime: timestamppb.New(start.Add(time.Second)), HeartbeatDuration: durationpb.New(time.Hour)})
	e.must(e.write("c1", "r", "1"))
	e.clock.Advance(2 * time.Second)
	e.must(e.write("c2", "r", "2")) // after the end
	e.must(e.write("c1", "r", "3"))
	e.clock.Advance(time.Minute)
	recs, closed := r.rest()
	if len(recs) != 1 || recs[0].cluster != "c1" || closed.GetStatus().GetCode() != 0 {
		t.Errorf("got %s%v", textsOf(recs), closed)
	}
}

// Open streams end with their cluster, and delay the writes of a failed origin.
func TestTrap161_Failures(t *testing.T) {
	t.Parallel()
	e := newReplicated(t, Options{}, 2)
	e.setRetention(24 * time.Hour)
	one, two := e.seen("c1", &btpb.ReadChangeStreamRequest{}), e.seen("c2", &btpb.ReadChangeStreamRequest{HeartbeatDuration: durationpb.New(time.Second)})
	e.must(e.write("c1", "r", "1"))
	one.take(1)
	token := two.take(1)[0].token
	failed := e.clock.Advance(time.Minute)
	e.must(e.clusters().Fail("c1"))
	for err := error(nil); ; {
		if _, _, _, err = one.next(); err != nil { // after heartbeats
			wantCode(t, err, codes.Unavailable)
			break
		}
	}
	e.seen("c1", &btpb.ReadChangeStreamRequest{}).wantError("Unavailable")
	e.must(e.write("c2", "r", "2"))
	two.take(1)
	e.clock.Advance(time.Minute)
	for {
		_, beat, _, err := two.next()
		e.must(err)
		if beat != nil {
			if low := beat.GetEstimatedLowWatermark().AsTime(); low.After(failed) {
				t.Errorf("the low watermark is %v, and a cluster has failed at %v", low, failed)
			}
			break
		}
	}
	e.must(e.clusters().Recover("c1"))
	e.must(e.write("c1", "r", "3"))
	if got := two.take(1); got[0].cluster != "c1" {
		t.Errorf("got %s", textsOf(got))
	}
	// Tokens are valid in other clusters.
	if got := e.seen("c1", &btpb.ReadChangeStreamRequest{StartFrom: fromToken("", "", token)}).take(2); got[0].cluster != "c2" || got[1].cluster != "c1" {
		t.Errorf("got %s", textsOf(got))
	}
}

// Splits and merges neither lose nor repeat pending records.
func TestTrap161_Partitions(t *testing.T) {
	t.Parallel()
	e := newReplicated(t, Options{}, 2)
	e.setRetention(24 * time.Hour)
	e.must(e.clusters().Lag(time.Minute))
	var want []string
	for i := range 12 {
		profile := []string{"c1", "c2", "c2"}[i%3]
		want = append(want, fmt.Sprintf("%s %d", profile, i))
		e.must(e.write(profile, []string{"b", "y"}[i%2], want[i]))
		e.clock.Advance(10 * time.Second)
	}
	var got []string
	read := func(p *btpb.StreamPartition, from *btpb.ReadChangeStreamRequest) []*btpb.StreamContinuationToken {
		t.Helper()
		from.AppProfileId, from.Partition, from.TableName = "c2", p, testTable
		r := e.changes(from)
		for {
			rec, beat, closed, err := r.next()
			switch {
			case err != nil:
				t.Fatal(err)
			case closed != nil:
				return closed.GetContinuationTokens()
			case beat != nil:
				return []*btpb.StreamContinuationToken{beat.GetContinuationToken()}
			default:
				got = append(got, string(rec.muts[0].GetSetCell().GetValue()))
				if len(got) == 3 || len(got) == len(want) {
					token := []*btpb.StreamContinuationToken{{Partition: p, Token: rec.token}}
					r.cancel()
					return token
				}
			}
		}
	}
	tokens := read(partition("", ""), &btpb.ReadChangeStreamRequest{StartFrom: fromTime(start)})
	e.must(e.srv.SplitPartition(e.ctx(), testTable, []byte("m")))
	tokens = read(partition("", ""), &btpb.ReadChangeStreamRequest{StartFrom: fromTokens(tokens...)})
	if len(tokens) != 2 {
		t.Fatalf("%d tokens", len(tokens))
	}
	// One half continues, then both are merged.
	r := e.changes(&btpb.ReadChangeStreamRequest{AppProfileId: "c2", TableName: testTable, Partition: partition("m", ""), StartFrom: fromTokens(tokens[1])})
	rec := r.take(1)[0]
	got, tokens[1].Token = append(got, string(rec.muts[0].GetSetCell().GetValue())), rec.token
	r.cancel()
	e.must(e.srv.MergePartitions(e.ctx(), testTable, []byte("m")))
	e.clock.Advance(time.Minute)
	read(partition("", ""), &btpb.ReadChangeStreamRequest{StartFrom: fromTokens(tokens...)})
	slices.Sort(want)
	slices.Sort(got)
	if strings.Join(got, ",") != strings.Join(want, ",") {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestTrap162_RelaxedRules(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, clusters := range []int{1, 2} {
		e := newReplicated(t, Options{}, clusters)
		update := func(ignore bool, r *btapb.GcRule) string {
			_, err := e.admin.ModifyColumnFamilies(e.ctx(), &btapb.ModifyColumnFamiliesRequest{
				Name: testTable, IgnoreWarnings: ignore, Modifications: []*btapb.ModifyColumnFamiliesRequest_Modification{{
					Id: "a", Mod: &btapb.ModifyColumnFamiliesRequest_Modification_Update{Update: &btapb.ColumnFamily{GcRule: r}},
				}},
			})
			return fmt.Sprint(err)
		}
		age := func(d time.Duration) *btapb.GcRule {
			return &btapb.GcRule{Rule: &btapb.GcRule_MaxAge{MaxAge: durationpb.New(d)}}
		}
		versions := func(n int32) *btapb.GcRule {
			return &btapb.GcRule{Rule: &btapb.GcRule_MaxNumVersions{MaxNumVersions: n}}
		}
		union := func(r ...*btapb.GcRule) *btapb.GcRule {
			return &btapb.GcRule{Rule: &btapb.GcRule_Union_{Union: &btapb.GcRule_Union{Rules: r}}}
		}
		both := func(r ...*btapb.GcRule) *btapb.GcRule {
			return &btapb.GcRule{Rule: &btapb.GcRule_Intersection_{Intersection: &btapb.GcRule_Intersection{Rules: r}}}
		}
		const ok, refused = "<nil>", "rpc error: code = FailedPrecondition desc = Cannot relax pure age-based GC for a replicated family (a). If you must relax the age constraint, unreplicate the instance and try again."
		for i, tc := range []struct {
			from, to      *btapb.GcRule
			plain, ignore string
		}{
			{age(10 * day), age(5 * day), ok, ok},
			{age(10 * day), age(10*day + time.Second), refused, ok},
			{age(10 * day), age(100 * day), refused, ok},
			{age(10 * day), age(100*day + time.Second), refused, refused},
			{age(10 * day), &btapb.GcRule{}, refused, refused},
			{age(10 * day), versions(1), refused, refused},
			{age(10 * day), union(age(10*day), versions(1)), ok, ok},
			{union(age(10*day), versions(1)), versions(1), refused, refused},
			{union(age(10*day), versions(1)), union(age(11*day), versions(1)), refused, ok},
			{age(10 * day), both(age(10*day), versions(1)), refused, refused},
			{both(age(10*day), versions(2)), both(age(11*day), versions(2)), refused, ok},
			{both(age(10*day), versions(2)), age(10 * day), ok, ok},
			{versions(1), versions(5), ok, ok},
			{&btapb.GcRule{}, age(day), ok, ok},
		} {
			if clusters == 1 {
				tc.plain, tc.ignore = ok, ok
			}
			for ignore, want := range map[bool]string{false: tc.plain, true: tc.ignore} {
				f := fmt.Sprintf("f%d%v", i, ignore)
				e.modifyFamilies("t",
					&btapb.ModifyColumnFamiliesRequest_Modification{Id: "a", Mod: &btapb.ModifyColumnFamiliesRequest_Modification_Drop{Drop: true}},
					&btapb.ModifyColumnFamiliesRequest_Modification{Id: "a", Mod: &btapb.ModifyColumnFamiliesRequest_Modification_Create{Create: &btapb.ColumnFamily{GcRule: tc.from}}})
				if got := update(ignore, tc.to); got != want {
					t.Errorf("%d clusters, %s, from %v to %v: %q, want %q", clusters, f, tc.from, tc.to, got, want)
				}
			}
		}
	}
}

// TestRandomRouting: multi-cluster profiles choose random available clusters, the same ones
// with the same seed. Recorded and reported clusters match.
func TestRandomRouting(t *testing.T) {
	t.Parallel()
	draws := func(seed uint64) string {
		e := newReplicated(t, Options{RandomRouting: true, Seed: seed}, 3)
		e.setRetention(24 * time.Hour)
		e.must(e.clusters().Fail("c2"))
		var out []string
		where := e.answeredIn(func(c btpb.BigtableClient, opts ...grpc.CallOption) error {
			_, err := c.MutateRow(e.ctx(), &btpb.MutateRowRequest{TableName: testTable, AppProfileId: "multi", RowKey: []byte("r"), Mutations: []*btpb.Mutation{set("a", "q", 0, "")}}, opts...)
			return err
		})
		for range 20 {
			got, err := where()
			e.must(err)
			out = append(out, got)
		}
		e.must(e.clusters().DeliverAll())
		for i, r := range e.seen("c1", &btpb.ReadChangeStreamRequest{}).take(20) {
			if r.cluster != out[i] {
				t.Errorf("record %d is of %s, and %s has answered", i, r.cluster, out[i])
			}
		}
		return strings.Join(out, " ")
	}
	one := draws(1)
	if !strings.Contains(one, "c1") || !strings.Contains(one, "c3") || strings.Contains(one, "c2") {
		t.Errorf("drawn: %s", one)
	}
	if again := draws(1); again != one {
		t.Errorf("the same seed draws %s and %s", one, again)
	}
	if other := draws(2); other == one {
		t.Errorf("another seed draws the same: %s", other)
	}
}

// TestReplication_Concurrent: replication settings change during writes. The streams of both
// clusters have each acknowledged write once, and those of each origin in order.
func TestReplication_Concurrent(t *testing.T) {
	t.Parallel()
	const writers, writes = 4, 50
	e := newReplicated(t, Options{}, 2)
	e.setRetention(24 * time.Hour)
	var working sync.WaitGroup
	for w := range writers {
		profile := []string{"c1", "c2"}[w%2]
		working.Go(func() {
			for i := range writes {
				for status.Code(e.write(profile, fmt.Sprintf("%s-%d", profile, w), fmt.Sprint(i))) == codes.Unavailable {
				}
			}
		})
	}
	working.Go(func() {
		in := e.clusters()
		for i := range 40 {
			lag := time.Duration(i%3) * time.Millisecond
			if err := errors.Join(in.Lag(lag), in.Pause("c1", "c2"), in.Fail("c2"), in.Resume("c1", "c2"), in.Recover("c2")); err != nil {
				t.Error(err)
			}
			e.clock.Advance(time.Millisecond)
		}
	})
	read := func(profile string) {
		last, req := map[string]int{}, &btpb.ReadChangeStreamRequest{}
		for got := 0; got < writers*writes; {
			r := e.seen(profile, req)
			for got < writers*writes {
				rec, _, _, err := r.next()
				if err != nil {
					if status.Code(err) != codes.Unavailable {
						t.Error(err)
						return
					}
					break // and continues from its token
				}
				if rec == nil {
					continue
				}
				got++
				req.StartFrom = fromToken("", "", rec.token)
				if n := string(rec.muts[0].GetSetCell().GetValue()); n != fmt.Sprint(last[rec.row]) || !strings.HasPrefix(rec.row, rec.cluster) {
					t.Errorf("%s sees write %s of %s by %s after %d", profile, n, rec.row, rec.cluster, last[rec.row])
					return
				}
				last[rec.row]++
			}
			r.cancel()
		}
	}
	var reading sync.WaitGroup
	reading.Go(func() { read("c1") })
	reading.Go(func() { read("c2") })
	working.Wait()
	e.must(e.clusters().DeliverAll())
	reading.Wait()
}

// Lists include the locations of unavailable clusters.
func TestTrap173_FailedLocations(t *testing.T) {
	t.Parallel()
	e := newReplicated(t, Options{}, 3)
	list := func() (failed [3][]string, clusters int) {
		t.Helper()
		of := e.instances()
		c, err := of.ListClusters(e.ctx(), &btapb.ListClustersRequest{Parent: testInstance})
		e.must(err)
		i, err := of.ListInstances(e.ctx(), &btapb.ListInstancesRequest{Parent: "projects/p"})
		e.must(err)
		a, err := of.ListAppProfiles(e.ctx(), &btapb.ListAppProfilesRequest{Parent: "projects/p/instances/-"})
		e.must(err)
		return [3][]string{c.GetFailedLocations(), i.GetFailedLocations(), a.GetFailedLocations()}, len(c.GetClusters())
	}
	want := func(locations ...string) {
		t.Helper()
		failed, clusters := list()
		for _, got := range failed {
			if !slices.Equal(got, locations) {
				t.Errorf("failed locations %q, want %q", failed, locations)
			}
		}
		if clusters != 3 { // listing unavailable clusters is a belief
			t.Errorf("%d clusters", clusters)
		}
	}
	want()
	e.must(e.clusters().Fail("c3"))
	e.must(e.clusters().Fail("c1"))
	want("projects/p/locations/us-east1-b", "projects/p/locations/us-east3-b")
	e.must(e.clusters().Recover("c1"))
	want("projects/p/locations/us-east3-b")
	e.must(e.clusters().Recover("c3"))
	want()
}
