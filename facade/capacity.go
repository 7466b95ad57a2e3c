package facade

import (
	"maps"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// capacityUnits is one arm of ConsumedCapacity.
type capacityUnits struct {
	CapacityUnits      wire.Double
	ReadCapacityUnits  wire.Double `json:",omitzero"`
	WriteCapacityUnits wire.Double `json:",omitzero"`
}

// consumedCapacity is the ConsumedCapacity of an answer. The arms are filled
// for ReturnConsumedCapacity INDEXES alone.
type consumedCapacity struct {
	TableName              string
	CapacityUnits          wire.Double
	ReadCapacityUnits      wire.Double              `json:",omitzero"` // of transactions alone
	WriteCapacityUnits     wire.Double              `json:",omitzero"` // of transactions alone
	Table                  *capacityUnits           `json:",omitzero"`
	LocalSecondaryIndexes  map[string]capacityUnits `json:",omitzero"`
	GlobalSecondaryIndexes map[string]capacityUnits `json:",omitzero"`
}

// capacityTally adds up what calls on one table consume.
type capacityTally struct {
	table   float64
	indexes map[string]float64
}

func (c *capacityTally) add(other capacityTally) {
	c.table += other.table
	for name, units := range other.indexes {
		c.addIndex(name, units)
	}
}

func (c *capacityTally) addIndex(name string, units float64) {
	if units == 0 {
		return
	}
	if c.indexes == nil {
		c.indexes = map[string]float64{}
	}
	c.indexes[name] += units
}

// report returns the tally as the request asked for it, nil for none. named is
// the table as the request names it: a name or an ARN.
func (c *capacityTally) report(named string, t *tabledef.Table, mode *string) *consumedCapacity {
	if mode == nil || *mode == "NONE" {
		return nil
	}
	out := &consumedCapacity{TableName: named, CapacityUnits: wire.Double(c.table)}
	for _, units := range c.indexes {
		out.CapacityUnits += wire.Double(units)
	}
	if *mode != "INDEXES" {
		return out
	}
	out.Table = &capacityUnits{CapacityUnits: wire.Double(c.table)}
	for name, units := range c.indexes {
		arm := &out.LocalSecondaryIndexes
		if ix := t.Index(name); ix == nil || ix.Global {
			arm = &out.GlobalSecondaryIndexes
		}
		if *arm == nil {
			*arm = map[string]capacityUnits{}
		}
		(*arm)[name] = capacityUnits{CapacityUnits: wire.Double(units)}
	}
	return out
}

// reportReads is report for reads of a transaction.
func (c *capacityTally) reportReads(named string, t *tabledef.Table, mode *string) *consumedCapacity {
	out := c.report(named, t, mode)
	if out != nil {
		out.split(func(units wire.Double) (read, write wire.Double) { return units, 0 })
	}
	return out
}

// reportWrites is report for writes of a transaction.
func (c *capacityTally) reportWrites(named string, t *tabledef.Table, mode *string) *consumedCapacity {
	out := c.report(named, t, mode)
	if out != nil {
		out.split(func(units wire.Double) (read, write wire.Double) { return 0, units })
	}
	return out
}

// split says of all arms which part was read and which was written.
func (c *consumedCapacity) split(parts func(units wire.Double) (read, write wire.Double)) {
	c.ReadCapacityUnits, c.WriteCapacityUnits = parts(c.CapacityUnits)
	if c.Table != nil {
		c.Table.ReadCapacityUnits, c.Table.WriteCapacityUnits = parts(c.Table.CapacityUnits)
	}
	for _, arms := range []map[string]capacityUnits{c.LocalSecondaryIndexes, c.GlobalSecondaryIndexes} {
		for name, arm := range arms {
			arm.ReadCapacityUnits, arm.WriteCapacityUnits = parts(arm.CapacityUnits)
			arms[name] = arm
		}
	}
}

// wantsCapacity reports whether the answer carries ConsumedCapacity.
func wantsCapacity(mode *string) bool { return mode != nil && *mode != "NONE" }

// readUnits is what reading so many bytes costs: whole 4 KB, half of it for an
// eventually consistent read, and one block at least.
func readUnits(sizeBytes int, consistent bool) float64 {
	units := float64(max(1, blocks(sizeBytes, capacityReadUnitBytes)))
	if !consistent {
		units /= 2
	}
	return units
}

// writeUnits is what writing an item costs: whole 1 KB of the larger of its
// sizes before and after, and one at least.
func writeUnits(before, after attr.Item) float64 {
	return float64(max(1, blocks(max(before.Size(), after.Size()), capacityWriteUnitBytes)))
}

func blocks(sizeBytes, blockBytes int) int { return (sizeBytes + blockBytes - 1) / blockBytes }

// writeTally is what a write of an item costs on its table and on each index
// whose entry it changes.
func writeTally(t *tabledef.Table, before, after attr.Item) capacityTally {
	tally := capacityTally{table: writeUnits(before, after)}
	for i := range t.Indexes {
		ix := &t.Indexes[i]
		was, is := indexEntry(t, ix, before), indexEntry(t, ix, after)
		switch {
		case was == nil && is == nil:
		case was == nil:
			tally.addIndex(ix.Name, writeUnits(nil, is))
		case is == nil:
			tally.addIndex(ix.Name, writeUnits(was, nil))
		case !sameKey(ix.Key, was, is):
			// The entry moves: a deletion and a put.
			tally.addIndex(ix.Name, writeUnits(was, nil)+writeUnits(nil, is))
		case !attr.EqualItems(was, is):
			tally.addIndex(ix.Name, writeUnits(was, is))
		}
	}
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

// indexEntry returns what an index holds of an item, nil for nothing: an item
// without one of the index's key attributes is not in it, nor one for which
// that is no key.
func indexEntry(t *tabledef.Table, ix *tabledef.Index, item attr.Item) attr.Item {
	if item == nil || !ix.Key.Holds(item) {
		return nil
	}
	if ix.Projection == tabledef.ProjectAll {
		return item
	}
	entry := attr.Item{}
	for name, value := range item {
		if projects(t, ix, name) {
			entry[name] = value
		}
	}
	return entry
}

// projects reports whether an index holds the attribute name.
func projects(t *tabledef.Table, ix *tabledef.Index, name string) bool {
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

// itemCollectionMetrics describes the items of one partition key.
type itemCollectionMetrics struct {
	ItemCollectionKey   wire.Item
	SizeEstimateRangeGB [2]wire.Double
}

// collectionMetrics answers ReturnItemCollectionMetrics: only tables with a
// local index have item collections.
func collectionMetrics(t *tabledef.Table, mode *string, key attr.Item) *itemCollectionMetrics {
	if mode == nil || *mode != "SIZE" {
		return nil
	}
	for i := range t.Indexes {
		if !t.Indexes[i].Global {
			hash := t.Key.Hash.Name
			return &itemCollectionMetrics{
				ItemCollectionKey:   wire.Item{Item: attr.Item{hash: key[hash]}},
				SizeEstimateRangeGB: [2]wire.Double{0, 1},
			}
		}
	}
	return nil
}

// collectionsOfTables is the ItemCollectionMetrics of several writes: by the
// name of the table, each item collection once.
type collectionsOfTables map[string][]*itemCollectionMetrics

// add adds the collection of one write, nil for none.
func (c *collectionsOfTables) add(table string, m *itemCollectionMetrics) {
	if m == nil || slices.ContainsFunc((*c)[table], func(there *itemCollectionMetrics) bool {
		return maps.EqualFunc(there.ItemCollectionKey.Item, m.ItemCollectionKey.Item, attr.Equal)
	}) {
		return
	}
	if *c == nil {
		*c = collectionsOfTables{}
	}
	(*c)[table] = append((*c)[table], m)
}
