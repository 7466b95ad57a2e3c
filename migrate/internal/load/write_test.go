package load

import (
	"context"
	"io"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tabletop-emu/tabletop/migrate/internal/table"
)

// chunksTable answers every ReadRows with a message for each of its chunks.
type chunksTable struct {
	grpc.ClientConnInterface
	chunks []*btpb.ReadRowsResponse_CellChunk
	reads  int
}

func (c *chunksTable) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	c.reads++
	return &chunksStream{left: c.chunks}, nil
}

type chunksStream struct {
	grpc.ClientStream
	left []*btpb.ReadRowsResponse_CellChunk
}

func (*chunksStream) SendMsg(any) error { return nil }
func (*chunksStream) CloseSend() error  { return nil }
func (s *chunksStream) RecvMsg(m any) error {
	if len(s.left) == 0 {
		return io.EOF
	}
	proto.Merge(m.(proto.Message), &btpb.ReadRowsResponse{Chunks: s.left[:1]})
	s.left = s.left[1:]
	return nil
}

// A cell of a discarded part of a row is not counted. The cells of a wide row are read once for
// all batches.
func TestWriter_LooksUpWideRows(t *testing.T) {
	t.Parallel()
	cell := func(qualifier string, commit bool) *btpb.ReadRowsResponse_CellChunk {
		c := &btpb.ReadRowsResponse_CellChunk{
			RowKey: []byte("r"), FamilyName: wrapperspb.String("f"), Qualifier: wrapperspb.Bytes([]byte(qualifier)), TimestampMicros: 1000, Value: []byte("v"),
		}
		if commit {
			c.RowStatus = &btpb.ReadRowsResponse_CellChunk_CommitRow{CommitRow: true}
		}
		return c
	}
	conn := &chunksTable{chunks: []*btpb.ReadRowsResponse_CellChunk{
		cell("a", false),
		{RowStatus: &btpb.ReadRowsResponse_CellChunk_ResetRow{ResetRow: true}},
		cell("b", false), cell("c", true),
	}}
	o := table.Options{Knobs: table.Knobs{Part: 1}}
	w := &writer{b: table.NewBigtable(conn, o), o: o}
	rows := &writeTable{ID: "t"}
	for range 2 {
		rows.Entries = nil
		for _, qualifier := range []string{"a", "b", "c"} {
			rows.Entries = append(rows.Entries, writeEntry{MutateRowsRequest_Entry: &btpb.MutateRowsRequest_Entry{
				RowKey: []byte("r"),
				Mutations: []*btpb.Mutation{{Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{
					FamilyName: "f", ColumnQualifier: []byte(qualifier), TimestampMicros: 1000, Value: []byte("v"),
				}}}},
			}})
		}
		if err := w.dropUnchanged(t.Context(), rows); err != nil {
			t.Fatal(err)
		}
		if n := len(rows.Entries); n != 1 || string(rows.Entries[0].GetMutations()[0].GetSetCell().GetColumnQualifier()) != "a" {
			t.Errorf("%d entries are left, want that of a", n)
		}
	}
	if conn.reads != 1 {
		t.Errorf("the row was read %d times", conn.reads)
	}
}
