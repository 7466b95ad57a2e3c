package emu

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"

	"github.com/tabletop-emu/tabletop/emu/internal/limits"
	"github.com/tabletop-emu/tabletop/emu/internal/rowchunks"
)

func keysOf(res result) string {
	var keys []string
	for _, r := range res.rows {
		keys = append(keys, r.key)
	}
	return strings.Join(keys, " ")
}

func closedOpen(start, end string) *btpb.RowRange {
	return &btpb.RowRange{
		StartKey: &btpb.RowRange_StartKeyClosed{StartKeyClosed: []byte(start)},
		EndKey:   &btpb.RowRange_EndKeyOpen{EndKeyOpen: []byte(end)},
	}
}

func openClosed(start, end string) *btpb.RowRange {
	return &btpb.RowRange{
		StartKey: &btpb.RowRange_StartKeyOpen{StartKeyOpen: []byte(start)},
		EndKey:   &btpb.RowRange_EndKeyClosed{EndKeyClosed: []byte(end)},
	}
}

func lettersTable(t *testing.T) *env {
	t.Helper()
	e := newTable(t, "f")
	for _, k := range "abcdefgh" {
		e.mustMutate(string(k), set("f", "q", 1000, string(k)), set("f", "z", 1000, "z"))
	}
	return e
}

