package tabledef

import (
	"bytes"
	"crypto/sha256"
	"slices"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/secondary"
)

// IndexKey is the key of an index: the attributes of its partition key and of its sort
// key. Most indexes have one partition key attribute and at most one sort key attribute.
// A global index may have up to MaxKeyAttributesOfKind (package tablespec) of each.
type IndexKey struct {
	Hash, Range []attr.KeyAttr
}

// IndexKeyOf converts the key of a table to an IndexKey.
func IndexKeyOf(k attr.KeySchema) IndexKey {
	attrs := k.Attrs()
	return IndexKey{Hash: attrs[:1:1], Range: attrs[1:]}
}

// Attributes returns all attributes of the key, with those of the partition key first.
func (k IndexKey) Attributes() []attr.KeyAttr { return slices.Concat(k.Hash, k.Range) }

// Has reports whether name is an attribute of the key.
func (k IndexKey) Has(name string) bool {
	named := func(a attr.KeyAttr) bool { return a.Name == name }
	return slices.ContainsFunc(k.Hash, named) || slices.ContainsFunc(k.Range, named)
}

// Of returns the key attributes of an item.
func (k IndexKey) Of(item layout.Stored) attr.Item {
	key := attr.Item{}
	for _, a := range k.Attributes() {
		key[a.Name] = item.Get(a.Name)
	}
	return key
}

// IsMulti reports whether the partition key or the sort key has several attributes.
func (k IndexKey) IsMulti() bool { return len(k.Hash) > 1 || len(k.Range) > 1 }

// Schema returns the key as a KeySchema. The partition key and the sort key
// must each have at most one attribute: see IsMulti.
func (k IndexKey) Schema() attr.KeySchema {
	schema := attr.KeySchema{Hash: k.Hash[0]}
	if len(k.Range) > 0 {
		schema.Range = k.Range[0]
	}
	return schema
}

// Matches reports whether an item satisfies a condition on the key.
func (k IndexKey) Matches(r attr.KeyRange, item layout.Stored) bool {
	if !attr.Equal(item.Get(k.Hash[0].Name), r.Hash) {
		return false
	}
	for i, value := range r.MoreHash {
		if !attr.Equal(item.Get(k.Hash[1+i].Name), value) {
			return false
		}
	}
	for i, value := range r.Equal {
		if !attr.Equal(item.Get(k.Range[i].Name), value) {
			return false
		}
	}
	last := attr.KeyRange{Op: r.Op, A: r.A, B: r.B}
	return r.Op == attr.NoRange || last.Matches(item.Get(k.Range[len(r.Equal)].Name))
}

// The rows of an index with a multi key contain the partition key, every attribute of the
// sort key in an order-preserving, self-terminating form, and the base key. Partitions have
// no order, so a long partition key becomes a hash. The base key only distinguishes entries,
// so it becomes a hash if it does not fit.
const (
	plainPart  = 0
	hashedPart = 1
	// maxPlainPartition leaves room for the longest sort key with each byte escaped.
	maxPlainPartition = 1 << 10
)

// MultiRow returns the index row of the item with the given attributes. IsMulti must be
// true for k. base is the key of the table.
func (k IndexKey) MultiRow(base attr.KeySchema, item attr.Item) []byte {
	hashes := make([]attr.Value, len(k.Hash))
	for i, a := range k.Hash {
		hashes[i] = item[a.Name]
	}
	row := multiPartition(hashes)
	for _, a := range k.Range {
		row = appendSegment(row, item[a.Name])
	}
	part := base.AppendKey([]byte{plainPart}, item)
	if len(row)+len(part) > lens.MaxRowKeyBytes {
		part = hashPart(part)
	}
	return append(row, part...)
}

func multiPartition(hashes []attr.Value) []byte {
	part := []byte{plainPart}
	for _, value := range hashes {
		part = AppendBytes(part, orderedBytes(value))
	}
	if len(part) > maxPlainPartition {
		return hashPart(part)
	}
	return part
}

