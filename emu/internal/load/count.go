package load

import (
	"bytes"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/internal/heat"
)

// write counts a request that writes one row. It counts the row and its bytes only on success.
func write(t *heat.Table, key []byte, muts []*btpb.Mutation, err error) {
	if t == nil {
		return
	}
	c := heat.Counts{Writes: 1, Errors: failed(err)}
	if err == nil {
		c.Rows, c.Bytes = 1, uint64(len(key)+mutated(muts))
	}
	t.Add(key, c)
}

func failed(err error) uint64 {
	if err != nil {
		return 1
	}
	return 0
}

// mutated returns the size of the data in mutations.
func mutated(muts []*btpb.Mutation) int {
	n := 0
	for _, m := range muts {
		switch m := m.GetMutation().(type) {
		case *btpb.Mutation_SetCell_:
			n += len(m.SetCell.GetColumnQualifier()) + len(m.SetCell.GetValue())
		case *btpb.Mutation_AddToCell_:
			n += len(m.AddToCell.GetColumnQualifier().GetRawValue()) + 8
		case *btpb.Mutation_MergeToCell_:
			n += len(m.MergeToCell.GetColumnQualifier().GetRawValue()) + len(m.MergeToCell.GetInput().GetBytesValue())
		}
	}
	return n
}

// MutateRow counts a request that ended with err.
func MutateRow(t *heat.Table, req *btpb.MutateRowRequest, err error) {
	write(t, req.GetRowKey(), req.GetMutations(), err)
}

// CheckAndMutateRow counts a request that ended with resp or err.
func CheckAndMutateRow(t *heat.Table, req *btpb.CheckAndMutateRowRequest, resp *btpb.CheckAndMutateRowResponse, err error) {
	applied := req.GetFalseMutations()
	if resp.GetPredicateMatched() {
		applied = req.GetTrueMutations()
	}
	write(t, req.GetRowKey(), applied, err)
}

// ReadModifyWriteRow counts a request that ended with err.
func ReadModifyWriteRow(t *heat.Table, req *btpb.ReadModifyWriteRowRequest, err error) {
	if t == nil {
		return
	}
	c := heat.Counts{Writes: 1, Errors: failed(err)}
	if err == nil {
		c.Rows, c.Bytes = 1, uint64(len(req.GetRowKey()))
		for _, r := range req.GetRules() {
			if c.Bytes += uint64(len(r.GetColumnQualifier())); r.GetAppendValue() != nil {
				c.Bytes += uint64(len(r.GetAppendValue()))
			} else {
				c.Bytes += 8
			}
		}
	}
	t.Add(req.GetRowKey(), c)
}

// Entries counts the entries of a MutateRows request. errs holds the result of each entry.
func Entries(t *heat.Table, entries []*btpb.MutateRowsRequest_Entry, errs []error) {
	if t == nil {
		return
	}
	for i, entry := range entries {
		if errs[i] != nil {
			t.Add(entry.GetRowKey(), heat.Counts{Errors: 1})
			continue
		}
		t.Add(entry.GetRowKey(), heat.Counts{Rows: 1, Bytes: uint64(len(entry.GetRowKey()) + mutated(entry.GetMutations()))})
	}
}

// MutateRows counts one write at the first key of a request, and one error if err is not nil. It
// does not count the entries; see Entries.
func MutateRows(t *heat.Table, req *btpb.MutateRowsRequest, err error) {
	if t == nil {
		return
	}
	var key []byte
	if len(req.GetEntries()) > 0 {
		key = req.GetEntries()[0].GetRowKey()
	}
	t.Add(key, heat.Counts{Writes: 1, Errors: failed(err)})
}

// Rows counts the rows that a ReadRows request sends.
type Rows struct {
	table *heat.Table // nil: rows are not counted
	// The current row, which may continue in the next message, and the number
	// of its bytes sent. The memory of the key is reused.
	key   []byte
	bytes int
}

// Begin makes the following rows count in a table, which may be nil.
func (r *Rows) Begin(t *heat.Table) { *r = Rows{table: t, key: r.key[:0]} }

// Counted reports whether the rows that are sent count in a table.
func (r *Rows) Counted() bool { return r.table != nil }

