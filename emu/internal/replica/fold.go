package replica

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/tabletop-emu/tabletop/engine"
)

// cells holds the cells of a row, in storage order. A slice is changed only by
// its single owner; qualifiers and values are immutable. Families are ordinals,
// since names can change.
type cells []engine.Cell

// cellBytes is the overhead of a cell or a mutation besides its keys and values.
const cellBytes = 96

func (cs cells) size() (bytes int64) {
	for i := range cs {
		bytes += cellBytes + int64(len(cs[i].Qualifier)+len(cs[i].Value))
	}
	return bytes
}

// compareCells orders cells as in storage: newest first within a column.
func compareCells(a, b engine.Cell) int {
	return cmp.Or(compareColumns(a, b), cmp.Compare(b.Timestamp, a.Timestamp))
}

func compareColumns(a, b engine.Cell) int {
	return cmp.Or(cmp.Compare(a.Ordinal, b.Ordinal), bytes.Compare(a.Qualifier, b.Qualifier))
}

// mutation is a mutation of a record, with the family at the time of the
// record.
type mutation struct {
	engine.Mutation
	ordinal   uint16
	aggregate engine.Aggregate
}

// bind returns copies of mutations with their families. It omits mutations of
// unknown families.
func bind(t *engine.Table, muts []engine.Mutation) []mutation {
	out := make([]mutation, 0, len(muts))
	for _, m := range muts {
		i := slices.IndexFunc(t.Families, func(f engine.Family) bool { return f.Name == m.Family })
		if i < 0 {
			continue
		}
		m.Qualifier, m.Value = bytes.Clone(m.Qualifier), bytes.Clone(m.Value)
		out = append(out, mutation{m, t.Families[i].Ordinal, t.Families[i].Aggregate})
	}
	return out
}

// apply applies a mutation to cs, which it may change, and returns the result.
func (cs cells) apply(m *mutation) cells {
	at := engine.Cell{Ordinal: m.ordinal, Qualifier: m.Qualifier, Timestamp: m.Timestamp}
	switch m.Kind {
	case engine.SetCell:
		at.Value = m.Value
		return cs.set(at)
	case engine.AddToCell, engine.MergeToCell:
		var state []byte
		if i, found := slices.BinarySearchFunc(cs, at, compareCells); found {
			state = cs[i].Value
		}
		sum, err := engine.Accumulate(m.aggregate, state, &m.Mutation)
		if err != nil {
			return cs // the sketch is not compatible with the state that this cluster sees
		}
		at.Value = sum
		return cs.set(at)
	case engine.DeleteFromColumn:
		return slices.DeleteFunc(cs, func(c engine.Cell) bool {
			return compareColumns(c, at) == 0 && (m.Start == 0 || c.Timestamp >= m.Start) && (m.End == 0 || c.Timestamp < m.End)
		})
	case engine.DeleteFromFamily:
		return slices.DeleteFunc(cs, func(c engine.Cell) bool { return c.Ordinal == m.ordinal })
	case engine.DeleteFromRow: // recorded per family
	}
	return cs
}

// set inserts or replaces a cell.
func (cs cells) set(c engine.Cell) cells {
	i, found := slices.BinarySearchFunc(cs, c, compareCells)
	if found {
		cs[i] = c
		return cs
	}
	return slices.Insert(cs, i, c)
}

// collect removes cells that the rules of families do not keep, and cells of
// missing families.
func (cs cells) collect(families []engine.Family, now time.Time) cells {
	version := 0
	var last engine.Cell
	return slices.DeleteFunc(cs, func(c engine.Cell) bool {
		if version++; last.Qualifier == nil || compareColumns(c, last) != 0 {
			version, last = 0, engine.Cell{Ordinal: c.Ordinal, Qualifier: append([]byte{}, c.Qualifier...)}
		}
		i := slices.IndexFunc(families, func(f engine.Family) bool { return f.Ordinal == c.Ordinal })
		return i < 0 || families[i].GC.Collects(version, c.Timestamp, now)
	})
}

// record is a change of a row that may not be visible everywhere.
type record struct {
	number uint64
	micros int64
	origin string
	row    *row // only immutable fields are read
	muts   []mutation
	// collected is set for a garbage collection by the rules of families, at
	// that time.
	collected time.Time
	families  []engine.Family
}

func (r *record) size() int64 {
	size := int64(cellBytes)
	for i := range r.muts {
		size += cellBytes + int64(len(r.muts[i].Qualifier)+len(r.muts[i].Value))
	}
	return size
}

// onto applies the record to cells.
func (r *record) onto(cs cells) cells {
	for i := range r.muts {
		cs = cs.apply(&r.muts[i])
	}
	if !r.collected.IsZero() {
		cs = cs.collect(r.families, r.collected)
	}
	return cs
}

// errImage is returned for an invalid image.
var errImage = errors.New("the stored image of a replicated row is damaged")

// encodeImage returns the stored form of a row's image: its cells before the record with number
// since:
//
//	number | cells: ordinal, qualifier, timestamp, value
//
// as varints and length-prefixed bytes.
func encodeImage(since uint64, cs cells) []byte {
	b := binary.AppendUvarint(nil, since)
	for i := range cs {
		b = binary.AppendUvarint(b, uint64(cs[i].Ordinal))
		b = append(binary.AppendUvarint(b, uint64(len(cs[i].Qualifier))), cs[i].Qualifier...)
		b = binary.AppendUvarint(b, uint64(cs[i].Timestamp))
		b = append(binary.AppendUvarint(b, uint64(len(cs[i].Value))), cs[i].Value...)
	}
	return b
}

// decodeImage is the inverse of encodeImage. It returns an error for damaged input. The cells
// share memory with b.
func decodeImage(b []byte) (since uint64, cs cells, err error) {
	number := func() uint64 {
		n, size := binary.Uvarint(b)
		if size <= 0 {
			b, err = nil, errImage
			return 0
		}
		b = b[size:]
		return n
	}
	text := func() []byte {
		n := number()
		if n > uint64(len(b)) {
			b, err = nil, errImage
			return nil
		}
		s := b[:n:n]
		b = b[n:]
		return s
	}
	since = number()
	for len(b) > 0 && err == nil {
		c := engine.Cell{Ordinal: uint16(number())}
		c.Qualifier, c.Timestamp, c.Value = text(), int64(number()), text()
		if len(cs) > 0 && compareCells(cs[len(cs)-1], c) >= 0 {
			err = errImage
		}
		cs = append(cs, c)
	}
	return since, cs, err
}
