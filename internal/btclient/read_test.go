package btclient_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/internal/btclient"
)

// keysOf reads the keys of all rows.
func keysOf(ctx context.Context, c *btclient.Client, r btclient.Read) (string, error) {
	r.Table = "t"
	var keys []string
	for row, err := range c.Read(ctx, r) {
		if err != nil {
			return strings.Join(keys, " "), err
		}
		keys = append(keys, string(row.Key))
	}
	return strings.Join(keys, " "), nil
}

var everything = []btclient.Span{{}}

// TestRead_Property: a read that is interrupted anywhere and repeatedly yields the same rows
// as one without interruptions, for any request and any division of its answers.
func TestRead_Property(t *testing.T) {
	t.Parallel()
	key := rapid.StringOfN(rapid.SampledFrom([]rune("ab\x00")), 1, 3, -1)
	bound := rapid.StringOfN(rapid.SampledFrom([]rune("ab\x00")), 0, 3, -1)
	rapid.Check(t, func(t *rapid.T) {
		var table []btclient.Row
		keys := rapid.SliceOfNDistinct(key, 0, 12, rapid.ID[string]).Draw(t, "keys of the table")
		slices.Sort(keys)
		for _, k := range keys {
			table = append(table, row(k, rapid.SliceOfN(rapid.StringMatching(`[xyz]{0,9}`), 1, 5).Draw(t, "values")...))
		}
		read := btclient.Read{
			Table:   "t",
			Reverse: rapid.Bool().Draw(t, "reverse"),
			Limit:   rapid.Int64Range(0, 5).Draw(t, "limit"),
			Clone:   rapid.Bool().Draw(t, "clone"),
		}
		for _, k := range rapid.SliceOfN(key, 0, 4).Draw(t, "keys") {
			read.Keys = append(read.Keys, []byte(k))
		}
		for range rapid.IntRange(0, 3).Draw(t, "spans") { // in any order, possibly adjacent
			s := btclient.Span{Start: []byte(bound.Draw(t, "start")), End: []byte(bound.Draw(t, "end"))}
			if len(s.End) == 0 || string(s.Start) < string(s.End) {
				read.Spans = append(read.Spans, s)
			}
		}
		var want []btclient.Row
		whole := &fake{answer: func(_ int, req proto.Message) ([]proto.Message, error) {
			return messages(selected(table, req.(*btpb.ReadRowsRequest))...), io.EOF
		}}
		for r, err := range whole.client(btclient.Options{}).Read(t.Context(), read) {
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, r)
		}

		breaks := rapid.SliceOfN(rapid.IntRange(0, 20), 0, 6).Draw(t, "messages before breaks")
		broken := &fake{answer: func(call int, req proto.Message) ([]proto.Message, error) {
			msgs := cut(t, selected(table, req.(*btpb.ReadRowsRequest)))
			if call < len(breaks) {
				return msgs[:min(breaks[call], len(msgs))], errBroken
			}
			return msgs, io.EOF
		}}
		c := broken.client(btclient.Options{Retry: btclient.Retry{Reads: len(breaks)}})
		var rows []btclient.Row
		for r, err := range c.Read(t.Context(), read) {
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, r)
		}
		if diff := cmp.Diff(want, rows, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("rows (- of an unbroken read, + of one that breaks):\n%s", diff)
		}
		broken.reqs = nil
		var parts []btclient.Part
		for p, err := range c.ReadParts(t.Context(), read, rapid.IntRange(0, 300).Draw(t, "bytes of a part")) {
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, p)
		}
		if diff := cmp.Diff(want, joined(parts), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("rows of parts (- of an unbroken read, + of one that breaks):\n%s", diff)
		}
	})
}

