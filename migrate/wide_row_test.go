package migrate

import (
	"context"
	"io/fs"
	"strings"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// piecemeal is a connection on which rows arrive cell by cell, each restarted once.
type piecemeal struct{ grpc.ClientConnInterface }

func (p piecemeal) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := p.ClientConnInterface.NewStream(ctx, desc, method, opts...)
	if err != nil || !strings.HasSuffix(method, "/ReadRows") {
		return s, err
	}
	return &piecemealStream{ClientStream: s}, nil
}

type piecemealStream struct {
	grpc.ClientStream
	next []*btpb.ReadRowsResponse
}

func (s *piecemealStream) RecvMsg(m any) error {
	for len(s.next) == 0 {
		resp := &btpb.ReadRowsResponse{}
		if err := s.ClientStream.RecvMsg(resp); err != nil {
			return err
		}
		chunks := resp.GetChunks()
		resp.Chunks = nil
		send := func(c *btpb.ReadRowsResponse_CellChunk) {
			s.next = append(s.next, &btpb.ReadRowsResponse{Chunks: []*btpb.ReadRowsResponse_CellChunk{c}})
		}
		for _, c := range chunks {
			send(c)
			if len(c.GetRowKey()) > 0 && !c.GetCommitRow() && c.GetValueSize() == 0 {
				send(&btpb.ReadRowsResponse_CellChunk{RowStatus: &btpb.ReadRowsResponse_CellChunk_ResetRow{ResetRow: true}})
				send(c)
			}
		}
		s.next = append(s.next, resp)
	}
	out := m.(*btpb.ReadRowsResponse)
	proto.Reset(out)
	proto.Merge(out, s.next[0])
	s.next = s.next[1:]
	return nil
}

// friendsFixture is a fixture of items that share rows, a column each.
func friendsFixture(t *testing.T) *table.Fixture {
	t.Helper()
	files, err := fs.Sub(shippedFiles, "subjects/s7-friends")
	if err != nil {
		t.Fatal(err)
	}
	f, err := table.OpenFixture(files, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// The cells of a wide row are found when a load writes to it again, and an export of its items
// equals that of the whole row.
func TestLoad_WideRows(t *testing.T) {
	t.Parallel()
	conn := newBigtableServer(t)
	f := friendsFixture(t)
	o := Common{Mappings: []*mapping.Mapping{f.Mapping}, knobs: table.Knobs{Part: 1, Batch: 1}}
	for _, written := range []int64{6, 0} {
		r, err := Load(t.Context(), piecemeal{conn}, f.Data, LoadOptions{Common: o})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Tables[0].CellsWritten; got != written {
			t.Errorf("%d cells are written, want %d", got, written)
		}
	}
	for _, part := range []int{0, 1} {
		o.knobs.Part = part
		done, err := Reverse(t.Context(), piecemeal{conn}, f.Mapping, t.TempDir(), ReverseOptions{Common: o})
		if err != nil {
			t.Fatal(err)
		}
		if done.Items != 6 || done.Rows != 2 {
			t.Errorf("in parts of %d: %v", part, done)
		}
	}
}
