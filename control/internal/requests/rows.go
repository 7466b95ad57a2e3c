package requests

import (
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/cells"
)

// Spans returns the rows that an RPC names, in the order of the request. It returns nothing
// for a read of a whole table. If the request was not kept completely, it returns only the
// first row, and nothing if the key of that row was cut.
func (r *Record) Spans() []cells.Span {
	if r.kind == nil {
		return nil
	}
	if len(r.request) == 0 {
		if len(r.key) == 0 || len(r.key) == maxKeyBytes {
			return nil
		}
		return []cells.Span{cells.Of(r.key)}
	}
	m := r.kind.New().Interface()
	if err := proto.Unmarshal(r.request, m); err != nil {
		return nil
	}
	var out []cells.Span
	switch m := m.(type) {
	case interface{ GetRowKey() []byte }:
		out = append(out, cells.Of(m.GetRowKey()))
	case *btpb.MutateRowsRequest:
		for _, e := range m.GetEntries() {
			out = append(out, cells.Of(e.GetRowKey()))
		}
	case *btpb.ReadRowsRequest:
		for _, key := range m.GetRows().GetRowKeys() {
			out = append(out, cells.Of(key))
		}
		for _, of := range m.GetRows().GetRowRanges() {
			out = append(out, spanOf(of))
		}
	}
	return out
}

func spanOf(r *btpb.RowRange) cells.Span {
	s := cells.Span{Start: r.GetStartKeyClosed(), End: r.GetEndKeyOpen()}
	if key := r.GetStartKeyOpen(); len(key) > 0 {
		s.Start = cells.Next(key)
	}
	if key := r.GetEndKeyClosed(); len(key) > 0 {
		s.End = cells.Next(key)
	}
	return s
}

// Writes reports whether the operation of a request is a write. It returns false for PartiQL
// statements, whose Bigtable calls are the writes.
func (r *Record) Writes() bool {
	switch r.Operation {
	case "PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems":
		return r.Endpoint == DynamoDB
	case "MutateRow", "MutateRows", "CheckAndMutateRow", "ReadModifyWriteRow":
		return r.Endpoint == Bigtable
	}
	return false
}

// Names reports whether an RPC names a row, by its key or by a range with two ends. A read of a
// whole table, or of its beginning or end, does not name a particular row.
func (r *Record) Names(key []byte) bool {
	for _, s := range r.Spans() {
		if len(s.Start) == 0 || len(s.End) == 0 {
			continue
		}
		if _, ok := s.Intersect(cells.Of(key)); ok {
			return true
		}
	}
	return false
}
