package codec_test

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/edge"
)

// TestUnreadableRows_WhatIsWrittenCanBeRead checks for all codecs that encoded values decode
// to the same value, and that rounded and stray values decode or return an error.
func TestUnreadableRows_WhatIsWrittenCanBeRead(t *testing.T) {
	t.Parallel()
	types := []attr.Type{attr.S, attr.N, attr.B, attr.BOOL, attr.NULL, attr.SS, attr.NS, attr.BS, attr.L, attr.M}
	rapid.Check(t, func(t *rapid.T) {
		g := &edge.Values{Rand: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)), Marks: []string{"#", "$"}}
		schema := codec.Schema{Type: rapid.SampledFrom(append(types, attr.Absent)).Draw(t, "schema")}
		if elem := rapid.SampledFrom(types).Draw(t, "elem"); schema.Type == attr.L || schema.Type == attr.M {
			schema.Elem = &codec.Schema{Type: elem}
		}
		v := g.Value(3)
		if rapid.Bool().Draw(t, "typed") && schema.Type != attr.Absent {
			v = g.Typed(schema, 3)
		}
		if v.Type == attr.N && rapid.Bool().Draw(t, "extreme") { // the farthest from zero, and the nearest to it
			text := rapid.SampledFrom([]string{"9.9999999999999999999999999999999999999E+125", "1E-130"}).Draw(t, "number")
			v, _ = attr.Number(rapid.SampledFrom([]string{"", "-"}).Draw(t, "sign") + text)
		}
		for _, c := range codec.All {
			if c.Encode == nil {
				continue // of a message, which a file names
			}
			if b, ok := c.Encode(v, schema); ok {
				if back, err := c.Decode(b, schema); err != nil || !attr.Equal(back, v) {
					t.Errorf("codec %q under %s writes %s as %x, which comes back as %s, %v", c.Name, schema.Text(), attr.AppendJSON(nil, v), b, attr.AppendJSON(nil, back), err)
				}
			}
			if c.Round == nil {
				continue
			}
			if b, ok := c.Round(v); ok {
				if back, err := c.Decode(b, schema); err != nil || back.Type != attr.N {
					t.Errorf("codec %q rounds %s to %x, which nothing reads: %v", c.Name, attr.AppendJSON(nil, v), b, err)
				}
			}
		}
	})
}
