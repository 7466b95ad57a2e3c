package load

import (
	"bytes"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/internal/heat"
)

// write adds a request that writes one row; bytes are counted if it succeeded.
func write(t *heat.Table, key []byte, muts []*btpb.Mutation, err error) {
	if t == nil {
		return
	}
	c := heat.Counts{Writes: 1, Errors: failed(err)}
	if err == nil {
		c.Bytes = uint64(len(key) + mutated(muts))
	}
	t.Add(key, c)
}

func failed(err error) uint64 {
	if err != nil {
		return 1
	}
	return 0
}

// mutated is how many bytes mutations bring.
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

// CheckAndMutateRow counts a request that ended with an answer or err.
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
		c.Bytes = uint64(len(req.GetRowKey()))
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

// Entries counts the entries of a MutateRows request; errs has the result of each entry.
func Entries(t *heat.Table, entries []*btpb.MutateRowsRequest_Entry, errs []error) {
	if t == nil {
		return
	}
	for i, entry := range entries {
		if errs[i] != nil {
			t.Add(entry.GetRowKey(), heat.Counts{Errors: 1})
			continue
		}
		t.Add(entry.GetRowKey(), heat.Counts{Bytes: uint64(len(entry.GetRowKey()) + mutated(entry.GetMutations()))})
	}
}

// MutateRows counts one write at the first key of a request, and an error if err is not nil.
// It does not count the entries.
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

// Rows counts what a ReadRows request sends.
type Rows struct {
	table *heat.Table // nil: rows are added to none
	// The row that is being sent, which may continue in the next message, and how many
	// bytes of it were sent. The memory of the key is used again.
	key   []byte
	bytes int
}

// Begin adds the rows that are sent from now on to a table, which may be nil.
func (r *Rows) Begin(t *heat.Table) { *r = Rows{table: t, key: r.key[:0]} }

// Counted reports whether rows are added to a table.
func (r *Rows) Counted() bool { return r.table != nil }

// Count returns the number of rows that a message ends, and the bytes of keys, qualifiers and
// values in it. It adds the rows to the table, but for the last: a read of one row is counted
// as a whole.
func (r *Rows) Count(resp *btpb.ReadRowsResponse) (rows, bytes int) {
	for _, c := range resp.GetChunks() {
		if len(c.GetRowKey()) > 0 && r.table != nil {
			if r.bytes > 0 {
				r.table.Add(r.key, heat.Counts{Bytes: uint64(r.bytes)})
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

// End counts the request, which ended with err, in t, which may be nil.
func (r *Rows) End(t *heat.Table, req *btpb.ReadRowsRequest, err error) {
	if t == nil {
		return
	}
	first, c := firstKey(req.GetRows()), heat.Counts{Reads: 1, Errors: failed(err)}
	switch {
	case bytes.Equal(r.key, first):
		c.Bytes = uint64(r.bytes)
	case r.bytes > 0:
		t.Add(r.key, heat.Counts{Bytes: uint64(r.bytes)})
	}
	t.Add(first, c)
}

// firstKey is the first key that a set names, or the first beginning of a range.
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

// SessionRead counts a read of a row in a session, whose answer is row.
func SessionRead(t *heat.Table, key []byte, row *btpb.Row, err error) {
	c := heat.Counts{Reads: 1, Errors: failed(err)}
	if row != nil {
		c.Bytes = uint64(len(key))
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
