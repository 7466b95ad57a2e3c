package btclient

import (
	"bytes"
	"context"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// Guard is the column with the version of a row, and the version's value when the row was
// read.
type Guard struct {
	Family    string
	Qualifier []byte
	Was       []byte // of the newest cell; nil: the column is empty
}

// Replace replaces a row if the newest cell of the guard's column still has the value of the
// guard. The row then has next in that column and the cells of set, all with the given time;
// if next is nil, it is deleted. Each call needs a unique next: a write that arrives twice is
// refused the second time, and next in the row shows that it was done. Replace reports whether
// it was done.
func (c *Client) Replace(ctx context.Context, table string, row []byte, g Guard, next []byte, micros int64, set ...*btpb.Mutation) (done bool, err error) {
	muts := append([]*btpb.Mutation{DeleteRow()}, set...)
	if next != nil {
		muts = append(muts, SetCell(g.Family, g.Qualifier, micros, next))
	}
	return c.ChangeGuarded(ctx, table, row, g, next, muts)
}

// ChangeGuarded applies mutations to a row if the newest cell of the guard's column still has
// the value of the guard. next is the value that the mutations leave there, which identifies a
// write that arrived twice; nil if they leave none. ChangeGuarded reports whether the row was
// changed.
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
