package bucketjobs

import (
	"context"
	"errors"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// createTable creates a table that is CREATING until Store.EndCreating.
func (s *Service) createTable(ctx context.Context, def *tabledef.Table) (*tabledef.Table, error) {
	forever := time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC)
	def.Transition = tabledef.Transition{Status: tabledef.StatusCreating, Until: forever}
	return s.o.Store.CreateTable(ctx, def)
}

// heldPause is the time between two attempts to write an item that others are writing.
const heldPause = 100 * time.Millisecond

// isHeld reports whether a write failed only because of a transaction or other writes.
func isHeld(err error) bool {
	return errors.Is(err, store.ErrIntent) || errors.Is(err, store.ErrContended)
}

// put puts items with different keys into a table. It calls pause before it tries held items
// again, and ends with the error of pause. It returns, for each item, why it was not put, or
// nil.
func (s *Service) put(ctx context.Context, of *tabledef.Table, items []attr.Item, pause func(context.Context) error) ([]error, error) {
	refused := make([]error, len(items))
	var writes []store.Replacement
	var places []int
	for i, item := range items {
		err := s.o.Store.CheckPlace(ctx, of, item)
		if refused[i] = err; errors.Is(err, store.ErrOutsideMapping) {
			continue
		} else if err != nil {
			return nil, err
		}
		writes, places = append(writes, store.Replacement{Key: of.Key.KeyOf(item), Item: item, Blind: true}), append(places, i)
	}
	for {
		if err := s.o.Store.WriteItems(ctx, of, writes); err != nil {
			return nil, err
		}
		held := 0
		for i, w := range writes {
			if refused[places[i]] = w.Err; isHeld(w.Err) {
				w.Err = nil
				writes[held], places[held] = w, places[i]
				held++
			}
		}
		if held == 0 {
			return refused, nil
		}
		if err := pause(ctx); err != nil {
			return refused, err
		}
		writes, places = writes[:held], places[:held]
	}
}