// cut divides rows into messages of any size, with values in pieces, rows that are reset and
// repeated, and keys reported as scanned.
func cut(t *rapid.T, rows []btclient.Row) []proto.Message {
	var out []proto.Message
	msg := &btpb.ReadRowsResponse{}
	flush := func() {
		if len(msg.GetChunks()) > 0 {
			out, msg = append(out, msg), &btpb.ReadRowsResponse{}
		}
	}
	for i, r := range rows {
		if i > 0 && rapid.Bool().Draw(t, "scanned") { // the key after the lesser of two rows, if it is between them
			lesser, greater := rows[i-1].Key, r.Key
			if bytes.Compare(lesser, greater) > 0 {
				lesser, greater = greater, lesser
			}
			if between := append(slices.Clone(lesser), 0); !bytes.Equal(between, greater) {
				flush()
				out = append(out, &btpb.ReadRowsResponse{LastScannedRowKey: between})
			}
		}
		all := chunks(r, rapid.IntRange(1, 10).Draw(t, "bytes of a piece"))
		if rapid.IntRange(0, 4).Draw(t, "reset") == 0 {
			reset := &btpb.ReadRowsResponse_CellChunk{RowStatus: &btpb.ReadRowsResponse_CellChunk_ResetRow{ResetRow: true}}
			begun := all[:rapid.IntRange(0, len(all)-1).Draw(t, "chunks before")]
			if len(begun) > 0 {
				all = slices.Concat(begun, []*btpb.ReadRowsResponse_CellChunk{reset}, all)
			}
		}
		for _, chunk := range all {
			msg.Chunks = append(msg.GetChunks(), chunk)
			if rapid.Bool().Draw(t, "a message ends") {
				flush()
			}
		}
	}
	flush()
	return out
}

// TestRead_Scanned continues after a key that was reported as scanned, which counts as
// progress.
func TestRead_Scanned(t *testing.T) {
	t.Parallel()
	for _, reverse := range []bool{false, true} {
		scanned := []string{"b", "d", "f"}
		f := &fake{}
		f.answer = func(call int, _ proto.Message) ([]proto.Message, error) {
			if call < len(scanned) {
				return []proto.Message{&btpb.ReadRowsResponse{LastScannedRowKey: []byte(scanned[call])}}, errBroken
			}
			return nil, io.EOF
		}
		want := "a b c d e f g [a,h) c d e f g [b+,h) e f g [d+,h) g [f+,h)"
		if reverse {
			slices.Reverse(scanned)
			want = "a b c d e f g [a,h) a b c d e [a,f) a b c [a,d) a [a,b)"
		}
		r := btclient.Read{Reverse: reverse, Spans: []btclient.Span{{Start: []byte("a"), End: []byte("h")}}}
		for k := range strings.SplitSeq("a b c d e f g", " ") {
			r.Keys = append(r.Keys, []byte(k))
		}
		if got, err := keysOf(t.Context(), f.client(btclient.Options{Retry: btclient.Retry{Reads: 1}}), r); got != "" || err != nil {
			t.Errorf("rows %q, %v", got, err)
		}
		var asked []string
		for call := range f.calls() {
			asked = append(asked, f.text(call))
		}
		if got := strings.Join(asked, " "); got != want {
			t.Errorf("reverse %v: asked for\n%s, want\n%s", reverse, got, want)
		}
	}
}

// TestRead_Complete: a read without remaining rows is complete although its stream broke.
func TestRead_Complete(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]btclient.Read{
		"limit": {Spans: everything, Limit: 2},
		"keys":  {Keys: [][]byte{[]byte("b"), []byte("a")}},
		"span":  {Spans: []btclient.Span{{Start: []byte("a"), End: []byte("b\x00")}}},
	} {
		f := &fake{answer: func(int, proto.Message) ([]proto.Message, error) {
			return messages(row("a", "1"), row("b", "2")), errBroken
		}}
		got, err := keysOf(t.Context(), f.client(btclient.Options{}), r)
		if got != "a b" || err != nil || f.calls() != 1 {
			t.Errorf("%s: rows %q, %v, in %d calls", name, got, err, f.calls())
		}
	}
	// Other errors than a broken connection are still returned.
	f := &fake{answer: func(int, proto.Message) ([]proto.Message, error) {
		return messages(row("a", "1"), row("a", "2")), io.EOF
	}}
	got, err := keysOf(t.Context(), f.client(btclient.Options{}), btclient.Read{Keys: [][]byte{[]byte("a")}})
	if got != "a" || err == nil || err.Error() != `reading table t: row "a" comes after row "a"` {
		t.Errorf("a row twice: rows %q, %v", got, err)
	}
	f = &fake{answer: func(int, proto.Message) ([]proto.Message, error) { return nil, errBroken }}
	if got, err := keysOf(t.Context(), f.client(btclient.Options{}), btclient.Read{}); got != "" || err != nil || f.calls() != 0 {
		t.Errorf("no keys, no spans: rows %q, %v, in %d calls", got, err, f.calls())
	}
}

