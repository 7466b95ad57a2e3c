package execution

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"slices"

	"github.com/tabletop-emu/tabletop/emu/internal/filter"
	"github.com/tabletop-emu/tabletop/emu/internal/rowkey"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/plan"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
	"github.com/tabletop-emu/tabletop/internal/hllpp"
)

// scanned reads the rows of a table.
type scanned struct {
	src      Source
	row      []value.Value
	key      []int // slots of the row key
	families []*family
	times    times
	history  bool
	schema   *rowkey.Schema // nil if no field of the row key is used
	field    int            // slot of its first field
	cells    []byte         // the qualifiers and values of the current row
	selected *int           // Options.Selected
}

// family is a family that a scan reads.
type family struct {
	name          string
	slot, written int // of its values and of their timestamps; -1 for those that are not used
	some          bool
	names         [][]byte                               // the only qualifiers that are read, sorted, if some is set
	decode        func(cell []byte) (value.Value, error) // nil for BYTES

	made, stamped value.MapBuffer
	pairs, stamps []value.Value
	versions      []value.Value // of the current column
}

// times are the evaluated temporal arguments. Of each column, a scan reads the newest cells with
// timestamps in [from, before), in microseconds, at most latest.
type times struct {
	from, before int64
	latest       int64
}

// openScan opens a scan of the rows that can satisfy the bounds.
func (r *run) openScan(op *plan.Scan) (Rows, error) {
	s := &scanned{row: make([]value.Value, len(op.Columns)), history: op.Time.WithHistory, selected: r.Selected}
	var err error
	if s.times, err = r.times(op.Time); err != nil {
		return nil, err
	}
	var rows filter.RowSet
	if rows, err = r.keysOfFields(op); err != nil {
		return nil, err
	}
	for n, c := range op.Columns {
		switch c.Kind {
		case plan.KeyField:
			if n == 0 || op.Columns[n-1].Kind != plan.KeyField {
				s.field = n
			}
			if c.Used {
				s.schema = op.Key
			}
		case plan.RowKey:
			s.key = append(s.key, n)
			for _, bound := range op.Bounds {
				of, err := r.keysOf(bound, n)
				if err != nil {
					return nil, err
				}
				rows = rows.Intersect(of)
			}
		case plan.Family, plan.Written:
			if !c.Used && len(c.Qualifiers) == 0 {
				continue
			}
			f := s.family(c.Name)
			if f == nil {
				f = &family{name: c.Name, slot: -1, written: -1, some: true}
				s.families = append(s.families, f)
			}
			if c.Kind == plan.Written {
				f.written = n
			} else {
				f.slot, f.decode = n, decoder(c, op.Time.WithHistory)
			}
			f.some = f.some && !c.Used
			for _, e := range c.Qualifiers {
				v, ok, err := r.constant(e)
				switch {
				case err != nil:
					return nil, err
				case !ok:
					f.some = false // the expression above reports the error, if a row needs it
				case !v.IsNull():
					f.names = append(f.names, bytes.Clone(v.Bytes()))
				}
			}
			slices.SortFunc(f.names, bytes.Compare)
			f.names = slices.CompactFunc(f.names, bytes.Equal)
		}
	}
	s.src, err = r.Tables.Scan(r.env.Context, op.Table, rows, op.Reverse)
	return s, err
}

// times evaluates temporal arguments. Bounds are in microseconds.
func (r *run) times(args plan.TimeArgs) (times, error) {
	t := times{from: math.MinInt64, before: math.MaxInt64, latest: 1}
	if args.WithHistory {
		t.latest = math.MaxInt64
	}
	if args == (plan.TimeArgs{WithHistory: args.WithHistory}) {
		return t, nil
	}
	for _, a := range []struct {
		expr plan.Expr
		set  func(int64)
	}{
		{args.AsOf, func(at int64) { t.before = min(t.before, at+1) }},
		{args.BeforeOrEqual, func(at int64) { t.before = min(t.before, at+1) }},
		{args.Before, func(at int64) { t.before = min(t.before, at) }},
		{args.AfterOrEqual, func(at int64) { t.from = max(t.from, at) }},
		{args.After, func(at int64) { t.from = max(t.from, at+1) }},
		{args.LatestN, func(n int64) { t.latest = n }},
	} {
		if a.expr == nil {
			continue
		}
		v, err := r.eval(a.expr, nil)
		if err != nil {
			return t, err
		}
		if v.IsNull() {
			return t, value.InvalidArgument("a temporal argument of a table must not be NULL")
		}
		a.set(v.Int64())
	}
	if t.latest < 1 {
		return t, value.InvalidArgument("latest_n must be at least 1, but is %d", t.latest)
	}
	return t, nil
}

func (s *scanned) Close() error { return s.src.Close() }

