package compare

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/test/memory"
	"github.com/tabletop-emu/tabletop/internal/test/race"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// wideTable answers every ReadRows with one row of n cells of 1 KB.
type wideTable struct {
	grpc.ClientConnInterface
	n    int
	each func() // called for each message
}

func (w wideTable) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return &wideStream{w: w}, nil
}

type wideStream struct {
	grpc.ClientStream
	w    wideTable
	sent int
}

func (*wideStream) SendMsg(any) error { return nil }
func (*wideStream) CloseSend() error  { return nil }

func (s *wideStream) RecvMsg(m any) error {
	out := m.(*btpb.ReadRowsResponse)
	proto.Reset(out)
	s.w.each()
	for ; s.sent < s.w.n && len(out.GetChunks()) < 64; s.sent++ {
		c := &btpb.ReadRowsResponse_CellChunk{
			Qualifier: wrapperspb.Bytes(fmt.Appendf(nil, "%08d", s.sent)), Value: []byte(strings.Repeat("x", 1<<10)),
		}
		if s.sent == 0 {
			c.RowKey, c.FamilyName = []byte("ann"), wrapperspb.String("friends")
		}
		if s.sent == s.w.n-1 {
			c.RowStatus = &btpb.ReadRowsResponse_CellChunk_CommitRow{CommitRow: true}
		}
		out.Chunks = append(out.GetChunks(), c)
	}
	if len(out.GetChunks()) == 0 {
		return io.EOF
	}
	return nil
}

// The memory for a row does not grow with it.
func TestScan_Memory(t *testing.T) { //nolint:paralleltest // memory.Alone makes it parallel
	if race.Enabled {
		t.Skip("the race detector takes memory too")
	}
	memory.Alone(t, func(t *testing.T) {
		f, err := table.OpenFixture(os.DirFS("../../../fixtures/subjects/s7-friends"), source.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m := (*layout.Mapping)(f.Mapping)
		const window = 1 << 20
		for _, n := range []int{4_000, 16_000} {
			before, most, calls := int64(memory.Live()), int64(0), 0
			sample := func() {
				if calls++; calls%25 == 0 {
					most = max(most, int64(memory.Live())-before)
				}
			}
			j := &table.Job{Mapping: m, Options: table.Options{TempDir: t.TempDir(), Progress: func(source.Progress) { sample() }, Knobs: table.Knobs{Window: window}}.Normalized(), Source: f.Data.Tables[0]}
			b := table.NewBigtable(wideTable{n: n, each: sample}, table.Options{})
			h, err := scan(t.Context(), b, j, "friends", m.Items, table.NewRetention(m.Families(), nil))
			if err != nil {
				t.Fatal(err)
			}
			if h.Rows != 1 || h.Cells.Count != int64(n) || h.Items.Count != int64(n) || h.Unreadable {
				t.Errorf("%d rows, %d cells, %d items, want 1 and %d", h.Rows, h.Cells.Count, h.Items.Count, n)
			}
			if bound := int64(3 * window); most > bound || most == 0 { // a run, its file's buffers, and the current parts
				t.Errorf("a row of %d KB: %d bytes are held, want at most %d", n, most, bound)
			}
		}
	})
}