func TestTrap41_RowSets(t *testing.T) {
	t.Parallel()
	e := lettersTable(t)
	for _, c := range []struct {
		name string
		set  *btpb.RowSet
		want string
	}{
		{"none", nil, "a b c d e f g h"},
		{"empty", &btpb.RowSet{}, "a b c d e f g h"},
		{"keys", &btpb.RowSet{RowKeys: [][]byte{[]byte("d"), []byte("b"), []byte("d"), []byte("nope")}}, "b d"},
		{"union", &btpb.RowSet{
			RowKeys:   [][]byte{[]byte("c"), []byte("h"), []byte("a")},
			RowRanges: []*btpb.RowRange{closedOpen("b", "d"), openClosed("b", "e"), closedOpen("c", "c\x00")},
		}, "a b c d e h"},
		{"unbounded", &btpb.RowSet{RowRanges: []*btpb.RowRange{{}}}, "a b c d e f g h"},
		{"from", &btpb.RowSet{RowRanges: []*btpb.RowRange{{StartKey: &btpb.RowRange_StartKeyOpen{StartKeyOpen: []byte("f")}}}}, "g h"},
		{"to", &btpb.RowSet{RowRanges: []*btpb.RowRange{{EndKey: &btpb.RowRange_EndKeyClosed{EndKeyClosed: []byte("b")}}}}, "a b"},
	} {
		res := e.mustRead(&btpb.ReadRowsRequest{Rows: c.set})
		if got := keysOf(res); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestTrap42_BadRowSets(t *testing.T) {
	t.Parallel()
	e := lettersTable(t)
	ranges := func(r ...*btpb.RowRange) *btpb.RowSet { return &btpb.RowSet{RowRanges: r} }
	for _, c := range []struct {
		name string
		set  *btpb.RowSet
	}{
		{"inverted", ranges(closedOpen("c", "b"))},
		{"second", ranges(closedOpen("b", "c"), closedOpen("c", "b"))},
		{"closed empty end", ranges(openClosed("a", ""))},
		{"empty key", &btpb.RowSet{RowKeys: [][]byte{[]byte("a"), nil}}},
	} {
		_, err := e.read(&btpb.ReadRowsRequest{Rows: c.set})
		wantCode(t, err, codes.InvalidArgument)
	}
	_, err := e.read(&btpb.ReadRowsRequest{Rows: ranges(closedOpen("c", "b"))})
	if want := "Error in field 'row_ranges' : Error in element #0 : start_key must be less than end_key"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v", err)
	}
	// An explicit closed end "" is a bound; an absent end is unbounded.
	res := e.mustRead(&btpb.ReadRowsRequest{Rows: ranges(&btpb.RowRange{EndKey: &btpb.RowRange_EndKeyClosed{}})})
	if got := keysOf(res); got != "" {
		t.Errorf("up to \"\": %q", got)
	}
	// Belief: a range of one key that is open at both ends is rejected, or is empty.
	open := ranges(&btpb.RowRange{
		StartKey: &btpb.RowRange_StartKeyOpen{StartKeyOpen: []byte("b")},
		EndKey:   &btpb.RowRange_EndKeyOpen{EndKeyOpen: []byte("b")},
	})
	wantBelief(t, "(b, b)", func() string { return e.outcomeOf(&btpb.ReadRowsRequest{Rows: open}) }, codes.InvalidArgument.String(), "")
}

func TestTrap43_RowsLimit(t *testing.T) {
	t.Parallel()
	e := lettersTable(t)
	res := e.mustRead(&btpb.ReadRowsRequest{RowsLimit: 2, Filter: valueRegexOf("[ceg]")})
	if got := keysOf(res); got != "c e" {
		t.Errorf("got %q", got)
	}
	// Belief: a negative limit is rejected. It never means unlimited.
	wantBelief(t, "a limit of -1", func() string { return e.outcomeOf(&btpb.ReadRowsRequest{RowsLimit: -1}) }, codes.InvalidArgument.String(), "")
}

func TestTrap44_Reversed(t *testing.T) {
	t.Parallel()
	e := lettersTable(t)
	_, err := e.read(&btpb.ReadRowsRequest{Reversed: true})
	wantCode(t, err, codes.Unimplemented)
	for _, enc := range []*base64.Encoding{base64.URLEncoding, base64.RawURLEncoding} {
		ctx := withFeatures(e.ctx(), &btpb.FeatureFlags{ReverseScans: true}, enc)
		res, err := readRows(ctx, e.data, &btpb.ReadRowsRequest{
			TableName: testTable, Reversed: true, RowsLimit: 3,
			Rows: &btpb.RowSet{RowRanges: []*btpb.RowRange{closedOpen("a", "e"), closedOpen("g", "h")}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := keysOf(res); got != "g d c" {
			t.Errorf("got %q", got)
		}
		if c := res.rows[0].cells; c[0].qualifier != "q" || c[1].qualifier != "z" {
			t.Errorf("the cells of a row came as %v", c)
		}
	}
	ctx := withFeatures(e.ctx(), &btpb.FeatureFlags{RoutingCookie: true}, base64.URLEncoding)
	_, err = readRows(ctx, e.data, &btpb.ReadRowsRequest{TableName: testTable, Reversed: true})
	wantCode(t, err, codes.Unimplemented)
}

func TestTrap45_RequestStats(t *testing.T) {
	t.Parallel()
	e := lettersTable(t)
	const full = btpb.ReadRowsRequest_REQUEST_STATS_FULL
	for _, c := range []struct {
		req                *btpb.ReadRowsRequest
		seen, returned     int64
		cellsReturned      int64
		atLeastOneCellSeen bool
	}{
		{&btpb.ReadRowsRequest{RequestStatsView: full}, 8, 8, 16, true},
		{&btpb.ReadRowsRequest{RequestStatsView: full, Filter: valueRegexOf("b")}, 8, 1, 1, true},
		{&btpb.ReadRowsRequest{RequestStatsView: full, Filter: rowKeyRegexOf("nope")}, 0, 0, 0, false},
	} {
		res := e.mustRead(c.req)
		if res.stats == nil {
			t.Fatalf("%v: no statistics", c.req)
		}
		got := res.stats.GetFullReadStatsView().GetReadIterationStats()
		if got.GetRowsSeenCount() != c.seen || got.GetRowsReturnedCount() != c.returned || got.GetCellsReturnedCount() != c.cellsReturned {
			t.Errorf("%v: got %v", c.req, got)
		}
		if got.GetCellsSeenCount() < got.GetCellsReturnedCount() || (got.GetCellsSeenCount() > 0) != c.atLeastOneCellSeen {
			t.Errorf("%v: got %v", c.req, got)
		}
		if res.stats.GetFullReadStatsView().GetRequestLatencyStats().GetFrontendServerLatency() == nil {
			t.Error("no latency")
		}
	}
	if res := e.mustRead(&btpb.ReadRowsRequest{}); res.stats != nil {
		t.Error("statistics that nobody asked for")
	}
}

func TestTrap46_Chunking(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	value := big(3 << 20)
	e.mustMutate("big", set("f", "a", 1000, value), set("f", "a", 0, "old"), set("f", "b", 1000, value), set("f", "c", 0, big(rowchunks.MaxValueBytes)))
	e.mustMutate("bigger", set("f", strings.Repeat("q", limits.MaxQualifierBytes), 1000, big(rowchunks.MaxValueBytes+1)))
	e.mustMutate(strings.Repeat("k", limits.MaxRowKeyBytes), set("f", strings.Repeat("q", limits.MaxQualifierBytes), 1000, big(rowchunks.MaxValueBytes)))
	for _, client := range []btpb.BigtableClient{e.data, btpb.NewBigtableClient(e.dial())} {
		res, err := readRows(e.ctx(), client, &btpb.ReadRowsRequest{TableName: testTable, Filter: labelOf("l")})
		if err != nil {
			t.Fatal(err)
		}
		if len(res.rows) != 3 || len(res.rows[0].cells) != 4 {
			t.Fatalf("got\n%s", res.text())
		}
		for _, r := range res.rows {
			for _, c := range r.cells {
				want := value
				if len(c.value) < len(want) {
					want = want[:len(c.value)]
				}
				if c.value != want && c.value != "old" {
					t.Errorf("%s:%s came damaged", r.key, c.qualifier)
				}
				if !slices.Equal(c.labels, []string{"l"}) {
					t.Errorf("%s:%s has labels %v", r.key, c.qualifier, c.labels)
				}
			}
		}
		sizes := 0
		for _, m := range res.messages {
			for _, ch := range m.GetChunks() {
				if ch.GetValueSize() > 0 {
					sizes++
				}
			}
		}
		// Two values in four pieces, one in two: all pieces except the last have the size.
		if sizes != 3+3+1 {
			t.Errorf("%d chunks carry value_size", sizes)
		}
	}
	// Small rows share messages.
	e = newTable(t, "f")
	var entries []*btpb.MutateRowsRequest_Entry
	for i := range 5000 {
		entries = append(entries, entry(fmt.Sprintf("%05d", i), set("f", "q", 1000, big(100))))
	}
	if _, err := e.mutateRows(entries...); err != nil {
		t.Fatal(err)
	}
	res := e.mustRead(&btpb.ReadRowsRequest{})
	if len(res.rows) != 5000 || len(res.messages) < 2 || len(res.messages) > 16 {
		t.Errorf("%d rows in %d messages", len(res.rows), len(res.messages))
	}
	// A message ends within a row only if the row does not fit into one.
	e = newTable(t, "f")
	for i := range 10 {
		e.mustMutate(fmt.Sprint(i), set("f", "a", 0, big(100<<10)), set("f", "b", 0, big(i*80<<10)), set("f", "c", 0, "v"))
	}
	res = e.mustRead(&btpb.ReadRowsRequest{})
	if len(res.rows) != 10 {
		t.Errorf("%d rows", len(res.rows))
	}
	for i, m := range res.messages {
		if chunks := m.GetChunks(); !chunks[len(chunks)-1].GetCommitRow() {
			t.Errorf("message %d of %d chunks ends within a row", i, len(chunks))
		}
	}
}

func TestTrap48_Targets(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	one := []*btpb.Mutation{set("f", "q", 0, "")}
	calls := map[string]func(table, view string) error{
		"ReadRows": func(table, view string) error {
			_, err := readRows(e.ctx(), e.data, &btpb.ReadRowsRequest{TableName: table, AuthorizedViewName: view})
			return err
		},
		"SampleRowKeys": func(table, view string) error {
			s, err := e.data.SampleRowKeys(e.ctx(), &btpb.SampleRowKeysRequest{TableName: table, AuthorizedViewName: view})
			if err == nil {
				_, err = s.Recv()
			}
			return err
		},
		"MutateRow": func(table, view string) error {
			_, err := e.data.MutateRow(e.ctx(), &btpb.MutateRowRequest{TableName: table, AuthorizedViewName: view, RowKey: []byte("r"), Mutations: one})
			return err
		},
		"MutateRows": func(table, view string) error {
			s, err := e.data.MutateRows(e.ctx(), &btpb.MutateRowsRequest{
				TableName: table, AuthorizedViewName: view,
				Entries: []*btpb.MutateRowsRequest_Entry{entry("r", one...)},
			})
			if err == nil {
				_, err = s.Recv()
			}
			return err
		},
		"CheckAndMutateRow": func(table, view string) error {
			_, err := e.data.CheckAndMutateRow(e.ctx(), &btpb.CheckAndMutateRowRequest{TableName: table, AuthorizedViewName: view, RowKey: []byte("r"), FalseMutations: one})
			return err
		},
		"ReadModifyWriteRow": func(table, view string) error {
			req := increment("r", "f", "q", 1)
			req.TableName, req.AuthorizedViewName = table, view
			_, err := e.data.ReadModifyWriteRow(e.ctx(), req)
			return err
		},
	}
	view := testTable + "/authorizedViews/v"
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			wantCode(t, call(testInstance+"/tables/missing", ""), codes.NotFound)
			wantCode(t, call("", ""), codes.InvalidArgument)
			wantCode(t, call(testTable, view), codes.InvalidArgument)
			wantCode(t, call("", view), codes.NotFound)
			wantCode(t, call("", testInstance+"/tables/missing/authorizedViews/v"), codes.NotFound)
			wantCode(t, call("", testTable), codes.InvalidArgument)
			wantCode(t, call("t", ""), codes.InvalidArgument)
			wantCode(t, call(testInstance+"/tables/", ""), codes.InvalidArgument)
			wantCode(t, call(testTable+"/x", ""), codes.InvalidArgument)
		})
	}
	_, err := e.read(&btpb.ReadRowsRequest{TableName: testTable, MaterializedViewName: "x"})
	wantCode(t, err, codes.InvalidArgument)
}

// samples returns the sampled keys of a range and their offsets.
func (e *env) samples(r *btpb.RowRange) (keys []string, offsets []int64) {
	e.t.Helper()
	s, err := e.data.SampleRowKeys(e.ctx(), &btpb.SampleRowKeysRequest{TableName: testTable, RowRange: r})
	if err != nil {
		e.t.Fatal(err)
	}
	for {
		resp, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return keys, offsets
		}
		if err != nil {
			e.t.Fatal(err)
		}
		if n := len(offsets); n > 0 && resp.GetOffsetBytes() < offsets[n-1] {
			e.t.Errorf("offset %d after %d", resp.GetOffsetBytes(), offsets[n-1])
		}
		keys, offsets = append(keys, string(resp.GetRowKey())), append(offsets, resp.GetOffsetBytes())
	}
}

