package emu

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tabletop-emu/tabletop/emu/internal/changes"
	"github.com/tabletop-emu/tabletop/emu/internal/instancedef"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/test/memory"
	"github.com/tabletop-emu/tabletop/internal/test/race"
)

func (e *env) wantChanges(want ...string) []*changeRecord {
	e.t.Helper()
	recs := e.until()
	if got := textsOf(recs); got != strings.Join(append(want, ""), "\n") {
		e.t.Errorf("got:\n%swant:\n%s", got, strings.Join(want, "\n"))
	}
	return recs
}

func TestTrap95_DeleteFromRowIsEveryFamily(t *testing.T) {
	t.Parallel()
	e := newStream(t, "b", "a", "c")
	e.mustMutate("r", set("a", "q", 1000, "v"))
	e.mustMutate("r", deleteRow())
	e.wantChanges("r set a:q@1000=v", "r delete b delete a delete c")
}

func TestTrap96_DeletesOfNothingAreRecorded(t *testing.T) {
	t.Parallel()
	e := newStream(t, "a")
	e.mustMutate("r", deleteFamily("a"))
	e.mustMutate("r", deleteColumn("a", "q", 0, 0), deleteColumn("a", "q", 1000, 3000))
	e.wantChanges("r delete a", "r delete a:q[0,0) delete a:q[1000,3000)")
}

func TestTrap97_OneRecordAnAtomicWrite(t *testing.T) {
	t.Parallel()
	e := newStream(t, "a")
	e.mustMutate("r", set("a", "q", 1000, "1"), deleteColumn("a", "q", 0, 0), set("a", "q", 1000, "2"))
	if _, err := e.mutateRows(entry("s", set("a", "q", 1000, "3")), entry("t", set("nope", "q", 1000, "")), entry("s", set("a", "q", 1000, "4"))); err != nil {
		t.Fatal(err)
	}
	e.wantChanges("r set a:q@1000=1 delete a:q[0,0) set a:q@1000=2", "s set a:q@1000=3", "s set a:q@1000=4")
}

func TestTrap98_StoredTimestamps(t *testing.T) {
	t.Parallel()
	e := newStream(t, "a")
	auto := set("a", "q", 1_234_567, "v")
	auto.TimestampOrigin = btpb.Mutation_CLIENT_AUTO_GENERATED
	e.mustMutate("r", set("a", "q", -1, "v"), auto)
	e.wantChanges(fmt.Sprintf("r set a:q@%d=v set a:q@1234000=v", start.UnixMicro()))
}

func TestTrap99_LargeValue(t *testing.T) {
	t.Parallel()
	e := newStream(t, "a")
	v := big(4_600_000)
	e.mustMutate("r", set("a", "p", 1000, "small"), set("a", "q", 1000, v), set("a", "s", 1000, "after"))
	recs := e.wantChanges("r set a:p@1000=small set a:q@1000=" + v + " set a:s@1000=after")
	if recs[0].messages < 5 {
		t.Errorf("%d messages", recs[0].messages)
	}
}

func TestTrap100_PieceLimit(t *testing.T) {
	t.Parallel()
	e := newStream(t, "a")
	e.mustMutate("r", set("a", "q", 1000, big(changes.MaxValueBytes)))
	e.mustMutate("r", set("a", "q", 1000, big(changes.MaxValueBytes+1)))
	e.mustMutate("r", set("a", "q", 1000, ""))
	for i, want := range []int{1, 2, 1} {
		if got := e.until()[i].messages; got != want {
			t.Errorf("record %d has %d messages, want %d", i, got, want)
		}
	}
}

