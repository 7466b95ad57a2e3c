package btclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// CheckAndMutate applies one of two lists of mutations to a row: yes if the filter passes a cell of
// the row, otherwise no. It reports whether it applied yes. It retries the call only if the call
// was never sent, because otherwise its outcome is unknown.
func (c *Client) CheckAndMutate(ctx context.Context, table string, row []byte, f *btpb.RowFilter, yes, no []*btpb.Mutation) (matched bool, err error) {
	t := c.target(table)
	resp, err := unary(t.outgoing(ctx), c, c.once(table, "CheckAndMutateRow").ofRow(c), btpb.BigtableClient.CheckAndMutateRow, c.data, &btpb.CheckAndMutateRowRequest{
		TableName: t.path, AppProfileId: c.o.AppProfile, RowKey: row, PredicateFilter: f, TrueMutations: yes, FalseMutations: no,
	})
	if err != nil {
		return false, fmt.Errorf("writing row %q of table %s: %w", row, table, err)
	}
	return resp.GetPredicateMatched(), nil
}

// Check is a call of CheckAndMutate, with its result.
type Check struct {
	Row     []byte
	Filter  *btpb.RowFilter
	Yes, No []*btpb.Mutation

	Matched bool
	Err     error
}

// Together reports whether the Bigtable is in this process, so that CheckAndMutateRows costs less than
// single calls.
func (c *Client) Together() bool { return c.near != nil && c.o.Deadline <= 0 }

// CheckAndMutateRows makes several independent calls of CheckAndMutate on one table, and sets their
// results. Unless Together returns true, they are made in sequence; all are made, even after an error.
func (c *Client) CheckAndMutateRows(ctx context.Context, table string, checks []Check) {
	if len(checks) > 1 && c.Together() && c.checkTogether(ctx, table, checks) {
		return
	}
	for i := range checks {
		c.Make(ctx, table, &checks[i])
	}
}

// Make makes the call k of CheckAndMutate on a table, and sets its result.
func (c *Client) Make(ctx context.Context, table string, k *Check) {
	k.Matched, k.Err = c.CheckAndMutate(ctx, table, k.Row, k.Filter, k.Yes, k.No)
}

func (c *Client) checkTogether(ctx context.Context, table string, checks []Check) bool {
	t := c.target(table)
	messages, reqs := make([]btpb.CheckAndMutateRowRequest, len(checks)), make([]*btpb.CheckAndMutateRowRequest, len(checks))
	for i := range checks {
		k, m := &checks[i], &messages[i]
		m.TableName, m.AppProfileId, m.RowKey = t.path, c.o.AppProfile, k.Row
		m.PredicateFilter, m.TrueMutations, m.FalseMutations = k.Filter, k.Yes, k.No
		reqs[i] = m
	}
	matched, errs := make([]bool, len(checks)), make([]error, len(checks))
	if !c.near.CheckAndMutateRows(t.outgoing(ctx), reqs, matched, errs) {
		return false
	}
	setOnce(&c.answered)
	for i := range checks {
		k := &checks[i]
		if k.Matched, k.Err = matched[i], errs[i]; k.Err != nil {
			k.Matched, k.Err = false, fmt.Errorf("writing row %q of table %s: %w", k.Row, table, k.Err)
		}
	}
	return true
}

// ReadModifyWrite applies rules to a row and returns the cells that they wrote. It retries the call
// under the same condition as CheckAndMutate.
func (c *Client) ReadModifyWrite(ctx context.Context, table string, row []byte, rules ...*btpb.ReadModifyWriteRule) (Row, error) {
	t := c.target(table)
	resp, err := unary(t.outgoing(ctx), c, c.once(table, "ReadModifyWriteRow").ofRow(c), btpb.BigtableClient.ReadModifyWriteRow, c.data, &btpb.ReadModifyWriteRowRequest{
		TableName: t.path, AppProfileId: c.o.AppProfile, RowKey: row, Rules: rules,
	})
	if err != nil {
		return Row{}, fmt.Errorf("writing row %q of table %s: %w", row, table, err)
	}
	written := Row{Key: row}
	for _, family := range resp.GetRow().GetFamilies() {
		for _, column := range family.GetColumns() {
			for _, cell := range column.GetCells() {
				written.Cells = append(written.Cells, Cell{Family: family.GetName(), Qualifier: column.GetQualifier(), Timestamp: cell.GetTimestampMicros(), Value: cell.GetValue()})
			}
		}
	}
	return written, nil
}

// MutateRow applies mutations to a row. With Retry.Writes, the call may be sent twice, so the
// mutations must be idempotent.
func (c *Client) MutateRow(ctx context.Context, table string, row []byte, muts []*btpb.Mutation) error {
	t := c.target(table)
	_, err := unary(t.outgoing(ctx), c, c.writing(table, "MutateRow").ofRow(c), btpb.BigtableClient.MutateRow, c.data,
		&btpb.MutateRowRequest{TableName: t.path, AppProfileId: c.o.AppProfile, RowKey: row, Mutations: muts})
	if err != nil {
		return fmt.Errorf("writing row %q of table %s: %w", row, table, err)
	}
	return nil
}

