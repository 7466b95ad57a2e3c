package property

import (
	"testing"

	"pgregory.net/rapid"
)

func TestFirst(t *testing.T) {
	t.Parallel()
	ran := 0
	rapid.Check(t, first(7, func(*rapid.T) { ran++ }))
	if ran != 7 {
		t.Errorf("it checked %d cases, want 7", ran)
	}
}

// A failed property is checked again on every call.
func TestFirst_Fails(t *testing.T) {
	t.Parallel()
	ran := 0
	prop := first(2, func(t *rapid.T) {
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
