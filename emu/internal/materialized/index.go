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
// Without GROUP BY, a commit changes a source row in the index together with its rows of the view. With
// GROUP BY, the first commits note a source row in all rows of the view that it leaves or enters, and write its outputs; the
// last ones write rows of the view, and then note only those that the source row is in. So the same work, repeated after a
// crash, finds the rows that it left.
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
	err := b.readOld(ctx)
	if err == nil && b.d.group == nil {
		err = b.replace(ctx)
	} else if err == nil {
		err = b.contribute(ctx)
	}
	b.rows, b.bytes = b.rows[:0], 0
	return err
}

// readOld reads the rows of the view that the source rows were in.
func (b *batch) readOld(ctx context.Context) error {
	if b.fresh {
		return nil
	}
	keys := make([][]byte, len(b.rows))
	for i := range b.rows {
		keys[i] = noteKey(b.rows[i].key)
	}
	noted, err := b.v.o.DB.Values(ctx, indexOf(b.x.name), indexFamily, keys)
	for i, n := range noted {
		b.rows[i].old = splitKeys(n)
	}
	return err
}

// noteKey returns the key in the index of the note of a source row.
func noteKey(source []byte) []byte {
	return append(append(make([]byte, 0, 1+len(source)), sources), source...)
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

// entered returns the rows of the view that a source row is in and was not in before.
func (r *sourceRow) entered() (keys [][]byte) {
	for _, e := range r.entries {
		if !r.had(e.key) {
			keys = append(keys, e.key)
		}
	}
	return keys
}

// note returns the change that notes the rows of the view that a source row is in; ok is false if they are
// noted.
func (r *sourceRow) note() (muts []engine.Mutation, ok bool) {
	if !slices.ContainsFunc(r.old, r.left) && len(r.entered()) == 0 {
		return nil, false
	}
	if len(r.entries) == 0 {
		return []engine.Mutation{deletion(indexFamily, "")}, true
	}
	keys := make([][]byte, len(r.entries))
	for i, e := range r.entries {
		keys[i] = e.key
	}
	return noting(keys), true
}

func noting(keys [][]byte) []engine.Mutation {
	return []engine.Mutation{{Kind: engine.SetCell, Family: indexFamily, Value: joinKeys(keys)}}
}

// deletion deletes the cell of a column with the timestamp 0, which need not exist.
func deletion(family, qualifier string) engine.Mutation {
	return engine.Mutation{Kind: engine.DeleteFromColumn, Family: family, Qualifier: []byte(qualifier), End: 1}
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

// commitRows is the number of rows in a commit, except for those of one source row. A later commit, of any
// table, becomes visible only after it.
const commitRows = 16

// changes collects changes of the internal tables.
type changes struct {
	v    *Views
	pace *pace
	rows []engine.InternalRow
}

func (c *changes) add(table string, row []byte, muts []engine.Mutation) {
	c.rows = append(c.rows, engine.InternalRow{Table: table, Row: row, Mutations: muts})
}

// commit commits the changes together.
func (c *changes) commit(ctx context.Context) error {
	err := c.pace.step(ctx)
	if err == nil {
		err = c.v.o.DB.MutateInternal(ctx, c.rows)
	}
	c.rows = c.rows[:0]
	return err
}

// commitAll commits the changes in order.
func (c *changes) commitAll(ctx context.Context) error {
	all := c.rows
	for part := range slices.Chunk(all, commitRows) {
		c.rows = part
		if err := c.commit(ctx); err != nil {
			return err
		}
	}
	c.rows = all[:0]
	return nil
}

// replace writes the rows of a view without GROUP BY: each belongs to one source row. A row that is not noted
// has no cells yet.
func (b *batch) replace(ctx context.Context) error {
	c := changes{v: b.v, pace: b.pace}
	rows, index := rowsOf(b.x.name), indexOf(b.x.name)
	for i := range b.rows {
		r := &b.rows[i]
		for _, key := range r.old {
			if r.left(key) {
				c.add(rows, key, b.d.replacing(nil))
			}
		}
		for _, e := range r.entries {
			m := e.cells
			if r.had(e.key) {
				m = b.d.replacing(m)
			}
			c.add(rows, e.key, m)
		}
		if note, ok := r.note(); ok {
			c.add(index, noteKey(r.key), note)
		}
		if len(c.rows) >= commitRows {
			if err := c.commit(ctx); err != nil {
				return err
			}
		}
	}
	return c.commit(ctx)
}

// replacing returns the mutations that replace a row of the view with the given cells. Without cells they delete it.
func (d *Definition) replacing(cells []engine.Mutation) []engine.Mutation {
	if d.deletions == nil {
		return append([]engine.Mutation{{Kind: engine.DeleteFromRow}}, cells...)
	}
	muts := make([]engine.Mutation, 0, len(d.deletions)+len(cells))
	rest := cells // in the order of the deletions
	for _, m := range d.deletions {
		if len(rest) > 0 && rest[0].Family == m.Family && bytes.Equal(rest[0].Qualifier, m.Qualifier) {
			rest = rest[1:]
		} else {
			muts = append(muts, m)
		}
	}
	return append(muts, cells...)
}

// contribute writes the contributions of the source rows, and then the rows of the view that they are part of.
func (b *batch) contribute(ctx context.Context) error {
	index := indexOf(b.x.name)
	c := changes{v: b.v, pace: b.pace}
	changed := map[string]bool{} // rows of the view
	for i := range b.rows {
		if err := b.contributeRow(ctx, &b.rows[i], &c, changed); err != nil {
			return err
		}
	}
	known := len(changed)+len(c.rows)+len(b.rows) <= commitRows
	for key := range changed {
		known = known && b.x.totals[key] != nil
	}
	if !known || b.filling { // otherwise the changes below are part of the same commit
		if err := c.commitAll(ctx); err != nil {
			return err
		}
	}
	if !b.filling {
		for key := range changed {
			if t := b.x.totals[key]; t != nil {
				cells, err := b.x.rowOf(ctx, b.d, key, t)
				if err != nil {
					return err
				}
				c.add(rowsOf(b.x.name), []byte(key), b.d.replacing(cells))
			} else if err := b.v.regroup(ctx, b.x, b.d, b.pace, prefixSpan(contributionKey([]byte(key), nil)), []byte(key)); err != nil {
				return err
			}
		}
	}
	for i := range b.rows {
		if r := &b.rows[i]; slices.ContainsFunc(r.old, r.left) {
			note, _ := r.note()
			c.add(index, noteKey(r.key), note)
		}
	}
	if known {
		return c.commit(ctx)
	}
	return c.commitAll(ctx)
}

// contributeRow adds the changes of the contributions of a source row, and the rows of the view that change.
func (b *batch) contributeRow(ctx context.Context, r *sourceRow, c *changes, changed map[string]bool) error {
	index := indexOf(b.x.name)
	if entered := r.entered(); len(entered) > 0 {
		c.add(index, noteKey(r.key), noting(append(entered, r.old...)))
	}
	var keys, viewKeys, parts [][]byte
	for _, key := range r.old {
		if r.left(key) {
			keys, viewKeys, parts = append(keys, contributionKey(key, r.key)), append(viewKeys, key), append(parts, nil)
		}
	}
	for _, e := range r.entries {
		keys, viewKeys, parts = append(keys, contributionKey(e.key, r.key)), append(viewKeys, e.key), append(parts, e.parts)
	}
	before := make([][]byte, len(keys))
	if !b.fresh {
		var err error
		if before, err = b.v.o.DB.Values(ctx, index, indexFamily, keys); err != nil {
			return err
		}
	}
	for i, key := range keys {
		same := parts[i] != nil && bytes.Equal(before[i], parts[i])
		if !same {
			if err := b.x.changeTotal(b.d, viewKeys[i], before[i], parts[i]); err != nil {
				return err
			}
		}
		if same && b.x.state.trusted {
			continue
		}
		changed[string(viewKeys[i])] = true
		m := engine.Mutation{Kind: engine.SetCell, Family: indexFamily, Value: parts[i]}
		if parts[i] == nil {
			m = deletion(indexFamily, "")
		}
		c.add(index, key, []engine.Mutation{m})
	}
	return nil
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
	rows := rowsOf(x.name)
	c := changes{v: v, pace: p}
	for _, key := range gone {
		c.add(rows, key, d.replacing(nil))
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
			c.rows[0].Mutations = d.replacing(row)
			x.keepTotal(key, in.total)
			continue
		}
		if c.add(rows, key, d.replacing(row)); len(c.rows) == commitRows {
			if err := c.commit(ctx); err != nil {
				return err
			}
		}
	}
	return errors.Join(in.err, scan.Err(), ctx.Err(), c.commit(ctx))
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