// TestRead_GivesUp: only transient errors are retried, and not forever.
func TestRead_GivesUp(t *testing.T) {
	t.Parallel()
	patient := btclient.Retry{Reads: 3, First: time.Millisecond}
	for _, c := range []struct {
		err   error
		retry btclient.Retry
		calls int
	}{
		{errBroken, btclient.Retry{}, 1},
		{errBroken, btclient.Retry{Reads: 3}, 4},
		{errBroken, patient, 4},
		{status.Error(codes.Aborted, "x"), patient, 4},
		{status.Error(codes.Internal, "stream terminated by RST_STREAM with error code: INTERNAL_ERROR"), patient, 4},
		{status.Error(codes.Internal, "x"), patient, 1},
		{status.Error(codes.ResourceExhausted, "x"), patient, 4},
		{status.Error(codes.ResourceExhausted, "engine: the store has failed and rejects all calls: the disk is full"), patient, 1},
		{status.Error(codes.ResourceExhausted, "x"), btclient.Retry{Reads: 3}, 1},
		{status.Error(codes.DeadlineExceeded, "x"), patient, 4},
		{status.Error(codes.NotFound, "x"), patient, 1},
		{errors.New("x"), patient, 1},
	} {
		f := &fake{answer: func(int, proto.Message) ([]proto.Message, error) { return nil, c.err }}
		_, err := keysOf(t.Context(), f.client(btclient.Options{Retry: c.retry}), btclient.Read{Spans: everything})
		if f.calls() != c.calls || status.Code(err) != status.Code(c.err) || err == nil || !strings.HasPrefix(err.Error(), "reading table t: ") {
			t.Errorf("%v: %d calls, want %d; then %v", c.err, f.calls(), c.calls, err)
		}
	}
	// A part of a row is not progress: a row that never completes ends the read.
	f := &fake{answer: func(int, proto.Message) ([]proto.Message, error) { return messages(row("a", "1", "2"))[:1], errBroken }}
	parts := 0
	for p, err := range f.client(btclient.Options{Retry: btclient.Retry{Reads: 3}}).ReadParts(t.Context(), btclient.Read{Spans: everything}, 1) {
		if parts++; err == nil && (p.Continues || !p.More) || err != nil && parts != 5 {
			t.Errorf("part %d: %+v, %v", parts, p, err)
		}
	}
	if f.calls() != 4 || parts != 5 {
		t.Errorf("%d parts of %d calls", parts, f.calls())
	}
}

// TestRead_Waits: waits double without progress, start again after progress, and are reported.
func TestRead_Waits(t *testing.T) {
	t.Parallel()
	var reported []btclient.Wait
	var slept []time.Duration
	stop := errors.New("stopped by the test")
	f := &fake{answer: func(call int, _ proto.Message) ([]proto.Message, error) {
		if call == 2 {
			return messages(row("a", "1")), errBroken
		}
		return nil, errBroken
	}}
	c := f.client(btclient.Options{Retry: btclient.Retry{
		Reads: 4, First: time.Second,
		Waiting: func(w btclient.Wait) { reported = append(reported, w) },
		Sleep: func(_ context.Context, d time.Duration) error {
			if slept = append(slept, d); len(slept) == 6 {
				return stop
			}
			return nil
		},
	}})
	if _, err := keysOf(t.Context(), c, btclient.Read{Spans: everything}); !errors.Is(err, stop) {
		t.Errorf("error %v", err)
	}
	wait := func(spent, next time.Duration) btclient.Wait {
		return btclient.Wait{Table: "t", Call: "ReadRows", Err: errBroken, Spent: spent * time.Second, Next: next * time.Second, Left: (15 - spent) * time.Second}
	}
	want := []btclient.Wait{wait(0, 1), wait(1, 2), wait(0, 1), wait(1, 2), wait(3, 4), wait(7, 8)}
	if diff := cmp.Diff(want, reported, cmpopts.EquateErrors()); diff != "" {
		t.Errorf("waits (- want, + got):\n%s", diff)
	}
	for i, d := range slept {
		if d != reported[i].Next {
			t.Errorf("reported %v, slept %v", reported[i].Next, d)
		}
	}
}

