package table

import (
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// MaxFilterBytes bounds the filters of extents in one request, below Bigtable's limit of 20 KB for a
// filter.
const MaxFilterBytes = 16 << 10

// OfExtent returns the filter that passes the cells of an extent, and its size in bytes, approximately.
func OfExtent(e lens.Extent) (f *btpb.RowFilter, size int) {
	f = btclient.OfColumnPrefix(e.Family, e.Qualifier)
	if !e.Prefix {
		f = btclient.OfColumn(e.Family, e.Qualifier)
	}
	if e.MinTime != 0 || e.MaxTime != 0 {
		f = btclient.Chain(f, btclient.OfTime(e.MinTime, e.MaxTime))
	}
	return f, 2*len(e.Qualifier) + len(e.Family) + 32
}
