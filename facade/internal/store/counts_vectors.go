package store

import (
	"context"

	"github.com/tabletop-emu/tabletop/facade/internal/sizes"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/vectors"
)

// countVectors counts the entries of a vector index. It scans the whole table: Count calls it
// only for a small table, or in the background.
func (ct *counter) countVectors(ctx context.Context, c *cachedTable, ix *tabledef.VectorIndex) (n sizes.Count, err error) {
	for stored, err := range ct.reader.Scan(ctx, c.def, nil, 0, 1, nil) {
		if err != nil {
			return n, err
		}
		item, err := stored.Item()
		if err != nil {
			return n, err
		}
		if _, ok := vectors.Of(c.def, ix, item); ok {
			n.Items++
			n.Bytes += int64(vectors.Bytes(c.def, ix, item))
		}
	}
	return n, nil
}