// TestReadParts_Void: a row that breaks off in the middle is repeated, as is one that the
// server resets; it may also have been deleted.
func TestReadParts_Void(t *testing.T) {
	t.Parallel()
	wide, changed := row("b", "1", "2", "3"), row("b", "4", "5")
	f := &fake{answer: func(call int, _ proto.Message) ([]proto.Message, error) {
		switch call {
		case 0:
			return messages(row("a", "0"), wide)[:3], errBroken // after the second cell of b
		case 1:
			return messages(changed)[:1], errBroken
		}
		return messages(row("c", "6")), io.EOF // it was deleted
	}}
	var got []string
	c := f.client(btclient.Options{Retry: btclient.Retry{Reads: 2}})
	for p, err := range c.ReadParts(t.Context(), btclient.Read{Spans: everything, Limit: 5}, 1) {
		if err != nil {
			t.Fatal(err)
		}
		text := string(p.Key)
		for _, cell := range p.Cells {
			text += string(cell.Value)
		}
		got = append(got, fmt.Sprintf("%s %v %v", text, p.Continues, p.More))
	}
	want := []string{"a0 false false", "b1 false true", "b2 true true", "b4 false true", "c6 false false"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("parts: continues, more (- want, + got):\n%s", diff)
	}
	if f.text(1) != "[a+,)" || f.text(2) != "[a+,)" || f.reqs[1].(*btpb.ReadRowsRequest).GetRowsLimit() != 4 {
		t.Errorf("asked for %s, %s, %v", f.text(1), f.text(2), f.reqs[1])
	}
}

// TestRead_Stops: a caller that stops ends the stream, and gets no further rows.
func TestRead_Stops(t *testing.T) {
	t.Parallel()
	f := &fake{answer: func(int, proto.Message) ([]proto.Message, error) { return messages(row("a", "1"), row("b", "2")), nil }}
	c := f.client(btclient.Options{Retry: btclient.Retry{Reads: 2}})
	for r, err := range c.Read(t.Context(), btclient.Read{Table: "t", Spans: everything}) {
		if err != nil || string(r.Key) != "a" {
			t.Errorf("row %q, %v", r.Key, err)
		}
		break
	}
	for p, err := range c.ReadParts(t.Context(), btclient.Read{Table: "t", Spans: everything}, 1) {
		if err != nil || string(p.Key) != "a" {
			t.Errorf("part of %q, %v", p.Key, err)
		}
		break
	}
	if f.calls() != 2 {
		t.Errorf("%d calls", f.calls())
	}
	for call, ctx := range f.contexts {
		if ctx.Err() == nil {
			t.Errorf("stream %d continues", call)
		}
	}
}

// TestReadParts_Size: parts have about the requested size, and small rows are whole.
func TestReadParts_Size(t *testing.T) {
	t.Parallel()
	f := &fake{answer: func(int, proto.Message) ([]proto.Message, error) {
		return messages(row("a", "1", "2"), row("b", strings.Split("1 2 3 4 5 6 7", " ")...), row("c", "1", "2")), io.EOF
	}}
	var got []string
	for p, err := range f.client(btclient.Options{}).ReadParts(t.Context(), btclient.Read{Table: "t", Spans: everything}, 150) { // a cell takes about 67 bytes
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(string(p.Key), len(p.Cells)))
	}
	if want := []string{"a2", "b3", "b3", "b1", "c2"}; !slices.Equal(got, want) {
		t.Errorf("parts %v, want %v", got, want)
	}
}

