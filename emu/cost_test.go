package emu

import (
	"encoding/base64"
	"fmt"
	"math"
	"strings"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/internal/test/costs"
	"github.com/tabletop-emu/tabletop/internal/test/memory"
	"github.com/tabletop-emu/tabletop/internal/test/race"
)

// TestMemoryOfScans: the heap size during a full scan, and the allocations of a read of few
// rows, are the same for a table ten times as large.
func TestMemoryOfScans(t *testing.T) { //nolint:paralleltest // Alone makes it parallel
	if race.Enabled {
		t.Skip("the race detector allocates too")
	}
	memory.Alone(t, testMemoryOfScans)
}

func testMemoryOfScans(t *testing.T) {
	const few, many, slack = 100, 1_000, 700 << 10
	value := strings.Repeat("v", 3000)
	table := func(rows int) *env {
		e := newTable(t, "f")
		for i := 0; i < rows; i += 100 {
			var entries []*btpb.MutateRowsRequest_Entry
			for j := range 100 {
				entries = append(entries, entry(fmt.Sprintf("r%06d", i+j), set("f", "q", 1000, value)))
			}
			if _, err := e.mutateRows(entries...); err != nil {
				t.Fatal(err)
			}
		}
		return e
	}
	// drain returns a function that reads all messages of a stream.
	drain := func(e *env, req *btpb.ReadRowsRequest) func() {
		req.TableName = testTable
		return func() {
			stream, err := e.data.ReadRows(withFeatures(t.Context(), &btpb.FeatureFlags{ReverseScans: true}, base64.URLEncoding), req)
			if err != nil {
				t.Fatal(err)
			}
			readToEnd(t, stream.Recv)
		}
	}
	small, large := table(few), table(many)
	for _, tc := range []struct {
		name string
		req  func(rows int) *btpb.ReadRowsRequest
	}{
		{"all rows", func(int) *btpb.ReadRowsRequest { return &btpb.ReadRowsRequest{} }},
		{"all rows, reversed", func(int) *btpb.ReadRowsRequest { return &btpb.ReadRowsRequest{Reversed: true} }},
		{"all rows through a filter that none passes", func(int) *btpb.ReadRowsRequest {
			return &btpb.ReadRowsRequest{Filter: &btpb.RowFilter{Filter: &btpb.RowFilter_ValueRegexFilter{ValueRegexFilter: []byte("v*w")}}}
		}},
	} {
		// In builds without C, the bounded block cache is on the heap: fill it first.
		drain(large, tc.req(many))()
		// The least of three: in builds without C, a background flush allocates a memtable on
		// the heap.
		peak := func(read func()) uint64 { return min(memory.Peak(read), memory.Peak(read), memory.Peak(read)) }
		is := peak(drain(large, tc.req(many)))
		t.Logf("%s: %d KiB are held of %d rows", tc.name, is>>10, many)
		if is > slack {
			t.Errorf("%s: %d bytes are held while %d rows are read, want at most %d", tc.name, is, many, slack)
		}
	}
	for _, tc := range []struct {
		name string
		req  func(rows int) *btpb.ReadRowsRequest
	}{
		{"the first ten rows", func(int) *btpb.ReadRowsRequest { return &btpb.ReadRowsRequest{RowsLimit: 10} }},
		{"ten rows from the middle", func(rows int) *btpb.ReadRowsRequest {
			return &btpb.ReadRowsRequest{RowsLimit: 10, Rows: &btpb.RowSet{RowRanges: []*btpb.RowRange{{
				StartKey: &btpb.RowRange_StartKeyClosed{StartKeyClosed: fmt.Appendf(nil, "r%06d", rows/2)},
			}}}}
		}},
		{"a row", func(rows int) *btpb.ReadRowsRequest {
			return &btpb.ReadRowsRequest{Rows: &btpb.RowSet{RowKeys: [][]byte{fmt.Appendf(nil, "r%06d", rows/2)}}}
		}},
	} {
		was := memory.Allocated(drain(small, tc.req(few)))
		is := memory.Allocated(drain(large, tc.req(many)))
		t.Logf("%s: %d bytes are allocated of %d rows, %d of %d", tc.name, was, few, is, many)
		if is > 2*was+64<<10 {
			t.Errorf("%s: %d bytes are allocated in a table of %d rows, %d in one of %d", tc.name, is, many, was, few)
		}
	}
	for _, query := range []string{"SELECT * FROM t LIMIT 10", "SELECT * FROM t WHERE _key = 'r000050'", "SELECT * FROM t ORDER BY _key DESC LIMIT 10"} {
		was, is := memory.Allocated(small.query(query)), memory.Allocated(large.query(query))
		t.Logf("%s: %d bytes are allocated of %d rows, %d of %d", query, was, few, is, many)
		if is > 2*was+64<<10 {
			t.Errorf("%s: %d bytes are allocated in a table of %d rows, %d in one of %d", query, is, many, was, few)
		}
	}
}

