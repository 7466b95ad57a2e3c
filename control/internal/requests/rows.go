package requests

import (
	"bytes"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/proto"
)

// Span is a range of row keys: from Start on, and before End. A nil End is unbounded.
type Span struct{ Start, End []byte }

// Row returns the span of a single row.
func Row(key []byte) Span { return Span{key, after(key)} }

// after returns the key that follows a key.
func after(key []byte) []byte { return append(key[:len(key):len(key)], 0) }

// Single reports whether s is the span of one row.
func (s Span) Single() bool { return bytes.Equal(s.End, after(s.Start)) }

func (s Span) holds(key []byte) bool {
	return bytes.Compare(s.Start, key) <= 0 && (s.End == nil || bytes.Compare(key, s.End) < 0)
}

// Spans returns the rows that an RPC names, in its order. A read of a whole table has none. Of a
// request that was not kept as a whole, it has the first row.
func (r *Record) Spans() []Span {
	if r.kind == nil {
		return nil
	}
	if len(r.request) == 0 {
		if len(r.key) == 0 || len(r.key) == maxKeyBytes {
			return nil
		}
		return []Span{Row(r.key)}
	}
	m := r.kind.New().Interface()
	if err := proto.Unmarshal(r.request, m); err != nil {
		return nil
	}
	var out []Span
	switch m := m.(type) {
	case interface{ GetRowKey() []byte }:
		out = append(out, Row(m.GetRowKey()))
	case *btpb.MutateRowsRequest:
		for _, e := range m.GetEntries() {
			out = append(out, Row(e.GetRowKey()))
		}
	case *btpb.ReadRowsRequest:
		for _, key := range m.GetRows().GetRowKeys() {
			out = append(out, Row(key))
		}
		for _, of := range m.GetRows().GetRowRanges() {
			out = append(out, spanOf(of))
		}
	}
	return out
}

func spanOf(r *btpb.RowRange) Span {
	s := Span{Start: r.GetStartKeyClosed(), End: r.GetEndKeyOpen()}
	if key := r.GetStartKeyOpen(); len(key) > 0 {
		s.Start = after(key)
	}
	if key := r.GetEndKeyClosed(); len(key) > 0 {
		s.End = after(key)
	}
	if len(s.End) == 0 {
		s.End = nil
	}
	return s
}

// Writes reports whether a request writes, by its operation. A PartiQL statement writes by its calls
// alone.
func (r *Record) Writes() bool {
	switch r.Operation {
	case "PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems":
		return r.Endpoint == DynamoDB
	case "MutateRow", "MutateRows", "CheckAndMutateRow", "ReadModifyWriteRow":
		return r.Endpoint == Bigtable
	}
	return false
}

// Names reports whether an RPC names a row: by its key, or by a range with two ends. A read of a
// table, or of its beginning or end, concerns no row in particular.
func (r *Record) Names(key []byte) bool {
	for _, s := range r.Spans() {
		if len(s.Start) > 0 && s.End != nil && s.holds(key) {
			return true
		}
	}
	return false
}
