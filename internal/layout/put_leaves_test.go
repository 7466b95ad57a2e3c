package layout

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func joinPathKeys(keys []string) string {
	var path []byte
	for i, k := range keys {
		if i > 0 {
			path = append(path, '.')
		}
		path = appendPathKey(path, k)
	}
	return string(path)
}

// TestPath checks the inverse of paths, and that invalid paths are rejected.
func TestPath(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{".", "[", `\`, "0", "a", "é", "]"}), 0, 4).Draw(t, "bits"), "")
		}), 1, 4).Draw(t, "keys")
		path := joinPathKeys(keys)
		if back, ok := parsePath(path); !ok || !slices.Equal(back, keys) {
			t.Fatalf("%q becomes %q and comes back as %q, %v", keys, path, back, ok)
		}
	})
	for _, text := range []string{"", ".", "a.", ".a", "a..b", "a[0]", `a\`, `a\b`, `\0a`, `a\0`, `\0\0`} {
		if path, ok := parsePath(text); ok {
			t.Errorf("%q is the path %q", text, path)
		}
	}
}

// FuzzPath checks that an accepted path is written the same.
func FuzzPath(f *testing.F) {
	f.Add(`a.b\.c`)
	f.Add(`\0.x`)
	f.Fuzz(func(t *testing.T, text string) {
		if keys, ok := parsePath(text); ok && joinPathKeys(keys) != text {
			t.Errorf("%q is the path %q, which is written %q", text, keys, joinPathKeys(keys))
		}
	})
}
