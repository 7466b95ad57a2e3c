package emu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tabletop-emu/tabletop/emu/internal/instancedef"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/heat"
	"github.com/tabletop-emu/tabletop/internal/test/race"
)

const hotCluster = testInstance + "/clusters/c1"

// newCounted returns an environment with table t in a created instance, at the beginning of a
// minute.
func newCounted(t *testing.T) *env {
	t.Helper()
	e := newEnv(t)
	e.mustCreateInstance("i", nodes("z1", 1))
	e.createTable("t", "f")
	e.clock.AdvanceTo(start.Truncate(time.Minute).Add(time.Minute))
	return e
}

func (e *env) hotTablets(req *btapb.ListHotTabletsRequest) []*btapb.HotTablet {
	e.t.Helper()
	if req.GetParent() == "" {
		req.Parent = hotCluster
	}
	var all []*btapb.HotTablet
	for {
		resp, err := e.instances().ListHotTablets(e.ctx(), req)
		if err != nil {
			e.t.Fatal(err)
		}
		if n := int(req.GetPageSize()); n > 0 && len(resp.GetHotTablets()) > n {
			e.t.Fatalf("a page of %d", len(resp.GetHotTablets()))
		}
		all = append(all, resp.GetHotTablets()...)
		if req.PageToken = resp.GetNextPageToken(); req.GetPageToken() == "" {
			return all
		}
	}
}

func (e *env) put(key string) {
	e.t.Helper()
	_, err := e.data.MutateRow(e.ctx(), &btpb.MutateRowRequest{TableName: testTable, RowKey: []byte(key), Mutations: []*btpb.Mutation{set("f", "q", 0, "v")}})
	if err != nil {
		e.t.Fatal(err)
	}
}

// counted returns the sum of all counts of table t.
func (e *env) counted(cluster string) (sum heat.Counts) {
	e.srv.heat.Columns(heat.Place{Cluster: cluster, Table: testTable}, time.Time{}, e.clock.Now().Add(time.Hour), func(c heat.Column) bool {
		for _, b := range c.Buckets {
			sum.Add(b.Counts)
		}
		return true
	})
	return sum
}

