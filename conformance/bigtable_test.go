package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// instance returns an instance for each run of a test.
func instance(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("any-instance-%d", servers.runOf(t))
}

func adminClient(t *testing.T) *bigtable.AdminClient {
	t.Helper()
	admin, err := bigtable.NewAdminClient(t.Context(), "any-project", instance(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Close() })
	return admin
}

// newTable creates a table with families and opens it.
func newTable(t *testing.T, name string, families ...string) *bigtable.Table {
	t.Helper()
	admin := adminClient(t)
	if err := admin.CreateTable(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if err := admin.CreateColumnFamily(t.Context(), name, f); err != nil {
			t.Fatal(err)
		}
	}
	client, err := bigtable.NewClient(t.Context(), "any-project", instance(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client.Open(name)
}

func setCell(family, column string, ts bigtable.Timestamp, value string) *bigtable.Mutation {
	m := bigtable.NewMutation()
	m.Set(family, column, ts, []byte(value))
	return m
}

// read returns rows as lines: key, then column@timestamp=value for each cell.
func read(ctx context.Context, t *testing.T, table *bigtable.Table, rows bigtable.RowSet, opts ...bigtable.ReadOption) []string {
	t.Helper()
	got := []string{}
	err := table.ReadRows(ctx, rows, func(r bigtable.Row) bool {
		line := []string{r.Key()}
		for _, family := range []string{"f", "g"} {
			for _, c := range r[family] {
				line = append(line, fmt.Sprintf("%s@%d=%s", c.Column, c.Timestamp, c.Value))
			}
		}
		got = append(got, strings.Join(line, " "))
		return true
	}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestGoBigtable_Admin(t *testing.T) {
	t.Parallel()
	ctx, admin := t.Context(), adminClient(t)
	err := admin.CreateTableFromConf(ctx, &bigtable.TableConf{
		TableID:        "go-admin",
		SplitKeys:      []string{"g", "p"},
		ColumnFamilies: map[string]bigtable.Family{"f": {GCPolicy: bigtable.UnionPolicy(bigtable.MaxVersionsGCPolicy(2), bigtable.MaxAgeGCPolicy(time.Hour))}, "g": {}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := admin.CreateTable(ctx, "go-admin"); status.Code(err) != codes.AlreadyExists {
		t.Errorf("second CreateTable: %v", err)
	}
	if err := admin.DeleteColumnFamily(ctx, "go-admin", "g"); err != nil {
		t.Error(err)
	}
	if err := admin.SetGCPolicy(ctx, "go-admin", "f", bigtable.MaxVersionsGCPolicy(1)); err != nil {
		t.Error(err)
	}
	info, err := admin.TableInfo(ctx, "go-admin")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"f"}, info.Families); diff != "" {
		t.Errorf("families (-want +got):\n%s", diff)
	}
	if got := info.FamilyInfos[0].GCPolicy; got != "versions() > 1" {
		t.Errorf("rule %q", got)
	}
	tables, err := admin.Tables(ctx)
	if err != nil || !strings.Contains(strings.Join(tables, " "), "go-admin") {
		t.Errorf("tables %v, %v", tables, err)
	}
	if err := admin.DeleteTable(ctx, "go-admin"); err != nil {
		t.Error(err)
	}
	if _, err := admin.TableInfo(ctx, "go-admin"); status.Code(err) != codes.NotFound {
		t.Errorf("TableInfo of a deleted table: %v", err)
	}
}

func TestGoBigtable_ReadAndWrite(t *testing.T) {
	t.Parallel()
	ctx, table := t.Context(), newTable(t, "go-rows", "f", "g")
	var keys []string
	var muts []*bigtable.Mutation
	for i := range 100 {
		m := setCell("f", "a", 1000, fmt.Sprint(i))
		m.Set("f", "a", 2000, fmt.Appendf(nil, "%d again", i))
		m.Set("g", "b", 1000, []byte("x"))
		keys, muts = append(keys, fmt.Sprintf("k%03d", i)), append(muts, m)
	}
	if errs, err := table.ApplyBulk(ctx, keys, muts); err != nil || errs != nil {
		t.Fatal(errs, err)
	}
	cases := []struct {
		name string
		rows bigtable.RowSet
		opts []bigtable.ReadOption
		want []string
	}{
		{"one row", bigtable.SingleRow("k007"), nil, []string{"k007 f:a@2000=7 again f:a@1000=7 g:b@1000=x"}},
		{
			"range, newest", bigtable.NewRange("k010", "k012"),
			[]bigtable.ReadOption{bigtable.RowFilter(bigtable.ChainFilters(bigtable.FamilyFilter("f"), bigtable.LatestNFilter(1)))},
			[]string{"k010 f:a@2000=10 again", "k011 f:a@2000=11 again"},
		},
		{
			"reversed, limited", bigtable.PrefixRange("k09"),
			[]bigtable.ReadOption{bigtable.ReverseScan(), bigtable.LimitRows(2), bigtable.RowFilter(bigtable.FamilyFilter("g"))},
			[]string{"k099 g:b@1000=x", "k098 g:b@1000=x"},
		},
		{
			"keys, values",
			bigtable.RowList{"k003", "k005", "none"},
			[]bigtable.ReadOption{bigtable.RowFilter(bigtable.ValueFilter("[0-9]+"))},
			[]string{"k003 f:a@1000=3", "k005 f:a@1000=5"},
		},
		{
			"condition", bigtable.NewRange("k000", "k002"),
			[]bigtable.ReadOption{bigtable.RowFilter(bigtable.ConditionFilter(
				bigtable.ValueFilter("0"), bigtable.ChainFilters(bigtable.FamilyFilter("g"), bigtable.StripValueFilter()), bigtable.TimestampRangeFilterMicros(2000, 0)))},
			[]string{"k000 g:b@1000=", "k001 f:a@2000=1 again"},
		},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, read(t.Context(), t, table, tc.rows, tc.opts...)); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
	samples, err := table.SampleRowKeys(ctx)
	if err != nil {
		t.Errorf("SampleRowKeys: %v, %v", samples, err)
	}
}

// TestGoBigtable_LargeRows: rows larger than a usual message arrive complete, with many cells
// and with one large one.
func TestGoBigtable_LargeRows(t *testing.T) {
	t.Parallel()
	ctx, table := t.Context(), newTable(t, "go-large", "f")
	wide := bigtable.NewMutation()
	for i := range 1500 {
		wide.Set("f", fmt.Sprintf("q%04d", i), 1000, []byte(strings.Repeat("v", 1000)))
	}
	for row, m := range map[string]*bigtable.Mutation{"wide": wide, "big": setCell("f", "q", 1000, strings.Repeat("v", 3<<20))} {
		if err := table.Apply(ctx, row, m); err != nil {
			t.Fatal(err)
		}
	}
	for row, want := range map[string]int{"wide": 1500, "big": 1} {
		got, err := table.ReadRow(ctx, row)
		if err != nil {
			t.Fatalf("row %s: %v", row, err)
		}
		if len(got["f"]) != want {
			t.Errorf("row %s has %d cells, want %d", row, len(got["f"]), want)
		}
	}
}

func TestGoBigtable_ConditionalAndIncrement(t *testing.T) {
	t.Parallel()
	ctx, table := t.Context(), newTable(t, "go-atomic", "f", "g")
	lock := bigtable.NewCondMutation(bigtable.ColumnFilter("lock"), setCell("f", "seen", 1000, "1"), setCell("f", "lock", 1000, "1"))
	for _, want := range []bool{false, true} {
		var matched bool
		if err := table.Apply(ctx, "r", lock, bigtable.GetCondMutationResult(&matched)); err != nil || matched != want {
			t.Errorf("matched %v, %v, want %v", matched, err, want)
		}
	}
	rmw := bigtable.NewReadModifyWrite()
	rmw.Increment("g", "n", 5)
	rmw.AppendValue("g", "s", []byte("ab"))
	for _, want := range []string{"\x00\x00\x00\x00\x00\x00\x00\x05 ab", "\x00\x00\x00\x00\x00\x00\x00\x0a abab"} {
		row, err := table.ApplyReadModifyWrite(ctx, "r", rmw)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(row["g"][0].Value) + " " + string(row["g"][1].Value); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestGoBigtable_Deletes(t *testing.T) {
	t.Parallel()
	ctx, table := t.Context(), newTable(t, "go-delete", "f", "g")
	apply := func(row string, m *bigtable.Mutation) {
		t.Helper()
		if err := table.Apply(ctx, row, m); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []string{"r1", "r2", "s1"} {
		m := setCell("f", "a", 1000, "1")
		m.Set("f", "a", 2000, []byte("2"))
		m.Set("g", "b", 1000, []byte("3"))
		apply(row, m)
	}
	m := bigtable.NewMutation()
	m.DeleteTimestampRange("f", "a", 2000, 3000)
	m.DeleteCellsInFamily("g")
	apply("r1", m)
	m = bigtable.NewMutation()
	m.DeleteRow()
	apply("r2", m)
	if diff := cmp.Diff([]string{"r1 f:a@1000=1"}, read(ctx, t, table, bigtable.PrefixRange("r"))); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if err := adminClient(t).DropRowRange(ctx, "go-delete", "s"); err != nil {
		t.Error(err)
	}
	if got := read(ctx, t, table, bigtable.InfiniteRange("")); len(got) != 1 {
		t.Errorf("rows after DropRowRange: %v", got)
	}
}

func TestGoBigtable_Errors(t *testing.T) {
	t.Parallel()
	ctx, table := t.Context(), newTable(t, "go-errors", "f")
	err := table.Apply(ctx, "r", setCell("nope", "q", 1000, "v"))
	if status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), "nope") {
		t.Errorf("unknown family: %v", err)
	}
	err = table.Apply(ctx, "", setCell("f", "q", 1000, "v"))
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("empty row key: %v", err)
	}
	if got := read(ctx, t, table, bigtable.InfiniteRange("")); len(got) != 0 {
		t.Errorf("a refused write left %v", got)
	}
}

// TestGoBigtable_SQL: the client prepares a statement, binds its parameters, and reads rows of
// the same table as by ReadRows. An error of a statement names its place.
func TestGoBigtable_SQL(t *testing.T) {
	t.Parallel()
	ctx, table := t.Context(), newTable(t, "go-sql", "f")
	for _, key := range []string{"a#1", "a#2", "b#1"} {
		if err := table.Apply(ctx, key, setCell("f", "q", 1000, "v of "+key)); err != nil {
			t.Fatal(err)
		}
	}
	client, err := bigtable.NewClient(ctx, "any-project", instance(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	statement, err := client.PrepareStatement(ctx, "SELECT _key AS k, f['q'] AS q FROM `go-sql` WHERE STARTS_WITH(_key, @prefix) ORDER BY k DESC",
		map[string]bigtable.SQLType{"prefix": bigtable.BytesSQLType{}})
	if err != nil {
		t.Fatal(err)
	}
	for prefix, want := range map[string][]string{"a#": {"a#2=v of a#2", "a#1=v of a#1"}, "b": {"b#1=v of b#1"}, "c": nil} {
		bound, err := statement.Bind(map[string]any{"prefix": []byte(prefix)})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		err = bound.Execute(ctx, func(row bigtable.ResultRow) bool {
			var key, value []byte
			if err := errors.Join(row.GetByName("k", &key), row.GetByIndex(1, &value)); err != nil {
				t.Error(err)
			}
			got = append(got, fmt.Sprintf("%s=%s", key, value))
			return true
		})
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("rows of %q: %v, %v, want %v", prefix, got, err, want)
		}
	}
	_, err = client.PrepareStatement(ctx, "SELECT nothing FROM `go-sql`", nil)
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "Unrecognized name: nothing") {
		t.Errorf("an unknown column: %v", err)
	}
}
