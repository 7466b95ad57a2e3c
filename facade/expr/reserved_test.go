package expr

import (
	"slices"
	"strings"
	"testing"
)

func TestIsReserved(t *testing.T) {
	t.Parallel()
	words := strings.Fields(reservedWords)
	if len(words) != 573 || len(reserved()) != 573 || !slices.IsSorted(words) {
		t.Errorf("%d words, %d of them distinct; the guide has 573", len(words), len(reserved()))
	}
	for _, w := range words {
		if len(w) < minReserved || len(w) > maxReserved || w != strings.ToUpper(w) {
			t.Errorf("%s is no word of the list", w)
		}
		if !isReserved(w) || !isReserved(strings.ToLower(w)) {
			t.Errorf("%s is not reserved", w)
		}
	}
	for _, name := range []string{"", "a", "pk", "SK", "namesake", "stat", "PARTITIONKEY", strings.Repeat("A", 300)} {
		if isReserved(name) {
			t.Errorf("%s is reserved", name)
		}
	}
}
