package replica

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/tabletop-emu/tabletop/engine"
)

// Taken returns a context for changes of rows of t through the cluster that at identifies. With
// configured replication, the changes are recorded, and the other clusters see them after their
// lag. An empty at.Cluster means that the changes do not belong to a cluster.
func (r *Rows) Taken(ctx context.Context, t *engine.Table, at At) (context.Context, error) {
	x, err := r.table(t, at.Instance)
	if err != nil || x == nil {
		return engine.WithOrigin(ctx, at.Cluster), err
	}
	many, alone := len(x.stale) > manyStale, len(x.clusters) < 2
	x.mu.Unlock()
	if many {
		if err := x.sweep(ctx); err != nil {
			return ctx, err
		}
	}
	if alone {
		return engine.WithOrigin(ctx, at.Cluster), nil
	}
	return engine.WithRecorder(ctx, at.Cluster, &writer{rows: r, at: at}), nil
}

// writer records the row changes of a call. It implements engine.Recorder.
type writer struct {
	rows  *Rows
	at    At
	table *table // of the last record
}

// Recorded implements engine.Recorder.
func (w *writer) Recorded(tx *engine.RowTx, in *engine.JournalRecord) error {
	x, err := w.rows.table(tx.Table(), w.at.Instance)
	if err != nil || x == nil {
		return err
	}
	w.table = x
	rec := &record{number: in.Number, micros: in.Micros, origin: in.Origin, muts: bind(tx.Table(), in.Mutations)}
	var image *row
	size := rec.size()
	r, ok := x.rows.Get(&row{key: in.Row})
	if !ok {
		if !x.holds(rec) {
			x.mu.Unlock()
			return nil
		}
		x.mu.Unlock()
		if image, err = imageOf(tx, in); err != nil {
			return err
		}
		size += image.size()
		x.mu.Lock()
	} else if next, compacted := x.compact(r); compacted {
		if err := tx.PutResource(imageName(x.id, in.Row), encodeImage(next.since, next.image)); err != nil {
			x.mu.Unlock()
			return err
		}
	}
	defer x.mu.Unlock()
	if err := w.rows.grow(size); err != nil {
		return err
	}
	if r := x.add(in.Row, rec, image); r.state.pending == 0 {
		x.forget(r)
	}
	return nil
}

// holds reports whether the delivery of a record is delayed.
func (x *table) holds(rec *record) bool {
	if len(x.queues[rec.origin]) > 0 {
		return true
	}
	now := x.all.o.Control.o.Now().UnixMicro()
	for _, to := range x.clusters {
		if l := x.links[pair{rec.origin, to}]; l != nil && !l.visible(rec.number, rec.micros, now) {
			return true
		}
	}
	return false
}

