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

// put puts items with different keys into a table. It returns, for each item, the reason for
// its rejection, or nil.
func (s *Service) put(ctx context.Context, of *tabledef.Table, items []attr.Item) ([]error, error) {
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
	if len(writes) == 0 {
		return refused, nil
	}
	err := s.o.Store.WriteItems(ctx, of, writes)
	for i := range writes {
		refused[places[i]] = writes[i].Err
	}
	return refused, err
}
