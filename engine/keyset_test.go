package engine

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// TestSet compares a keySet with a set of single keys.
func TestSet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var ranges keySet
		var in [256]bool
		for range rapid.IntRange(1, 30).Draw(t, "n") {
			lower := rapid.IntRange(0, 254).Draw(t, "lower")
			upper := rapid.IntRange(lower+1, min(255, lower+40)).Draw(t, "upper")
			var want []byte
			for i := lower; i < upper; i++ {
				if !in[i] {
					want = append(want, byte(i))
				}
				in[i] = true
			}
			var got []byte
			for _, r := range ranges.Add(keyRange{Lower: []byte{byte(lower)}, Upper: []byte{byte(upper)}}) {
				for i := int(r.Lower[0]); i < int(r.Upper[0]); i++ {
					got = append(got, byte(i))
				}
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("[%d, %d) added %d, want %d", lower, upper, got, want)
			}
			for i := range in {
				if ranges.Contains([]byte{byte(i)}) != in[i] {
					t.Fatalf("Contains %d: %v", i, !in[i])
				}
			}
		}
	})
}