func TestTrap67_SampleRowKeys(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.createTable("t", "f")
	if got, _ := e.samples(nil); !slices.Equal(got, []string{""}) {
		t.Errorf("an empty table: %q", got)
	}
	splits := []*btapb.CreateTableRequest_Split{{Key: []byte("m")}, {Key: []byte("c")}, {Key: []byte("x")}}
	e = newEnv(t)
	_, err := e.admin.CreateTable(e.ctx(), &btapb.CreateTableRequest{
		Parent: testInstance, TableId: "t", InitialSplits: splits,
		Table: &btapb.Table{ColumnFamilies: map[string]*btapb.ColumnFamily{"f": {}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := e.samples(nil); !slices.Equal(got, []string{"c", "m", "x", ""}) {
		t.Errorf("a table with splits: %q", got)
	}
	if got, _ := e.samples(closedOpen("c", "n")); !slices.Equal(got, []string{"m", "n"}) {
		t.Errorf("[c, n): %q", got)
	}
	if got, _ := e.samples(closedOpen("d", "m")); !slices.Equal(got, []string{"m"}) {
		t.Errorf("[d, m): %q", got)
	}
	if got, _ := e.samples(&btpb.RowRange{StartKey: &btpb.RowRange_StartKeyClosed{StartKeyClosed: []byte("n")}}); !slices.Equal(got, []string{"x", ""}) {
		t.Errorf("[n, …): %q", got)
	}
	s, err := e.data.SampleRowKeys(e.ctx(), &btpb.SampleRowKeysRequest{TableName: testTable, RowRange: closedOpen("n", "c")})
	if err == nil {
		_, err = s.Recv()
	}
	wantCode(t, err, codes.InvalidArgument)

	// The last sample has the offset of the range's end, even between two split points.
	e = newTable(t, "f")
	const rows, size = 10, 20 << 10
	for i := range rows {
		e.mustMutate(fmt.Sprint(i), set("f", "q", 0, big(size)))
	}
	for i := range rows {
		key := fmt.Sprint(i)
		_, offsets := e.samples(&btpb.RowRange{EndKey: &btpb.RowRange_EndKeyOpen{EndKeyOpen: []byte(key)}})
		if got, want := offsets[len(offsets)-1], int64(i*size); got < want || got > want+int64(i)*100 {
			t.Errorf("offset %d of row %s, want about %d", got, key, want)
		}
		_, offsets = e.samples(&btpb.RowRange{EndKey: &btpb.RowRange_EndKeyClosed{EndKeyClosed: []byte(key)}})
		if got, want := offsets[len(offsets)-1], int64((i+1)*size); got < want || got > want+int64(i+1)*100 {
			t.Errorf("offset %d behind row %s, want about %d", got, key, want)
		}
	}
}

// TestReadRows_LastScannedRowKey reads many rows through a selective filter. A client with the
// feature occasionally receives the last scanned key, never one after an undelivered row.
func TestReadRows_LastScannedRowKey(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	const rows = 3 * scannedPerMessage / 2 // rows of one cell: two units of work each
	var entries []*btpb.MutateRowsRequest_Entry
	for i := range rows {
		value := "no"
		if i == rows/2+1 {
			value = "yes"
		}
		entries = append(entries, entry(fmt.Sprintf("r%06d", i), set("f", "q", 0, value)))
	}
	if _, err := e.mutateRows(entries...); err != nil {
		t.Fatal(err)
	}
	for _, reversed := range []bool{false, true} {
		ctx := withFeatures(e.ctx(), &btpb.FeatureFlags{ReverseScans: true, LastScannedRowResponses: true}, base64.URLEncoding)
		res, err := readRows(ctx, e.data, &btpb.ReadRowsRequest{TableName: testTable, Reversed: reversed, Filter: valueRegexOf("yes")})
		if err != nil || len(res.rows) != 1 {
			t.Fatalf("%d rows, %v", len(res.rows), err)
		}
		sent, last := 0, ""
		for _, m := range res.messages {
			key := string(m.GetLastScannedRowKey())
			for _, c := range m.GetChunks() {
				key = string(c.GetRowKey())
			}
			if key == "" || last != "" && (key > last) == reversed {
				t.Errorf("reversed %v: %q after %q", reversed, key, last)
			}
			last = key
			if len(m.GetLastScannedRowKey()) > 0 {
				sent++
			}
		}
		if sent < 2 || sent > 3 {
			t.Errorf("reversed %v: %d keys sent over %d rows", reversed, sent, rows)
		}
	}
	// Other clients do not receive it.
	for _, m := range e.mustRead(&btpb.ReadRowsRequest{Filter: valueRegexOf("yes")}).messages {
		if len(m.GetLastScannedRowKey()) > 0 {
			t.Error("a client without the feature flag was sent a key")
		}
	}
}

// TestReadRows_KeyLimit reads keys beyond the size limit.
func TestReadRows_KeyLimit(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	longest := strings.Repeat("k", limits.MaxRowKeyBytes)
	e.mustMutate(longest, set("f", "q", 0, "1"))
	for _, rs := range []*btpb.RowSet{
		{RowKeys: [][]byte{[]byte(longest)}},
		{RowRanges: []*btpb.RowRange{closedOpen(longest, longest+"\x00")}},
	} {
		if got := e.mustRead(&btpb.ReadRowsRequest{Rows: rs}); len(got.rows) != 1 {
			t.Errorf("%d rows, want the one with the longest key", len(got.rows))
		}
	}
	for _, rs := range []*btpb.RowSet{
		{RowKeys: [][]byte{[]byte(longest + "k")}},
		{RowRanges: []*btpb.RowRange{closedOpen("a", longest+"kk")}},
		{RowRanges: []*btpb.RowRange{closedOpen(longest+"kk", "z")}},
	} {
		_, err := e.read(&btpb.ReadRowsRequest{Rows: rs})
		wantCode(t, err, codes.InvalidArgument)
	}
}
