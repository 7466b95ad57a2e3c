package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/tabletop-emu/tabletop/emu/internal/changes"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/engine"
)

// Partitions holds the partitions of a table's change stream after a split or a merge. It is stored
// as JSON under the table's name. It is valid for one stream, because a new stream is partitioned
// at the table's splits.
type Partitions struct {
	Since  uint64   `json:"since"` // identifies the stream
	Splits [][]byte `json:"splits"`
	// Changed is the journal number at which the partitions last changed.
	Changed uint64 `json:"changed"`
}

// All returns the partitions in key order.
func (p *Partitions) All() []changes.Partition { return changes.Split(p.Splits) }

// LoadPartitions returns the partitions of a table's change stream. Until the first split or
// merge, they are those between the table's splits.
func LoadPartitions(r Catalog, t *engine.Table) (*Partitions, error) {
	initial := &Partitions{Since: t.Journal[engine.JournalStream].Since}
	for _, s := range t.Splits {
		if len(s) > 0 {
			initial.Splits = append(initial.Splits, s)
		}
	}
	raw, err := r.Resource(KindPartitions + t.Name)
	if errors.Is(err, engine.ErrResourceNotFound) {
		return initial, nil
	}
	if err != nil {
		return nil, err
	}
	state := &Partitions{}
	if err := json.Unmarshal(raw, state); err != nil {
		return nil, fmt.Errorf("partitions of table %s: %w", t.Name, err)
	}
	if state.Since != initial.Since {
		return initial, nil
	}
	return state, nil
}

// ChangePartitions replaces the splits of a table's change stream with the result of fn. fn
// receives the position of key among the sorted splits, and whether key is a split; if not, the
// position is that at which it belongs. It returns statuses, and the errors of fn.
func (s *Control) ChangePartitions(ctx context.Context, table string, key []byte, fn func(splits [][]byte, at int, found bool) ([][]byte, error)) error {
	if len(key) == 0 {
		return refusal.Invalid("key", "must not be empty")
	}
	return s.change(ctx, func(tx *engine.CatalogTx) error {
		t, err := FindTable(tx, "table", table)
		if err != nil {
			return err
		}
		if t.Journal[engine.JournalStream].Keep == 0 {
			return refusal.Precondition("Change stream is not enabled on table %s.", table)
		}
		state, err := LoadPartitions(tx, t)
		if err != nil {
			return err
		}
		at, found := slices.BinarySearchFunc(state.Splits, key, bytes.Compare)
		if state.Splits, err = fn(slices.Clone(state.Splits), at, found); err != nil {
			return err
		}
		end, err := s.DB.JournalEnd(table, engine.JournalStream)
		if err != nil {
			return err
		}
		state.Changed = end.Number
		raw, err := json.Marshal(state)
		if err != nil {
			return err
		}
		return tx.PutResource(KindPartitions+table, raw)
	})
}
