package wire

import (
	"bytes"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tabletop-emu/tabletop/internal/test/memory"
	"github.com/tabletop-emu/tabletop/internal/test/race"
)

func setCell(family, qualifier string, micros int64, value string) *btpb.Mutation {
	return &btpb.Mutation{Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{
		FamilyName: family, ColumnQualifier: []byte(qualifier), TimestampMicros: micros, Value: []byte(value),
	}}}
}

// requests returns messages that the decoder supports, and messages that it
// leaves to package proto.
func requests() []proto.Message {
	odd := setCell("f", "q", 1000, "v")
	odd.TimestampOrigin = btpb.Mutation_CLIENT_AUTO_GENERATED
	unknown := setCell("f", "q", 1000, "v")
	unknown.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 7))
	id := &btpb.Idempotency{Token: []byte("0123456789"), StartTime: &timestamppb.Timestamp{Seconds: 5}}
	others := []*btpb.Mutation{
		{Mutation: &btpb.Mutation_DeleteFromRow_{DeleteFromRow: &btpb.Mutation_DeleteFromRow{}}},
		{Mutation: &btpb.Mutation_SetCell_{}},
		{},
	}
	lists := [][]*btpb.Mutation{
		{setCell("f", "q", 1000, "v"), setCell("f", "r", -1, ""), setCell("g", "", 0, "w")},
		{odd},
		{unknown},
		{setCell("f", "", 0, "")},
		others, append(others[:1:1], odd), nil,
	}
	out := []proto.Message{&btpb.MutateRowsRequest{}, &btpb.MutateRowRequest{}}
	all := &btpb.MutateRowsRequest{TableName: "t", AppProfileId: "p", AuthorizedViewName: "v"}
	for i, muts := range lists {
		e := &btpb.MutateRowsRequest_Entry{RowKey: []byte{'r', byte(i)}, Mutations: muts}
		all.Entries = append(all.Entries, e)
		out = append(out,
			&btpb.MutateRowsRequest{TableName: "t", Entries: []*btpb.MutateRowsRequest_Entry{e, {}, e}},
			&btpb.MutateRowsRequest{Entries: []*btpb.MutateRowsRequest_Entry{{RowKey: e.GetRowKey(), Mutations: muts, Idempotency: id}}},
			&btpb.MutateRowRequest{TableName: "t", RowKey: e.GetRowKey(), Mutations: muts, AppProfileId: "p"},
			&btpb.MutateRowRequest{AuthorizedViewName: "v", Mutations: muts, Idempotency: id})
	}
	return append(out, all)
}

// TestUnmarshal_Bomb: a request with very many tiny mutations takes no more
// memory than package proto needs for it.
func TestUnmarshal_Bomb(t *testing.T) { //nolint:paralleltest // Alone makes it parallel
	if race.Enabled {
		t.Skip("the race detector allocates too")
	}
	memory.Alone(t, testUnmarshalBomb)
}

func testUnmarshalBomb(t *testing.T) {
	empty := []byte{2<<3 | 2, 0}
	entry := protowire.AppendBytes([]byte{2<<3 | 2}, bytes.Repeat(empty, 2*maxCells))
	allocated := func(read func() error) uint64 {
		return memory.Allocated(func() {
			if err := read(); err != nil {
				t.Fatal(err)
			}
		})
	}
	theirs := allocated(func() error { return proto.Unmarshal(entry, &btpb.MutateRowsRequest{}) })
	ours := allocated(func() error {
		return NewCodec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(entry)}, &btpb.MutateRowsRequest{})
	})
	if ours > theirs+4<<20 {
		t.Errorf("%d bytes, package proto takes %d", ours, theirs)
	}
}

// checkUnmarshal compares decoding src with package proto, for both requests.
func checkUnmarshal(t *testing.T, src []byte) {
	t.Helper()
	c := NewCodec()
	for _, m := range []proto.Message{&btpb.MutateRowsRequest{}, &btpb.MutateRowRequest{}} {
		want := proto.Clone(m)
		wantErr := proto.Unmarshal(src, want)
		// In two parts, as from two frames.
		data := mem.BufferSlice{mem.SliceBuffer(src[:len(src)/2]), mem.SliceBuffer(src[len(src)/2:])}
		err := c.Unmarshal(data, m)
		if (err == nil) != (wantErr == nil) || err == nil && !proto.Equal(m, want) {
			t.Errorf("%x as a %T: %v, %v\nwant %v, %v", src, m, m, err, want, wantErr)
		}
	}
}

func TestUnmarshal(t *testing.T) {
	t.Parallel()
	for _, m := range requests() {
		src, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		checkUnmarshal(t, src)
		checkUnmarshal(t, append(src, src...)) // repeated fields
		for n := range src {                   // truncated messages
			checkUnmarshal(t, src[:n])
		}
	}
}

// FuzzUnmarshal compares decoding any bytes with package proto.
func FuzzUnmarshal(f *testing.F) {
	for _, m := range requests() {
		src, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src []byte) { checkUnmarshal(t, src) })
}

// TestUnmarshal_Owns: a message does not change with its receive buffer, which
// gRPC reuses.
func TestUnmarshal_Owns(t *testing.T) {
	t.Parallel()
	want := &btpb.MutateRowsRequest{TableName: "t", Entries: []*btpb.MutateRowsRequest_Entry{{
		RowKey: []byte("row"), Mutations: []*btpb.Mutation{setCell("f", "q", 1000, "value")},
	}}}
	src, err := proto.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got := &btpb.MutateRowsRequest{}
	if err := NewCodec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(src)}, got); err != nil {
		t.Fatal(err)
	}
	clear(src)
	if !proto.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestMarshal compares encoded responses with package proto, by decoding both.
