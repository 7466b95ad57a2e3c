package btclient

import (
	"context"
	"io"
	"slices"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/cells"
)

// nearConn is a connection to a Bigtable in this process that can pass rows without messages, and make
// several calls together. A message confirms the rows that the sink got before it; others are void.
// Closing end ends the call.
type nearConn interface {
	CheckAndMutateRows(ctx context.Context, reqs []*btpb.CheckAndMutateRowRequest, matched []bool, errs []error) (together bool)
	ReadRows(ctx context.Context, req *btpb.ReadRowsRequest, rows cells.RowSink) (stream btpb.Bigtable_ReadRowsClient, end io.Closer, err error)
}

// The number of cells for which arrived reserves memory at first and at most, and the same of bytes.
const (
	fewCells, manyCells = 8, 64
	fewBytes, manyBytes = 512, 16 << 10
)

// arrived takes the rows of a read in this process. Rows share memory, as the rows of a message do.
type arrived struct {
	clone bool  // rows have memory of their own
	rows  []Row // whole rows that were not handed out
	one   [1]Row

	key   []byte // of the current row
	cells []Cell // of the current row, from the index first
	first int
	bytes []byte
}

// BeginRow implements cells.RowSink.
func (a *arrived) BeginRow(key []byte) { a.key, a.first = a.keep(key), len(a.cells) }

// AddCell implements cells.RowSink.
func (a *arrived) AddCell(c Cell) {
	c.Qualifier, c.Value = a.keep(c.Qualifier), a.keep(c.Value)
	if len(a.cells) == cap(a.cells) {
		row := a.cells[a.first:] // earlier rows keep their memory
		a.cells = append(make([]Cell, 0, max(2*len(row), min(max(fewCells, 2*cap(a.cells)), manyCells))), row...)
		a.first = 0
	}
	a.cells = append(a.cells, c)
}

// EndRow implements cells.RowSink.
func (a *arrived) EndRow() {
	row := Row{Key: a.key, Cells: slices.Clip(a.cells[a.first:])}
	if a.clone {
		row.Cells, a.cells = slices.Clone(row.Cells), a.cells[:0]
	}
	if a.rows == nil {
		a.rows = a.one[:0]
	}
	a.rows = append(a.rows, row)
}

// take returns the whole rows, once. The caller must have read them when the next one arrives.
func (a *arrived) take() []Row {
	if a == nil {
		return nil
	}
	rows := a.rows
	a.rows = a.rows[:0]
	return rows
}

// keep returns a copy of b.
func (a *arrived) keep(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	if a.clone {
		return slices.Clone(b)
	}
	if len(b) > cap(a.bytes)-len(a.bytes) {
		a.bytes = make([]byte, 0, max(len(b), min(max(fewBytes, 2*cap(a.bytes)), manyBytes)))
	}
	n := len(a.bytes)
	a.bytes = append(a.bytes, b...)
	return slices.Clip(a.bytes[n:])
}
