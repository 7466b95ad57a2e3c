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

// cells are those of a row, in storage order. Who changes them has them alone; what
// they hold, their qualifiers and values, is never changed. Their families are by
// ordinal: names belong to a time.
type cells []engine.Cell

// cellBytes is what a cell, or a mutation, takes beside its keys and values.
const cellBytes = 96

func (cs cells) size() (bytes int64) {
	for i := range cs {
		bytes += cellBytes + int64(len(cs[i].Qualifier)+len(cs[i].Value))
	}
	return bytes
}

// compareCells orders cells as they are stored: newest first in a column.
func compareCells(a, b engine.Cell) int {
	return cmp.Or(compareColumns(a, b), cmp.Compare(b.Timestamp, a.Timestamp))
}

func compareColumns(a, b engine.Cell) int {
	return cmp.Or(cmp.Compare(a.Ordinal, b.Ordinal), bytes.Compare(a.Qualifier, b.Qualifier))
}

// mutation is one of a record, of a family as it was then.
type mutation struct {
	engine.Mutation
	ordinal   uint16
	aggregate engine.Aggregate
}

// bind returns mutations with the families that they name, in memory of its own.
// Those of families that the table does not have are left out.
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

// apply does what a mutation does to the cells below it.
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
			return cs // a sketch of another type, which its cluster had not seen
		}
		at.Value = sum
		return cs.set(at)
	case engine.DeleteFromColumn:
		return slices.DeleteFunc(cs, func(c engine.Cell) bool {
			return compareColumns(c, at) == 0 && (m.Start == 0 || c.Timestamp >= m.Start) && (m.End == 0 || c.Timestamp < m.End)
		})
	case engine.DeleteFromFamily:
		return slices.DeleteFunc(cs, func(c engine.Cell) bool { return c.Ordinal == m.ordinal })
	case engine.DeleteFromRow: // is recorded by family
	}
	return cs
}

// set puts a cell in its place.
func (cs cells) set(c engine.Cell) cells {
	i, found := slices.BinarySearchFunc(cs, c, compareCells)
	if found {
		cs[i] = c
		return cs
	}
	return slices.Insert(cs, i, c)
}

// collect removes what the rules of families do not keep, and the cells of families
// that are not there.
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
	row    *row // of which only what never changes is read
	muts   []mutation
	// collected is when garbage was collected, by the rules of families, instead.
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

// onto does what the record does to the cells below it.
func (r *record) onto(cs cells) cells {
	for i := range r.muts {
		cs = cs.apply(&r.muts[i])
	}
	if !r.collected.IsZero() {
		cs = cs.collect(r.families, r.collected)
	}
	return cs
}

// errImage is the error of an image that this package did not write.
var errImage = errors.New("the cells of a row that is replicated are damaged")

// encodeImage returns what a row was before its record with a number:
//
//	number | cells: ordinal, qualifier, timestamp, value
//
// in varints and texts with their length before them.
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

// decodeImage is the inverse of encodeImage, trusting nothing. It shares b.
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
