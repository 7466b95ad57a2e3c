package replica

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/tabletop-emu/tabletop/emu/internal/filter"
	"github.com/tabletop-emu/tabletop/engine"
)

// Scan iterates over rows and over the cells of the current row, like engine.Scan.
type Scan interface {
	filter.Source
	NextRow() bool
	Row() []byte
	Err() error
	Close() error
}

// stored adapts a scan's current row to filter.Source.
type stored struct {
	*engine.Scan
	cell filter.Cell
}

// Stored returns a scan of the stored rows, which have the writes of all clusters.
func Stored(in *engine.Scan) Scan { return &stored{Scan: in} }

// Cell returns the current cell.
func (s *stored) Cell() *filter.Cell {
	s.cell = filterCell(s.Scan.Cell())
	return &s.cell
}

func filterCell(c *engine.Cell) filter.Cell {
	return filter.Cell{Family: c.Family, Ordinal: c.Ordinal, Qualifier: c.Qualifier, TimestampMicros: c.Timestamp, Value: c.Value}
}

// Scan scans a table as the cluster sees it now. It returns the errors of engine.DB.Scan.
func (r *Rows) Scan(ctx context.Context, t *engine.Table, at At, o engine.ScanOptions) (Scan, error) {
	in, err := r.o.DB.Scan(ctx, t.Name, o)
	if err != nil {
		return nil, err
	}
	if r.o.Control.View(at.Instance) == nil {
		return &stored{Scan: in}, nil
	}
	_ = in.Close() // it may contain records that are pending now
	x, err := r.table(t, at.Instance)
	if err != nil {
		return nil, err
	}
	if x != nil {
		defer x.mu.Unlock()
	}
	if in, err = r.o.DB.Scan(ctx, t.Name, o); err != nil {
		return nil, err
	}
	s := &stored{Scan: in}
	if x == nil {
		return s, nil
	}
	rows := x.within(o.Spans, o.Reverse)
	if len(rows) == 0 {
		return s, nil
	}
	return &scan{stored: s, now: r.o.Control.o.Now(), table: t, rows: rows, sees: x.sight(at.Cluster), reverse: o.Reverse}, nil
}

// Cells returns the cells that the caller's cluster sees in the row of tx, for a filter that needs
// no cells before the given column; with an empty family it may need all cells. The caller must close the
// result before it mutates the row.
func Cells(tx *engine.RowTx, family string, qualifier []byte) Scan {
	if r := tx.Recorder(); r != nil {
		if cells, ok := r.Row(tx).(*cursor); ok {
			return &scan{on: cells, stored: &stored{Scan: &engine.Scan{}}}
		}
	}
	return &stored{Scan: tx.ScanFrom(family, qualifier)}
}

// scan scans a table that has pending rows. It reads those from the field rows, and all others from
// the store.
type scan struct {
	*stored
	now     time.Time
	table   *engine.Table
	rows    []*row // not visited yet
	sees    sight
	reverse bool
	ahead   bool // the stored scan is on a row that was not returned yet
	cell    filter.Cell
	on      *cursor // the current row; nil for a stored row
	key     []byte
}

// NextRow advances to the next row that the cluster sees.
func (s *scan) NextRow() bool {
	for {
		if !s.ahead {
			if s.ahead = s.stored.NextRow(); s.stored.Err() != nil {
				return false
			}
		}
		order := -1 // of the next pending row, relative to the next stored row
		switch {
		case len(s.rows) == 0 && !s.ahead:
			s.on, s.key = nil, nil
			return false
		case len(s.rows) == 0:
			order = 1
		case s.ahead:
			if order = bytes.Compare(s.rows[0].key, s.stored.Row()); s.reverse {
				order = -order
			}
		}
		if order > 0 {
			s.on, s.ahead = nil, false
			return true
		}
		if order == 0 {
			s.ahead = false
		}
		r := s.rows[0]
		s.rows = s.rows[1:]
		if cs := live(s.sees.of(r), s.table, s.now, s.EagerGC()); len(cs) > 0 {
			s.on, s.key = newCursor(cs, s.table), r.key
			return true
		}
	}
}

