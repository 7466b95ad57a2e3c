package capacity

import (
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/vectors"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// Bytes is the number of bytes read from or written to a vector index. Totals do not
// include it. A search sets one of the fields, and a write sets the other.
type Bytes struct {
	VectorSearchRequestBytes wire.Double `json:",omitzero"`
	VectorWriteRequestBytes  wire.Double `json:",omitzero"`
}

func (c *Tally) addVector(name string, bytes float64) {
	if bytes == 0 {
		return
	}
	if c.vectors == nil {
		c.vectors = map[string]float64{}
	}
	c.vectors[name] += bytes
}

// writeVectors adds the cost of writing an item to the vector indexes.
func (c *Tally) writeVectors(t *tabledef.Table, before, after attr.Item) {
	for _, ix := range t.LiveVectors() {
		c.addVector(ix.Name, vectors.WriteBytes(t, &ix, before, after))
	}
}

// reportVectors returns the bytes written to each vector index, or nil if no bytes were
// written.
func (c *Tally) reportVectors() map[string]Bytes {
	if len(c.vectors) == 0 {
		return nil
	}
	out := make(map[string]Bytes, len(c.vectors))
	for name, bytes := range c.vectors {
		out[name] = Bytes{VectorWriteRequestBytes: wire.Double(bytes)}
	}
	return out
}
