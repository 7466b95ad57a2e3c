package materialized

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/emu/internal/filter"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/execution"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/function"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/plan"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
	"github.com/tabletop-emu/tabletop/engine"
)

const (
	// A source row is left out if more than maxRowBytes are selected from it, or its outputs have more
	// than maxRowBytes, or more than maxGrowth times the selected bytes. How the service counts the
	// bytes of small rows is not known, so that the last rule ignores outputs of up to smallOutput bytes.
	maxRowBytes = 1 << 20
	maxGrowth   = 10
	smallOutput = 1 << 10
	// rowMemory bounds the memory of one evaluation.
	rowMemory = 64 << 20
)

// entry is the part of a row of the view that comes from one source row.
type entry struct {
	key   []byte            // of the row of the view
	cells []engine.Mutation // without GROUP BY
	parts []byte            // with GROUP BY: the encoded outputs
}

// size estimates the memory of an entry, in bytes.
func (e *entry) size() int {
	n := len(e.key) + len(e.parts)
	for _, m := range e.cells {
		n += len(m.Family) + len(m.Qualifier) + len(m.Value) + 64
	}
	return n
}

// run runs a plan, and calls yield with each row, which is valid during the call. ok is false if
// the evaluation fails; the view then omits the rows that the plan reads.
func run(ctx context.Context, q *plan.Query, o execution.Options, yield func(row []value.Value) error) (ok bool, err error) {
	o.Functions, o.Memory = &function.Context{}, rowMemory
	rows, err := execution.Run(ctx, q, o)
	for err == nil {
		var row []value.Value
		if row, err = rows.Next(); err == nil {
			err = yield(row)
		}
	}
	if rows != nil {
		err = errors.Join(err, rows.Close())
	}
	var left *value.Error
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case errors.As(err, &left):
		return false, nil
	case errors.Is(err, io.EOF):
		return true, nil
	}
	return false, err
}

// oneRow is the current row of a scan, as a table.
type oneRow struct {
	execution.Source
	read bool
}

func (r *oneRow) NextRow() bool {
	first := !r.read
	r.read = true
	return first
}

func (r *oneRow) Close() error { return nil } // the scan continues with the next row

// rowTable has a single row.
type rowTable struct{ row execution.Source }

func (t rowTable) Scan(context.Context, string, filter.RowSet, bool) (execution.Source, error) {
	return &oneRow{Source: t.row}, nil
}

// entries returns the entries of the current row of a scan of the source table; nil if the view
// omits the row.
func (d *Definition) entries(ctx context.Context, src execution.Source) ([]entry, error) {
	var out []entry
	var at map[string]int // index in out by key, once there are two
	selected, size := 0, 0
	keys := make([]value.Value, len(d.keys))
	ok, err := run(ctx, d.row, execution.Options{Tables: rowTable{src}, Selected: &selected}, func(row []value.Value) error {
		for _, v := range row {
			size += dataSize(v)
		}
		switch {
		case selected > maxRowBytes:
			return value.Exhausted("a view selects %d bytes of a row, more than %d", selected, maxRowBytes)
		case size > maxRowBytes:
			return value.Exhausted("a view outputs more than %d bytes for a row", maxRowBytes)
		case size > smallOutput && size > maxGrowth*selected:
			return value.Exhausted("a view outputs more than %d times the %d bytes that it selects of a row", maxGrowth, selected)
		}
		for i, n := range d.keys {
			keys[i] = row[n]
		}
		key, ok := d.Key.Key(keys)
		if !ok {
			return nil // a row of the view needs a key
		}
		n, found := 0, len(out) > 0 && bytes.Equal(out[0].key, key)
		if !found {
			n, found = at[string(key)]
		}
		if !found {
			if n = len(out); n == 1 {
				at = map[string]int{}
			}
			if n > 0 {
				at[string(key)] = n
			}
			out = append(out, entry{key: key})
		}
		e := &out[n]
		if d.group != nil {
			var err error
			if e.parts, err = appendParts(e.parts, row, d.parts); err != nil {
				return err
			}
		} else {
			e.cells = d.appendCells(e.cells, row)
		}
		return nil
	})
	if err != nil || !ok {
		return nil, err
	}
	kept := out[:0]
	for _, e := range out {
		if d.group != nil || len(e.cells) > 0 {
			kept = append(kept, e)
		}
	}
	return kept, nil
}

// dataSize returns the number of bytes in a value: those of texts, and eight for a number.
func dataSize(v value.Value) int {
	switch v.Kind() { //nolint:exhaustive // the others are numbers
	case value.KindNone:
		return 0
	case value.KindBytes, value.KindString:
		return len(v.Str())
	case value.KindMap, value.KindArray, value.KindStruct:
		n := 0
		for _, e := range v.Elems() {
			n += dataSize(e)
		}
		return n
	}
	return 8
}

