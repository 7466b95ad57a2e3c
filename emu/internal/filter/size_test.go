package filter

import (
	"bytes"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/internal/btclient"
)

// TestSizeBound: the bound is at least the size, and the limit holds for filters with and without one.
func TestSizeBound(t *testing.T) {
	t.Parallel()
	long := bytes.Repeat([]byte("v"), 300)
	unknown := btclient.OfTime(1, 2)
	unknown.GetTimestampRangeFilter().ProtoReflect().SetUnknown([]byte{0x52, 2, 1, 2}) // field 10, two bytes
	for _, c := range []struct {
		f  *btpb.RowFilter
		ok bool
	}{
		{nil, true},
		{&btpb.RowFilter{}, true},
		{btclient.Newest(1 << 30), true},
		{btclient.OfTime(-1, -1), true}, // ten bytes each
		{btclient.Chain(btclient.OfColumn(string(long), long), btclient.Newest(1), btclient.OfValue(long)), true},
		{btclient.AnyOf(btclient.OfColumns("f", long, append(long, 1)), btclient.OfValues(long, append(long, 1)), btclient.Newest(1)), true},
		{btclient.Chain(btclient.Newest(1), btclient.OfFamily("f")), false},
		{btclient.All(), false},
		{btclient.Unless(btclient.Newest(1), btclient.Newest(1)), false},
		{unknown, false},
		{btclient.Chain(btclient.Newest(1), unknown), false},
	} {
		n, ok := sizeBound(c.f)
		if size := proto.Size(c.f); ok != c.ok || ok && n < size {
			t.Errorf("%v: at most %d, %v; it has %d", c.f, n, ok, size)
		}
	}
	for size := 300; size < 600; size++ {
		f := btclient.Chain(btclient.Newest(1), btclient.OfValue(bytes.Repeat([]byte("v"), size/2)))
		if _, err := Compile(f, Options{MaxBytes: 400}); (err == nil) != (proto.Size(f) <= 400) {
			t.Errorf("a filter of %d bytes: %v", proto.Size(f), err)
		}
	}
}