// Row returns the key of the current row.
func (s *scan) Row() []byte {
	if s.on == nil {
		return s.stored.Row()
	}
	return s.key
}

func (s *scan) NextCell() bool {
	if s.on == nil {
		return s.stored.NextCell()
	}
	return s.on.NextCell()
}

func (s *scan) Cell() *filter.Cell {
	if s.on == nil {
		return s.stored.Cell()
	}
	s.cell = filterCell(s.on.Cell())
	return &s.cell
}

func (s *scan) SkipColumn() {
	if s.on == nil {
		s.stored.SkipColumn()
	} else {
		s.on.SkipColumn()
	}
}

func (s *scan) SkipFamily() {
	if s.on == nil {
		s.stored.SkipFamily()
	} else {
		s.on.SkipFamily()
	}
}

func (s *scan) SeekColumn(family string, qualifier []byte) {
	if s.on == nil {
		s.stored.SeekColumn(family, qualifier)
	} else {
		s.on.SeekColumn(family, qualifier)
	}
}

func (s *scan) Rewind() {
	if s.on == nil {
		s.stored.Rewind()
	} else {
		s.on.Rewind()
	}
}

// Err returns the error that ended the scan.
func (s *scan) Err() error {
	if s.on != nil && s.on.err != nil {
		return s.on.err
	}
	return s.stored.Err()
}

// cursor iterates over the cells of a row. It implements engine.RowCells.
type cursor struct {
	cells  cells // the remaining cells begin at next
	table  *engine.Table
	next   int
	moved  bool // NextCell was called
	cell   engine.Cell
	family int // index of the current family in the table
	err    error
}

func newCursor(cs cells, t *engine.Table) *cursor { return &cursor{cells: cs, table: t} }

// NextCell implements engine.RowCells.
func (c *cursor) NextCell() bool {
	if c.next >= len(c.cells) || c.err != nil {
		c.next, c.moved = len(c.cells), false
		return false
	}
	c.cell, c.moved = c.cells[c.next], true
	c.next++
	if f := c.table.Families; f[c.family].Ordinal != c.cell.Ordinal {
		c.family = slices.IndexFunc(f, func(f engine.Family) bool { return f.Ordinal == c.cell.Ordinal })
	}
	c.cell.Family = c.table.Families[c.family].Name
	return true
}

// Cell implements engine.RowCells.
func (c *cursor) Cell() *engine.Cell { return &c.cell }

// Err implements engine.RowCells.
func (c *cursor) Err() error { return c.err }

// skip advances past the cells for which before is true.
func (c *cursor) skip(before func(engine.Cell) bool) {
	for c.next < len(c.cells) && before(c.cells[c.next]) {
		c.next++
	}
}

// SkipColumn implements engine.RowCells.
func (c *cursor) SkipColumn() {
	if c.moved {
		c.skip(func(e engine.Cell) bool { return compareColumns(e, c.cell) == 0 })
	}
}

// SkipFamily implements engine.RowCells.
func (c *cursor) SkipFamily() {
	if c.moved {
		c.skip(func(e engine.Cell) bool { return e.Ordinal == c.cell.Ordinal })
	}
}

// SeekColumn implements engine.RowCells.
func (c *cursor) SeekColumn(family string, qualifier []byte) {
	i := slices.IndexFunc(c.table.Families, func(f engine.Family) bool { return f.Name == family })
	if i < 0 {
		c.next = len(c.cells)
		return
	}
	at := engine.Cell{Ordinal: c.table.Families[i].Ordinal, Qualifier: qualifier}
	c.skip(func(e engine.Cell) bool { return compareColumns(e, at) < 0 })
}

// Rewind implements engine.RowCells.
func (c *cursor) Rewind() { c.next, c.moved = 0, false }