// TestReadRow: a complete row is returned without waiting for the end of its stream, which a
// dead connection may never send.
func TestReadRow(t *testing.T) {
	t.Parallel()
	f := &fake{answer: func(int, proto.Message) ([]proto.Message, error) { return messages(row("a", "1")), nil }}
	got, err := f.client(btclient.Options{}).ReadRow(t.Context(), "t", []byte("a"), btclient.Newest(1))
	if diff := cmp.Diff(row("a", "1"), got); diff != "" || err != nil {
		t.Errorf("%v, %s", err, diff)
	}
	want := &btpb.ReadRowsRequest{TableName: "projects/p/instances/i/tables/t", Rows: &btpb.RowSet{RowKeys: [][]byte{[]byte("a")}}, Filter: btclient.Newest(1)}
	if !proto.Equal(want, f.reqs[0]) {
		t.Errorf("asked for %v", f.reqs[0])
	}
	f.answer = func(int, proto.Message) ([]proto.Message, error) { return nil, io.EOF }
	if got, err := f.client(btclient.Options{}).ReadRow(t.Context(), "t", []byte("a"), nil); string(got.Key) != "a" || len(got.Cells) != 0 || err != nil {
		t.Errorf("a row that is not there: %+v, %v", got, err)
	}
	f.answer = func(int, proto.Message) ([]proto.Message, error) { return messages(row("a", "1", "2"))[:1], io.EOF }
	if _, err := f.client(btclient.Options{Retry: btclient.Retry{Reads: 2}}).ReadRow(t.Context(), "t", []byte("a"), nil); err == nil || err.Error() != `reading table t: the stream ended inside row "a"` {
		t.Errorf("half a row: %v", err)
	}
}

// TestRead_Stats requests the cost of a read only for a caller that wants it.
func TestRead_Stats(t *testing.T) {
	t.Parallel()
	f := &fake{answer: func(_ int, req proto.Message) ([]proto.Message, error) {
		if req.(*btpb.ReadRowsRequest).GetRequestStatsView() != btpb.ReadRowsRequest_REQUEST_STATS_FULL {
			return nil, io.EOF
		}
		return []proto.Message{&btpb.ReadRowsResponse{RequestStats: &btpb.RequestStats{StatsView: &btpb.RequestStats_FullReadStatsView{
			FullReadStatsView: &btpb.FullReadStatsView{ReadIterationStats: &btpb.ReadIterationStats{RowsSeenCount: 7}},
		}}}}, io.EOF
	}}
	seen := int64(0)
	r := btclient.Read{Spans: everything, Stats: func(s *btpb.ReadIterationStats) { seen = s.GetRowsSeenCount() }}
	if _, err := keysOf(t.Context(), f.client(btclient.Options{}), r); err != nil || seen != 7 {
		t.Errorf("%d rows seen, %v", seen, err)
	}
}

// TestRead_Clone: rows share the memory of messages, or have their own.
func TestRead_Clone(t *testing.T) {
	t.Parallel()
	for _, clone := range []bool{false, true} {
		resp := messages(row("a", "1"))[0].(*btpb.ReadRowsResponse)
		conn := &fake{share: true, answer: func(int, proto.Message) ([]proto.Message, error) { return []proto.Message{resp}, io.EOF }}
		for r, err := range conn.client(btclient.Options{}).Read(t.Context(), btclient.Read{Table: "t", Spans: everything, Clone: clone}) {
			if err != nil {
				t.Fatal(err)
			}
			resp.Chunks[0].Value[0], resp.Chunks[0].RowKey[0] = 'x', 'x'
			if own := string(r.Key)+string(r.Cells[0].Value) == "a1"; own != clone {
				t.Errorf("clone %v: row %q %q", clone, r.Key, r.Cells[0].Value)
			}
		}
	}
}
