package wire

import (
	"unicode/utf8"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/encoding/protowire"
)

// decoder decodes requests. Its methods return false for unknown and for
// malformed input.
type decoder struct {
	family string // the last family decoded
	cells  []cell // memory for mutations
}

// cell is a Mutation that sets a cell, with all values that it points to.
type cell struct {
	mutation btpb.Mutation
	oneof    btpb.Mutation_SetCell_
	set      btpb.Mutation_SetCell
}

// maxCells bounds the memory of cells, which takes a hundred times as much as the smallest
// mutation on the wire. It exceeds the maximum number of mutations in a request.
const maxCells = 200_000

// field is a field of a message, with its bytes or its number.
type field struct {
	num   int32
	kind  protowire.Type
	bytes []byte
	n     uint64
}

// isBytes reports whether f is a bytes field.
func (f field) isBytes() bool { return f.kind == protowire.BytesType }

// fields calls f for each field of a message.
func fields(src []byte, f func(field) bool) bool {
	for len(src) > 0 {
		num, kind, n := protowire.ConsumeTag(src)
		if n < 0 {
			return false
		}
		src = src[n:]
		x := field{num: int32(num), kind: kind}
		if x.isBytes() {
			x.bytes, n = protowire.ConsumeBytes(src)
			x.bytes = x.bytes[:len(x.bytes):len(x.bytes)]
		} else if x.n, n = protowire.ConsumeVarint(src); kind != protowire.VarintType {
			return false
		}
		if n < 0 || !f(x) {
			return false
		}
		src = src[n:]
	}
	return true
}

// count returns the number of fields with the number num in a message.
func count(src []byte, num int32) int {
	n := 0
	fields(src, func(f field) bool {
		if f.num == num {
			n++
		}
		return true
	})
	return n
}

func text(to *string, f field) bool {
	*to = string(f.bytes)
	return f.isBytes() && utf8.ValidString(*to)
}

func (d *decoder) mutateRows(src []byte, m *btpb.MutateRowsRequest) bool {
	const entry = 2
	n, mutations := 0, 0
	if !fields(src, func(f field) bool {
		if f.num == entry && f.isBytes() {
			n++
			mutations += count(f.bytes, entryMutation)
		}
		return true
	}) || mutations > maxCells {
		return false
	}
	entries := make([]btpb.MutateRowsRequest_Entry, n)
	d.cells = make([]cell, mutations)
	all := make([]*btpb.Mutation, 0, mutations)
	m.Entries = make([]*btpb.MutateRowsRequest_Entry, 0, n)
	return fields(src, func(f field) bool {
		switch f.num {
		case 1:
			return text(&m.TableName, f)
		case entry:
			if !f.isBytes() {
				return false
			}
			e := &entries[len(m.GetEntries())]
			m.Entries = append(m.Entries, e)
			first := len(all)
			if !fields(f.bytes, func(f field) bool {
				switch {
				case f.num == 1 && f.isBytes():
					e.RowKey = f.bytes
					return true
				case f.num == entryMutation:
					return d.mutation(&all, f)
				}
				return false
			}) {
				return false
			}
			if len(all) > first {
				e.Mutations = all[first:len(all):len(all)]
			}
			return true
		case 3:
			return text(&m.AppProfileId, f)
		case 5:
			return text(&m.AuthorizedViewName, f)
		}
		return false
	})
}

// entryMutation is the field number of MutateRowsRequest.Entry.mutations.
const entryMutation = 2

func (d *decoder) mutateRow(src []byte, m *btpb.MutateRowRequest) bool {
	const mutation = 3
	n := count(src, mutation)
	if n > maxCells {
		return false
	}
	d.cells = make([]cell, n)
	m.Mutations = make([]*btpb.Mutation, 0, n)
	return fields(src, func(f field) bool {
		switch f.num {
		case 1:
			return text(&m.TableName, f)
		case 2:
			m.RowKey = f.bytes
			return f.isBytes()
		case mutation:
			return d.mutation(&m.Mutations, f)
		case 4:
			return text(&m.AppProfileId, f)
		case 6:
			return text(&m.AuthorizedViewName, f)
		}
		return false
	})
}

// mutation appends the mutation in f, which must set a cell.
func (d *decoder) mutation(to *[]*btpb.Mutation, f field) bool {
	if !f.isBytes() || len(d.cells) == 0 {
		return false
	}
	c := &d.cells[0]
	d.cells = d.cells[1:]
	*to = append(*to, &c.mutation)
	return fields(f.bytes, func(f field) bool {
		switch {
		case f.num == 1 && f.isBytes() && c.mutation.GetMutation() == nil:
			c.oneof.SetCell = &c.set
			c.mutation.Mutation = &c.oneof
			return d.setCell(&c.set, f.bytes)
		case f.num == 7 && f.kind == protowire.VarintType:
			c.mutation.TimestampOrigin = btpb.Mutation_TimestampOrigin(int32(f.n))
			return true
		}
		return false
	})
}

func (d *decoder) setCell(m *btpb.Mutation_SetCell, src []byte) bool {
	return fields(src, func(f field) bool {
		switch {
		case f.num == 1 && f.isBytes():
			if string(f.bytes) != d.family && !text(&d.family, f) {
				return false
			}
			m.FamilyName = d.family
		case f.num == 2 && f.isBytes():
			m.ColumnQualifier = f.bytes
		case f.num == 3 && f.kind == protowire.VarintType:
			m.TimestampMicros = int64(f.n)
		case f.num == 4 && f.isBytes():
			m.Value = f.bytes
		default:
			return false
		}
		return true
	})
}