func (s *scanned) Next() ([]value.Value, error) {
	if !s.src.NextRow() {
		if err := s.src.Err(); err != nil {
			return nil, err
		}
		return nil, io.EOF
	}
	if s.selected != nil {
		*s.selected = len(s.src.Row())
	}
	for _, n := range s.key {
		s.row[n] = value.Bytes(s.src.Row())
	}
	if s.schema != nil {
		if err := s.schema.Decode(s.src.Row(), s.row[s.field:s.field+len(s.schema.Fields)]); err != nil {
			return nil, err
		}
	}
	if len(s.families) == 0 {
		return s.row, nil
	}
	if err := s.readCells(); err != nil {
		return nil, err
	}
	return s.row, nil
}

// readCells reads the cells of the current row into s.cells, and sets the columns of its families in
// s.row.
func (s *scanned) readCells() error {
	for _, f := range s.families {
		f.pairs, f.stamps = f.pairs[:0], f.stamps[:0]
	}
	s.cells = s.cells[:0]
	left := len(s.families)
	var current *family
	name := ""
	for left > 0 && s.src.NextCell() {
		c := s.src.Cell()
		if c.Family != name {
			if current != nil {
				left--
			}
			name, current = c.Family, s.family(c.Family)
		}
		if current == nil {
			s.src.SkipFamily()
			continue
		}
		if err := s.readCell(current, c); err != nil {
			return err
		}
	}
	for _, f := range s.families {
		if f.slot >= 0 {
			s.row[f.slot] = f.made.Map(f.pairs)
		}
		if f.written >= 0 {
			s.row[f.written] = f.stamped.Map(f.stamps)
		}
	}
	return s.src.Err()
}

// family returns a family that the scan reads, nil for others.
func (s *scanned) family(name string) *family {
	for _, f := range s.families {
		if f.name == name {
			return f
		}
	}
	return nil
}

// bytes returns a copy of b as BYTES. It is valid until the next row is read.
func (s *scanned) bytes(b []byte) value.Value {
	from := len(s.cells)
	s.cells = append(s.cells, b...)
	return value.Bytes(s.cells[from:len(s.cells):len(s.cells)])
}

// value returns the value of a cell.
func (s *scanned) value(f *family, cell []byte) (value.Value, error) {
	if f.decode != nil {
		return f.decode(cell)
	}
	return s.bytes(cell), nil
}

// readCell adds a cell to its family, and moves the source to the next cell that can matter.
func (s *scanned) readCell(f *family, c *filter.Cell) error {
	if f.some {
		n, ok := slices.BinarySearchFunc(f.names, c.Qualifier, bytes.Compare)
		if !ok {
			if n == len(f.names) {
				s.src.SkipFamily()
			} else {
				s.src.SeekColumn(c.Family, f.names[n])
			}
			return nil
		}
	}
	switch {
	case c.TimestampMicros >= s.times.before:
		return nil
	case c.TimestampMicros < s.times.from:
		s.src.SkipColumn()
		return nil
	}
	if s.selected != nil {
		*s.selected += len(c.Qualifier) + len(c.Value)
	}
	v, err := s.value(f, c.Value)
	if err != nil {
		return err
	}
	last := len(f.pairs) - 2
	same := last >= 0 && string(c.Qualifier) == f.pairs[last].Str()
	if !s.history {
		key := s.bytes(c.Qualifier)
		f.pairs = append(f.pairs, key, v)
		if f.written >= 0 {
			f.stamps = append(f.stamps, key, value.Timestamp(c.TimestampMicros))
		}
		s.src.SkipColumn()
		return nil
	}
	version := value.Struct(value.Timestamp(c.TimestampMicros), v)
	if !same {
		f.versions = nil
		f.pairs = append(f.pairs, s.bytes(c.Qualifier), value.Null)
		last += 2
	}
	f.versions = append(f.versions, version)
	f.pairs[last+1] = value.Array(slices.Clip(f.versions))
	if int64(len(f.versions)) == s.times.latest {
		s.src.SkipColumn()
	}
	return nil
}

// decoder returns the function that reads the cells of a family, nil if they are BYTES. history
// reports whether the family has histories of values.
func decoder(c *plan.ScanColumn, history bool) func(cell []byte) (value.Value, error) {
	elem := c.Type.Elem()
	if history {
		elem = elem.Elem().Fields()[1].Type
	}
	switch {
	case elem.Kind() != value.KindInt64:
		return nil
	case c.Sketch:
		return estimate
	}
	return bigEndian
}

// estimate returns the number of distinct values that a sketch stands for.
func estimate(cell []byte) (value.Value, error) {
	s, err := hllpp.Unmarshal(cell)
	if err != nil {
		return value.Null, value.OutOfRange("%v", err)
	}
	return value.Int64(s.Estimate()), nil
}

// bigEndian decodes the cell of an aggregate family.
func bigEndian(cell []byte) (value.Value, error) {
	if len(cell) != 8 {
		return value.Null, value.InvalidArgument("incorrect value size. expected: 8 bytes, actual: %d bytes", len(cell))
	}
	return value.Int64(int64(binary.BigEndian.Uint64(cell))), nil //nolint:gosec // two's complement
}
