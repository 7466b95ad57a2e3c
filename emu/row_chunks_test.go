package emu

import (
	"bytes"
	"fmt"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/emu/internal/filter"
	"github.com/tabletop-emu/tabletop/emu/internal/rowchunks"
)

func TestRowChunks_LargeRow(t *testing.T) {
	t.Parallel()
	w := &rowchunks.Writer{RowLimitBytes: 100, Send: func(*btpb.ReadRowsResponse) error { return nil }}
	w.Begin([]byte("row"))
	c := &filter.Cell{Family: "f", Qualifier: []byte("q"), Value: make([]byte, 60)}
	if err := w.Add(c); err != nil {
		t.Fatal(err)
	}
	err := w.Add(c)
	wantCode(t, err, codes.FailedPrecondition)
	details := status.Convert(err).Details()
	if len(details) != 1 {
		t.Fatalf("details: %v", details)
	}
	info, ok := details[0].(*errdetails.ErrorInfo)
	if !ok || info.GetReason() != "LargeRowReadError" || info.GetMetadata()["rowKeyBase64Encoded"] != "cm93" {
		t.Errorf("got %v", details[0])
	}
}

// TestRowChunks_WholeRows writes rows for clients with and without a need for whole rows. Rows
// that fit into one message of 4 MiB are whole for the former.
func TestRowChunks_WholeRows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		whole           bool
		cells           int // of 700 KiB
		messages, parts int // that end with a row, within a row
	}{
		{false, 5, 3, 0}, {false, 8, 3, 3}, {true, 5, 3, 0}, {true, 8, 3, 0},
	} {
		var open int
		var messages int
		w := &rowchunks.Writer{WholeRows: func() bool { return c.whole }, Send: func(r *btpb.ReadRowsResponse) error {
			messages++
			if ch := r.GetChunks(); !ch[len(ch)-1].GetCommitRow() {
				open++
			}
			return nil
		}}
		for range 3 {
			w.Begin([]byte("row"))
			for range c.cells {
				if err := w.Add(&filter.Cell{Family: "f", Qualifier: []byte("q"), Value: make([]byte, 700<<10)}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := w.Commit(); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if open != c.parts || messages != c.messages+c.parts {
			t.Errorf("%+v: %d of %d messages end within a row", c, open, messages)
		}
	}
}

func TestWantsWholeRows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		md   metadata.MD
		want bool
	}{
		{nil, false},
		{metadata.Pairs("user-agent", "grpc-go/1.85.0"), false},
		{metadata.Pairs("google-cloud-resource-prefix", "projects/p"), false},
		{metadata.Pairs("google-cloud-resource-prefix", "projects/p", "user-agent", "grpc-java-netty/1.70.0"), false},
		{metadata.Pairs("google-cloud-resource-prefix", "projects/p", "user-agent", "cbt-go/v1.58.0 grpc-go/1.85.0"), true},
	} {
		if got := wantsWholeRows(metadata.NewIncomingContext(t.Context(), c.md)); got != c.want {
			t.Errorf("%v: got %v", c.md, got)
		}
	}
}

func TestClientFeatures_BadHeaders(t *testing.T) {
	t.Parallel()
	for _, v := range []string{"", "!", "////", "_w", "CAE"} {
		got := new(Server).clientFeatures(metadata.NewIncomingContext(t.Context(), metadata.Pairs("bigtable-features", v))).GetReverseScans()
		if want := v == "CAE"; got != want {
			t.Errorf("%q: got %v", v, got)
		}
	}
}

// TestRowChunks_SendCopies sends rows that fill messages, continue in the next or are large,
// and reuses memory after each message. Receivers that copied a message get the same as
// receivers that kept one.
func TestRowChunks_SendCopies(t *testing.T) {
	t.Parallel()
	send := func(copies bool) []*btpb.ReadRowsResponse {
		var out []*btpb.ReadRowsResponse
		w := &rowchunks.Writer{SendCopies: copies, Send: func(r *btpb.ReadRowsResponse) error {
			if copies {
				r = proto.CloneOf(r)
			}
			out = append(out, r)
			return nil
		}}
		for i, row := range []struct{ cells, bytes int }{
			{1, 0}, {3, 100}, {2000, 100}, {1000, 10}, {1, 200 << 10}, {5, 200 << 10}, {1, 3 << 20}, {7, 900 << 10}, {3, 1}, {300, 5000}, {1, 1},
		} {
			w.Begin(fmt.Appendf(nil, "row%d", i))
			for c := range row.cells {
				err := w.Add(&filter.Cell{
					Family: []string{"f", "g"}[c*2/row.cells], Qualifier: fmt.Appendf(nil, "q%d", c/2), TimestampMicros: int64(c),
					Value: bytes.Repeat([]byte{byte(i + c)}, row.bytes), Label: []string{"", "l"}[c%2],
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			if cells, err := w.Commit(); err != nil || cells != int64(row.cells) {
				t.Fatal(cells, err)
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		return out
	}
	kept, copied := send(false), send(true)
	if len(kept) < 9 || len(kept) != len(copied) {
		t.Fatalf("%d messages, %d that were copied", len(kept), len(copied))
	}
	for i := range kept {
		if !proto.Equal(kept[i], copied[i]) {
			t.Errorf("message %d, of %d bytes, is another if it is copied, of %d", i, proto.Size(kept[i]), proto.Size(copied[i]))
		}
	}
}

// A message contains several whole rows up to about 100 KB; a larger row has its own message.
// Tests of official clients, which pass against the service, expect at least six messages for
// 32 rows of 32 cells of 512 bytes.
func TestLimits_MessageSizes(t *testing.T) {
	t.Parallel()
	type table struct{ rows, cells, bytes int }
	for want, tables := range map[[2]int][]table{
		{6, 9}:   {{32, 32, 512}},
		{40, 50}: {{20, 3, 10}, {10, 10, 100 << 10}, {30, 1, 90 << 10}, {20, 1, 10}},
		{5, 12}:  {{5000, 1, 100}},
	} {
		e := newTable(t, "f")
		var entries []*btpb.MutateRowsRequest_Entry
		for i, tab := range tables {
			for r := range tab.rows {
				var muts []*btpb.Mutation
				for c := range tab.cells {
					muts = append(muts, set("f", fmt.Sprintf("q%02d", c), 0, big(tab.bytes)))
				}
				entries = append(entries, entry(fmt.Sprintf("%d-%04d", i, r), muts...))
			}
		}
		if _, err := e.mutateRows(entries...); err != nil {
			t.Fatal(err)
		}
		for _, client := range []btpb.BigtableClient{e.data, btpb.NewBigtableClient(e.dial())} {
			res, err := readRows(e.ctx(), client, &btpb.ReadRowsRequest{TableName: testTable})
			if err != nil {
				t.Fatal(err)
			}
			if n := len(res.messages); len(res.rows) != len(entries) || n < want[0] || n > want[1] {
				t.Errorf("%v: %d rows in %d messages, want %d to %d", tables, len(res.rows), n, want[0], want[1])
			}
			for i, m := range res.messages {
				rows := 0
				for _, c := range m.GetChunks() {
					if c.GetCommitRow() {
						rows++
					}
				}
				if n := proto.Size(m); rows == 0 || rows > 1 && n > 105_000 {
					t.Errorf("%v: message %d has %d rows in %d bytes", tables, i, rows, n)
				}
				if i == 0 && len(tables) == 1 && proto.Size(m) > 2*rowchunks.FirstMessageBytes {
					t.Errorf("%v: the first message has %d bytes", tables, proto.Size(m))
				}
			}
		}
	}
}
