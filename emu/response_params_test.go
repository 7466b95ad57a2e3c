package emu

import (
	"errors"
	"io"
	"strings"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// TestResponseParams looks for the headers that clients' metrics are made of,
// on answers and on errors, as the official clients do: in the header first,
// then in the trailer.
func TestResponseParams(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	data := btpb.NewBigtableClient(e.dial())
	check := func(what string, header, trailer metadata.MD) {
		t.Helper()
		all := metadata.Join(header, trailer)
		timing := all.Get("server-timing")
		if len(timing) != 1 || !strings.HasPrefix(timing[0], "gfet4t7; dur=") || strings.HasSuffix(timing[0], "=0") {
			t.Errorf("%s: server-timing %q", what, timing)
		}
		params := &btpb.ResponseParams{}
		where := all.Get("x-goog-ext-425905942-bin")
		if len(where) != 1 || proto.Unmarshal([]byte(where[0]), params) != nil || params.GetClusterId() == "" || params.GetZoneId() == "" {
			t.Errorf("%s: location %q", what, where)
		}
	}
	for _, row := range []string{"r", ""} {
		var header, trailer metadata.MD
		_, err := data.MutateRow(e.ctx(), &btpb.MutateRowRequest{TableName: testTable, RowKey: []byte(row), Mutations: []*btpb.Mutation{set("f", "q", 0, "")}},
			grpc.Header(&header), grpc.Trailer(&trailer))
		if row == "" {
			wantCode(t, err, codes.InvalidArgument)
		} else if err != nil {
			t.Fatal(err)
		}
		check("MutateRow "+row, header, trailer)
	}
	for _, req := range []*btpb.ReadRowsRequest{
		{TableName: testTable},
		{TableName: testTable, Filter: qualifierRegexOf("none")},
		{TableName: testTable + "x"},
	} {
		stream, err := data.ReadRows(e.ctx(), req)
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = stream.Recv()
		}
		if !errors.Is(err, io.EOF) {
			wantCode(t, err, codes.NotFound)
		}
		header, err := stream.Header()
		if err != nil {
			t.Fatal(err)
		}
		check("ReadRows", header, stream.Trailer())
	}
}
