package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/changelog"
	"github.com/tabletop-emu/tabletop/facade/internal/store/marks"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

const (
	// goneRowPrefix begins the catalog's rows of deleted tables that had a log; name and id
	// follow.
	goneRowPrefix = "g/"

	// logMargin is the time for which a log keeps its cells beyond the retention of its
	// streams.
	logMargin = time.Hour

	// deletedGrace is the time after a table's deletion in which point-in-time recovery can
	// still be changed, as observed on the service. If recovery is off, the deletion makes no
	// backup.
	deletedGrace = time.Second

	// shardRotation is the default time for which a shard accepts records.
	shardRotation = 4 * time.Hour
)

// placeLog sets the log of def that its features require, and adds a stream if def enables one
// that was did not have. It also creates the table of the log. was is the current definition.
func (ts *tables) placeLog(ctx context.Context, was, def *tabledef.Table) error {
	reasons, view := def.LogReasons()
	begins := def.StreamEnabled && !was.StreamEnabled
	if len(reasons) == 0 || !begins && was.Log.On() && slices.Equal(reasons, was.Log.Reasons) {
		return nil
	}
	log := tabledef.Log{Table: newTableID(reservedPrefix+"l.", def.Name, def.ID)}
	if was.Log != nil {
		log = *was.Log
	}
	log.Reasons, log.View = reasons, view
	if begins || !was.Log.On() {
		log.Shards = tabledef.Shards{Rotation: cmp.Or(ts.o.Shards.Rotation, shardRotation), Slots: ts.o.Shards.Slots}
		if len(log.Shards.Slots) == 0 {
			log.Shards.Slots = []int{1}
		}
		log.MostSlots = log.MaxSlots()
		now := ts.o.Now()
		at := uint64(now.Truncate(time.Millisecond).UnixNano())
		def.Streams = slices.DeleteFunc(def.Streams, func(s tabledef.Stream) bool { return s.IsGone(now) })
		// Streams of the same table name must have different labels.
		gone, err := ts.streamsGone(ctx, def.Name)
		if err != nil {
			return err
		}
		log.Shards.Since = tabledef.AfterStreams(at, append(gone, def))
		if was.Log != nil { // earlier records, for other purposes, do not belong to the stream
			above, err := ts.logs.Above(ctx)
			if err != nil {
				return err
			}
			log.Shards.Since = tabledef.WholeMilli(max(log.Shards.Since, above))
		}
	}
	if begins {
		def.StreamLabel = tabledef.StreamLabel(log.Shards.Since)
		def.Streams = append(def.Streams, tabledef.Stream{Label: def.StreamLabel, View: def.StreamView, Shards: log.Shards, Retention: ts.o.StreamRetention})
	}
	def.Log = &log
	return ts.retain(ctx, was.Log, def)
}

// retain creates the Bigtable table of def's log, or changes its garbage collection. The table
// keeps cells as long as the streams and the recovery period of def require. was is the
// current log.
func (ts *tables) retain(ctx context.Context, was *tabledef.Log, def *tabledef.Table) error {
	log, keep := def.Log, tabledef.StreamRetention
	for _, s := range def.Streams {
		keep = max(keep, s.Kept())
	}
	if slices.Contains(log.Reasons, tabledef.ReasonRecovery) {
		keep = max(keep, tabledef.MaxRecoveryDays*24*time.Hour)
	}
	keep += logMargin
	if was.On() && was.Retention == keep {
		return nil
	}
	family := layout.Family{Name: changelog.Family, GC: layout.GC{MaxAge: keep}}
	made, err := ts.bt.EnsureTable(ctx, log.Table, []layout.Family{family}, nil)
	if err == nil && !made && log.Retention != keep {
		err = ts.bt.SetGC(ctx, log.Table, family)
	}
	log.Retention = keep
	return err
}