// appendCells adds the cells of a row that the query returned. It adds none if the row has no valid
// timestamp.
func (d *Definition) appendCells(muts []engine.Mutation, row []value.Value) []engine.Mutation {
	var at int64
	for i, c := range d.columns {
		if c.stamp {
			if at = row[i].Int64(); row[i].IsNull() || at < 0 || at%1000 != 0 {
				return muts
			}
		}
	}
	set := func(family, qualifier string, v []byte) {
		muts = append(muts, engine.Mutation{Kind: engine.SetCell, Family: family, Qualifier: []byte(qualifier), Timestamp: at, Value: v})
	}
	set(defaultFamily, "", []byte{})
	for i, c := range d.columns {
		switch v := row[i]; {
		case !c.cell || v.IsNull():
		case c.Type.Kind() == value.KindMap:
			for pairs := v.Elems(); len(pairs) > 1; pairs = pairs[2:] {
				if !pairs[1].IsNull() {
					set(c.Family, pairs[0].Str(), cellBytes(pairs[1]))
				}
			}
		default:
			set(c.Family, c.Qualifier, cellBytes(v))
		}
	}
	return muts
}

// cellBytes encodes a value that is not NULL as the content of a cell, in new memory.
func cellBytes(v value.Value) []byte {
	switch v.Kind() { //nolint:exhaustive // the others are texts
	case value.KindBool:
		if v.Bool() {
			return []byte{1}
		}
		return []byte{0}
	case value.KindInt64, value.KindTimestamp:
		return binary.BigEndian.AppendUint64(nil, uint64(v.Int64())) //nolint:gosec // two's complement
	case value.KindFloat64:
		return binary.BigEndian.AppendUint64(nil, math.Float64bits(v.Float64()))
	case value.KindFloat32:
		return binary.BigEndian.AppendUint32(nil, math.Float32bits(float32(v.Float64())))
	default:
		return append([]byte{}, v.Bytes()...)
	}
}

// decoderOf returns the inverse of cellBytes for a type.
func decoderOf(t value.Type) func(cell []byte) (value.Value, error) {
	size, of := 0, func(b []byte) value.Value { return value.BytesOf(string(b)) }
	switch t.Kind() { //nolint:exhaustive // the others are BYTES
	case value.KindBool:
		size, of = 1, func(b []byte) value.Value { return value.Bool(b[0] != 0) }
	case value.KindInt64:
		size, of = 8, func(b []byte) value.Value { return value.Int64(int64(binary.BigEndian.Uint64(b))) } //nolint:gosec // two's complement
	case value.KindTimestamp:
		size, of = 8, func(b []byte) value.Value { return value.Timestamp(int64(binary.BigEndian.Uint64(b))) } //nolint:gosec // two's complement
	case value.KindFloat64:
		size, of = 8, func(b []byte) value.Value { return value.Float64(math.Float64frombits(binary.BigEndian.Uint64(b))) }
	case value.KindFloat32:
		size, of = 4, func(b []byte) value.Value { return value.Float32(math.Float32frombits(binary.BigEndian.Uint32(b))) }
	case value.KindString:
		of = func(b []byte) value.Value { return value.String(string(b)) }
	}
	return func(cell []byte) (value.Value, error) {
		if size > 0 && len(cell) != size {
			return value.Null, value.InvalidArgument("incorrect value size. expected: %d bytes, actual: %d bytes", size, len(cell))
		}
		return of(cell), nil
	}
}

// appendParts adds an output to the encoded ones: each is a message after its length.
func appendParts(dst []byte, row []value.Value, types []value.Type) ([]byte, error) {
	list := &btpb.ArrayValue{}
	for i, v := range row {
		m, err := value.ToProto(v, types[i])
		if err != nil {
			return nil, err
		}
		list.Values = append(list.Values, m)
	}
	raw, err := proto.Marshal(list)
	return append(binary.AppendUvarint(dst, uint64(len(raw))), raw...), err
}

// nextPart decodes the first of encoded outputs, and returns the others.
func nextPart(from []byte, types []value.Type) (row []value.Value, rest []byte, err error) {
	n, size := binary.Uvarint(from)
	if size <= 0 || n > uint64(len(from)-size) {
		return nil, nil, errDamaged
	}
	list := &btpb.ArrayValue{}
	if err := proto.Unmarshal(from[size:size+int(n)], list); err != nil || len(list.GetValues()) != len(types) { //nolint:gosec // at most the length
		return nil, nil, errDamaged
	}
	for i, m := range list.GetValues() {
		v, err := value.FromProto(m, types[i])
		if err != nil {
			return nil, nil, errDamaged
		}
		row = append(row, v)
	}
	return row, from[size+int(n):], nil //nolint:gosec // at most the length
}

// errDamaged is returned for an index that this package did not write.
var errDamaged = errors.New("the index of a materialized view is damaged")
