package materialized

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/execution"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
	"github.com/tabletop-emu/tabletop/engine"
)

// The rows of the index begin with a byte for their kind:
//
//	p                               the position in the journal
//	s source key                    the rows of the view that the source row is in: length, key ...
//	g escaped view key 00 01 source key   its encoded outputs for that row, with GROUP BY
//
// A source row is noted under s in all rows of the view that it leaves or enters before any of them changes.
// So the same work, repeated after a crash, finds the rows that it left.
const (
	sources       = 's'
	contributions = 'g'
	indexFamily   = "i"
)

var positionRow = []byte{'p'}

// contributionKey returns the key of the outputs of a source row for a row of the view; without a
// source row, the common prefix of these keys.
func contributionKey(viewKey, source []byte) []byte {
	key := append([]byte{contributions}, bytes.ReplaceAll(viewKey, []byte{0}, []byte{0, 0xff})...)
	return append(append(key, 0, 1), source...)
}

// viewKeyOf returns the row of the view in the key of a contribution.
func viewKeyOf(key []byte) ([]byte, bool) {
	for i := 1; i+1 < len(key); i++ {
		if key[i] != 0 {
			continue
		}
		if key[i+1] == 1 {
			return bytes.ReplaceAll(key[1:i], []byte{0, 0xff}, []byte{0}), true
		}
		i++
	}
	return nil, false
}

func prefixSpan(prefix []byte) engine.Span {
	end := bytes.Clone(prefix)
	end[len(end)-1]++ // prefixes end with 01
	return engine.Span{Start: prefix, End: end}
}

// batch applies source rows together.
type batch struct {
	v       *Views
	x       *view
	d       *Definition
	filling bool // rows of groups are made at the end
	fresh   bool // neither the view nor its index has data of the source rows
	pace    *pace

	rows  []sourceRow
	bytes int
}

// sourceRow is a source row with its entries, sorted by key.
type sourceRow struct {
	key     []byte
	entries []entry
	old     [][]byte // the rows of the view that it was in
}

// add adds a source row, and flushes a full batch. entries is nil for a row that was deleted, or
// that the query leaves out.
func (b *batch) add(ctx context.Context, key []byte, entries []entry) error {
	slices.SortFunc(entries, func(x, y entry) int { return bytes.Compare(x.key, y.key) })
	b.rows = append(b.rows, sourceRow{key: key, entries: entries})
	for i := range entries {
		b.bytes += entries[i].size()
	}
	if b.bytes < batchBytes && len(b.rows) < batchRows {
		return nil
	}
	return b.flush(ctx)
}

// flush applies the batch.
func (b *batch) flush(ctx context.Context) error {
	if len(b.rows) == 0 {
		return nil
	}
	err := b.note(ctx)
	if err == nil && b.d.group == nil {
		err = b.replace(ctx)
	} else if err == nil {
		err = b.contribute(ctx)
	}
	if err == nil {
		err = b.forget(ctx)
	}
	b.rows, b.bytes = nil, 0
	return err
}

// noted returns the source rows that keep selects, and in rows the keys of their rows in the
// index.
func (b *batch) noted(keep func(*sourceRow) bool) (rows [][]byte, of []*sourceRow) {
	for i := range b.rows {
		if r := &b.rows[i]; keep(r) {
			rows, of = append(rows, append([]byte{sources}, r.key...)), append(of, r)
		}
	}
	return rows, of
}

// note reads the rows of the view that the source rows were in, and notes those that they will be in.
func (b *batch) note(ctx context.Context) error {
	rows, of := b.noted(func(*sourceRow) bool { return true })
	return b.v.update(ctx, b.pace, indexOf(b.x.name), rows, func(i int, tx *engine.RowTx) error {
		r := of[i]
		if !b.fresh {
			scan := tx.Scan()
			if scan.NextCell() {
				r.old = splitKeys(scan.Cell().Value)
			}
			if err := scan.Close(); err != nil {
				return err
			}
		}
		all := slices.Clone(r.old)
		for _, e := range r.entries {
			if !r.had(e.key) {
				all = append(all, e.key)
			}
		}
		if len(all) == len(r.old) {
			return nil
		}
		return tx.Mutate([]engine.Mutation{{Kind: engine.SetCell, Family: indexFamily, Value: joinKeys(all)}})
	})
}

// had reports whether a source row was in a row of the view.
func (r *sourceRow) had(key []byte) bool {
	return slices.ContainsFunc(r.old, func(k []byte) bool { return bytes.Equal(k, key) })
}

// left reports whether a source row is no longer in a row of the view.
func (r *sourceRow) left(key []byte) bool {
	_, found := slices.BinarySearchFunc(r.entries, key, func(e entry, key []byte) int { return bytes.Compare(e.key, key) })
	return !found
}