// turnLog changes def, which replaces was. It ends a stream that is no longer enabled, begins
// or ends deliveries to Kinesis destinations, ends a log without a purpose, and notes the
// number from which records have both images. No write of the table may be running.
func (ts *tables) turnLog(ctx context.Context, was, def *tabledef.Table) error {
	if def.Log == nil {
		return nil
	}
	log := *def.Log
	reasons, _ := def.LogReasons()
	ends := was.StreamEnabled && !def.StreamEnabled
	images := slices.ContainsFunc(reasons, func(r string) bool { return r != tabledef.ReasonStream })
	if !ends && slices.Equal(reasons, was.Log.KnownReasons()) {
		return nil
	}
	if err := ts.logs.Settle(ctx); err != nil {
		return err
	}
	at, err := ts.logs.Above(ctx)
	if err != nil {
		return err
	}
	if ends {
		s := &def.Streams[len(def.Streams)-1]
		s.Until, s.Ended = max(at, s.Shards.Since+1), ts.o.Now()
	}
	for i := range def.Kinesis {
		switch d := &def.Kinesis[i]; {
		case d.Live() && d.From == 0:
			d.From = max(at, log.Shards.Since)
		case !d.Live() && d.From != 0 && d.Until == 0:
			d.Until, d.Ended = max(at, d.From), ts.o.Now()
		}
	}
	switch log.Reasons = reasons; {
	case !images:
		log.Images = 0
	case log.Images == 0:
		log.Images = at
	}
	def.Log = &log
	return nil
}

// keepStreams stores the definition of a deleted table for the readers of its log. Before
// that, it appends the records of the last writes. Without a log it does nothing.
func (ts *tables) keepStreams(ctx context.Context, def *tabledef.Table) error {
	if def.Log == nil {
		return nil
	}
	if err := ts.logs.Settle(ctx); err != nil {
		return err
	}
	if err := ts.logs.Clear(ctx, 0); err != nil {
		return err
	}
	text, err := tabledef.Encode(def)
	if err != nil {
		return err
	}
	return ts.bt.MutateRow(ctx, ts.o.Catalog, goneRow(def.Name, def.ID), []*btpb.Mutation{
		btclient.SetCell(catalogFamily, definitionQualifier, ts.nowMicros(), text),
	})
}

func goneRow(name, id string) []byte { return []byte(goneRowPrefix + name + "/" + id) }

// streamsGone returns the deleted tables that keepStreams stored: those with the given name, or
// all if it is "".
func (ts *tables) streamsGone(ctx context.Context, name string) (defs []*tabledef.Table, err error) {
	if name == "" {
		return ts.gone(ctx, []byte(goneRowPrefix))
	}
	return ts.gone(ctx, goneRow(name, ""))
}

// gone returns the deleted tables whose rows of keepStreams begin with a prefix.
func (ts *tables) gone(ctx context.Context, prefix []byte) (defs []*tabledef.Table, err error) {
	read := btclient.Read{Table: ts.o.Catalog, Spans: []layout.Span{cells.Prefixed(prefix)}, Filter: btclient.Newest(1)}
	for row, err := range ts.bt.Read(ctx, read) {
		if err != nil {
			return nil, err
		}
		for _, c := range row.Cells {
			def, err := tabledef.Decode(c.Value)
			if err != nil {
				return nil, err
			}
			defs = append(defs, def)
		}
	}
	return defs, nil
}

// LoggedTable returns the table with the given name and id as it appears now or, if it was
// deleted, as it was then. It returns nil if the table does not exist and its log is no
// longer known.
func (ts *tables) LoggedTable(ctx context.Context, name, id string) (*tabledef.Table, error) {
	switch c, err := ts.cat.refresh(ctx, name); {
	case err == nil && c.def.ID == id:
		return c.def.At(ts.o.Now()), nil
	case err != nil && !errors.Is(err, ErrTableNotFound):
		return nil, err
	}
	defs, err := ts.gone(ctx, goneRow(name, id)) // keepStreams stores it before the definition is removed
	if err != nil || len(defs) == 0 {
		return nil, err
	}
	return defs[0], nil
}