func hashPart(part []byte) []byte {
	sum := sha256.Sum256(part)
	return append([]byte{hashedPart}, sum[:]...)
}

// The marks after a 00 byte in a segment. The mark of an escaped 00 byte is above the end, so
// that a value comes before longer values that begin with it.
const (
	segmentEnd   = 1
	segmentAfter = 2 // above the segment of this value, below those of longer values
	segmentZero  = 0xff
)

// appendSegment appends the segment of a sort key attribute.
func appendSegment(dst []byte, value attr.Value) []byte {
	return append(appendEscaped(dst, value), 0, segmentEnd)
}

func appendEscaped(dst []byte, value attr.Value) []byte {
	for _, b := range orderedBytes(value) {
		if dst = append(dst, b); b == 0 {
			dst = append(dst, segmentZero)
		}
	}
	return dst
}

// orderedBytes returns the order-preserving form of a key attribute.
func orderedBytes(value attr.Value) []byte {
	if value.Type == attr.N {
		return attr.AppendOrderedNumber(nil, value.Str)
	}
	return []byte(value.Str)
}

// MultiSpan returns the range of index rows that satisfy a condition on a key for which
// IsMulti is true.
func MultiSpan(c attr.KeyRange) layout.Span {
	prefix := multiPartition(c.Hashes())
	for _, value := range c.Equal {
		prefix = appendSegment(prefix, value)
	}
	span := cells.Prefixed(prefix)
	edge := func(value attr.Value, mark byte) []byte {
		return append(appendEscaped(bytes.Clone(prefix), value), 0, mark)
	}
	switch c.Op {
	case attr.NoRange:
	case attr.RangeEqual:
		span = layout.Span{Start: edge(c.A, segmentEnd), End: edge(c.A, segmentAfter)}
	case attr.RangeLess:
		span.End = edge(c.A, segmentEnd)
	case attr.RangeLessEqual:
		span.End = edge(c.A, segmentAfter)
	case attr.RangeGreater:
		span.Start = edge(c.A, segmentAfter)
	case attr.RangeGreaterEqual:
		span.Start = edge(c.A, segmentEnd)
	case attr.RangeBetween:
		span = layout.Span{Start: edge(c.A, segmentEnd), End: edge(c.B, segmentAfter)}
	case attr.RangeBeginsWith:
		begin := appendEscaped(bytes.Clone(prefix), c.A)
		span = cells.Prefixed(begin)
	}
	return span
}

// Holds reports whether an item can be in the index: it must have all attributes of the
// key, with their types, not empty, and within the size limit of keys.
func (k IndexKey) Holds(item attr.Item) bool {
	return holdsPart(k.Hash, item, attr.MaxHashBytes) && holdsPart(k.Range, item, attr.MaxSortBytes)
}

func holdsPart(part []attr.KeyAttr, item attr.Item, most int) bool {
	size := 0
	for _, a := range part {
		v := item[a.Name]
		if v.Type != a.Type || v.Str == "" {
			return false
		}
		size += v.Size()
	}
	return size <= most
}

// Definition returns the definition of the index for the mapping that writes its entries.
// The mapping only supports keys with one attribute each, so further key attributes count
// as projected, and MultiRow returns the rows.
func (ix *Index) Definition() secondary.Def {
	d := secondary.Def{Name: ix.Name, KeysOnly: ix.Projection == ProjectKeysOnly, Include: ix.NonKey}
	if !ix.Key.IsMulti() {
		d.Key = ix.Key.Schema()
		return d
	}
	d.Key.Hash = ix.Key.Hash[0]
	if ix.Projection == ProjectAll {
		return d
	}
	d.KeysOnly, d.Include = false, slices.Clone(ix.NonKey)
	for _, a := range ix.Key.Attributes() {
		d.Include = append(d.Include, a.Name)
	}
	return d
}
