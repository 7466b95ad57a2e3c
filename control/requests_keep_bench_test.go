package control_test

import (
	"fmt"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/control/internal/requests"
	"github.com/tabletop-emu/tabletop/emu"
)

// BenchmarkKeep measures only the recording of a call.
func BenchmarkKeep(b *testing.B) {
	for name, call := range map[string]func(tb testing.TB, data btpb.BigtableClient, row []byte){"write1k": writeKiB, "read": readRow} {
		b.Run(name, func(b *testing.B) {
			log := requests.New()
			b.ReportAllocs()
			data := observedBy(b, func(c *emu.Call) {
				if _, ok := c.Request.(*btapb.CreateTableRequest); ok {
					return
				}
				b.ResetTimer()
				b.StartTimer()
				for range b.N {
					log.Bigtable(c)
				}
				b.StopTimer()
			})
			call(b, data, fmt.Appendf(nil, "user#%010d", 1))
		})
	}
}
