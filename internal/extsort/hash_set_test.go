package extsort

import (
	"fmt"
	"testing"
)

func TestSet_Spills(t *testing.T) {
	t.Parallel()
	s := NewSet(t.TempDir())
	s.Most = 7
	defer s.Close()
	for i := range 100 {
		if err := s.Add(HashOf(fmt.Append(nil, i%90))); err != nil {
			t.Fatal(err)
		}
	}
	distinct, twice, beyond, err := s.Finish(3, 1)
	if err != nil || distinct != 90 || len(twice) != 3 || beyond != 10 {
		t.Errorf("%d distinct, %d repeated shown, %d beyond, error %v; want 90, 3, 10", distinct, len(twice), beyond, err)
	}
}
