package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// RuleKind is the kind of a GCRule.
type RuleKind uint8

// These are the kinds of garbage-collection rules. NoGC keeps all cells.
const (
	NoGC RuleKind = iota
	MaxVersions
	MaxAge
	Union        // collects a cell if any of Rules collects it
	Intersection // collects a cell if all of Rules collect it
)

// GCRule selects the cells of a family that may be collected.
type GCRule struct {
	Kind     RuleKind
	Versions int           // MaxVersions: the number of newest cells that a column keeps
	Age      time.Duration // MaxAge: cells older than this are collected
	Rules    []GCRule      // Union, Intersection
}

// GCStats holds the statistics of a garbage-collection run.
type GCStats struct {
	CellsScanned, CellsDeleted int64
}

const (
	// gcBatchCells is the number of cells deleted at once. Small batches and a
	// pause between them keep the sweep from holding up writers.
	gcBatchCells = 256
	gcPause      = 500 * time.Microsecond
	// gcViewBatches is the number of batches after which the sweep takes a new
	// view of the store, so that it pins no memtables.
	gcViewBatches = 256
)

// Collects reports whether the rule collects a cell, given its timestamp and the number of newer
// cells in its column.
func (r *GCRule) Collects(version int, micros int64, now time.Time) bool {
	switch r.Kind {
	case NoGC:
		return false
	case MaxVersions:
		return version >= r.Versions
	case MaxAge:
		return micros < now.Add(-r.Age).UnixMicro()
	case Union:
		return slices.ContainsFunc(r.Rules, func(s GCRule) bool { return s.Collects(version, micros, now) })
	case Intersection:
		return len(r.Rules) > 0 &&
			!slices.ContainsFunc(r.Rules, func(s GCRule) bool { return !s.Collects(version, micros, now) })
	}
	return false
}

// RunGC applies every family's rule once, at the clock's current time. It also removes the
// remaining data of dropped families and of tables that can no longer be undeleted, and the journal
// records that no term retains. It deletes garbage in small batches, concurrently with other calls.
// At the moment of its deletion, each cell is garbage according to the current rules and the current
// cells of its row.
func (d *DB) RunGC(ctx context.Context) (GCStats, error) {
	var stats GCStats
	if err := d.enter(); err != nil {
		return stats, err
	}
	defer d.leave()
	d.gcMu.Lock()
	defer d.gcMu.Unlock()
	now := d.now()
	if err := d.purge(now); err != nil {
		return stats, fmt.Errorf("engine: gc of deleted tables: %w", err)
	}
	if err := d.journal.trim(now); err != nil {
		return stats, fmt.Errorf("engine: gc of journals: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(d.catalog.Load().tables)) {
		if err := d.sweep(ctx, name, now, &stats); err != nil {
			return stats, fmt.Errorf("engine: gc of table %q: %w", name, err)
		}
	}
	return stats, d.syncLog()
}

// sweep collects the garbage of one table. It starts again whenever the table changes
// meanwhile.
func (d *DB) sweep(ctx context.Context, name string, now time.Time, stats *GCStats) error {
	for {
		t, ok := d.catalog.Load().tables[name]
		if !ok {
			return nil // deleted meanwhile
		}
		if !t.needsGC() {
			return nil
		}
		s := &sweeper{d: d, ctx: ctx, t: t, now: now, stats: stats}
		done, err := s.run()
		if err != nil {
			return err
		}
		if done && len(t.dropped) > 0 {
			if done, err = d.forgetDropped(t); err != nil {
				return err
			}
		}
		if done {
			return nil
		}
	}
}

// needsGC reports whether a sweep could find garbage.
func (t *table) needsGC() bool {
	return len(t.dropped) > 0 || t.hasRules()
}

// hasRules reports whether a family has a rule that can collect cells.
func (t *table) hasRules() bool {
	return slices.ContainsFunc(t.def.Families, func(f Family) bool { return f.GC.Kind != NoGC })
}

// forgetDropped records that the dropped families of t have no cells left. It returns false if
// t is no longer current.
func (d *DB) forgetDropped(t *table) (bool, error) {
	d.catalogMu.Lock()
	defer d.catalogMu.Unlock()
	c := d.catalog.Load()
	if c.tables[t.def.Name] != t {
		return false, nil
	}
	return true, d.replaceCatalog(d.pebble.NewBatch(), c.with(newTable(t.def, t.nextOrdinal, nil)), pebble.NoSync)
}

// sweeper is one pass over a table.
type sweeper struct {
	d     *DB
	ctx   context.Context // of the RunGC
	t     *table
	now   time.Time
	stats *GCStats

	// seen has the delete counts of all latches when the view was taken. Garbage stays garbage
	// while its row only gains cells: newer cells push it further back, and its age only
	// grows.
	seen    [latches]uint64
	garbage []garbageCell
	numbers []uint64 // of the records in flight
}

// garbageCell is the key of a cell and the length of its row's prefix.
type garbageCell struct {
	key    []byte
	rowLen int
	latch  int
}

// run sweeps the table. It returns false if the table has changed and the sweep must restart.
func (s *sweeper) run() (bool, error) {
	from := appendTablePrefix(nil, s.t.def.ID)
	end := prefixEnd(bytes.Clone(from))
	for from != nil {
		for i := range s.seen {
			l := &s.d.latches[i]
			l.mu.Lock()
			s.seen[i] = l.deletes
			l.mu.Unlock()
		}
		it, err := s.d.pebble.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: end})
		if err != nil {
			return false, err
		}
		next, same, err := s.view(it)
		if closeErr := it.Close(); err == nil {
			err = closeErr
		}
		if err != nil || !same {
			return false, err
		}
		from = next
	}
	return true, nil
}

