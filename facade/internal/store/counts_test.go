package store

import "testing"

// What a write does for the counts takes no memory.
func TestCounts_Wrote(t *testing.T) { //nolint:paralleltest // it counts allocations
	k := newTableCounts()
	if n := testing.AllocsPerRun(100, k.wrote); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if k.written.Load() == 0 {
		t.Error("nothing was noted")
	}
}

// A text that is no count is none.
func TestCounts_Keep(t *testing.T) {
	t.Parallel()
	k := newTableCounts()
	if k.keep([]byte("?")); k.kept.Load() != nil {
		t.Errorf("%+v", k.kept.Load())
	}
	k.keep([]byte(`{"items":2,"bytes":3,"indexes":{"i":{"items":1,"bytes":1}}}`))
	if got := k.kept.Load(); got == nil || got.Items != 2 || got.Bytes != 3 || got.Indexes["i"].Items != 1 {
		t.Errorf("%+v", got)
	}
}