func TestMarshal(t *testing.T) {
	t.Parallel()
	family, qualifier := wrapperspb.String("f"), wrapperspb.Bytes([]byte("q"))
	chunks := []*btpb.ReadRowsResponse_CellChunk{
		{},
		{RowKey: []byte("r"), FamilyName: family, Qualifier: qualifier, TimestampMicros: 1000, Value: []byte("v")},
		{FamilyName: wrapperspb.String(""), Qualifier: wrapperspb.Bytes(nil), TimestampMicros: -1, Labels: []string{"a", ""}},
		{Value: bytes.Repeat([]byte("v"), 5000), ValueSize: 10_000, TimestampMicros: 1 << 60},
		{ValueSize: -1, RowStatus: &btpb.ReadRowsResponse_CellChunk_CommitRow{CommitRow: true}},
		{RowStatus: &btpb.ReadRowsResponse_CellChunk_CommitRow{}},
		{RowStatus: &btpb.ReadRowsResponse_CellChunk_ResetRow{ResetRow: true}},
	}
	responses := []*btpb.ReadRowsResponse{
		{},
		{Chunks: chunks},
		{LastScannedRowKey: []byte("r")},
		{Chunks: chunks[1:2], LastScannedRowKey: []byte("r")},
		{Chunks: chunks[:1], RequestStats: &btpb.RequestStats{StatsView: &btpb.RequestStats_FullReadStatsView{}}},
	}
	for _, c := range chunks {
		responses = append(responses, &btpb.ReadRowsResponse{Chunks: []*btpb.ReadRowsResponse_CellChunk{c}})
	}
	c := NewCodec()
	for range 2 { // the second time with reused memory
		for _, want := range responses {
			data, err := c.Marshal(want)
			if err != nil {
				t.Fatal(err)
			}
			src := data.Materialize()
			data.Free()
			got := &btpb.ReadRowsResponse{}
			if err := proto.Unmarshal(src, got); err != nil || !proto.Equal(got, want) || len(src) != proto.Size(want) {
				t.Errorf("%d bytes: %v, %v\nwant %d bytes: %v", len(src), got, err, proto.Size(want), want)
			}
		}
	}
	for _, broken := range []*btpb.ReadRowsResponse_CellChunk{{FamilyName: wrapperspb.String("\xff")}, {Labels: []string{"\xff"}}} {
		if _, err := c.Marshal(&btpb.ReadRowsResponse{Chunks: []*btpb.ReadRowsResponse_CellChunk{broken}}); err == nil {
			t.Errorf("%v has a form", broken)
		}
	}
}

// TestAllocations bounds the allocations of decoding a request and encoding a
// response. It is not parallel, because it counts those of the whole process.
func TestAllocations(t *testing.T) { //nolint:paralleltest // see above
	if race.Enabled {
		t.Skip("the race detector allocates too")
	}
	req, resp := &btpb.MutateRowsRequest{TableName: "t"}, &btpb.ReadRowsResponse{}
	for range 100 {
		req.Entries = append(req.Entries, &btpb.MutateRowsRequest_Entry{
			RowKey: []byte("row"), Mutations: []*btpb.Mutation{setCell("f", "q", 1000, "v"), setCell("f", "r", 1000, "v")},
		})
		resp.Chunks = append(resp.Chunks, &btpb.ReadRowsResponse_CellChunk{RowKey: []byte("row"), Value: make([]byte, 100)})
	}
	src, err := proto.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	c := NewCodec()
	for name, call := range map[string]func(){
		"reading 100 entries": func() {
			if err := c.Unmarshal(mem.BufferSlice{mem.SliceBuffer(src)}, &btpb.MutateRowsRequest{}); err != nil {
				t.Fatal(err)
			}
		},
		"writing 100 chunks": func() {
			data, err := c.Marshal(resp)
			if err != nil {
				t.Fatal(err)
			}
			data.Free()
		},
	} {
		if got := testing.AllocsPerRun(100, call); got > 16 {
			t.Errorf("%s takes %.1f allocations, want at most 16", name, got)
		}
	}
}

func BenchmarkCodec(b *testing.B) {
	value := make([]byte, 341)
	req, resp := &btpb.MutateRowsRequest{TableName: "t"}, &btpb.ReadRowsResponse{}
	for range 250 {
		e := &btpb.MutateRowsRequest_Entry{RowKey: []byte("user0000000000")}
		for range 3 {
			e.Mutations = append(e.Mutations, setCell("f1", "c1", 1000, string(value)))
			resp.Chunks = append(resp.Chunks, &btpb.ReadRowsResponse_CellChunk{
				RowKey: e.GetRowKey(), FamilyName: wrapperspb.String("f1"), Qualifier: wrapperspb.Bytes([]byte("c1")), TimestampMicros: 1000, Value: value,
			})
		}
		req.Entries = append(req.Entries, e)
	}
	src, err := proto.Marshal(req)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		codec encoding.CodecV2
	}{{"ours", NewCodec()}, {"proto", encoding.GetCodecV2(protocodec.Name)}} {
		b.Run("unmarshal/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := c.codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(src)}, &btpb.MutateRowsRequest{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("marshal/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				data, err := c.codec.Marshal(resp)
				if err != nil {
					b.Fatal(err)
				}
				data.Free()
			}
		})
	}
}