// Count returns the number of rows that end in a message, and the size of the message's keys,
// qualifiers and values. It counts the rows in the table, except for the last row, which a later
// call or End counts.
func (r *Rows) Count(resp *btpb.ReadRowsResponse) (rows, bytes int) {
	for _, c := range resp.GetChunks() {
		if len(c.GetRowKey()) > 0 && r.table != nil {
			if r.bytes > 0 {
				r.table.Add(r.key, heat.Counts{Rows: 1, Bytes: uint64(r.bytes)})
			}
			r.key, r.bytes = append(r.key[:0], c.GetRowKey()...), 0
		}
		if c.GetCommitRow() {
			rows++
		}
		n := len(c.GetRowKey()) + len(c.GetQualifier().GetValue()) + len(c.GetValue())
		r.bytes += n
		bytes += n
	}
	return rows, bytes
}

// Row counts the previous row in the table, like Count, and begins a whole row of the given size.
func (r *Rows) Row(key []byte, bytes int) {
	if r.bytes > 0 {
		r.table.Add(r.key, heat.Counts{Rows: 1, Bytes: uint64(r.bytes)})
	}
	r.key, r.bytes = append(r.key[:0], key...), bytes
}

// End counts a finished request and the last row that was sent in the table t. err is the result
// of the request. If t is nil, nothing is counted.
func (r *Rows) End(t *heat.Table, req *btpb.ReadRowsRequest, err error) {
	if t == nil {
		return
	}
	first, c := firstKey(req.GetRows()), heat.Counts{Reads: 1, Errors: failed(err)}
	switch {
	case r.bytes == 0:
	case bytes.Equal(r.key, first):
		c.Rows, c.Bytes = 1, uint64(r.bytes)
	default:
		t.Add(r.key, heat.Counts{Rows: 1, Bytes: uint64(r.bytes)})
	}
	t.Add(first, c)
}

// Scan counts the rows that a SQL query reads in a scan.
type Scan struct {
	table *heat.Table
	// The current row, and the number of its bytes read. The memory of the key is reused.
	key   []byte
	bytes int
}

// Begin counts a read at the first key of a scan, and makes the following rows count in a table.
func (s *Scan) Begin(t *heat.Table, first []byte) {
	s.table = t
	t.Add(first, heat.Counts{Reads: 1})
}

// Row counts the previous row, and begins the row with the given key.
func (s *Scan) Row(key []byte) {
	s.End()
	s.key, s.bytes = append(s.key[:0], key...), len(key)
}

// Cell adds the size of a cell to the current row.
func (s *Scan) Cell(bytes int) { s.bytes += bytes }

// End counts the last row.
func (s *Scan) End() {
	if s.bytes > 0 {
		s.table.Add(s.key, heat.Counts{Rows: 1, Bytes: uint64(s.bytes)})
		s.bytes = 0
	}
}

// firstKey returns the first key of a set, or else the start of its first
// range.
func firstKey(set *btpb.RowSet) []byte {
	if keys := set.GetRowKeys(); len(keys) > 0 {
		return keys[0]
	}
	if ranges := set.GetRowRanges(); len(ranges) > 0 {
		if key := ranges[0].GetStartKeyClosed(); key != nil {
			return key
		}
		return ranges[0].GetStartKeyOpen()
	}
	return nil
}

// SessionRead counts a read of a row in a session. row is the result.
func SessionRead(t *heat.Table, key []byte, row *btpb.Row, err error) {
	c := heat.Counts{Reads: 1, Errors: failed(err)}
	if row != nil {
		c.Rows, c.Bytes = 1, uint64(len(key))
	}
	for _, f := range row.GetFamilies() {
		for _, column := range f.GetColumns() {
			c.Bytes += uint64(len(column.GetQualifier()))
			for _, cell := range column.GetCells() {
				c.Bytes += uint64(len(cell.GetValue()))
			}
		}
	}
	t.Add(key, c)
}

// SessionWrite counts a write of a row in a session.
func SessionWrite(t *heat.Table, key []byte, muts []*btpb.Mutation, err error) {
	write(t, key, muts, err)
}
