package capacity

import (
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/vectors"
)

// BulkBytes counts the bytes that a bulk operation writes: the items, and their entries
// in each index. Assumption: the service counts the same bytes.
type BulkBytes struct {
	Table   int64            `json:"table,omitempty"`
	Indexes map[string]int64 `json:"indexes,omitempty"` // bytes by index name
	Vectors map[string]int64 `json:"vectors,omitempty"` // bytes by index name
}

// Add counts an item that was put into the table.
func (b *BulkBytes) Add(t *tabledef.Table, item attr.Item) {
	b.Table += int64(item.Size())
	for i := range t.Indexes {
		if entry := indexEntry(t, &t.Indexes[i], item); entry != nil {
			addBytes(&b.Indexes, t.Indexes[i].Name, entry.Size())
		}
	}
	for _, ix := range t.LiveVectors() {
		if _, ok := vectors.Of(t, &ix, item); ok {
			addBytes(&b.Vectors, ix.Name, vectors.Bytes(t, &ix, item))
		}
	}
}

func addBytes(to *map[string]int64, name string, bytes int) {
	if *to == nil {
		*to = map[string]int64{}
	}
	(*to)[name] += int64(bytes)
}