// view sweeps with one view of the store. It returns the row from which a newer view
// continues, nil at the end; same is false if the table has changed.
func (s *sweeper) view(it *pebble.Iterator) (next []byte, same bool, err error) {
	col := columnRule{t: s.t, now: s.now}
	batches := 0
	var rowLen, latch int
	var row []byte // encoded prefix of the current row
	for valid := it.First(); valid; valid = it.Next() {
		k := it.Key()
		if row == nil || !bytes.HasPrefix(k, row) {
			n, _, ok := splitCellKey(k)
			if !ok {
				return nil, false, fmt.Errorf("key %x is not the key of a cell", k)
			}
			if batches >= gcViewBatches {
				same, err := s.collect()
				return bytes.Clone(k[:n]), same, err
			}
			rowLen, row = n, append(row[:0], k[:n]...)
			latch = s.d.latchOf(s.t, appendUnescaped(nil, k[tablePrefixLen:n]))
			col.begin()
		}
		s.stats.CellsScanned++
		if !col.collects(k[rowLen:]) {
			continue
		}
		s.garbage = append(s.garbage, garbageCell{key: bytes.Clone(k), rowLen: rowLen, latch: latch})
		if len(s.garbage) < gcBatchCells {
			continue
		}
		if same, err := s.collect(); err != nil || !same {
			return nil, same, err
		}
		batches++
		if err := s.pause(); err != nil {
			return nil, false, err
		}
	}
	if err := it.Error(); err != nil {
		return nil, false, err
	}
	if err := s.ctx.Err(); err != nil {
		return nil, false, err
	}
	same, err = s.collect()
	return nil, same, err
}

