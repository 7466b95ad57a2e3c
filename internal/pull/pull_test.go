package pull_test

import (
	"slices"
	"testing"

	"github.com/tabletop-emu/tabletop/internal/pull"
)

func upTo(n int, ended *bool) func(func(int) bool) {
	return func(yield func(int) bool) {
		defer func() { *ended = true }()
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

func TestSeq(t *testing.T) {
	t.Parallel()
	for _, taken := range []int{0, 1, 2, 3, 4} {
		var ended bool
		next, stop := pull.Seq(upTo(3, &ended))
		var got []int
		for range taken {
			if v, ok := next(); ok {
				got = append(got, v)
			}
		}
		stop()
		stop()
		if v, ok := next(); ok {
			t.Errorf("after stop: %d", v)
		}
		if want := []int{0, 1, 2}[:min(taken, 3)]; !slices.Equal(got, want) || ended != (taken > 0) {
			t.Errorf("%d taken: got %v, want %v; ended: %v", taken, got, want, ended)
		}
	}
}

func TestSeq2(t *testing.T) {
	t.Parallel()
	next, stop := pull.Seq2(slices.All([]string{"a", "b"}))
	defer stop()
	for i, want := range []string{"a", "b"} {
		if k, v, ok := next(); k != i || v != want || !ok {
			t.Errorf("got %d, %q, %v, want %d, %q", k, v, ok, i, want)
		}
	}
	if k, v, ok := next(); ok {
		t.Errorf("after the end: %d, %q", k, v)
	}
}

// A sequence that panics does so at the pull, and has then ended.
func TestSeq_Panic(t *testing.T) {
	t.Parallel()
	panics := func(f func()) (p any) {
		defer func() { p = recover() }()
		f()
		return nil
	}
	next, stop := pull.Seq(func(yield func(int) bool) {
		defer panic("broken")
		yield(1)
	})
	next()
	if p := panics(func() { next() }); p != "broken" {
		t.Errorf("next panics with %v", p)
	}
	if v, ok := next(); ok {
		t.Errorf("after a panic: %d", v)
	}
	stop()
	next, stop = pull.Seq(func(yield func(int) bool) {
		defer panic("broken")
		yield(1)
	})
	next()
	if p := panics(stop); p != "broken" {
		t.Errorf("stop panics with %v", p)
	}
}
