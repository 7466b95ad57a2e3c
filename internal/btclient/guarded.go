package btclient

import (
	"bytes"
	"context"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// Guard is the column that holds the version of a row, and the value that the column had when the
// row was read.
type Guard struct {
	Family    string
	Qualifier []byte
	Was       []byte // value of the newest cell; nil if the column is empty
}

// Replace replaces a row if the newest cell of the guard's column still has the value of the guard.
// The new row has next in that column and the cells of set, all with the given time. If next is
// nil, the row is deleted. Each call needs a unique next: if a write arrives twice, the second one
// is refused, and next in the row proves that the first one was applied. Replace reports whether
// the row was replaced.
func (c *Client) Replace(ctx context.Context, table string, row []byte, g Guard, next []byte, micros int64, set ...*btpb.Mutation) (done bool, err error) {
	muts := append([]*btpb.Mutation{DeleteRow()}, set...)
	if next != nil {
		muts = append(muts, SetCell(g.Family, g.Qualifier, micros, next))
	}
	return c.ChangeGuarded(ctx, table, row, g, next, muts)
}

// ChangeGuarded applies mutations to a row if the newest cell of the guard's column still has the
// value of the guard. next is the value that the mutations leave in that column, or nil if they
// leave it empty. It identifies a write that arrives twice. ChangeGuarded reports whether the row
// was changed.
func (c *Client) ChangeGuarded(ctx context.Context, table string, row []byte, g Guard, next []byte, muts []*btpb.Mutation) (done bool, err error) {
	column := Chain(OfColumn(g.Family, g.Qualifier), Newest(1))
	if g.Was == nil {
		done, err = c.CheckAndMutate(ctx, table, row, column, nil, muts)
		done = !done && err == nil
	} else {
		done, err = c.CheckAndMutate(ctx, table, row, Chain(column, OfValue(g.Was)), muts, nil)
	}
	if done || err != nil || next == nil {
		return done, err
	}
	there, err := c.ReadRow(ctx, table, row, column)
	return err == nil && len(there.Cells) > 0 && bytes.Equal(there.Cells[0].Value, next), err
}
