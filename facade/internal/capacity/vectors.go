package capacity

import (
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/vectors"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// Bytes is what a vector index consumes, which no total has. A search has one member, and a
// write the other one.
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

// writeVectors adds what a write of an item costs on vector indexes.
func (c *Tally) writeVectors(t *tabledef.Table, before, after attr.Item) {
	for _, ix := range t.LiveVectors() {
		c.addVector(ix.Name, vectors.WriteBytes(t, &ix, before, after))
	}
}

// reportVectors returns what was written to vector indexes, nil for nothing.
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