// Refusal is an entry of MutateRows that was not written.
type Refusal struct {
	Entry int // index of the entry
	Err   error
}

// MutateRows writes rows, each independently. It retries rows with an unknown outcome or a
// transient error as [Retry] configures, so with Retry.Writes entries may be sent twice. It returns
// the other rows that were not written, in the order in which they were refused. If it returns an
// error, some of the remaining rows may have been written too. While the Bigtable lacks resources
// for all rows of a call, it sends them in several calls; each call that writes rows resets the
// count of retries.
func (c *Client) MutateRows(ctx context.Context, table string, entries []*btpb.MutateRowsRequest_Entry) ([]Refusal, error) {
	again := c.writing(table, "MutateRows")
	at := make([]int, len(entries)) // indexes in entries of the rows to send
	for i := range at {
		at[i] = i
	}
	var refused []Refusal
	for len(entries) > 0 {
		p, err := c.throttle.enter(ctx, len(entries), again.deadline)
		if err != nil {
			return refused, fmt.Errorf("writing to table %s: %w", table, err)
		}
		answers, err := c.mutateRowsOnce(ctx, table, entries[:p.rows])
		c.throttle.leave(p, noRoom(err) || slices.ContainsFunc(answers, func(a answer) bool { return noRoom(a.err) }))
		var left []*btpb.MutateRowsRequest_Entry
		var leftAt []int
		why := err // error of the rows to retry
		if p.rows < len(entries) && slices.ContainsFunc(answers, answer.written) {
			again.reset() // otherwise the pieces of a large call would share the retries of one
		}
		for i, a := range answers {
			switch {
			case a.written():
				continue
			case a.given && (again.n >= again.most || !again.passes(a.err)):
				refused = append(refused, Refusal{at[i], a.err})
				continue
			case why == nil:
				why = a.err
			}
			left, leftAt = append(left, entries[i]), append(leftAt, at[i])
		}
		if why != nil {
			if err := again.again(ctx, why); err != nil {
				return refused, fmt.Errorf("writing to table %s: %w", table, err)
			}
		}
		entries, at = append(left, entries[p.rows:]...), append(leftAt, at[p.rows:]...)
	}
	return refused, nil
}

// answer is the outcome of an entry of MutateRows.
type answer struct {
	given bool
	err   error
}

// written reports that the entry was written.
func (a answer) written() bool { return a.given && a.err == nil }

// DeleteRows deletes rows by key.
func (c *Client) DeleteRows(ctx context.Context, table string, keys [][]byte) error {
	entries := make([]*btpb.MutateRowsRequest_Entry, len(keys))
	for i, key := range keys {
		entries[i] = &btpb.MutateRowsRequest_Entry{RowKey: key, Mutations: []*btpb.Mutation{DeleteRow()}}
	}
	refused, err := c.MutateRows(ctx, table, entries)
	if err == nil && len(refused) > 0 {
		err = fmt.Errorf("deleting %d rows of table %s: %w", len(refused), table, refused[0].Err)
	}
	return err
}

// mutateRowsOnce makes one MutateRows call. The error is nil if all entries were answered.
func (c *Client) mutateRowsOnce(ctx context.Context, table string, entries []*btpb.MutateRowsRequest_Entry) ([]answer, error) {
	w := c.watch(ctx, "MutateRows", c.o.Deadline)
	defer w.end()
	t := c.target(table)
	answers, left := make([]answer, len(entries)), len(entries)
	stream, err := c.data.MutateRows(t.outgoing(w.ctx), &btpb.MutateRowsRequest{TableName: t.path, AppProfileId: c.o.AppProfile, Entries: entries})
	if err != nil {
		return answers, w.why(err)
	}
	for {
		w.hear()
		resp, err := stream.Recv()
		switch {
		case left == 0 && err != nil:
			return answers, nil // the end of the stream no longer matters
		case errors.Is(err, io.EOF):
			// A proxy ended the stream: the outcome of the other entries is unknown.
			return answers, status.Errorf(codes.Unavailable, "the response ended early, with results for %d of %d rows", len(entries)-left, len(entries))
		case err != nil:
			return answers, w.why(err)
		}
		w.heard()
		c.throttle.slowDown(resp.GetRateLimitInfo())
		for _, e := range resp.GetEntries() {
			if i := e.GetIndex(); i < 0 || i >= int64(len(entries)) || answers[i].given {
				return answers, fmt.Errorf("the response names row %d of %d, which does not exist or already has a result", i, len(entries))
			}
			a := answer{given: true}
			if e.GetStatus().GetCode() != int32(codes.OK) {
				a.err = status.ErrorProto(e.GetStatus())
			}
			answers[e.GetIndex()], left = a, left-1
		}
	}
}