// forget removes the rows of the view that source rows have left from the index.
func (b *batch) forget(ctx context.Context) error {
	rows, of := b.noted(func(r *sourceRow) bool { return slices.ContainsFunc(r.old, r.left) })
	return b.v.update(ctx, b.pace, indexOf(b.x.name), rows, func(i int, tx *engine.RowTx) error {
		if len(of[i].entries) == 0 {
			return tx.Mutate([]engine.Mutation{{Kind: engine.DeleteFromRow}})
		}
		var keys [][]byte
		for _, e := range of[i].entries {
			keys = append(keys, e.key)
		}
		return tx.Mutate([]engine.Mutation{{Kind: engine.SetCell, Family: indexFamily, Value: joinKeys(keys)}})
	})
}

func joinKeys(keys [][]byte) []byte {
	out := []byte{}
	for _, k := range keys {
		out = append(binary.AppendUvarint(out, uint64(len(k))), k...)
	}
	return out
}

func splitKeys(from []byte) [][]byte {
	from = bytes.Clone(from)
	var keys [][]byte
	for len(from) > 0 {
		n, size := binary.Uvarint(from)
		if size <= 0 || n > uint64(len(from)-size) {
			return keys
		}
		end := size + int(n) //nolint:gosec // at most the length
		keys, from = append(keys, from[size:end:end]), from[end:]
	}
	return keys
}

// replace writes the rows of a view without GROUP BY: each belongs to one source row. A row that is not noted
// has no cells yet.
func (b *batch) replace(ctx context.Context) error {
	var keys [][]byte
	var muts [][]engine.Mutation
	for i := range b.rows {
		r := &b.rows[i]
		for _, key := range r.old {
			if r.left(key) {
				keys, muts = append(keys, key), append(muts, replacing(nil))
			}
		}
		for _, e := range r.entries {
			m := e.cells
			if r.had(e.key) {
				m = replacing(m)
			}
			keys, muts = append(keys, e.key), append(muts, m)
		}
	}
	return b.v.write(ctx, b.x, b.pace, keys, muts)
}

// replacing returns the mutations that replace a row with the given cells. Without cells they delete it.
func replacing(cells []engine.Mutation) []engine.Mutation {
	return append([]engine.Mutation{{Kind: engine.DeleteFromRow}}, cells...)
}

// write changes rows of a view.
func (v *Views) write(ctx context.Context, x *view, p *pace, keys [][]byte, muts [][]engine.Mutation) error {
	return v.update(ctx, p, rowsOf(x.name), keys, func(i int, tx *engine.RowTx) error { return tx.Mutate(muts[i]) })
}

