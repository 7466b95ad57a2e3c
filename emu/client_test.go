package emu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
)

// clients connects the official Go clients over TCP. An explicit connection keeps them from
// looking for cloud credentials, like BIGTABLE_EMULATOR_HOST.
func (e *env) clients() (*bigtable.Client, *bigtable.AdminClient) {
	e.t.Helper()
	conn, err := grpc.NewClient(e.listen(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<28), grpc.MaxCallSendMsgSize(1<<28)))
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { _ = conn.Close() })
	o := []option.ClientOption{option.WithGRPCConn(conn)}
	admin, err := bigtable.NewAdminClient(e.ctx(), "p", "i", o...)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { _ = admin.Close() })
	client, err := bigtable.NewClientWithConfig(e.ctx(), "p", "i", bigtable.ClientConfig{MetricsProvider: bigtable.NoopMetricsProvider{}}, o...)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { _ = client.Close() })
	return client, admin
}

func itemText(items []bigtable.ReadItem) string {
	var out []string
	for _, i := range items {
		out = append(out, fmt.Sprintf("%s@%d=%s", i.Column, i.Timestamp, i.Value))
	}
	return strings.Join(out, " ")
}

func TestOfficialClient(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	client, admin := e.clients()
	ctx := e.ctx()

	// Administration.
	conf := &bigtable.TableConf{
		TableID:   "t",
		Families:  map[string]bigtable.GCPolicy{"f": bigtable.MaxVersionsPolicy(2), "g": bigtable.UnionPolicy(bigtable.MaxVersionsPolicy(1), bigtable.MaxAgePolicy(time.Hour))},
		SplitKeys: []string{"m"},
	}
	if err := admin.CreateTableFromConf(ctx, conf); err != nil {
		t.Fatal(err)
	}
	if err := admin.CreateColumnFamily(ctx, "t", "h"); err != nil {
		t.Fatal(err)
	}
	if err := admin.SetGCPolicy(ctx, "t", "h", bigtable.MaxVersionsPolicy(1)); err != nil {
		t.Fatal(err)
	}
	info, err := admin.TableInfo(ctx, "t")
	if err != nil {
		t.Fatal(err)
	}
	var families []string
	for _, f := range info.FamilyInfos {
		families = append(families, f.Name+" "+f.GCPolicy)
	}
	slices.Sort(families)
	if want := []string{"f versions() > 2", "g (versions() > 1 || age() > 1h)", "h versions() > 1"}; !slices.Equal(families, want) {
		t.Errorf("families: %q, want %q", families, want)
	}
	tables, err := admin.Tables(ctx)
	if err != nil || !slices.Equal(tables, []string{"t"}) {
		t.Errorf("tables: %v, %v", tables, err)
	}

	// Writing.
	table := client.Open("t")
	m := bigtable.NewMutation()
	m.Set("f", "q", 2000, []byte("new"))
	m.Set("f", "q", 1000, []byte("old"))
	m.Set("g", "", bigtable.ServerTime, []byte("server"))
	if err := table.Apply(ctx, "r1", m); err != nil {
		t.Fatal(err)
	}
	var keys []string
	var muts []*bigtable.Mutation
	for i := range 100 {
		m := bigtable.NewMutation()
		m.Set("f", "n", 1000, fmt.Appendf(nil, "%d", i))
		keys, muts = append(keys, fmt.Sprintf("bulk%02d", i)), append(muts, m)
	}
	errs, err := table.ApplyBulk(ctx, keys, muts)
	if err != nil || errs != nil {
		t.Fatal(errs, err)
	}
	bad := bigtable.NewMutation()
	bad.Set("nope", "q", 1000, nil)
	errs, err = table.ApplyBulk(ctx, []string{"x", "y"}, []*bigtable.Mutation{bad, muts[0]})
	if err != nil || len(errs) != 2 || errs[0] == nil || errs[1] != nil {
		t.Errorf("an unknown family in bulk: %v, %v", errs, err)
	}

	// Reading.
	row, err := table.ReadRow(ctx, "r1", bigtable.RowFilter(bigtable.LatestNFilter(1)))
	if err != nil || itemText(row["f"]) != "f:q@2000=new" || len(row["g"]) != 1 {
		t.Errorf("got %v, %v", row, err)
	}
	if row, err := table.ReadRow(ctx, "none"); err != nil || row != nil {
		t.Errorf("got %v, %v", row, err)
	}
	read := func(set bigtable.RowSet, o ...bigtable.ReadOption) (keys []string) {
		t.Helper()
		err := table.ReadRows(ctx, set, func(r bigtable.Row) bool {
			keys = append(keys, r.Key())
			return true
		}, o...)
		if err != nil {
			t.Fatal(err)
		}
		return keys
	}
	if got := read(bigtable.PrefixRange("bulk")); !slices.Equal(got, keys) {
		t.Errorf("got %v", got)
	}
	if got := read(bigtable.InfiniteRange(""), bigtable.ReverseScan(), bigtable.LimitRows(2)); !slices.Equal(got, []string{"y", "r1"}) {
		t.Errorf("reversed: %v", got)
	}
	var stats *bigtable.FullReadStats
	got := read(bigtable.RowList{"bulk07", "r1", "bulk03"}, bigtable.RowFilter(bigtable.ValueFilter("[37]")),
		bigtable.WithFullReadStats(func(s *bigtable.FullReadStats) { stats = s }))
	if !slices.Equal(got, []string{"bulk03", "bulk07"}) || stats == nil || stats.ReadIterationStats.RowsReturnedCount != 2 {
		t.Errorf("got %v, %v", got, stats)
	}
	// Bytes above 0x7f, quoted by the client.
	m = bigtable.NewMutation()
	m.Set("f", "\x80\xff.", 1000, []byte("v"))
	if err := table.Apply(ctx, "bytes", m); err != nil {
		t.Fatal(err)
	}
	if got := read(bigtable.InfiniteRange(""), bigtable.RowFilter(bigtable.ColumnFilter("\\\x80\\\xff\\."))); !slices.Equal(got, []string{"bytes"}) {
		t.Errorf("got %v", got)
	}

	// A row above grpc's default limit for a message.
	m = bigtable.NewMutation()
	m.Set("h", "big", 1000, []byte(big(6<<20)))
	if err := table.Apply(ctx, "big", m); err != nil {
		t.Fatal(err)
	}
	if row, err := table.ReadRow(ctx, "big"); err != nil || string(row["h"][0].Value) != big(6<<20) {
		t.Errorf("a big row: %v", err)
	}

	for i := range 6 {
		m = bigtable.NewMutation()
		m.Set("h", "a", 1000, []byte(big(i*100<<10)))
		m.Set("h", "b", 1000, []byte(big(700<<10)))
		if err := table.Apply(ctx, fmt.Sprintf("large%d", i), m); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(bigtable.PrefixRange("large")); len(got) != 6 {
		t.Errorf("got %v", got)
	}

	// Conditional mutation, read-modify-write, samples.
	var matched bool
	del := bigtable.NewMutation()
	del.DeleteRow()
	cond := bigtable.NewCondMutation(bigtable.ChainFilters(bigtable.FamilyFilter("f"), bigtable.ValueFilter("new")), del, nil)
	if err := table.Apply(ctx, "r1", cond, bigtable.GetCondMutationResult(&matched)); err != nil || !matched {
		t.Errorf("%v, %v", matched, err)
	}
	rmw := bigtable.NewReadModifyWrite()
	rmw.Increment("f", "n", 3)
	rmw.AppendValue("g", "s", []byte("x"))
	row, err = table.ApplyReadModifyWrite(ctx, "counter", rmw)
	if err != nil || string(row["f"][0].Value) != be(3) || string(row["g"][0].Value) != "x" {
		t.Errorf("got %v, %v", row, err)
	}
	samples, err := table.SampleRowKeys(ctx)
	if err != nil || len(samples) == 0 || samples[0] != "m" {
		t.Errorf("samples %q, %v", samples, err)
	}
	if err := client.PingAndWarm(ctx); err != nil {
		t.Error(err)
	}

	// Dropping.
	if err := admin.DropRowRange(ctx, "t", "bulk"); err != nil {
		t.Fatal(err)
	}
	if got := read(bigtable.PrefixRange("bulk")); got != nil {
		t.Errorf("got %v", got)
	}
	if err := admin.DeleteColumnFamily(ctx, "t", "h"); err != nil {
		t.Fatal(err)
	}
	if err := admin.DeleteTable(ctx, "t"); err != nil {
		t.Fatal(err)
	}
	wantCode(t, admin.DeleteTable(ctx, "t"), codes.NotFound)
	if err := table.Apply(ctx, "r", m); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("writing to a table that is gone: %v", err)
	}
}