// TestTrap147_HotTablets: the valid spans, and the order.
func TestTrap147_HotTablets(t *testing.T) {
	t.Parallel()
	e := newCounted(t)
	now := e.clock.Now()
	ago := func(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(now.Add(-d)) }
	const day = 24 * time.Hour
	for what, req := range map[string]*btapb.ListHotTabletsRequest{
		"49 hours":           {StartTime: ago(50 * time.Hour), EndTime: ago(time.Hour)},
		"15 days ago":        {StartTime: ago(15 * day), EndTime: ago(14 * day)},
		"the end before":     {StartTime: ago(time.Hour), EndTime: ago(2 * time.Hour)},
		"nothing between":    {StartTime: ago(time.Hour), EndTime: ago(time.Hour)},
		"tomorrow":           {StartTime: ago(time.Hour), EndTime: ago(-day)},
		"no time":            {StartTime: &timestamppb.Timestamp{Nanos: -1}},
		"three days, to now": {StartTime: ago(3 * day)},
		"negative pages":     {PageSize: -1},
		"no token":           {PageToken: "?"},
		"a short token":      {PageToken: "AAAA"},
		"an empty token":     {PageToken: "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"},
		"no cluster":         {Parent: testInstance},
	} {
		if req.GetParent() == "" {
			req.Parent = hotCluster
		}
		if _, err := e.instances().ListHotTablets(e.ctx(), req); err == nil {
			t.Errorf("%s was accepted", what)
		} else {
			wantCode(t, err, codes.InvalidArgument)
		}
	}
	_, err := e.instances().ListHotTablets(e.ctx(), &btapb.ListHotTabletsRequest{Parent: testInstance + "/clusters/none"})
	wantCode(t, err, codes.NotFound)
	for _, req := range []*btapb.ListHotTabletsRequest{{}, {StartTime: ago(48 * time.Hour)}, {StartTime: ago(14 * day), EndTime: ago(13 * day)}} {
		if got := e.hotTablets(req); len(got) != 0 {
			t.Errorf("got %v", got)
		}
	}

	for _, n := range []int{40, 100, 20} { // minutes of three hot rows
		for range n {
			e.put(fmt.Sprint("row", n))
		}
		e.clock.Advance(time.Minute)
	}
	all := e.hotTablets(&btapb.ListHotTabletsRequest{})
	if len(all) != 3 {
		t.Fatalf("got %v", all)
	}
	for i, want := range []struct {
		key     string
		minute  int
		percent float32
	}{{"row100", 1, 100}, {"row40", 0, 40}, {"row20", 2, 20}} {
		got := all[i]
		begin := now.Add(time.Duration(want.minute) * time.Minute)
		wantProto(t, got, &btapb.HotTablet{
			Name: got.GetName(), TableName: testTable, StartKey: want.key, EndKey: want.key,
			StartTime: timestamppb.New(begin), EndTime: timestamppb.New(begin.Add(time.Minute)), NodeCpuUsagePercent: got.GetNodeCpuUsagePercent(),
		})
		if d := got.GetNodeCpuUsagePercent() - want.percent; d < -1 || d > 1 {
			t.Errorf("%s has %v percent, want about %v", want.key, got.GetNodeCpuUsagePercent(), want.percent)
		}
	}
	// Later pages need not repeat the page size, and must not change it.
	var paged []*btapb.HotTablet
	req := &btapb.ListHotTabletsRequest{Parent: hotCluster, PageSize: 2}
	first, err := e.instances().ListHotTablets(e.ctx(), req)
	if err != nil || len(first.GetHotTablets()) != 2 {
		t.Fatal(first, err)
	}
	e.clock.Advance(time.Minute)
	second, err := e.instances().ListHotTablets(e.ctx(), &btapb.ListHotTabletsRequest{Parent: hotCluster, PageToken: first.GetNextPageToken()})
	if err != nil || second.GetNextPageToken() != "" {
		t.Fatal(second, err)
	}
	if paged = append(first.GetHotTablets(), second.GetHotTablets()...); len(paged) != 3 {
		t.Fatalf("got %v", paged)
	}
	for i := range all {
		wantProto(t, paged[i], all[i])
	}
	_, err = e.instances().ListHotTablets(e.ctx(), &btapb.ListHotTabletsRequest{Parent: hotCluster, PageToken: first.GetNextPageToken(), PageSize: 3})
	wantCode(t, err, codes.InvalidArgument)
	// Only tablets that begin in the span.
	if got := e.hotTablets(&btapb.ListHotTabletsRequest{StartTime: timestamppb.New(now.Add(time.Minute)), EndTime: timestamppb.New(now.Add(2 * time.Minute))}); len(got) != 1 || got[0].GetStartKey() != "row100" {
		t.Errorf("got %v", got)
	}
	// A deleted table has no hot tablets.
	if _, err := e.admin.DeleteTable(e.ctx(), &btapb.DeleteTableRequest{Name: testTable}); err != nil {
		t.Fatal(err)
	}
	if got := e.hotTablets(&btapb.ListHotTabletsRequest{}); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

// TestHotTablets: known loads produce the hot range of each minute.
func TestHotTablets(t *testing.T) {
	t.Parallel()
	const minutes, each = 10, 300
	r := rand.New(rand.NewPCG(1, 2))
	load := func(t *testing.T, key func(i int) string) []*btapb.HotTablet {
		t.Helper()
		e := newCounted(t)
		for i := range minutes * each {
			e.put(key(i))
			if i%each == each-1 {
				e.clock.Advance(time.Minute)
			}
		}
		if got := e.counted("c1"); got.Writes != minutes*each {
			t.Errorf("counted %+v, want %d writes", got, minutes*each)
		}
		return e.hotTablets(&btapb.ListHotTabletsRequest{PageSize: 7})
	}
	t.Run("sequential", func(t *testing.T) {
		t.Parallel()
		begin := start.Truncate(time.Minute).Add(time.Minute)
		got := load(t, func(i int) string { return fmt.Sprintf("row%05d", i) })
		sums := map[int64]float32{}
		for _, h := range got {
			minute := h.GetStartTime().GetSeconds() - begin.Unix()
			sums[minute/60] += h.GetNodeCpuUsagePercent()
			first, last := fmt.Sprintf("row%05d", minute/60*each), fmt.Sprintf("row%05d", (minute/60+1)*each-1)
			if h.GetEndKey() < first || h.GetStartKey() > last {
				t.Errorf("minute %d: %q to %q is not in %q to %q", minute/60, h.GetStartKey(), h.GetEndKey(), first, last)
			}
		}
		for i := range int64(minutes) {
			if sums[i] < 70 {
				t.Errorf("minute %d: %v percent are named", i, sums[i])
			}
		}
	})
	t.Run("one hot row", func(t *testing.T) {
		t.Parallel()
		got := load(t, func(i int) string {
			if i%10 < 3 {
				return "hot\xff" // not UTF-8
			}
			return fmt.Sprintf("k%05d", i*7919%100_000)
		})
		if len(got) != minutes {
			t.Errorf("%d are hot, want one a minute: %v", len(got), got)
		}
		for _, h := range got {
			if h.GetStartKey() != `"hot\xff"` || h.GetEndKey() != `"hot\xff"` || h.GetNodeCpuUsagePercent() < 29 || h.GetNodeCpuUsagePercent() > 31 {
				t.Errorf("got %v", h)
			}
		}
	})
	t.Run("even", func(t *testing.T) {
		t.Parallel()
		keys := r.Perm(minutes * each)
		if got := load(t, func(i int) string { return fmt.Sprintf("k%05d", keys[i]) }); len(got) != 0 {
			t.Errorf("got %v", got)
		}
	})
}

// TestCounts: each kind of request counts once, at its keys, over either channel; a failed
// request also counts as an error.
func TestCounts(t *testing.T) {
	t.Parallel()
	e := newCounted(t)
	want := func(what string, call func(), c heat.Counts) {
		t.Helper()
		before := e.counted("c1")
		call()
		got := e.counted("c1")
		if got.Reads -= before.Reads; true {
			got.Writes -= before.Writes
			got.Rows -= before.Rows
			got.Bytes -= before.Bytes
			got.Errors -= before.Errors
		}
		if got != c {
			t.Errorf("%s: counted %+v, want %+v", what, got, c)
		}
	}
	over := e.data
	for _, channel := range []string{"in process", "wire"} {
		if channel == "wire" {
			over = btpb.NewBigtableClient(e.dial())
		}
		ctx := e.ctx()
		ok := []*btpb.Mutation{set("f", "qq", 0, "vvvv")}
		bad := []*btpb.Mutation{set("none", "q", 0, "v")}
		want(channel+" MutateRow", func() {
			_, _ = over.MutateRow(ctx, &btpb.MutateRowRequest{TableName: testTable, RowKey: []byte("abc"), Mutations: ok})
		}, heat.Counts{Writes: 1, Rows: 1, Bytes: 9})
		want(channel+" MutateRow that fails", func() {
			_, _ = over.MutateRow(ctx, &btpb.MutateRowRequest{TableName: testTable, RowKey: []byte("abc"), Mutations: bad})
		}, heat.Counts{Writes: 1, Errors: 1})
		want(channel+" a table that is not there", func() {
			_, _ = over.MutateRow(ctx, &btpb.MutateRowRequest{TableName: testTable + "x", RowKey: []byte("abc"), Mutations: ok})
		}, heat.Counts{})
		want(channel+" MutateRows", func() {
			stream, err := over.MutateRows(ctx, &btpb.MutateRowsRequest{TableName: testTable, Entries: []*btpb.MutateRowsRequest_Entry{
				{RowKey: []byte("abc"), Mutations: ok}, {RowKey: []byte("b"), Mutations: bad}, {RowKey: []byte("d"), Mutations: ok},
			}})
			for err == nil {
				_, err = stream.Recv()
			}
			if !errors.Is(err, io.EOF) {
				t.Error(err)
			}
		}, heat.Counts{Writes: 1, Rows: 2, Errors: 1, Bytes: 9 + 7})
		read := func(table string, set *btpb.RowSet) {
			stream, err := over.ReadRows(ctx, &btpb.ReadRowsRequest{TableName: table, Rows: set})
			for err == nil {
				_, err = stream.Recv()
			}
		}
		want(channel+" ReadRows", func() { read(testTable, nil) }, heat.Counts{Reads: 1, Rows: 2, Bytes: 9 + 7})
		want(channel+" ReadRows of one", func() { read(testTable, &btpb.RowSet{RowKeys: [][]byte{[]byte("d")}}) }, heat.Counts{Reads: 1, Rows: 1, Bytes: 7})
		want(channel+" ReadRows of nothing", func() { read(testTable, &btpb.RowSet{RowKeys: [][]byte{[]byte("x")}}) }, heat.Counts{Reads: 1})
		want(channel+" ReadRows that fails", func() { read(testTable, &btpb.RowSet{RowKeys: [][]byte{{}}}) }, heat.Counts{Reads: 1, Errors: 1})
		want(channel+" CheckAndMutateRow", func() {
			_, _ = over.CheckAndMutateRow(ctx, &btpb.CheckAndMutateRowRequest{TableName: testTable, RowKey: []byte("abc"), TrueMutations: ok})
		}, heat.Counts{Writes: 1, Rows: 1, Bytes: 9})
		want(channel+" ReadModifyWriteRow", func() {
			_, _ = over.ReadModifyWriteRow(ctx, &btpb.ReadModifyWriteRowRequest{TableName: testTable, RowKey: []byte("n"), Rules: []*btpb.ReadModifyWriteRule{{
				FamilyName: "f", ColumnQualifier: []byte("q"), Rule: &btpb.ReadModifyWriteRule_IncrementAmount{IncrementAmount: 1},
			}}})
			e.put("n") // 1 + 1 + 1
			_, _ = over.MutateRow(ctx, &btpb.MutateRowRequest{TableName: testTable, RowKey: []byte("n"), Mutations: []*btpb.Mutation{deleteRow()}})
		}, heat.Counts{Writes: 3, Rows: 3, Bytes: 10 + 3 + 1})
	}
}

// TestCountsOfSessions: virtual RPCs count like the equivalent RPCs.
func TestCountsOfSessions(t *testing.T) {
	t.Parallel()
	e := newCounted(t)
	ctx, cancel := context.WithCancel(e.ctx())
	defer cancel()
	ss := e.openSession(ctx, btpb.NewBigtableClient(e.dial()), testTable, btpb.OpenTableRequest_PERMISSION_READ_WRITE, nil)
	ss.opened()
	for i, req := range []*btpb.TableRequest{
		{Payload: &btpb.TableRequest_MutateRow{MutateRow: &btpb.SessionMutateRowRequest{Key: []byte("abc"), Mutations: []*btpb.Mutation{set("f", "qq", 0, "vvvv")}}}},
		{Payload: &btpb.TableRequest_MutateRow{MutateRow: &btpb.SessionMutateRowRequest{Key: []byte("abc"), Mutations: []*btpb.Mutation{set("none", "q", 0, "v")}}}},
		{Payload: &btpb.TableRequest_ReadRow{ReadRow: &btpb.SessionReadRowRequest{Key: []byte("abc")}}},
		{Payload: &btpb.TableRequest_ReadRow{ReadRow: &btpb.SessionReadRowRequest{Key: []byte("x")}}},
	} {
		ss.sendRPC(int64(i+1), req)
		if _, err := ss.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := e.counted("c1"), (heat.Counts{Reads: 2, Writes: 2, Rows: 2, Bytes: 9 + 9, Errors: 1}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}

// TestCountsOfClusters: a request counts in the cluster that answered it. In an implicit
// instance it does not count without CountLoad.
func TestCountsOfClusters(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.mustCreateInstance("i", nodes("z1", 1), nodes("z2", 1))
	e.createTable("t", "f")
	for _, id := range []string{"c1", "c2"} {
		p := &btapb.AppProfile{RoutingPolicy: &btapb.AppProfile_SingleClusterRouting_{SingleClusterRouting: &btapb.AppProfile_SingleClusterRouting{ClusterId: id}}}
		if _, err := e.instances().CreateAppProfile(e.ctx(), &btapb.CreateAppProfileRequest{Parent: testInstance, AppProfileId: id, AppProfile: p}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := e.data.MutateRow(e.ctx(), &btpb.MutateRowRequest{TableName: testTable, AppProfileId: "c2", RowKey: []byte("k"), Mutations: []*btpb.Mutation{set("f", "q", 0, "v")}})
	if err != nil {
		t.Fatal(err)
	}
	if one, two := e.counted("c1"), e.counted("c2"); one.Writes != 0 || two.Writes != 1 {
		t.Errorf("counted %+v and %+v", one, two)
	}
	if got := e.hotTablets(&btapb.ListHotTabletsRequest{Parent: testInstance + "/clusters/c2"}); len(got) != 1 || len(e.hotTablets(&btapb.ListHotTabletsRequest{})) != 0 {
		t.Errorf("got %v", got)
	}

	for _, all := range []bool{false, true} {
		e := newEnvWith(t, Options{CountLoad: all}, engine.Options{})
		e.createTable("t", "f")
		e.put("k")
		if got := e.srv.LoadPlaces(); (len(got) > 0) != all {
			t.Errorf("all is %v: counted %v", all, got)
		}
		if got := e.hotTablets(&btapb.ListHotTabletsRequest{Parent: testInstance + "/clusters/" + instancedef.ImplicitCluster}); (len(got) > 0) != all {
			t.Errorf("all is %v: %v", all, got)
		}
	}
}

// TestAllocationsOfCounts: counting does not add allocations to a request.
func TestAllocationsOfCounts(t *testing.T) { //nolint:paralleltest // it counts allocations
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	var takes [2][3]float64
	for i := range takes {
		e := newEnvWith(t, Options{CountLoad: i == 1}, engine.Options{})
		e.createTable("t", "f")
		for j, call := range []func(){
			func() { e.put("k") },
			func() {
				stream, err := e.data.ReadRows(e.ctx(), &btpb.ReadRowsRequest{TableName: testTable, Rows: &btpb.RowSet{RowKeys: [][]byte{[]byte("k")}}})
				for err == nil {
					_, err = stream.Recv()
				}
			},
			func() {
				stream, err := e.data.MutateRows(e.ctx(), &btpb.MutateRowsRequest{TableName: testTable, Entries: []*btpb.MutateRowsRequest_Entry{
					{RowKey: []byte("k"), Mutations: []*btpb.Mutation{set("f", "q", 0, "v")}},
				}})
				for err == nil {
					_, err = stream.Recv()
				}
			},
		} {
			takes[i][j] = fewestAllocations(call)
		}
	}
	for j, without := range takes[0] {
		if takes[1][j] > without {
			t.Errorf("allocations without and with counts: %v and %v", takes[0], takes[1])
		}
	}
}
