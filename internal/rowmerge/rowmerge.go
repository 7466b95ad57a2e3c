// Package rowmerge joins the chunks of ReadRows responses into rows, like a client, and rejects
// violations of the protocol. It accepts everything that a Bigtable may send: rows and values that
// span messages, rows that are reset, and keys that are repeated.
//
//	m := rowmerge.New(false, func(c rowmerge.Cell) rowmerge.Cell { return c })
//	for resp, err := stream.Recv(); err == nil; resp, err = stream.Recv() {
//		for row, err := range m.Merge(resp) {
//			…
//		}
//	}
//	err = m.End()
//
// https://cloud.google.com/bigtable/docs/reference/data/rpc/google.bigtable.v2#cellchunk
package rowmerge

import (
	"bytes"
	"errors"
	"fmt"
	"iter"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// maxReserve limits the memory that a Merger reserves for an announced size: the largest value
// of a Bigtable.
const maxReserve = 100 << 20

// The capacity for cells of a row: of the first row, and the maximum.
const (
	firstWidth = 8
	maxWidth   = 64
)

// Cell is a version of a column. Its slices may belong to the response, which is never
// changed.
type Cell struct {
	Family          string
	Qualifier       []byte
	TimestampMicros int64
	Value           []byte
	Labels          []string
}

// Row is a row with its cells in the order of arrival. The caller of New chooses their type C and
// converts each Cell to it.
type Row[C any] struct {
	Key   []byte
	Cells []C
}

// Merger joins the chunks of one ReadRows call. It holds one row at a time, without the cells that
// Cut has removed.
type Merger[C any] struct {
	reversed bool
	make     func(Cell) C

	row   Row[C]
	state state
	cell  Cell // the last of the row, whose family and qualifier the next one may continue
	size  int  // of the incomplete value
	width int  // cells of the last row, at most maxWidth, or firstWidth
	last  []byte
	begun bool // there is a last key
	cut   int  // cells of the row that were removed by Cut
}

type state uint8

const (
	betweenRows state = iota
	inRow
	inCell
)

// New returns a Merger for rows in descending order if reversed is set, and in ascending order
// otherwise.
func New[C any](reversed bool, cell func(Cell) C) *Merger[C] {
	return &Merger[C]{reversed: reversed, make: cell, width: firstWidth}
}

// Merge yields the rows that a response completes, or an error. After an error, the Merger must not
// be used.
func (m *Merger[C]) Merge(resp *btpb.ReadRowsResponse) iter.Seq2[Row[C], error] {
	return func(yield func(Row[C], error) bool) {
		for _, c := range resp.GetChunks() {
			done, err := m.add(c)
			if err != nil {
				yield(Row[C]{}, err)
				return
			}
			if !done {
				continue
			}
			row := m.row
			m.row, m.state = Row[C]{}, betweenRows
			if !yield(row, nil) {
				return
			}
		}
		if key := resp.GetLastScannedRowKey(); len(key) > 0 {
			if err := m.Passed(key); err != nil {
				yield(Row[C]{}, err)
			}
		}
	}
}

// Cut removes the cells of the incomplete row and returns them, for callers that accept rows in
// parts. The row is later yielded without these cells. Without an incomplete row, Cut returns no
// cells.
func (m *Merger[C]) Cut() Row[C] {
	if m.state == betweenRows || len(m.row.Cells) == 0 {
		return Row[C]{}
	}
	part := m.row
	m.cut += len(part.Cells)
	m.row.Cells = nil
	return part
}

// Taken returns the number of cells that Cut has removed from the incomplete row, or from the last
// row if none is incomplete. A reset, which makes those cells void, sets it to 0.
func (m *Merger[C]) Taken() int { return m.cut }

// Last returns the key after which an interrupted read must continue: that of the last yielded row,
// or of a later row up to which the read is complete. It returns nil at the beginning.
func (m *Merger[C]) Last() []byte { return m.last }

// End must be called after the last response. It reports an incomplete row.
func (m *Merger[C]) End() error {
	if m.state != betweenRows {
		return fmt.Errorf("the stream ended inside row %q", m.row.Key)
	}
	return nil
}

// add adds the next chunk and reports whether it completes the row.
func (m *Merger[C]) add(c *btpb.ReadRowsResponse_CellChunk) (done bool, err error) {
	if c.GetResetRow() {
		return false, m.reset(c)
	}
	switch m.state {
	case betweenRows:
		err = m.begin(c)
	case inRow:
		err = m.goOn(c)
	case inCell:
		return m.piece(c)
	}
	if err != nil {
		return false, err
	}
	if f := c.GetFamilyName(); f != nil {
		m.cell.Family = f.GetValue()
	}
	if q := c.GetQualifier(); q != nil {
		m.cell.Qualifier = q.GetValue()
	}
	m.cell.TimestampMicros, m.cell.Labels, m.cell.Value = c.GetTimestampMicros(), c.GetLabels(), c.GetValue()
	switch size := int(c.GetValueSize()); {
	case size < 0:
		return false, fmt.Errorf("row %q: a value has the announced size %d", m.row.Key, size)
	case size == 0:
		return m.finish(c), nil
	case c.GetCommitRow():
		return false, fmt.Errorf("row %q is committed inside a value", m.row.Key)
	default:
		m.state, m.size = inCell, size
		m.cell.Value = append(make([]byte, 0, min(size, maxReserve)), c.GetValue()...)
		return false, nil
	}
}

// begin adds the first chunk of a row.
func (m *Merger[C]) begin(c *btpb.ReadRowsResponse_CellChunk) error {
	key := c.GetRowKey()
	switch {
	case len(key) == 0:
		return errors.New("a row begins without a key")
	case c.GetFamilyName() == nil || c.GetQualifier() == nil:
		return fmt.Errorf("row %q begins without a column", key)
	}
	if err := m.follows(key); err != nil {
		return err
	}
	m.row, m.state, m.cell, m.cut = Row[C]{Key: key}, inRow, Cell{}, 0
	return nil
}

// goOn adds the first chunk of another cell of the row.
func (m *Merger[C]) goOn(c *btpb.ReadRowsResponse_CellChunk) error {
	if k := c.GetRowKey(); len(k) > 0 && !bytes.Equal(k, m.row.Key) {
		return fmt.Errorf("row %q begins inside row %q", k, m.row.Key)
	}
	if c.GetFamilyName() != nil && c.GetQualifier() == nil {
		return fmt.Errorf("row %q: family %q begins without a qualifier", m.row.Key, c.GetFamilyName().GetValue())
	}
	return nil
}

// piece adds another piece of a value.
func (m *Merger[C]) piece(c *btpb.ReadRowsResponse_CellChunk) (done bool, err error) {
	size := int(c.GetValueSize())
	switch {
	case len(c.GetRowKey()) > 0 || c.GetFamilyName() != nil || c.GetQualifier() != nil || c.GetTimestampMicros() != 0 || len(c.GetLabels()) > 0:
		return false, fmt.Errorf("row %q: a cell begins inside a value", m.row.Key)
	case size != 0 && c.GetCommitRow():
		return false, fmt.Errorf("row %q is committed inside a value", m.row.Key)
	case size != 0 && size != m.size:
		return false, fmt.Errorf("row %q: a value of %d bytes is announced again with %d bytes", m.row.Key, m.size, size)
	}
	m.cell.Value = append(m.cell.Value, c.GetValue()...)
	if n := len(m.cell.Value); n > m.size || size == 0 && n != m.size {
		return false, fmt.Errorf("row %q: a value of %d bytes has %d or more", m.row.Key, m.size, n)
	}
	if size != 0 {
		return false, nil
	}
	return m.finish(c), nil
}

// finish ends a cell, and reports whether it ends the row.
func (m *Merger[C]) finish(c *btpb.ReadRowsResponse_CellChunk) (done bool) {
	if m.row.Cells == nil {
		m.row.Cells = make([]C, 0, m.width) // the rows of a table are similar
	}
	m.row.Cells = append(m.row.Cells, m.make(m.cell))
	m.state = inRow
	if !c.GetCommitRow() {
		return false
	}
	m.width = min(len(m.row.Cells), maxWidth)
	m.last, m.begun = m.row.Key, true
	return true
}

// reset drops the row, which begins again.
func (m *Merger[C]) reset(c *btpb.ReadRowsResponse_CellChunk) error {
	switch {
	case m.state == betweenRows:
		return errors.New("a row is reset before it begins")
	case len(c.GetRowKey()) > 0 || c.GetFamilyName() != nil || c.GetQualifier() != nil || c.GetTimestampMicros() != 0 ||
		len(c.GetLabels()) > 0 || len(c.GetValue()) > 0 || c.GetValueSize() != 0:
		return fmt.Errorf("row %q is reset by a chunk that holds data", m.row.Key)
	}
	m.row, m.state, m.cell, m.cut = Row[C]{}, betweenRows, Cell{}, 0
	return nil
}

// Passed sets the key up to which the read is complete: of a row that the server removed, or of one
// that arrived without chunks.
func (m *Merger[C]) Passed(key []byte) error {
	if m.state != betweenRows {
		return fmt.Errorf("row %q is reported as scanned inside row %q", key, m.row.Key)
	}
	if err := m.follows(key); err != nil {
		return err
	}
	m.last, m.begun = key, true
	return nil
}

// follows rejects a key that is not after the last one.
func (m *Merger[C]) follows(key []byte) error {
	if order := bytes.Compare(key, m.last); m.begun && (order == 0 || order > 0 == m.reversed) {
		return fmt.Errorf("row %q comes after row %q", key, m.last)
	}
	return nil
}
