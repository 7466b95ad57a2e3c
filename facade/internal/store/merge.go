package store

import (
	"iter"
	"slices"

	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/pull"
)

// MergeInOrder yields the items of several sequences in the order of compare, which each
// sequence must have too. It calls each to read the first items, so that each can read them
// concurrently. It yields an error last.
func MergeInOrder(each func(n int, do func(i int) error) error, sequences []iter.Seq2[layout.Stored, error], compare func(a, b layout.Stored) int, yield func(layout.Stored, error) bool) {
	type stream struct {
		head layout.Stored
		next func() (layout.Stored, error, bool)
		more bool
	}
	advance := func(st *stream) (err error) {
		st.head, err, st.more = st.next()
		return err
	}
	streams := make([]*stream, len(sequences))
	for i, sequence := range sequences {
		next, stop := pull.Seq2(sequence)
		defer stop()
		streams[i] = &stream{next: next}
	}
	if err := each(len(streams), func(i int) error { return advance(streams[i]) }); err != nil {
		yield(nil, err)
		return
	}
	for {
		streams = slices.DeleteFunc(streams, func(st *stream) bool { return !st.more })
		if len(streams) == 0 {
			return
		}
		least := slices.MinFunc(streams, func(a, b *stream) int { return compare(a.head, b.head) })
		if !yield(least.head, nil) {
			return
		}
		if err := advance(least); err != nil {
			yield(nil, err)
			return
		}
	}
}
