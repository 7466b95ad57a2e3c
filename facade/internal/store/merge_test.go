package store

import (
	"cmp"
	"errors"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/store/lanes"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

func numbersOf(item layout.Stored) string { return item.Get("n").Str }

func byNumber(a, b layout.Stored) int { return cmp.Compare(numbersOf(a), numbersOf(b)) }

// Sequences are merged in order, to their ends or until the consumer has enough items. With more
// than one lane, the first items of all sequences are read concurrently.
func TestMerge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			side *lanes.Lanes
			want time.Duration
		}{{nil, 4}, {lanes.New(10, 100), 1}} {
			sequences := make([]iter.Seq2[layout.Stored, error], 4)
			for i := range sequences {
				sequences[i] = func(yield func(layout.Stored, error) bool) {
					time.Sleep(time.Millisecond)
					for n := i; n < 10 && i < 3; n += 3 { // the last is empty
						if !yield(layout.Decoded{"n": attr.Int(int64(n))}, nil) {
							return
						}
					}
				}
			}
			for _, most := range []int{1, 4, 100} {
				var got []string
				begin := time.Now()
				MergeInOrder(c.side.Each, sequences, byNumber, func(item layout.Stored, err error) bool {
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, numbersOf(item))
					return len(got) < most
				})
				if len(got) != min(most, 10) || !slices.IsSorted(got) {
					t.Errorf("at most %d: %q", most, got)
				}
				if took := time.Since(begin); took != c.want*time.Millisecond {
					t.Errorf("it waits %v, want %d ms", took, c.want)
				}
			}
		}
	})
}

// The first error of any sequence ends the merge.
func TestMerge_Error(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	one := func(yield func(layout.Stored, error) bool) {
		_ = yield(layout.Decoded{"n": attr.Int(1)}, nil) && yield(nil, broken)
	}
	for _, side := range []*lanes.Lanes{nil, lanes.New(10, 100)} {
		var got []error
		MergeInOrder(side.Each, []iter.Seq2[layout.Stored, error]{one, one}, byNumber, func(_ layout.Stored, err error) bool {
			got = append(got, err)
			return true
		})
		if len(got) == 0 || !errors.Is(got[len(got)-1], broken) || slices.ContainsFunc(got[:len(got)-1], func(err error) bool { return err != nil }) {
			t.Errorf("%v, want it to end with the error", got)
		}
	}
}
