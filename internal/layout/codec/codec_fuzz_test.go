package codec

import (
	"testing"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// FuzzCodec checks that a decoded value is encoded the same, or decodes to the same value
// again.
func FuzzCodec(f *testing.F) {
	for _, c := range All {
		name := c.Name
		f.Add(name, byte(attr.S), []byte(`{"M":{"a":{"N":"1"}}}`))
		f.Add(name, byte(attr.N), []byte("1.50"))
		f.Add(name, byte(attr.BOOL), []byte("true"))
		f.Add(name, byte(attr.B), []byte("AP8="))
		f.Add(name, byte(attr.M), []byte{0x7f, 0xf0, 0, 0, 0, 0, 0, 0})
	}
	f.Fuzz(func(t *testing.T, name string, kind byte, b []byte) {
		c, err := Parse(name, nil)
		if err != nil || kind > byte(attr.M) {
			return
		}
		schema := Schema{Type: attr.Type(kind)}
		v, err := c.Decode(b, schema)
		if err != nil {
			return
		}
		out, ok := c.Encode(v, schema)
		if !ok {
			return // of another type than the schema's: handled by the sidecar
		}
		if again, err := c.Decode(out, schema); err != nil || !attr.Equal(v, again) {
			t.Fatalf("codec %s reads %q as %v, writes %q, and reads that as %v, %v", name, b, v, out, again, err)
		}
	})
}
