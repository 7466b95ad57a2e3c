package engine

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// TestWatch_Set: a key wakes exactly the watchers whose range holds it.
func TestWatch_Set(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SliceOfN(rapid.ByteRange('a', 'd'), 0, 2)
		var s watchers
		var all []*watcher
		for range rapid.IntRange(0, 8).Draw(t, "watchers") {
			w := newWatcher(key.Draw(t, "start"), key.Draw(t, "end"))
			s.Add(w)
			all = append(all, w)
		}
		if len(all) > 1 && rapid.Bool().Draw(t, "remove") {
			if s.Remove(all[0]) {
				t.Fatal("the first of several was the last")
			}
			all = all[1:]
		}
		k := key.Draw(t, "key")
		s.Wake(k)
		s.Wake(k)
		for _, w := range all {
			want := 0
			if bytes.Compare(w.start, k) <= 0 && (len(w.end) == 0 || bytes.Compare(k, w.end) < 0) {
				want = 1
			}
			if got := len(w.Signal); got != want {
				t.Fatalf("%q of [%q, %q): %d signals, want %d", k, w.start, w.end, got, want)
			}
		}
	})
}