func TestTrap101_GarbageCollection(t *testing.T) {
	t.Parallel()
	e := newStream(t, "a", "b")
	if _, err := e.admin.ModifyColumnFamilies(e.ctx(), &btapb.ModifyColumnFamiliesRequest{Name: testTable, Modifications: []*btapb.ModifyColumnFamiliesRequest_Modification{{
		Id: "a", Mod: &btapb.ModifyColumnFamiliesRequest_Modification_Update{Update: &btapb.ColumnFamily{
			GcRule: &btapb.GcRule{Rule: &btapb.GcRule_MaxNumVersions{MaxNumVersions: 1}},
		}},
	}}}); err != nil {
		t.Fatal(err)
	}
	e.mustMutate("r", set("a", "q", 9000, "4"), set("a", "q", 3000, "3"), set("a", "q", 2000, "2"), set("b", "q", 1000, "1"))
	e.mustMutate("s", set("a", "q", 9000, "4"), set("a", "q", 3000, "3"), set("a", "q", 1000, "2"))
	if _, err := e.db.RunGC(e.ctx()); err != nil {
		t.Fatal(err)
	}
	recs := e.until()[2:]
	if got := textsOf(recs); got != "r gc delete a:q[2000,4000)\ns gc delete a:q[3000,4000) delete a:q[1000,2000)\n" {
		t.Error(got)
	}
}

func TestTrap102_SchemaChangesAreNotRecorded(t *testing.T) {
	t.Parallel()
	e := newStream(t, "a", "b")
	e.mustMutate("r", set("a", "q", 1000, "v"), set("b", "q", 1000, "v"))
	e.modifyFamilies("t", &btapb.ModifyColumnFamiliesRequest_Modification{Id: "a", Mod: &btapb.ModifyColumnFamiliesRequest_Modification_Drop{Drop: true}})
	if _, err := e.db.RunGC(e.ctx()); err != nil {
		t.Fatal(err)
	}
	e.wantChanges("r set a:q@1000=v set b:q@1000=v")
}

func TestTrap103_NothingIsNoRecord(t *testing.T) {
	t.Parallel()
	e := newStream(t, "a")
	if _, err := e.data.CheckAndMutateRow(e.ctx(), &btpb.CheckAndMutateRowRequest{
		TableName: testTable, RowKey: []byte("r"), TrueMutations: []*btpb.Mutation{set("a", "q", 1000, "v")},
	}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := e.data.MutateRow(e.ctx(), &btpb.MutateRowRequest{
			TableName: testTable, RowKey: []byte("r"), Mutations: []*btpb.Mutation{set("a", "q", 1000, "v")},
			Idempotency: &btpb.Idempotency{Token: []byte("0123456789")},
		}); err != nil {
			t.Fatal(err)
		}
	}
	e.wantChanges("r set a:q@1000=v")
}

func TestTrap104_ReadModifyWrite(t *testing.T) {
	t.Parallel()
	e := newStream(t, "a")
	if _, err := e.data.ReadModifyWriteRow(e.ctx(), &btpb.ReadModifyWriteRowRequest{TableName: testTable, RowKey: []byte("r"), Rules: []*btpb.ReadModifyWriteRule{
		{FamilyName: "a", ColumnQualifier: []byte("q"), Rule: &btpb.ReadModifyWriteRule_AppendValue{AppendValue: []byte("x")}},
	}}); err != nil {
		t.Fatal(err)
	}
	wantBelief(t, "the record", func() string { return textsOf(e.until()) }, fmt.Sprintf("r set a:q@%d=x\n", start.UnixMicro()))
}

func TestTrap105_DropRowRange(t *testing.T) {
	t.Parallel()
	e := newStream(t, "a", "b")
	for _, row := range []string{"p1", "p2", "p3", "q"} {
		e.mustMutate(row, set("a", "q", 1000, "v"))
	}
	if _, err := e.admin.DropRowRange(e.ctx(), &btapb.DropRowRangeRequest{Name: testTable, Target: &btapb.DropRowRangeRequest_RowKeyPrefix{RowKeyPrefix: []byte("p")}}); err != nil {
		t.Fatal(err)
	}
	if got := textsOf(e.until()[4:]); got != "p1 delete a delete b\np2 delete a delete b\np3 delete a delete b\n" {
		t.Error(got)
	}
}

