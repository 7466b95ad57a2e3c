package property

import (
	"testing"

	"pgregory.net/rapid"
)

func TestFirst(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{All: 100, 7: 7} {
		ran := 0
		rapid.Check(t, First(n, func(*rapid.T) { ran++ }))
		if ran < want || n != All && ran != want {
			t.Errorf("First(%d) checked %d cases, want %d", n, ran, want)
		}
	}
}

// A failed property is checked again on every call.
func TestFirst_Fails(t *testing.T) {
	t.Parallel()
	ran := 0
	prop := First(2, func(t *rapid.T) {
		if ran++; ran > 1 {
			t.SkipNow()
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		defer func() { _ = recover() }()
		prop(t)
	})
	if ran < 100 {
		t.Errorf("it was checked %d times", ran)
	}
}
