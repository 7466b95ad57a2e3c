package sizes

import "testing"

// The bookkeeping of a write for the counts does not allocate.
func TestSizes_Wrote(t *testing.T) { //nolint:paralleltest // it counts allocations
	k := NewTable()
	if n := testing.AllocsPerRun(100, k.Wrote); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if k.written.Load() == 0 {
		t.Error("nothing was noted")
	}
}

// An invalid text is ignored; the last one counts.
func TestSizes_Recall(t *testing.T) {
	t.Parallel()
	k := NewTable()
	if _, ok := k.recall(); ok {
		t.Error("a count that nobody kept")
	}
	k.Kept([]byte("?"))
	if got, ok := k.recall(); ok {
		t.Errorf("%+v", got)
	}
	k.Kept([]byte(`{"items":2,"bytes":3,"indexes":{"i":{"items":1,"bytes":1}}}`))
	if got, ok := k.recall(); !ok || got.Items != 2 || got.Bytes != 3 || got.Indexes["i"].Items != 1 {
		t.Errorf("%+v, %v", got, ok)
	}
}