// With concurrent writers, the last record of a row matches its final state.
func TestTrap105_DropRowRangeWhileWritersRun(t *testing.T) {
	t.Parallel()
	e := newStream(t, "a")
	const writers, writes, rows = 4, 100, 5
	for i := range rows {
		e.mustMutate(fmt.Sprintf("p%d", i), set("a", "q", 1000, "first"))
	}
	var working sync.WaitGroup
	for w := range writers {
		working.Go(func() {
			for i := range writes {
				if err := e.mutate(fmt.Sprintf("p%d", (i+w)%rows), set("a", "q", 1000, fmt.Sprintf("%d of %d", i, w))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		working.Wait()
	}()
	for running := true; running; {
		if _, err := e.admin.DropRowRange(e.ctx(), &btapb.DropRowRangeRequest{Name: testTable, Target: &btapb.DropRowRangeRequest_RowKeyPrefix{RowKeyPrefix: []byte("p")}}); err != nil {
			t.Error(err)
		}
		select {
		case <-done:
			running = false
		default:
		}
	}
	left, dropped := map[string]string{}, 0
	for _, r := range e.until() {
		if set := r.muts[0].GetSetCell(); set != nil {
			left[r.row] = string(set.GetValue())
		} else {
			delete(left, r.row)
			dropped++
		}
	}
	var want []string
	for _, row := range slices.Sorted(maps.Keys(left)) {
		want = append(want, row+" a:q@1000="+left[row])
	}
	if got := e.cells(nil); !slices.Equal(got, want) {
		t.Errorf("the table holds %q, its last records %q", got, want)
	}
	if dropped < rows {
		t.Errorf("%d rows were dropped", dropped)
	}
}

func TestTrap106_StartTime(t *testing.T) {
	t.Parallel()
	e := newStream(t, "a")
	for i := range 3 {
		e.clock.Advance(time.Second)
		e.mustMutate("r", set("a", "q", 1000, fmt.Sprint(i)))
	}
	recs := e.until()
	at := func(when time.Time, n int) string {
		r := e.changes(&btpb.ReadChangeStreamRequest{StartFrom: fromTime(when), Partition: partition("", "")})
		defer r.cancel()
		return textsOf(r.take(n))
	}
	if got := at(time.UnixMicro(recs[1].micros), 2); got != textsOf(recs[1:]) {
		t.Errorf("inclusive: %s", got)
	}
	if got := at(time.UnixMicro(recs[1].micros+1), 1); got != textsOf(recs[2:]) {
		t.Errorf("a microsecond later: %s", got)
	}
	if got := at(start.Add(-time.Second), 3); got != textsOf(recs) {
		t.Errorf("a second before the stream was enabled: %s", got)
	}
	// The code is a belief.
	for _, when := range []time.Time{e.clock.Now().Add(time.Hour), e.clock.Now().Add(-25 * time.Hour), start.Add(-2 * time.Second)} {
		e.changes(&btpb.ReadChangeStreamRequest{StartFrom: fromTime(when), Partition: partition("", "")}).wantError("InvalidArgument", "OutOfRange", "FailedPrecondition")
	}
}

func TestTrap107_EndTimeInThePast(t *testing.T) {
	t.Parallel()
	e := newStream(t, "a")
	e.mustMutate("r", set("a", "q", 1000, "1"))
	e.clock.Advance(time.Minute)
	e.mustMutate("r", set("a", "q", 1000, "2"))
	recs, closed := e.changes(&btpb.ReadChangeStreamRequest{
		Partition: partition("", ""), StartFrom: fromTime(start), EndTime: timestamppb.New(start.Add(time.Second)),
	}).rest()
	if textsOf(recs) != "r set a:q@1000=1\n" || closed.GetStatus().GetCode() != 0 || len(closed.GetContinuationTokens()) != 0 {
		t.Errorf("%s%v", textsOf(recs), closed)
	}
}

// reportingClock reports waits.
type reportingClock struct {
	Clock
	asked chan struct{}
}

func (c reportingClock) At(t time.Time) (reached <-chan struct{}, stop func()) {
	reached, stop = c.Clock.At(t)
	c.asked <- struct{}{}
	return reached, stop
}

func TestTrap108_EndTimeOfAQuietTable(t *testing.T) {
	t.Parallel()
	e := newStream(t, "a")
	asked := make(chan struct{}, 10)
	e.srv.clock = reportingClock{e.clock, asked}
	r := e.changes(&btpb.ReadChangeStreamRequest{Partition: partition("", ""), EndTime: timestamppb.New(start.Add(8 * time.Second))})
	done := make(chan *btpb.ReadChangeStreamResponse_CloseStream, 1)
	beats := make(chan struct{}, 10)
	go func() {
		for {
			_, beat, closed, err := r.next()
			if closed != nil || err != nil {
				done <- closed
				return
			}
			if beat != nil {
				beats <- struct{}{}
			}
		}
	}()
	<-asked
	e.clock.Advance(5 * time.Second)
	<-beats
	<-asked
	e.clock.Advance(4 * time.Second)
	if closed := <-done; closed == nil || closed.GetStatus().GetCode() != 0 {
		t.Errorf("closed with %v", closed)
	}
}

func TestTrap109_Tokens(t *testing.T) {
	t.Parallel()
	e := newStream(t, "a")
	e.createTable("other", "a")
	e.mustMutate("r", set("a", "q", 1000, "1"))
	e.mustMutate("s", set("a", "q", 1000, "2"))
	first := e.until()[0].token
	read := func(asked *btpb.StreamPartition, tokens ...*btpb.StreamContinuationToken) *changeReader {
		return e.changes(&btpb.ReadChangeStreamRequest{Partition: asked, StartFrom: fromTokens(tokens...)})
	}
	token := func(start, end, text string) *btpb.StreamContinuationToken {
		return &btpb.StreamContinuationToken{Partition: partition(start, end), Token: text}
	}
	all := partition("", "")
	for name, tokens := range map[string][]*btpb.StreamContinuationToken{
		"itself":               {token("", "", first)},
		"narrowed, and in two": {token("m", "", first), token("", "m", first)},
	} {
		if got := textsOf(read(all, tokens...).take(1)); got != "s set a:q@1000=2\n" {
			t.Errorf("%s: %s", name, got)
		}
	}
	for _, tokens := range [][]*btpb.StreamContinuationToken{
		{},
		{token("", "", "")},
		{token("", "", "garbage")},
		{token("", "", first[:len(first)-2])},
		{token("", "m", first)},
		{token("", "m", first), token("n", "", first)},
		{token("", "n", first), token("m", "", first)},
		{token("", "m", first), token("m", "z", first)},
	} {
		read(all, tokens...).wantError("InvalidArgument")
	}
	e.setRetention(0)
	e.setRetention(24 * time.Hour)
	read(all, token("", "", first)).wantError("InvalidArgument")
}

func TestTrap110_MergedPositions(t *testing.T) {
	t.Parallel()
	e := newStream(t, "a")
	if err := e.srv.SplitPartition(e.ctx(), testTable, []byte("m")); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		e.mustMutate("l", set("a", "q", 1000, fmt.Sprint(i)))
		e.mustMutate("r", set("a", "q", 1000, fmt.Sprint(i)))
	}
	left := e.changes(&btpb.ReadChangeStreamRequest{Partition: partition("", "m"), StartFrom: fromTime(start)}).take(10)
	right := e.changes(&btpb.ReadChangeStreamRequest{Partition: partition("m", ""), StartFrom: fromTime(start)}).take(4)
	if err := e.srv.MergePartitions(e.ctx(), testTable, []byte("m")); err != nil {
		t.Fatal(err)
	}
	e.mustMutate("l", set("a", "q", 1000, "after"))
	r := e.changes(&btpb.ReadChangeStreamRequest{Partition: partition("", ""), StartFrom: fromTokens(
		&btpb.StreamContinuationToken{Partition: partition("m", ""), Token: right[3].token},
		&btpb.StreamContinuationToken{Partition: partition("", "m"), Token: left[9].token})})
	got := r.take(3)
	again := e.changes(&btpb.ReadChangeStreamRequest{Partition: partition("", ""), StartFrom: fromToken("", "", got[2].token)})
	got = append(got, again.take(4)...)
	want := ""
	for i := 4; i < 10; i++ {
		want += fmt.Sprintf("r set a:q@1000=%d\n", i)
	}
	if want += "l set a:q@1000=after\n"; textsOf(got) != want {
		t.Errorf("got\n%swant\n%s", textsOf(got), want)
	}
}

// TestTrap111_Split also covers trap 112: one token per new partition.
func TestTrap111_Split(t *testing.T) {
	t.Parallel()
	e := newStream(t, "a")
	e.mustMutate("l", set("a", "q", 1000, "1"))
	r := e.changes(&btpb.ReadChangeStreamRequest{Partition: partition("", ""), StartFrom: fromTime(start)})
	parent := r.take(1)
	e.mustMutate("r", set("a", "q", 1000, "2"))
	if err := e.srv.SplitPartition(e.ctx(), testTable, []byte("m")); err != nil {
		t.Fatal(err)
	}
	e.mustMutate("l", set("a", "q", 1000, "3"))
	e.mustMutate("r", set("a", "q", 1000, "4"))
	more, closed := r.rest()
	all := append(parent, more...)
	if closed.GetStatus().GetCode() != int32(codes.OutOfRange) || len(closed.GetContinuationTokens()) != 2 || len(closed.GetNewPartitions()) != 2 {
		t.Fatalf("closed with %v", closed)
	}
	for i, next := range closed.GetNewPartitions() {
		token := closed.GetContinuationTokens()[i]
		child := e.changes(&btpb.ReadChangeStreamRequest{Partition: next, StartFrom: fromTokens(token)})
		all = append(all, child.take(1)...)
	}
	if got := textsOf(all); got != "l set a:q@1000=1\nr set a:q@1000=2\nl set a:q@1000=3\nr set a:q@1000=4\n" {
		t.Error(got)
	}
	// A token from before the split leads to the new partitions.
	none, closed := e.changes(&btpb.ReadChangeStreamRequest{Partition: partition("", ""), StartFrom: fromToken("", "", parent[0].token)}).rest()
	if len(none) != 0 || len(closed.GetContinuationTokens()) != 2 {
		t.Errorf("%s%v", textsOf(none), closed)
	}
}

func TestTrap116_EveryToken(t *testing.T) {
	t.Parallel()
	e := newStream(t, "a")
	for i := range 100 {
		e.mustMutate(fmt.Sprint(i%7), set("a", "q", 1000, fmt.Sprint(i)))
	}
	recs := e.until()
	for i := range recs[:len(recs)-1] {
		got := e.changes(&btpb.ReadChangeStreamRequest{Partition: partition("", ""), StartFrom: fromToken("", "", recs[i].token)}).take(len(recs) - i - 1)
		if textsOf(got) != textsOf(recs[i+1:]) {
			t.Fatalf("after record %d: %s", i, textsOf(got))
		}
	}
}

func TestTrap117_DisableAndEnable(t *testing.T) {
	t.Parallel()
	e := newStream(t, "a")
	e.mustMutate("r", set("a", "q", 1000, "1"))
	r := e.changes(&btpb.ReadChangeStreamRequest{Partition: partition("", ""), StartFrom: fromTime(start)})
	r.take(1)
	e.setRetention(0)
	r.wantError("FailedPrecondition")
	e.mustMutate("r", set("a", "q", 1000, "2"))
	e.setRetention(24 * time.Hour)
	e.mustMutate("r", set("a", "q", 1000, "3"))
	e.wantChanges("r set a:q@1000=3")
}

func TestTrap118_ShorterRetention(t *testing.T) {
	t.Parallel()
	e := newStream(t, "a")
	e.setRetention(7 * 24 * time.Hour)
	e.mustMutate("r", set("a", "q", 1000, "1"))
	e.mustMutate("r", set("a", "q", 1000, "2"))
	token := e.until()[0].token
	e.clock.Advance(30 * time.Hour)
	req := &btpb.ReadChangeStreamRequest{Partition: partition("", ""), StartFrom: fromToken("", "", token)}
	e.changes(req).take(1)
	e.setRetention(24 * time.Hour)
	e.changes(req).wantError("InvalidArgument")
}

func TestTrap119_MaskOfTheRetentionEnables(t *testing.T) {
	t.Parallel()
	e := newTable(t, "a")
	if _, err := e.updateTable(&btapb.Table{ChangeStreamConfig: &btapb.ChangeStreamConfig{RetentionPeriod: durationpb.New(24 * time.Hour)}}, "change_stream_config.retention_period"); err != nil {
		t.Fatal(err)
	}
	e.mustMutate("r", set("a", "q", 1000, "1"))
	e.wantChanges("r set a:q@1000=1")
}

func TestTrap120_DeleteWithAStream(t *testing.T) {
	t.Parallel()
	e := newStream(t, "a")
	_, err := e.admin.DeleteTable(e.ctx(), &btapb.DeleteTableRequest{Name: testTable})
	wantCode(t, err, codes.FailedPrecondition)
	_, err = btapb.NewBigtableInstanceAdminClient(e.srv.Conn()).DeleteInstance(e.ctx(), &btapb.DeleteInstanceRequest{Name: testInstance})
	wantCode(t, err, codes.FailedPrecondition)
	e.setRetention(0)
	_, err = e.admin.DeleteTable(e.ctx(), &btapb.DeleteTableRequest{Name: testTable})
	wantCode(t, err, codes.OK)
}

func TestTrap121_WhatCannotBeRead(t *testing.T) {
	t.Parallel()
	// The code of the first error is a belief.
	e := newTable(t, "a")
	e.changes(&btpb.ReadChangeStreamRequest{}).wantError("FailedPrecondition", "InvalidArgument")
	e.changes(&btpb.ReadChangeStreamRequest{TableName: testTable + "x"}).wantError("NotFound")
	// Streams need a profile that routes to a single cluster; an implicit instance has one.
	e.setRetention(24 * time.Hour)
	for id, profile := range map[string]*btapb.AppProfile{
		"one": singleCluster(instancedef.ImplicitCluster, false), "multi": anyCluster(),
		"boost": dataBoost(singleCluster(instancedef.ImplicitCluster, false), btapb.AppProfile_DataBoostIsolationReadOnly_HOST_PAYS),
	} {
		if err := e.createAppProfile(testInstance, id, profile); err != nil {
			t.Fatal(err)
		}
		req := &btpb.ReadChangeStreamRequest{AppProfileId: id, Partition: partition("", ""), StartFrom: fromTime(start)}
		partitions, err := e.data.GenerateInitialChangeStreamPartitions(e.ctx(), &btpb.GenerateInitialChangeStreamPartitionsRequest{TableName: testTable, AppProfileId: id})
		if err == nil {
			_, err = partitions.Recv()
		}
		if id == "one" {
			e.mustMutate("r", set("a", "q", 1000, "v"))
			if got := textsOf(e.changes(req).take(1)); err != nil || got != "r set a:q@1000=v\n" {
				t.Errorf("%v, %s", err, got)
			}
			continue
		}
		if c := status.Code(err); c != codes.FailedPrecondition && c != codes.InvalidArgument {
			t.Errorf("partitions through %s: %v", id, err)
		}
		e.changes(req).wantError("FailedPrecondition", "InvalidArgument")
	}
}

func TestTrap122_InitialPartitions(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	if _, err := e.admin.CreateTable(e.ctx(), &btapb.CreateTableRequest{
		Parent: testInstance, TableId: "t", InitialSplits: []*btapb.CreateTableRequest_Split{{Key: []byte("s2")}, {Key: []byte("s1")}},
		Table: &btapb.Table{ChangeStreamConfig: &btapb.ChangeStreamConfig{RetentionPeriod: durationpb.New(24 * time.Hour)}},
	}); err != nil {
		t.Fatal(err)
	}
	stream, err := e.data.GenerateInitialChangeStreamPartitions(e.ctx(), &btpb.GenerateInitialChangeStreamPartitionsRequest{TableName: testTable})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []*btpb.StreamPartition{partition("", "s1"), partition("s1", "s2"), partition("s2", "")} {
		resp, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		r := resp.GetPartition().GetRowRange()
		_, closed := r.GetStartKey().(*btpb.RowRange_StartKeyClosed)
		_, open := r.GetEndKey().(*btpb.RowRange_EndKeyOpen)
		if !closed || !open || string(r.GetStartKeyClosed()) != string(want.GetRowRange().GetStartKeyClosed()) || string(r.GetEndKeyOpen()) != string(want.GetRowRange().GetEndKeyOpen()) {
			t.Errorf("got %v, want %v", r, want)
		}
	}
}

func TestTrap112_AsManyTokensAsPartitions(t *testing.T) {
	t.Parallel()
	e := newStream(t, "a")
	for _, key := range []string{"c", "e"} {
		if err := e.srv.SplitPartition(e.ctx(), testTable, []byte(key)); err != nil {
			t.Fatal(err)
		}
	}
	_, closed := e.changes(&btpb.ReadChangeStreamRequest{Partition: partition("b", "d"), StartFrom: fromTime(start)}).rest()
	var got []string
	for i, next := range closed.GetNewPartitions() {
		part := closed.GetContinuationTokens()[i].GetPartition().GetRowRange()
		got = append(got, fmt.Sprintf("[%s,%s) of [%s,%s)", part.GetStartKeyClosed(), part.GetEndKeyOpen(),
			next.GetRowRange().GetStartKeyClosed(), next.GetRowRange().GetEndKeyOpen()))
	}
	if text := strings.Join(got, " "); text != "[b,c) of [,c) [c,d) of [c,e)" {
		t.Error(text)
	}
}

// TestTrap113_Heartbeats also covers part of trap 115: the low watermark of an idle stream
// advances.
func TestTrap113_Heartbeats(t *testing.T) {
	t.Parallel()
	e := newStream(t, "a")
	asked := make(chan struct{}, 10)
	e.srv.clock = reportingClock{e.clock, asked}
	r := e.changes(&btpb.ReadChangeStreamRequest{Partition: partition("", ""), HeartbeatDuration: durationpb.New(time.Second)})
	beats := make(chan *btpb.ReadChangeStreamResponse_Heartbeat)
	go func() {
		for {
			_, beat, _, err := r.next()
			if err != nil {
				close(beats)
				return
			}
			if beat != nil {
				beats <- beat
			}
		}
	}()
	var last *btpb.ReadChangeStreamResponse_Heartbeat
	for i := range 3 {
		<-asked
		now := e.clock.Advance(time.Second)
		last = <-beats
		if got := last.GetEstimatedLowWatermark().AsTime(); now.Sub(got) > time.Second || i > 0 && !got.After(start) {
			t.Errorf("the low watermark is %v at %v", got, now)
		}
	}
	r.cancel()
	for range beats {
	}
	e.mustMutate("r", set("a", "q", 1000, "1"))
	e.mustMutate("r", set("a", "q", 1000, "2"))
	again := e.changes(&btpb.ReadChangeStreamRequest{Partition: partition("", ""), StartFrom: fromTokens(last.GetContinuationToken())})
	if got := textsOf(again.take(2)); got != "r set a:q@1000=1\nr set a:q@1000=2\n" {
		t.Error(got)
	}
}

// TestTrap115_LowWatermark: no record was committed before an earlier low watermark;
// changeReader checks each.
func TestTrap115_LowWatermark(t *testing.T) {
	t.Parallel()
	e := newStream(t, "a")
	r := e.changes(&btpb.ReadChangeStreamRequest{Partition: partition("", ""), StartFrom: fromTime(start)})
	for i := range 20 {
		e.mustMutate("r", set("a", "q", 1000, fmt.Sprint(i)))
		rec := r.take(1)[0]
		if rec.watermark > rec.micros {
			t.Errorf("the low watermark %d is after the record's %d", rec.watermark, rec.micros)
		}
		if i%5 == 0 {
			e.clock.Advance(time.Second)
		}
	}
}

func TestOptions_PartitionChurn(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for _, p := range []float64{-0.1, 1.1, math.NaN()} {
		if _, err := New(Options{DB: e.db, PartitionChurn: p}); err == nil {
			t.Errorf("a probability of %v is taken", p)
		}
	}
}

// A stream sends a heartbeat after 20 seconds of wall time, even if the clock does not move.
func TestReadChangeStream_SignOfLife(t *testing.T) {
	t.Parallel()
	e := newStream(t, "a")
	now := make(chan time.Time, 1)
	e.srv.after = func(d time.Duration) <-chan time.Time {
		if d != maxSilence {
			t.Errorf("waits for %v", d)
		}
		return now
	}
	now <- start
	r := e.changes(&btpb.ReadChangeStreamRequest{Partition: partition("", "")})
	if _, beat, _, err := r.next(); beat == nil || err != nil {
		t.Errorf("%v, %v", beat, err)
	}
	r.cancel()
}

// Streams end when the server stops, so that GracefulStop returns.
func TestReadChangeStream_GracefulStop(t *testing.T) {
	t.Parallel()
	e := newStream(t, "a")
	e.mustMutate("r", set("a", "q", 1000, "1"))
	e.data = btpb.NewBigtableClient(e.dial())
	r := e.changes(&btpb.ReadChangeStreamRequest{Partition: partition("", ""), StartFrom: fromTime(start)})
	r.take(1)
	e.srv.GracefulStop()
	r.wantError("Unavailable")
}

// TestTrap123_SlowReader: the backlog of a blocked reader is in the store, not in memory, and
// the goroutine of a disconnected reader ends.
func TestTrap123_SlowReader(t *testing.T) { //nolint:paralleltest // Alone makes it parallel
	if race.Enabled {
		t.Skip("the race detector allocates too")
	}
	memory.Alone(t, testSlowReader)
}

func testSlowReader(t *testing.T) {
	const records, most = 1_000, 2 << 20 // 10 MB; windows of 64 KiB and a batch of the journal are ahead of the reader
	ended := make(chan struct{}, 1)
	e := newEnvWith(t, Options{StreamInterceptor: func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		err := handler(srv, ss)
		if strings.HasSuffix(info.FullMethod, "/ReadChangeStream") {
			ended <- struct{}{}
		}
		return err
	}}, engine.Options{Dir: t.TempDir(), NoSync: true})
	e.createTable("t", "a")
	e.setRetention(24 * time.Hour)
	value := big(10_000)
	for i := range records {
		e.mustMutate(fmt.Sprint(i%10), set("a", "q", 1000, value))
	}
	// Windows without a fixed size grow with the speed of the machine.
	e.data = btpb.NewBigtableClient(e.dial(grpc.WithStaticStreamWindowSize(64<<10), grpc.WithStaticConnWindowSize(64<<10)))
	before := memory.Live()
	r := e.changes(&btpb.ReadChangeStreamRequest{Partition: partition("", ""), StartFrom: fromTime(start)})
	for i := range 10 {
		r.take(1)
		if held := int64(memory.Live() - before); held > most {
			t.Errorf("after %d of %d records %d KiB are held", i+1, records, held>>10)
		}
	}
	r.cancel()
	<-ended
}

func TestTrap124_Restore(t *testing.T) {
	t.Parallel()
	e := newStream(t, "a")
	e.mustMutate("r", set("a", "q", 1000, "1"))
	before := e.until()[0].token
	snapshot, err := e.db.Snapshot(e.ctx())
	if err != nil {
		t.Fatal(err)
	}
	e.mustMutate("r", set("a", "q", 1000, "2"))
	after := e.until()[1].token
	r := e.changes(&btpb.ReadChangeStreamRequest{Partition: partition("", ""), StartFrom: fromTime(start)})
	r.take(2)
	if err := e.db.Restore(e.ctx(), snapshot); err != nil {
		t.Fatal(err)
	}
	r.wantError("Unavailable")
	e.mustMutate("r", set("a", "q", 1000, "3"))
	e.changes(&btpb.ReadChangeStreamRequest{Partition: partition("", ""), StartFrom: fromToken("", "", after)}).wantError("InvalidArgument")
	got := e.changes(&btpb.ReadChangeStreamRequest{Partition: partition("", ""), StartFrom: fromToken("", "", before)}).take(1)
	if textsOf(got) != "r set a:q@1000=3\n" {
		t.Error(textsOf(got))
	}
}

// Trap 111 covers the tokens of a split, and trap 107 end_time.
func TestTrap70_TokensSurviveARestart(t *testing.T) {
	t.Parallel()
	fs := engine.NewMemFS()
	first := newEnvWith(t, Options{}, engine.Options{Dir: "data", FS: fs})
	first.createTable("t", "a")
	first.setRetention(24 * time.Hour)
	first.mustMutate("r", set("a", "q", 1000, "1"))
	first.mustMutate("r", set("a", "q", 1000, "2"))
	token := first.until()[0].token
	if err := first.srv.SplitPartition(first.ctx(), testTable, []byte("s")); err != nil {
		t.Fatal(err)
	}
	if err := first.db.Close(); err != nil {
		t.Fatal(err)
	}
	e := newEnvWith(t, Options{}, engine.Options{Dir: "data", FS: fs})
	_, closed := e.changes(&btpb.ReadChangeStreamRequest{Partition: partition("", ""), StartFrom: fromToken("", "", token)}).rest()
	left := closed.GetContinuationTokens()[0]
	r := e.changes(&btpb.ReadChangeStreamRequest{Partition: left.GetPartition(), StartFrom: fromTokens(left)})
	if got := textsOf(r.take(1)); got != "r set a:q@1000=2\n" {
		t.Error(got)
	}
}