// pause lets other calls run.
func (s *sweeper) pause() error {
	timer := time.NewTimer(gcPause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// columnRule visits the cells of a row in storage order and reports the garbage among them.
type columnRule struct {
	t       *table
	now     time.Time
	column  []byte // ordinal and escaped qualifier of the previous cell
	version int
}

// begin starts a new row.
func (c *columnRule) begin() { c.column, c.version = c.column[:0], 0 }

// collects counts the next cell of the row, and reports whether it is garbage. rest is its key after
// the row's prefix.
func (c *columnRule) collects(rest []byte) bool {
	column := rest[:len(rest)-timestampLen]
	if len(c.column) > 0 && bytes.Equal(column, c.column) {
		c.version++
	} else {
		c.column, c.version = append(c.column[:0], column...), 0
	}
	f := c.t.live(binary.BigEndian.Uint16(column))
	return f == nil || f.GC.Collects(c.version, keyTimestamp(rest), c.now)
}

// collect deletes the garbage found so far. If the table has changed it deletes nothing and
// returns false.
func (s *sweeper) collect() (bool, error) {
	same, err := s.delete()
	if len(s.numbers) == 0 {
		return same, err
	}
	if err == nil && s.d.write.Sync {
		err = s.d.syncLog() // so that readers wait for this batch only, not for the sweep
	}
	if err == nil || s.d.failed() == nil {
		s.d.journal.settle(err == nil && same, s.numbers...)
	}
	s.numbers = s.numbers[:0]
	return same, err
}

// delete deletes the garbage found so far, under the latches of its rows. It checks again the
// rows that have lost cells since the view was taken. If the table has changed it deletes
// nothing and returns false.
func (s *sweeper) delete() (bool, error) {
	if len(s.garbage) == 0 {
		return s.d.catalog.Load().tables[s.t.def.Name] == s.t, nil
	}
	held := make([]int, 0, len(s.garbage))
	for _, g := range s.garbage {
		held = append(held, g.latch)
	}
	slices.Sort(held)
	held = slices.Compact(held)
	for _, i := range held {
		s.d.latches[i].mu.Lock()
	}
	defer func() {
		for _, i := range held {
			s.d.latches[i].mu.Unlock()
		}
		clear(s.garbage)
		s.garbage = s.garbage[:0]
	}()
	if s.d.catalog.Load().tables[s.t.def.Name] != s.t {
		return false, nil
	}
	b := s.d.pebble.NewBatch()
	deleted := int64(0)
	for i := 0; i < len(s.garbage); {
		g := s.garbage[i]
		row := g.key[:g.rowLen]
		n := i + 1
		for n < len(s.garbage) && bytes.HasPrefix(s.garbage[n].key, row) {
			n++
		}
		keys := s.garbage[i:n]
		i = n
		var still map[string]bool
		if s.d.latches[g.latch].deletes != s.seen[g.latch] {
			var err error
			if still, err = s.garbageNow(keys); err != nil {
				_ = b.Close()
				return false, err
			}
		}
		if still != nil {
			keys = slices.DeleteFunc(keys, func(g garbageCell) bool { return !still[string(g.key)] })
		}
		for _, g := range keys {
			if err := b.Delete(g.key, nil); err != nil {
				_ = b.Close()
				return false, err
			}
			deleted++
		}
		if s.t.journaled {
			if err := s.record(b, keys); err != nil {
				_ = b.Close()
				return false, err
			}
		}
	}
	// Writers of these rows wait for memory, not for the disk.
	if err := s.d.apply(b, pebble.NoSync); err != nil {
		return false, err
	}
	s.stats.CellsDeleted += deleted
	return true, nil
}

// garbageNow reports for each of keys, which are cells of one row in order, whether it is garbage in
// the current row. A cell that no longer exists is not. The caller holds the row's latch.
func (s *sweeper) garbageNow(keys []garbageCell) (map[string]bool, error) {
	first, last := keys[0], keys[len(keys)-1].key
	col := columnRule{t: s.t, now: s.now}
	it, err := s.d.pebble.NewIter(&pebble.IterOptions{
		LowerBound: first.key[:len(first.key)-timestampLen], // versions count from the newest of the column
		UpperBound: append(bytes.Clone(last), 0),
	})
	if err != nil {
		return nil, err
	}
	wanted := make(map[string]bool, len(keys))
	for _, g := range keys {
		wanted[string(g.key)] = false
	}
	for valid := it.First(); valid; valid = it.Next() {
		k := it.Key()
		garbage := col.collects(k[first.rowLen:])
		if _, ok := wanted[string(k)]; ok {
			wanted[string(k)] = garbage
		}
	}
	return wanted, it.Close()
}