// query prepares a query and returns a function that runs it.
func (e *env) query(text string) func() {
	e.t.Helper()
	prepared, err := e.data.PrepareQuery(e.ctx(), &btpb.PrepareQueryRequest{InstanceName: testInstance, Query: text})
	if err != nil {
		e.t.Fatal(err)
	}
	return func() {
		stream, err := e.data.ExecuteQuery(e.ctx(), &btpb.ExecuteQueryRequest{InstanceName: testInstance, PreparedQuery: prepared.GetPreparedQuery()})
		if err != nil {
			e.t.Fatal(err)
		}
		readToEnd(e.t, stream.Recv)
	}
}

// fewestAllocations returns the allocations of a call: the least of many short measurements,
// since the store and its connections allocate in the background. Its callers must not be
// parallel tests.
func fewestAllocations(call func()) float64 {
	least := math.Inf(1)
	for range 40 {
		least = min(least, testing.AllocsPerRun(2, call))
	}
	return least
}

// TestAllocations compares the allocations of the most frequent calls over the in-process
// channel with a baseline, for rows of three columns in a table of a hundred rows. It is not parallel, since it
// counts allocations of the whole process.
func TestAllocations(t *testing.T) { //nolint:paralleltest // see above
	if race.Enabled {
		t.Skip("the race detector allocates too")
	}
	e := newTable(t, "f")
	var entries []*btpb.MutateRowsRequest_Entry
	for i := range 100 {
		entries = append(entries, entry(fmt.Sprintf("r%03d", i), set("f", "a", 0, "v"), set("f", "b", 0, "v"), set("f", "c", 0, "v")))
	}
	if _, err := e.mutateRows(entries...); err != nil {
		t.Fatal(err)
	}
	row := []byte("r050")
	view := e.mustCreateView("v", viewOf(subset([]string{"r"}, columns("f", "a,b", "c"))))
	read := func(req *btpb.ReadRowsRequest) {
		req.TableName = testTable
		stream, err := e.data.ReadRows(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		readToEnd(t, stream.Recv)
	}
	var measured []costs.Cost
	for _, tc := range []struct {
		name string
		call func()
	}{
		{"MutateRow", func() {
			if err := e.mutate(string(row), set("f", "a", 0, "v")); err != nil {
				t.Fatal(err)
			}
		}},
		{"MutateRow through a view", func() {
			if err := e.mutateThrough(view, string(row), set("f", "a", 0, "v")); err != nil {
				t.Fatal(err)
			}
		}},
		{"MutateRows of 100 rows", func() {
			if _, err := e.mutateRows(entries...); err != nil {
				t.Fatal(err)
			}
		}},
		{"SampleRowKeys", func() {
			stream, err := e.data.SampleRowKeys(t.Context(), &btpb.SampleRowKeysRequest{TableName: testTable})
			if err != nil {
				t.Fatal(err)
			}
			readToEnd(t, stream.Recv)
		}},
		{"ReadRows of a row", func() { read(&btpb.ReadRowsRequest{Rows: &btpb.RowSet{RowKeys: [][]byte{row}}}) }},
		{"ReadRows of a row without messages", func() {
			if _, err := readInto(e, &sink{}, &btpb.ReadRowsRequest{Rows: rowsOf(string(row))}); err != nil {
				t.Fatal(err)
			}
		}},
		{"ReadRows of a row through a view", func() {
			stream, err := e.data.ReadRows(t.Context(), &btpb.ReadRowsRequest{AuthorizedViewName: view, Rows: rowsOf(string(row))})
			if err != nil {
				t.Fatal(err)
			}
			readToEnd(t, stream.Recv)
		}},
		{"ReadRows of 100 rows", func() { read(&btpb.ReadRowsRequest{}) }},
		{"ReadRows of 100 rows, rows_limit 1", func() { read(&btpb.ReadRowsRequest{RowsLimit: 1}) }},
		{"ExecuteQuery of a row", e.query("SELECT _key, f['a'] AS a FROM t WHERE _key = 'r050'")},
		{"ExecuteQuery of 100 rows", e.query("SELECT _key, f['a'] AS a, f['b'] AS b FROM t")},
		{"ExecuteQuery of 100 rows, LIMIT 1", e.query("SELECT _key, f['a'] AS a FROM t LIMIT 1")},
		{"ExecuteQuery of 100 rows, one group", e.query("SELECT f['a'] AS a, COUNT(*) AS n FROM t GROUP BY a")},
		{"ReadModifyWriteRow", func() {
			_, err := e.data.ReadModifyWriteRow(t.Context(), &btpb.ReadModifyWriteRowRequest{
				TableName: testTable, RowKey: row, Rules: []*btpb.ReadModifyWriteRule{{
					FamilyName: "f", ColumnQualifier: []byte("n"), Rule: &btpb.ReadModifyWriteRule_IncrementAmount{IncrementAmount: 1},
				}},
			})
			if err != nil {
				t.Fatal(err)
			}
		}},
		{"CheckAndMutateRow", func() {
			_, err := e.data.CheckAndMutateRow(t.Context(), &btpb.CheckAndMutateRowRequest{
				TableName: testTable, RowKey: row, TrueMutations: []*btpb.Mutation{set("f", "a", 0, "v")},
			})
			if err != nil {
				t.Fatal(err)
			}
		}},
	} {
		measured = append(measured, costs.Cost{Name: tc.name, Allocations: fewestAllocations(tc.call), Calls: costs.Unmeasured})
	}
	costs.Check(t, "testdata/costs.tsv", measured)
}

// A materialized view adds three allocations to a write of its table, for the record, and none to writes of other tables.
// It is not parallel, since it counts allocations of the whole process.
func TestAllocations_MaterializedView(t *testing.T) { //nolint:paralleltest // see above
	if race.Enabled {
		t.Skip("the race detector allocates too")
	}
	e := newTable(t, "f")
	e.createTable("other", "f")
	write := func() float64 {
		return fewestAllocations(func() { e.mustMutate("r", set("f", "q", 1000, "v")) })
	}
	view := func(id, table string) {
		_, err := e.instances().CreateMaterializedView(t.Context(), &btapb.CreateMaterializedViewRequest{
			Parent: testInstance, MaterializedViewId: id, MaterializedView: &btapb.MaterializedView{Query: "SELECT f['q'] AS q, _key AS k FROM " + table + " ORDER BY q, k"},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	none := write()
	view("of_other", "other")
	other := write()
	view("own", "t")
	own := write()
	if _, err := e.instances().DeleteMaterializedView(t.Context(), &btapb.DeleteMaterializedViewRequest{Name: testInstance + "/materializedViews/own"}); err != nil {
		t.Fatal(err)
	}
	if deleted := write(); other > none || own > none+3 || deleted > none {
		t.Errorf("a write has %v allocations without a view, %v with a view of another table, %v with its own, and %v after that was deleted", none, other, own, deleted)
	}
}