// imageOf stores the row of a record as it is before the record, and returns it.
func imageOf(tx *engine.RowTx, in *engine.JournalRecord) (*row, error) {
	r := &row{key: bytes.Clone(in.Row), since: in.Number, state: &rowState{}}
	s := tx.Scan()
	for s.NextCell() {
		c := s.Cell()
		r.image = append(r.image, engine.Cell{
			Ordinal: c.Ordinal, Qualifier: append([]byte{}, c.Qualifier...), Timestamp: c.Timestamp, Value: append([]byte{}, c.Value...),
		})
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	return r, tx.PutResource(imageName(tx.Table().ID, in.Row), encodeImage(r.since, r.image))
}

// Undone implements engine.Recorder.
func (w *writer) Undone(key []byte, number uint64) {
	if x := w.table; x != nil {
		x.mu.Lock()
		defer x.mu.Unlock()
		if r, ok := x.rows.Get(&row{key: key}); ok {
			x.without(r, func(rec *record) bool { return rec.number == number })
		}
	}
}

// without removes the records for which out returns true from a row. It forgets the row if no
// pending record is left.
func (x *table) without(r *row, out func(*record) bool) {
	next := *r
	next.state = &rowState{}
	next.records = nil
	for _, rec := range r.records {
		if out(rec) {
			queue := slices.DeleteFunc(x.queues[rec.origin], func(q *record) bool { return q == rec })
			if x.queues[rec.origin] = queue; len(queue) == 0 {
				delete(x.queues, rec.origin)
			}
			continue
		}
		if slices.Contains(x.queues[rec.origin], rec) {
			next.state.pending++
		}
		next.records = append(next.records, rec)
	}
	// Records point to the shared state of their row.
	for _, rec := range next.records {
		rec.row = &row{key: next.key, state: next.state}
	}
	x.all.shrink(r.size() - next.size())
	x.rows.ReplaceOrInsert(&next)
	if next.state.pending == 0 {
		x.forget(&next)
	}
}

// Dropping implements engine.Recorder. It blocks new reads between the drop of rows and the removal
// of their pending records.
func (w *writer) Dropping(span engine.Span) (done func(dropped bool)) {
	x := w.table
	if x == nil {
		return func(bool) {}
	}
	x.mu.Lock()
	return func(dropped bool) {
		defer x.mu.Unlock()
		if !dropped {
			return
		}
		for _, r := range x.within([]engine.Span{span}, false) {
			x.dropped(r)
		}
	}
}

// dropped forgets a dropped row. Placeholders keep the order of delivery for
// later records of its origins.
func (x *table) dropped(r *row) {
	for _, rec := range r.records {
		if queue := x.queues[rec.origin]; slices.Contains(queue, rec) {
			queue[slices.Index(queue, rec)] = &record{number: rec.number, micros: rec.micros, origin: rec.origin, row: &row{}}
		}
	}
	x.forget(r)
}

// Dropping returns the context for dropping rows of a table. All clusters see
// the drop at once.
func (r *Rows) Dropping(ctx context.Context, t *engine.Table, instance string) (context.Context, error) {
	x, err := r.table(t, instance)
	if err != nil || x == nil {
		return ctx, err
	}
	x.mu.Unlock()
	return engine.WithRecorder(ctx, "", &writer{rows: r, table: x}), nil
}

// Row implements engine.Recorder.
func (w *writer) Row(tx *engine.RowTx) engine.RowCells {
	x, err := w.rows.table(tx.Table(), w.at.Instance)
	if err != nil {
		return &cursor{err: err}
	}
	if x == nil {
		return nil
	}
	r, ok := x.rows.Get(&row{key: tx.Key()})
	s := x.sight(w.at.Cluster)
	x.mu.Unlock()
	if !ok {
		return nil
	}
	return newCursor(live(s.of(r), tx.Table(), tx.Now(), tx.EagerGC()), tx.Table())
}

// live returns the cells of cs that reads see: without those of deleted families and, with
// eagerGC, without those that a garbage collection at now would remove. It does not change cs.
func live(cs cells, t *engine.Table, now time.Time, eagerGC bool) cells {
	gone := func(c engine.Cell) bool {
		return !slices.ContainsFunc(t.Families, func(f engine.Family) bool { return f.Ordinal == c.Ordinal })
	}
	switch {
	case eagerGC:
		return append(cells{}, cs...).collect(t.Families, now)
	case slices.ContainsFunc(cs, gone):
		return slices.DeleteFunc(append(cells{}, cs...), gone)
	}
	return cs
}

// Collected applies a garbage collection of the store, at the given time, to the rows that Rows
// keeps, separately for the cells that each cluster sees. Call it after each collection. A cluster
// still receives the records of other clusters that it does not yet see.
func (r *Rows) Collected(now time.Time) error {
	for _, x := range r.known() {
		x.mu.Lock()
		name := x.name
		x.mu.Unlock()
		t, err := r.o.DB.Table(name)
		if err != nil || t.ID != x.id {
			continue // deleted
		}
		in, err := r.table(t, x.instance)
		if err != nil {
			return err
		}
		if in == nil {
			continue
		}
		number, micros := r.o.DB.JournalLast()
		for _, row := range in.within(nil, false) {
			rec := &record{number: number, micros: micros, collected: now, families: t.Families}
			if r.grow(rec.size()) == nil {
				in.add(row.key, rec, nil)
			}
		}
		in.mu.Unlock()
	}
	return nil
}

// Leaving must be called before a cluster is deleted, and done afterwards, even if the deletion
// failed. Records of the cluster that no other cluster has seen are lost with it. Until done is
// called, no more of its records become visible.
func (r *Rows) Leaving(instance, cluster string) (done func(ctx context.Context, deleted bool) error) {
	if r.o.Control.View(instance) == nil {
		return func(context.Context, bool) error { return nil }
	}
	var leaving []*table
	var failed error
	for _, t := range r.o.DB.Tables(instance + "/") {
		x, err := r.table(t, instance)
		if err != nil {
			failed = err
		}
		if x != nil {
			x.leaving = cluster
			leaving = append(leaving, x)
			x.mu.Unlock()
		}
	}
	return func(ctx context.Context, deleted bool) error {
		for _, x := range leaving {
			if deleted && failed == nil {
				failed = x.lose(ctx, cluster)
			}
			x.mu.Lock()
			x.leaving, x.links = "", nil
			x.mu.Unlock()
		}
		return failed
	}
}

// lose undoes the records of a cluster that no other cluster has seen.
func (x *table) lose(ctx context.Context, cluster string) error {
	x.mu.Lock()
	lost := map[string][]uint64{} // by row
	if err := x.refresh(); err != nil {
		x.mu.Unlock()
		return err
	}
	for _, rec := range x.queues[cluster] {
		if !slices.ContainsFunc(x.clusters, func(to string) bool {
			return to != cluster && rec.number < x.cuts[pair{cluster, to}]
		}) {
			lost[string(rec.row.key)] = append(lost[string(rec.row.key)], rec.number)
		}
	}
	x.mu.Unlock()
	for key, numbers := range lost {
		out := func(rec *record) bool { return rec.origin == cluster && slices.Contains(numbers, rec.number) }
		err := x.all.o.DB.Update(ctx, x.name, []byte(key), func(tx *engine.RowTx) error {
			x.mu.Lock()
			defer x.mu.Unlock()
			r, ok := x.rows.Get(&row{key: []byte(key)})
			if !ok || tx.Table().ID != x.id {
				return nil
			}
			left := slices.Clone(r.image)
			for _, rec := range r.records {
				if !out(rec) {
					left = rec.onto(left)
				}
			}
			if err := tx.Replace(left, numbers...); err != nil {
				return err
			}
			x.without(r, out)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
