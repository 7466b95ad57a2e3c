package emu

import (
	"bytes"
	"context"
	"slices"

	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
)

// SplitPartition splits a partition of a table's change stream at key. Streams that read it are
// closed with tokens for both parts. It returns these statuses: NotFound for an unknown table,
// FailedPrecondition if the table has no change stream or a partition already begins at key, and
// InvalidArgument if key is empty.
func (s *Server) SplitPartition(ctx context.Context, table string, key []byte) error {
	return s.control.ChangePartitions(ctx, table, key, func(splits [][]byte, at int, found bool) ([][]byte, error) {
		if found {
			return nil, refusal.Precondition("Table %s already has a partition that begins at %q.", table, key)
		}
		return slices.Insert(splits, at, bytes.Clone(key)), nil
	})
}

// MergePartitions merges the two partitions of a table's change stream that meet at key. It returns
// the same statuses as SplitPartition, and FailedPrecondition if no partitions meet at key.
func (s *Server) MergePartitions(ctx context.Context, table string, key []byte) error {
	return s.control.ChangePartitions(ctx, table, key, func(splits [][]byte, at int, found bool) ([][]byte, error) {
		if !found {
			return nil, refusal.Precondition("No partitions of table %s meet at %q.", table, key)
		}
		return slices.Delete(splits, at, at+1), nil
	})
}

// mostPartitions bounds the partitions that churnPartitions creates in a table.
const mostPartitions = 16

// churnPartitions splits a partition of the stream's table at a row, or merges two, with the
// probability Options.PartitionChurn.
func (c *changeStream) churnPartitions(row []byte) error {
	if c.s.churn == 0 || c.s.random() >= c.s.churn {
		return nil
	}
	draw := c.s.random()
	return c.s.control.ChangePartitions(c.ctx, c.table.Name, row, func(splits [][]byte, at int, found bool) ([][]byte, error) {
		if n := len(splits); found || n+1 >= mostPartitions || n > 0 && draw < 0.5 {
			at = int(draw*2*float64(n)) % n
			return slices.Delete(splits, at, at+1), nil
		}
		return slices.Insert(splits, at, bytes.Clone(row)), nil
	})
}
