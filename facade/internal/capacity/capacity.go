// Package capacity computes the capacity that operations consume, in DynamoDB's units,
// and formats it for responses.
package capacity

import (
	"maps"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// The bytes per unit. Source: developer guide, "Provisioned capacity mode".
const (
	readUnitBytes  = 4 << 10
	writeUnitBytes = 1 << 10
)

// Units is the capacity consumed on a table or an index, as one element of
// ConsumedCapacity.
type Units struct {
	CapacityUnits      wire.Double
	ReadCapacityUnits  wire.Double `json:",omitzero"`
	WriteCapacityUnits wire.Double `json:",omitzero"`
}

// Consumed is the ConsumedCapacity of a response. The parts for the table and its indexes
// are set only if the request has ReturnConsumedCapacity INDEXES.
type Consumed struct {
	TableName              string
	CapacityUnits          wire.Double
	ReadCapacityUnits      wire.Double      `json:",omitzero"` // set only for transactions
	WriteCapacityUnits     wire.Double      `json:",omitzero"` // set only for transactions
	Table                  *Units           `json:",omitzero"`
	LocalSecondaryIndexes  map[string]Units `json:",omitzero"`
	GlobalSecondaryIndexes map[string]Units `json:",omitzero"`
	VectorIndexes          map[string]Bytes `json:",omitzero"`
}

// Tally sums the capacity that calls on one table consume.
type Tally struct {
	Table   float64            // units of the table without its indexes
	indexes map[string]float64 // by name
	vectors map[string]float64 // bytes of vector indexes, by name
}

// Add adds the units of another tally.
func (c *Tally) Add(other Tally) {
	c.Table += other.Table
	for name, units := range other.indexes {
		c.AddIndex(name, units)
	}
	for name, bytes := range other.vectors {
		c.addVector(name, bytes)
	}
}

// Sub subtracts the units of another tally.
func (c *Tally) Sub(other Tally) {
	c.Table -= other.Table
	for name, units := range other.indexes {
		c.AddIndex(name, -units)
	}
	for name, bytes := range other.vectors {
		c.addVector(name, -bytes)
	}
}

// Index returns the units consumed on an index.
func (c *Tally) Index(name string) float64 { return c.indexes[name] }

// AddIndex adds units consumed on an index.
func (c *Tally) AddIndex(name string, units float64) {
	if units == 0 {
		return
	}
	if c.indexes == nil {
		c.indexes = map[string]float64{}
	}
	c.indexes[name] += units
}

// Report returns the tally in the requested form, or nil if the request does not ask for
// it. named is the name or ARN of the table in the request.
func (c *Tally) Report(named string, t *tabledef.Table, mode *string) *Consumed {
	if mode == nil || *mode == "NONE" {
		return nil
	}
	out := &Consumed{TableName: named, CapacityUnits: wire.Double(c.Table)}
	for _, units := range c.indexes {
		out.CapacityUnits += wire.Double(units)
	}
	if *mode != "INDEXES" {
		return out
	}
	out.Table = &Units{CapacityUnits: wire.Double(c.Table)}
	for name, units := range c.indexes {
		arm := &out.LocalSecondaryIndexes
		if ix := t.Index(name); ix == nil || ix.Global {
			arm = &out.GlobalSecondaryIndexes
		}
		if *arm == nil {
			*arm = map[string]Units{}
		}
		(*arm)[name] = Units{CapacityUnits: wire.Double(units)}
	}
	out.VectorIndexes = c.reportVectors()
	return out
}

// ReportReads is like Report, but also reports the units as read units, as responses of
// transactions do.
func (c *Tally) ReportReads(named string, t *tabledef.Table, mode *string) *Consumed {
	out := c.Report(named, t, mode)
	if out != nil {
		out.split(func(units wire.Double) (read, write wire.Double) { return units, 0 })
	}
	return out
}

// ReportWrites is like Report, but also reports the units as write units, as responses of
// transactions do.
func (c *Tally) ReportWrites(named string, t *tabledef.Table, mode *string) *Consumed {
	out := c.Report(named, t, mode)
	if out != nil {
		out.split(func(units wire.Double) (read, write wire.Double) { return 0, units })
	}
	return out
}

// split divides all parts into read and write units.
func (c *Consumed) split(parts func(units wire.Double) (read, write wire.Double)) {
	c.ReadCapacityUnits, c.WriteCapacityUnits = parts(c.CapacityUnits)
	if c.Table != nil {
		c.Table.ReadCapacityUnits, c.Table.WriteCapacityUnits = parts(c.Table.CapacityUnits)
	}
	for _, arms := range []map[string]Units{c.LocalSecondaryIndexes, c.GlobalSecondaryIndexes} {
		for name, arm := range arms {
			arm.ReadCapacityUnits, arm.WriteCapacityUnits = parts(arm.CapacityUnits)
			arms[name] = arm
		}
	}
}

// Tallies holds one tally for each table in a request. The zero value is empty.
type Tallies struct{ tables map[string]*tableTally }

type tableTally struct {
	Tally
	named string
	table *tabledef.Table
}

// Of returns the tally of the table called name, which the first call creates. named is the name or ARN with which the request
// first refers to the table. Reports are sorted by name, and show named.
func (c *Tallies) Of(name, named string, t *tabledef.Table) *Tally {
	of := c.tables[name]
	if of == nil {
		if c.tables == nil {
			c.tables = map[string]*tableTally{}
		}
		of = &tableTally{named: named}
		c.tables[name] = of
	}
	of.table = t
	return &of.Tally
}

// Report calls report, a method of Tally, for each table and returns the results. It
// returns nil if the request does not ask for them.
func (c *Tallies) Report(mode *string, report func(*Tally, string, *tabledef.Table, *string) *Consumed) []*Consumed {
	if !Wanted(mode) {
		return nil
	}
	var all []*Consumed
	for _, name := range slices.Sorted(maps.Keys(c.tables)) {
		of := c.tables[name]
		all = append(all, report(&of.Tally, of.named, of.table, mode))
	}
	return all
}

// Wanted reports whether the response includes ConsumedCapacity.
func Wanted(mode *string) bool { return mode != nil && *mode != "NONE" }

// ReadUnits returns the read units for sizeBytes: one for each started block of 4 KB, and
// at least one. An eventually consistent read consumes half of that.
func ReadUnits(sizeBytes int, consistent bool) float64 {
	units := float64(max(1, blocks(sizeBytes, readUnitBytes)))
	if !consistent {
		units /= 2
	}
	return units
}

// WriteUnits returns the write units for writing an item: one for each started block of 1
// KB in the larger of its sizes before and after, and at least one.
func WriteUnits(before, after attr.Item) float64 {
	return float64(max(1, blocks(max(before.Size(), after.Size()), writeUnitBytes)))
}

func blocks(sizeBytes, blockBytes int) int { return (sizeBytes + blockBytes - 1) / blockBytes }

// WriteTally returns the cost of a write for its table and for each index in which an
// entry changes.
func WriteTally(t *tabledef.Table, before, after attr.Item) Tally {
	tally := Tally{Table: WriteUnits(before, after)}
	for i := range t.Indexes {
		ix := &t.Indexes[i]
		was, is := indexEntry(t, ix, before), indexEntry(t, ix, after)
		switch {
		case was == nil && is == nil:
		case was == nil:
			tally.AddIndex(ix.Name, WriteUnits(nil, is))
		case is == nil:
			tally.AddIndex(ix.Name, WriteUnits(was, nil))
		case !sameKey(ix.Key, was, is):
			// The entry moves: a deletion and a put.
			tally.AddIndex(ix.Name, WriteUnits(was, nil)+WriteUnits(nil, is))
		case !attr.EqualItems(was, is):
			tally.AddIndex(ix.Name, WriteUnits(was, is))
		}
	}
	tally.writeVectors(t, before, after)
	return tally
}

func sameKey(key tabledef.IndexKey, a, b attr.Item) bool {
	for _, k := range key.Attributes() {
		if !attr.Equal(a[k.Name], b[k.Name]) {
			return false
		}
	}
	return true
}

// indexEntry returns the part of an item in an index. It is nil if the item lacks one of the
// index's key attributes, or has an invalid key value.
func indexEntry(t *tabledef.Table, ix *tabledef.Index, item attr.Item) attr.Item {
	if item == nil || !ix.Key.Holds(item) {
		return nil
	}
	if ix.Projection == tabledef.ProjectAll {
		return item
	}
	entry := attr.Item{}
	for name, value := range item {
		if Projects(t, ix, name) {
			entry[name] = value
		}
	}
	return entry
}

// Projects reports whether an index includes the attribute with the given name.
func Projects(t *tabledef.Table, ix *tabledef.Index, name string) bool {
	if ix.Projection == tabledef.ProjectAll || t.Key.IsKey(name) || ix.Key.Has(name) {
		return true
	}
	for _, nonKey := range ix.NonKey {
		if nonKey == name {
			return true
		}
	}
	return false
}

// ItemCollectionMetrics estimates the size of an item collection: the items with one
// partition key.
type ItemCollectionMetrics struct {
	ItemCollectionKey   wire.Item
	SizeEstimateRangeGB [2]wire.Double
}

// CollectionMetrics returns the ItemCollectionMetrics of a write, or nil if the request
// does not ask for them. Only tables with a local index have item collections.
func CollectionMetrics(t *tabledef.Table, mode *string, key attr.Item) *ItemCollectionMetrics {
	if mode == nil || *mode != "SIZE" {
		return nil
	}
	for i := range t.Indexes {
		if !t.Indexes[i].Global {
			hash := t.Key.Hash.Name
			return &ItemCollectionMetrics{
				ItemCollectionKey:   wire.Item{Item: attr.Item{hash: key[hash]}},
				SizeEstimateRangeGB: [2]wire.Double{0, 1},
			}
		}
	}
	return nil
}

// CollectionsOfTables is the ItemCollectionMetrics of several writes, by table name. It
// lists each item collection once.
type CollectionsOfTables map[string][]*ItemCollectionMetrics

// Add adds the collection that one write reports. It ignores nil.
func (c *CollectionsOfTables) Add(table string, m *ItemCollectionMetrics) {
	if m == nil || slices.ContainsFunc((*c)[table], func(there *ItemCollectionMetrics) bool {
		return maps.EqualFunc(there.ItemCollectionKey.Item, m.ItemCollectionKey.Item, attr.Equal)
	}) {
		return
	}
	if *c == nil {
		*c = CollectionsOfTables{}
	}
	(*c)[table] = append((*c)[table], m)
}