// TablesWithStreams returns the tables with a given name, or all tables for "", that have
// streams or recently had them, in no particular order. It includes deleted tables whose log
// is kept, even without a stream; they have the status DELETING.
func (ts *tables) TablesWithStreams(ctx context.Context, name string) ([]*tabledef.Table, error) {
	names := []string{name}
	if name == "" {
		var err error
		if names, _, err = ts.cat.ListTables(ctx, "", maxCatalogTables); err != nil {
			return nil, err
		}
	}
	var there []*tabledef.Table // read before the deleted ones, so that no table is missed
	for _, name := range names {
		c, err := ts.cat.refresh(ctx, name)
		if err != nil {
			continue // it was deleted, or its mapping is missing: it gets no writes
		}
		there = append(there, c.def.At(ts.o.Now()))
	}
	defs, err := ts.streamsGone(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, def := range there {
		if len(def.Streams) > 0 && !slices.ContainsFunc(defs, func(d *tabledef.Table) bool { return d.ID == def.ID }) {
			defs = append(defs, def)
		}
	}
	return defs, nil
}

// tidyLogs finishes pending log writes, and removes the logs of deleted tables that nothing
// may read any more.
func (ts *tables) tidyLogs(ctx context.Context) error {
	if err := ts.logs.Settle(ctx); err != nil {
		return err
	}
	if err := ts.logs.Renew(ctx, true); err != nil {
		return err
	}
	if err := ts.logs.Clear(ctx, 0); err != nil {
		return err
	}
	defs, err := ts.streamsGone(ctx, "")
	if err != nil {
		return err
	}
	for _, def := range defs {
		if def.HasLog(ts.o.Now()) {
			continue
		}
		if err := ts.bt.DropTable(ctx, def.Log.Table); err != nil {
			return err
		}
		if err := ts.bt.DeleteRows(ctx, ts.o.Catalog, [][]byte{goneRow(def.Name, def.ID)}); err != nil {
			return err
		}
	}
	return nil
}

// ChangeLog changes the purposes of a table's log. fn changes Recovery and Copies in a
// copy of the definition, or returns an error that aborts the change. Unlike UpdateTable,
// ChangeLog does not change the status, and accepts a table that is being updated or was
// deleted within deletedGrace. It returns the error of fn, or ErrTableNotFound, which
// includes tables that are being created or were deleted earlier.
func (ts *tables) ChangeLog(ctx context.Context, name string, fn func(*tabledef.Table) error) (*tabledef.Table, error) {
	ts.cat.ddl.Lock()
	defer ts.cat.ddl.Unlock()
	c, err := ts.cat.refresh(ctx, name)
	if err != nil {
		return nil, err
	}
	now := ts.o.Now()
	status := c.def.At(now).Status
	if status == tabledef.StatusCreating || status == tabledef.StatusDeleting && !now.Before(c.def.Deleted.Add(deletedGrace)) {
		return nil, fmt.Errorf("%w: %s is %s", ErrTableNotFound, name, status)
	}
	next, err := c.def.Clone()
	if err != nil {
		return nil, err
	}
	if err := fn(next); err != nil {
		return nil, err
	}
	return ts.replaceLogged(ctx, c, next)
}

// errUnchanged means that the change would leave the definition as it is.
var errUnchanged = errors.New("nothing to change")

// HoldLog gives a table a log with both images until ReleaseLog is called with the same
// id. It returns the table, and a sequence number greater than those of all changes whose
// requests have completed. It returns ErrTableNotFound if the table does not exist.
func (ts *tables) HoldLog(ctx context.Context, t *tabledef.Table, id string) (*tabledef.Table, uint64, error) {
	held, err := ts.ChangeLog(ctx, t.Name, func(d *tabledef.Table) error {
		switch {
		case d.ID != t.ID:
			return fmt.Errorf("%w: %s was deleted and created again", ErrTableNotFound, t.Name)
		case d.Status == tabledef.StatusDeleting: // its rows may be removed before they are read
			return fmt.Errorf("%w: %s is %s", ErrTableNotFound, t.Name, d.Status)
		}
		if !slices.Contains(d.Copies, id) {
			d.Copies = append(d.Copies, id)
		}
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	above := uint64(0)
	if err = ts.o.Wall.Wait(ctx, held.Log.Known.Sub(ts.o.Now())); err == nil { // all processes know the log
		above, err = ts.logs.Beyond(ctx)
	}
	if err != nil {
		return nil, 0, errors.Join(err, ts.ReleaseLog(context.WithoutCancel(ctx), t.Name, id))
	}
	return held, above, nil
}

// ReleaseLog reverts HoldLog. The table may have been deleted meanwhile.
func (ts *tables) ReleaseLog(ctx context.Context, name, id string) error {
	_, err := ts.ChangeLog(ctx, name, func(d *tabledef.Table) error {
		n := len(d.Copies)
		if d.Copies = slices.DeleteFunc(d.Copies, func(c string) bool { return c == id }); len(d.Copies) == n {
			return errUnchanged
		}
		return nil
	})
	if errors.Is(err, ErrTableNotFound) || errors.Is(err, errUnchanged) {
		return nil
	}
	return err
}

// replaceLogged writes the definition next, which replaces was and may need a log that was did
// not need. It returns the table as it appears now.
func (ts *tables) replaceLogged(ctx context.Context, was *cachedTable, next *tabledef.Table) (*tabledef.Table, error) {
	if err := ts.placeLog(ctx, was.def, next); err != nil {
		return nil, err
	}
	c, err := ts.replaceTurned(ctx, was.def, next, was.version)
	if err != nil {
		return nil, err
	}
	return c.def.At(ts.o.Now()), nil
}

// replaceTurned calls turnLog for next, and writes it if the stored definition still has the
// given version. If next adds purposes to the log, other processes may use the old definition
// for fillAgainAfter; the written definition then has the end of that time (Log.Known).
func (ts *tables) replaceTurned(ctx context.Context, was, next *tabledef.Table, version []byte) (c *cachedTable, err error) {
	latch := ts.cat.latchOf(next.Name)
	latch.Lock()
	defer latch.Unlock()
	if err := ts.turnLog(ctx, was, next); err != nil {
		return nil, err
	}
	begins := next.Log.Adds(was.Log)
	for again := false; ; again = true { // a process may start before the write: look again
		others := false
		if begins {
			if others, err = ts.logs.Others(ctx); err != nil {
				return nil, err
			}
		}
		if others {
			next.Wait(was, ts.o.Now().Add(fillAgainAfter))
			begins = false
		} else if again {
			return c, nil
		}
		if c, err = ts.cat.replaceTable(ctx, next, version); err != nil || !begins {
			return c, err
		}
		if next, err = c.def.Clone(); err != nil {
			return nil, err
		}
		version = c.version
	}
}

// LogFloor returns a sequence number below which no log will get new records.
func (ts *tables) LogFloor(ctx context.Context) (uint64, error) { return ts.logs.Floor(ctx) }

// LogGrown returns a channel that is closed when this process next appends records to a log.
func (ts *tables) LogGrown() <-chan struct{} { return ts.logs.Grown() }

// ReadLog yields the records of a slot with positions from the given one, inclusive, and with
// sequence numbers below before; at most limit of them unless limit is 0. The images in a
// record share memory with the response of the Bigtable: clone them to keep them.
func (ts *tables) ReadLog(ctx context.Context, log *tabledef.Log, slot uint16, from changelog.Position, before uint64, limit int) iter.Seq2[changelog.Entry, error] {
	return ts.logs.Read(ctx, log, slot, from, before, limit)
}

// records reports whether a write from old to updated is recorded in the table's log: the log
// must be on, and the items must differ.
func (l *tableLayout) records(old, updated attr.Item) bool {
	if !l.log.On() || old == nil && updated == nil {
		return false
	}
	return old == nil || updated == nil || !attr.EqualItems(old, updated)
}

// recordsAfter returns a filter that passes the record cells of the item after a
// position.
func (p *slot) recordsAfter(at changelog.Position) *btpb.RowFilter {
	from := changelog.CellQualifier(p.id[:], changelog.Position{})
	if at != (changelog.Position{}) {
		from = changelog.CellQualifier(p.id[:], at.Next())
	}
	return btclient.OfColumns(lens.FamilyState, from, cells.PrefixEnd(append([]byte{changelog.CellQualifierByte}, p.id[:]...)))
}

// logged returns the change from st.item to updated, in the form that the log takes. mark is
// the mark of the item's row.
func (st *itemState) logged(updated attr.Item, mark *marks.Mark) changelog.Change {
	p := st.slot
	at := changelog.Item{Table: p.l.table, Row: p.row, ID: p.id, Log: p.l.log, Hash: p.l.key.Hash, Key: p.key}
	return changelog.Change{Item: at, Old: st.item, Updated: updated, After: st.recorded, Mark: mark}
}