// update changes rows of an internal table. It passes the index of each row to fn.
func (v *Views) update(ctx context.Context, p *pace, table string, rows [][]byte, fn func(i int, tx *engine.RowTx) error) error {
	for first := 0; first < len(rows); first += engine.InternalRows {
		if err := p.step(ctx); err != nil {
			return err
		}
		part := rows[first:min(first+engine.InternalRows, len(rows))]
		errs := v.o.DB.UpdateRows(ctx, table, part, func(i int, tx *engine.RowTx) error { return fn(first+i, tx) })
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	return nil
}

// contribute writes the contributions of the source rows, and then the rows of the view that they are part of.
func (b *batch) contribute(ctx context.Context) error {
	var keys, viewKeys, parts [][]byte
	for i := range b.rows {
		r := &b.rows[i]
		for _, key := range r.old {
			if r.left(key) {
				keys, viewKeys, parts = append(keys, contributionKey(key, r.key)), append(viewKeys, key), append(parts, nil)
			}
		}
		for _, e := range r.entries {
			keys, viewKeys, parts = append(keys, contributionKey(e.key, r.key)), append(viewKeys, e.key), append(parts, e.parts)
		}
	}
	changed := map[string]bool{} // rows of the view
	err := b.v.update(ctx, b.pace, indexOf(b.x.name), keys, func(i int, tx *engine.RowTx) error {
		if b.fresh {
			return tx.Mutate([]engine.Mutation{{Kind: engine.SetCell, Family: indexFamily, Value: parts[i]}})
		}
		scan := tx.Scan()
		var before []byte
		if scan.NextCell() {
			before = scan.Cell().Value
		}
		same := parts[i] != nil && bytes.Equal(before, parts[i])
		var err error
		if !same {
			err = b.x.changeTotal(b.d, viewKeys[i], before, parts[i])
		}
		if err := errors.Join(err, scan.Close()); err != nil {
			return err
		}
		if same && b.x.state.trusted {
			return nil
		}
		changed[string(viewKeys[i])] = true
		if parts[i] == nil {
			return tx.Mutate([]engine.Mutation{{Kind: engine.DeleteFromRow}})
		}
		return tx.Mutate([]engine.Mutation{{Kind: engine.SetCell, Family: indexFamily, Value: parts[i]}})
	})
	if err != nil || b.filling {
		return err
	}
	keys = nil
	var muts [][]engine.Mutation
	for key := range changed {
		if t := b.x.totals[key]; t != nil {
			cells, err := b.x.rowOf(ctx, b.d, key, t)
			if err != nil {
				return err
			}
			keys, muts = append(keys, []byte(key)), append(muts, replacing(cells))
		} else if err := b.v.regroup(ctx, b.x, b.d, b.pace, prefixSpan(contributionKey([]byte(key), nil)), []byte(key)); err != nil {
			return err
		}
	}
	return b.v.write(ctx, b.x, b.pace, keys, muts)
}

// rowOf returns the cells of a row of the view with a known total; none if the row must be deleted.
func (x *view) rowOf(ctx context.Context, d *Definition, key string, t *total) (cells []engine.Mutation, err error) {
	if t.outputs == 0 {
		delete(x.totals, key)
		return nil, nil
	}
	ok, err := run(ctx, d.above, execution.Options{Given: &given{t.row(d.terms)}}, func(out []value.Value) error {
		cells = d.appendCells(cells, out)
		return nil
	})
	if !ok {
		cells = nil
	}
	return cells, err
}

// regroup computes the rows of the view from the contributions in a span. gone is empty, or has
// the only row of the view in the span, which is deleted if it has no contributions.
func (v *Views) regroup(ctx context.Context, x *view, d *Definition, p *pace, span engine.Span, gone ...[]byte) error {
	scan, err := v.o.DB.Scan(ctx, indexOf(x.name), engine.ScanOptions{Spans: []engine.Span{span}})
	if err != nil {
		return err
	}
	defer func() { _ = scan.Close() }()
	keys, cells := gone, make([][]engine.Mutation, len(gone))
	for i := range gone {
		cells[i] = replacing(nil)
	}
	in := &contributed{ctx: ctx, scan: scan, d: d, pace: p}
	for in.next() {
		key := bytes.Clone(in.key)
		var row []engine.Mutation
		ok, err := run(ctx, d.group, execution.Options{Given: in}, func(out []value.Value) error {
			row = d.appendCells(row, out)
			return nil
		})
		if err == nil {
			err = in.skip()
		}
		if err != nil {
			return err
		}
		if !ok {
			row = nil
		}
		if len(gone) > 0 {
			cells[0] = replacing(row)
			x.keepTotal(key, in.total)
			continue
		}
		if keys, cells = append(keys, key), append(cells, replacing(row)); len(keys) == batchRows {
			if err := v.write(ctx, x, p, keys, cells); err != nil {
				return err
			}
			keys, cells = nil, nil
		}
	}
	return errors.Join(in.err, scan.Err(), ctx.Err(), v.write(ctx, x, p, keys, cells))
}

// contributed iterates over the contributions in a scan: next moves to the next row of the view,
// and Next returns its outputs as rows of an execution.
type contributed struct {
	ctx   context.Context // of the scan
	scan  *engine.Scan
	d     *Definition
	pace  *pace
	key   []byte // of the row of the view
	rest  []byte // outputs of the current contribution that were not returned
	ahead bool   // the scan is on the first contribution of the next row of the view
	end   bool
	err   error
	total *total // of the outputs that were returned; nil if it is not known
	lost  bool   // the total of the outputs cannot be computed
}

// next moves to the next row of the view.
func (c *contributed) next() bool {
	if c.err != nil || c.end {
		return false
	}
	if !c.ahead && !c.scan.NextRow() {
		c.end = true
		return false
	}
	c.ahead = false
	key, ok := viewKeyOf(c.scan.Row())
	if !ok {
		c.err = errDamaged
		return false
	}
	c.key, c.total, c.lost = key, nil, c.d.terms == nil
	c.err = c.read()
	return c.err == nil
}

// read reads the contribution that the scan is on.
func (c *contributed) read() error {
	if err := c.pace.step(c.ctx); err != nil {
		return err
	}
	c.rest = nil
	if c.scan.NextCell() {
		c.rest = bytes.Clone(c.scan.Cell().Value)
	}
	return c.scan.Err()
}

// Next returns the next output for the row of the view.
func (c *contributed) Next() ([]value.Value, error) {
	for len(c.rest) == 0 {
		if c.ahead || c.end {
			return nil, io.EOF
		}
		if !c.scan.NextRow() {
			c.end = true
			if err := c.scan.Err(); err != nil {
				return nil, err
			}
			return nil, io.EOF
		}
		key, ok := viewKeyOf(c.scan.Row())
		if !ok {
			return nil, errDamaged
		}
		if !bytes.Equal(key, c.key) {
			c.ahead = true
			return nil, io.EOF
		}
		if err := c.read(); err != nil {
			return nil, err
		}
	}
	row, rest, err := nextPart(c.rest, c.d.parts)
	c.rest = rest
	if err == nil && !c.lost {
		if c.total == nil {
			c.total = newTotal(c.d.terms, row[:c.d.by:c.d.by])
		}
		if !c.total.change(c.d.terms, row, true) {
			c.total, c.lost = nil, true
		}
	}
	return row, err
}

// skip passes the outputs that an execution has not read.
func (c *contributed) skip() error {
	for {
		c.rest = nil
		if _, err := c.Next(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// Close does nothing: the scan belongs to the caller.
func (c *contributed) Close() error { return nil }
