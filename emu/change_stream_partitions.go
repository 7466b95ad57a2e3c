package emu

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

// partitionState is the partitions of a table's change stream, once they were
// split or merged: a resource in JSON, by the table's name. It is of one stream;
// the next begins with the table's splits again.
type partitionState struct {
	Since  uint64   `json:"since"` // of the stream
	Splits [][]byte `json:"splits"`
	// Changed is the journal number of the last change of the partitions.
	Changed uint64 `json:"changed"`
}

func (p *partitionState) partitions() []changes.Partition { return changes.Split(p.Splits) }

// loadPartitions returns the partitions of a table's change stream.
func loadPartitions(r catalogReader, t *engine.Table) (*partitionState, error) {
	initial := &partitionState{Since: t.Journal[engine.JournalStream].Since}
	for _, s := range t.Splits {
		if len(s) > 0 {
			initial.Splits = append(initial.Splits, s)
		}
	}
	raw, err := r.Resource(kindPartitions + t.Name)
	if errors.Is(err, engine.ErrResourceNotFound) {
		return initial, nil
	}
	if err != nil {
		return nil, err
	}
	state := &partitionState{}
	if err := json.Unmarshal(raw, state); err != nil {
		return nil, fmt.Errorf("partitions of table %s: %w", t.Name, err)
	}
	if state.Since != initial.Since {
		return initial, nil
	}
	return state, nil
}

// SplitPartition splits the partition of a table's change stream that holds key at
// key: the streams that read it are closed with tokens for both parts. Errors, as
// statuses: NotFound; FailedPrecondition without a change stream, and where there is
// a bound at key already; InvalidArgument for an empty key.
func (s *Server) SplitPartition(ctx context.Context, table string, key []byte) error {
	return s.changePartitions(ctx, table, key, func(splits [][]byte, at int, found bool) ([][]byte, error) {
		if found {
			return nil, refusal.Precondition("The partitions of table %s are split at %q already.", table, key)
		}
		return slices.Insert(splits, at, bytes.Clone(key)), nil
	})
}

// MergePartitions merges the two partitions of a table's change stream that meet at
// key. Errors, as statuses: the errors of SplitPartition, and FailedPrecondition if no
// partitions meet at key.
func (s *Server) MergePartitions(ctx context.Context, table string, key []byte) error {
	return s.changePartitions(ctx, table, key, func(splits [][]byte, at int, found bool) ([][]byte, error) {
		if !found {
			return nil, refusal.Precondition("No partitions of table %s meet at %q.", table, key)
		}
		return slices.Delete(splits, at, at+1), nil
	})
}

func (s *Server) changePartitions(ctx context.Context, table string, key []byte, fn func(splits [][]byte, at int, found bool) ([][]byte, error)) error {
	if len(key) == 0 {
		return refusal.Invalid("key", "must not be empty")
	}
	return s.change(ctx, func(tx *engine.CatalogTx) error {
		t, err := findTable(tx, "table", table)
		if err != nil {
			return err
		}
		if t.Journal[engine.JournalStream].Keep == 0 {
			return refusal.Precondition("Change stream is not enabled on table %s.", table)
		}
		state, err := loadPartitions(tx, t)
		if err != nil {
			return err
		}
		at, found := slices.BinarySearchFunc(state.Splits, key, bytes.Compare)
		if state.Splits, err = fn(slices.Clone(state.Splits), at, found); err != nil {
			return err
		}
		end, err := s.db.JournalEnd(table, engine.JournalStream)
		if err != nil {
			return err
		}
		state.Changed = end.Number
		raw, err := json.Marshal(state)
		if err != nil {
			return err
		}
		return tx.PutResource(kindPartitions+table, raw)
	})
}

// mostPartitions is how many partitions churnPartitions makes of a table.
const mostPartitions = 16

// churnPartitions splits a partition of the stream's table at a row, or merges two,
// as often as Options.PartitionChurn says.
func (c *changeStream) churnPartitions(row []byte) error {
	if c.s.churn == 0 || c.s.random() >= c.s.churn {
		return nil
	}
	draw := c.s.random()
	return c.s.changePartitions(c.ctx, c.table.Name, row, func(splits [][]byte, at int, found bool) ([][]byte, error) {
		if n := len(splits); found || n+1 >= mostPartitions || n > 0 && draw < 0.5 {
			at = int(draw*2*float64(n)) % n
			return slices.Delete(splits, at, at+1), nil
		}
		return slices.Insert(splits, at, bytes.Clone(row)), nil
	})
}
