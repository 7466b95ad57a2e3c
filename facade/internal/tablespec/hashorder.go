package tablespec

import (
	"cmp"
	"slices"
	"unicode/utf16"
)

// DefaultHashRoom is the default size of the hash table in which AWS collects the keys of
// a table.
const DefaultHashRoom = 16

// HashOrder returns each of the names once, in the order that AWS uses in messages about
// key schemas. This is the order of a Java hash table. Its initial size is room, which it
// doubles when it is more than three quarters full.
func HashOrder(names []string, room int) []string {
	var distinct []string
	seen := make(map[string]bool, len(names))
	for _, name := range names {
		if !seen[name] {
			seen[name] = true
			distinct = append(distinct, name)
		}
	}
	buckets := 1
	for buckets < max(room, len(distinct)) || len(distinct)*4 > buckets*3 {
		buckets *= 2
	}
	bucket := func(name string) int {
		var hash uint32
		for _, unit := range utf16.Encode([]rune(name)) {
			hash = 31*hash + uint32(unit)
		}
		return int(hash^hash>>16) & (buckets - 1)
	}
	slices.SortStableFunc(distinct, func(a, b string) int { return cmp.Compare(bucket(a), bucket(b)) })
	return distinct
}
