package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/changelog"
	"github.com/tabletop-emu/tabletop/facade/internal/store/marks"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// tables creates, changes and deletes tables.
type tables struct {
	*instance
	cat    *catalog
	marks  *marks.Marks
	filler *filler
	logs   *changelog.Logs
	// keepDeleted is Options.KeepDeleted.
	keepDeleted func(ctx context.Context, t *tabledef.Table) (bool, error)
}

// CreateTable creates a table and its indexes from spec, a definition without the fields
// that the store sets. ID may be set to an id that a client already has. CreateTable
// returns the definition once the table is usable. The table is ACTIVE, or appears as
// CREATING until its Transition ends. A table that is being restored remains CREATING.
// Errors: ErrTableExists, ErrTooManyTables, ErrSchemaConflict.
func (ts *tables) CreateTable(ctx context.Context, spec *tabledef.Table) (*tabledef.Table, error) {
	ts.cat.ddl.Lock()
	defer ts.cat.ddl.Unlock()
	if err := ts.finishDeletes(ctx); err != nil {
		return nil, err
	}
	switch _, err := ts.cat.refresh(ctx, spec.Name); {
	case err == nil:
		return nil, fmt.Errorf("%w: %s", ErrTableExists, spec.Name)
	case !errors.Is(err, ErrTableNotFound):
		return nil, err
	}
	if err := ts.takeRoom(ctx); err != nil {
		return nil, err
	}
	def, err := spec.Clone()
	if err != nil {
		return nil, err
	}
	if def.ID == "" {
		def.ID = ts.newUUID()
	}
	def.Created, def.Status = ts.o.Now(), tabledef.StatusCreating
	def.BigtableTable = newTableID("ddb.", def.Name, def.ID)
	if m := ts.cat.mappings[def.Name]; m != nil {
		if m.Key() != def.Key {
			return nil, fmt.Errorf("%w: table %s has %v, but its mapping has %v", ErrSchemaConflict, def.Name, def.Key, m.Key())
		}
		def.BigtableTable, def.Mapped = m.TargetTable(), true
		if def.Note, err = noteOf(m); err != nil {
			return nil, err
		}
	}
	for i := range def.Indexes {
		ts.cat.placeIndex(def, &def.Indexes[i])
		def.Indexes[i].Status = tabledef.StatusCreating
	}
	if err := ts.placeDueTimes(ctx, def); err != nil {
		return nil, err
	}
	if err := ts.placeLog(ctx, &tabledef.Table{}, def); err != nil {
		return nil, err
	}
	version, ok, err := ts.cat.writeTable(ctx, def, nil)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%w: %s", ErrTableExists, def.Name)
	}
	c, err := ts.finishCreate(ctx, def, version)
	if err != nil {
		return nil, err
	}
	return c.def.At(ts.o.Now()), nil
}

// takeRoom reserves room for one more table. It counts the tables if this process may have
// reached Options.MaxTables, or other processes may have created tables since the last count.
// Errors: ErrTooManyTables.
func (ts *tables) takeRoom(ctx context.Context) error {
	now := ts.o.Now()
	if ts.cat.room == 0 || now.Sub(ts.cat.counted) >= catalogMaxAge {
		ts.cat.room = 0
		names, more, err := ts.cat.ListTables(ctx, "", ts.o.MaxTables-1)
		if err != nil || more {
			return cmp.Or(err, ErrTooManyTables)
		}
		ts.cat.room, ts.cat.counted = ts.o.MaxTables-len(names), now
	}
	ts.cat.room--
	return nil
}

// ensureIndex creates the Bigtable table or the materialized view of an index, if it is missing.
func (ts *tables) ensureIndex(ctx context.Context, x *indexLayout) (err error) {
	if x.view != nil {
		_, err = ts.bt.EnsureView(ctx, x.table, x.view.SQL())
		if status.Code(err) == codes.Unimplemented {
			ts.o.Logger.Warn("this Bigtable has no materialized views, so queries of an index fail", "index", x.Name(), "view", x.table, "error", err)
			return nil
		}
		if err != nil {
			return fmt.Errorf("index %s, which the mapping declares as: view: %w", x.Name(), err)
		}
		return nil
	}
	_, err = ts.bt.EnsureTable(ctx, x.table, x.families(), nil)
	return err
}

// dropIndex deletes the Bigtable table or the materialized view of an index, if it exists.
func (ts *tables) dropIndex(ctx context.Context, ix tabledef.Index) error {
	if ix.View {
		return ts.bt.DropView(ctx, ix.BigtableTable)
	}
	return ts.bt.DropTable(ctx, ix.BigtableTable)
}

// finishCreate creates the missing Bigtable tables of a definition in status CREATING, and
// makes the table ACTIVE unless it is being restored. If the Bigtable table already has rows,
// it fills the indexes first. version is that of the stored definition.
func (ts *tables) finishCreate(ctx context.Context, def *tabledef.Table, version []byte) (*cachedTable, error) {
	l, err := ts.cat.newLayout(def)
	if err != nil {
		return nil, err
	}
	created, err := ts.bt.EnsureTable(ctx, def.BigtableTable, l.families(), nil)
	if err != nil {
		return nil, err
	}
	if created {
		if err := ts.forgetWritten(ctx, l); err != nil {
			return nil, err
		}
	}
	restored := def.Restore != nil && def.Restore.Job != "" // the items are not restored yet
	for i := range def.Indexes {
		x := l.index(def.Indexes[i].Name)
		if err := ts.ensureIndex(ctx, x); err != nil {
			return nil, err
		}
		if x.view == nil && !created && !restored && !ts.cat.followed[def.Name] { // the migration keeps the entries
			if err := ts.filler.backfill(ctx, l, x); err != nil && !isFollowed(err) {
				return nil, err
			}
		}
	}
	if restored {
		return ts.cat.remember(def, version)
	}
	next, err := def.Clone()
	if err != nil {
		return nil, err
	}
	c, err := ts.activate(ctx, next, version)
	if err == nil && !created && c.layout.written != nil {
		c.layout.written.looked.Store(0) // the creator may be a load that began in the meantime
	}
	return c, err
}

// activate sets the status of a table and of its indexes to ACTIVE, and writes the definition
// if the stored one still has the given version.
func (ts *tables) activate(ctx context.Context, next *tabledef.Table, version []byte) (*cachedTable, error) {
	next.Status = tabledef.StatusActive
	for i := range next.Indexes {
		ix := &next.Indexes[i]
		ix.Status, ix.Backfilling, ix.Transition = tabledef.StatusActive, false, next.Transition
	}
	return ts.cat.replaceTable(ctx, next, version)
}

// EndCreating makes a table ACTIVE, but not before a given time. The table must have been
// created with a Transition to CREATING that has no end. EndCreating returns
// ErrTableNotFound if the table does not exist.
func (ts *tables) EndCreating(ctx context.Context, name string, at time.Time) error {
	ts.cat.ddl.Lock()
	defer ts.cat.ddl.Unlock()
	c, err := ts.cat.refresh(ctx, name)
	if err != nil {
		return err
	}
	next, err := c.def.Clone()
	if err != nil {
		return err
	}
	next.Transition.Until = at
	for i := range next.Indexes {
		next.Indexes[i].Transition.Until = at
	}
	_, err = ts.cat.replaceTable(ctx, next, c.version)
	return err
}

// DeleteTable deletes a table with its indexes and rows. It returns the definition with
// status DELETING once the table is removed or, if there is a delay for DELETING, once
// the time of the removal is stored. It ignores DeletionProtection. It returns
// ErrTableNotFound, a *TableInUseError or a *FollowedError if it cannot delete the table.
func (ts *tables) DeleteTable(ctx context.Context, name string) (*tabledef.Table, error) {
	ts.cat.ddl.Lock()
	defer ts.cat.ddl.Unlock()
	if err := ts.finishDeletes(ctx); err != nil {
		return nil, err
	}
	c, err := ts.cat.refresh(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := ts.unfollowed(ctx, c.layout); err != nil {
		return nil, err
	}
	now := ts.o.Now()
	if err := c.def.CheckUnused(now); err != nil {
		return nil, err
	}
	def, err := c.def.Clone()
	if err != nil {
		return nil, err
	}
	def.Status, def.Transition = tabledef.StatusDeleting, tabledef.TransitionAfter(now, tabledef.StatusDeleting, ts.o.StatusDelays.Delete)
	was := *def
	def.StreamEnabled, def.Deleted = false, now
	def.Kinesis = slices.Clone(def.Kinesis)
	for i := range def.Kinesis {
		if d := &def.Kinesis[i]; d.Live() {
			d.State, d.Transition = tabledef.KinesisDisabled, tabledef.Transition{Status: tabledef.StatusUpdating, Until: def.Transition.Until}
		}
	}
	if c, err = ts.replaceTurned(ctx, &was, def, c.version); err != nil {
		return nil, err
	}
	if !c.def.IsGone(now) {
		return c.def, nil
	}
	return c.def, ts.finishDelete(ctx, c.def)
}

// finishDelete removes the Bigtable tables of a definition in status DELETING, and then the
// definition. It keeps the rows if Options.KeepDeleted asks for that, and the log for its
// readers.
func (ts *tables) finishDelete(ctx context.Context, def *tabledef.Table) error {
	if err := ts.keepStreams(ctx, def); err != nil {
		return err
	}
	for _, ix := range def.Indexes { // first, since Bigtable keeps a table that a view reads
		if err := ts.dropIndex(ctx, ix); err != nil {
			return err
		}
	}
	if def.TTLTable != "" {
		if err := ts.bt.DropTable(ctx, def.TTLTable); err != nil {
			return err
		}
	}
	keep := false
	if ts.keepDeleted != nil {
		var err error
		if keep, err = ts.keepDeleted(ctx, def); err != nil {
			return fmt.Errorf("keeping the items of table %s: %w", def.Name, err)
		}
	}
	if !keep {
		if err := ts.bt.DropTable(ctx, def.BigtableTable); err != nil {
			return err
		}
	}
	if err := ts.marks.Forget(ctx, def.Name); err != nil {
		return err
	}
	err := ts.bt.MutateRow(ctx, ts.o.Catalog, tableRow(def.Name), []*btpb.Mutation{btclient.DeleteRow()})
	ts.cat.changed(def.Name)
	ts.cat.forget(def.Name)
	return err
}

// UpdateTable changes the definition of a table. fn changes a copy of the definition, or
// returns an error that aborts the change. Indexes that fn appends to Indexes are created
// and filled in the background. They are CREATING and Backfilling, and then ACTIVE;
// meanwhile the table is UPDATING. Indexes that fn removes are deleted. A change of
// TTLAttribute adds due times, which the caller must fill, or removes them. UpdateTable
// returns the error of fn; a *TableInUseError if the table is not ACTIVE, or another process
// changes it meanwhile; or ErrTableNotFound, which includes tables that are being restored.
func (ts *tables) UpdateTable(ctx context.Context, name string, fn func(*tabledef.Table) error) (*tabledef.Table, error) {
	ts.cat.ddl.Lock()
	defer ts.cat.ddl.Unlock()
	c, err := ts.cat.refresh(ctx, name)
	if err != nil {
		return nil, err
	}
	now := ts.o.Now()
	if c.def.At(now).Restoring() {
		return nil, fmt.Errorf("%w: %s is being restored", ErrTableNotFound, name)
	}
	if err := c.def.CheckUnused(now); err != nil {
		return nil, err
	}
	next, err := c.def.Clone()
	if err != nil {
		return nil, err
	}
	if err := fn(next); err != nil {
		return nil, err
	}
	next.Leaving = next.At(now).Leaving
	var dropped []tabledef.Index
	for i := range c.def.Indexes {
		if ix := c.def.Indexes[i]; next.Index(ix.Name) == nil {
			dropped = append(dropped, ix)
			if ix.Transition = tabledef.TransitionAfter(now, tabledef.StatusDeleting, ts.o.StatusDelays.IndexDelete); ix.Transition.Lasts(now) {
				ix.Status = tabledef.StatusDeleting
				next.Leaving = append(next.Leaving, ix)
				next.Transition = tabledef.UpdatingUntil(next.Transition, ix.Transition.Until)
			}
		}
	}
	added := false
	for i := range next.Indexes {
		if ix := &next.Indexes[i]; c.def.Index(ix.Name) == nil {
			ts.cat.placeIndex(next, ix)
			ix.Status, ix.Backfilling, added = tabledef.StatusCreating, true, true
			if !ix.View {
				ix.FillAgain = now.Add(fillAgainAfter)
			}
			delays := ts.o.StatusDelays
			if ix.Transition = tabledef.TransitionAfter(now, tabledef.StatusCreating, delays.IndexCreate+delays.IndexFill); ix.Transition.Lasts(now) {
				ix.FillFrom = now.Add(delays.IndexCreate)
				next.Transition = tabledef.UpdatingUntil(next.Transition, ix.Transition.Until)
			}
			l, err := ts.cat.newLayout(next)
			if err != nil {
				return nil, err
			}
			// The table must exist before any writer knows the index.
			if err := ts.ensureIndex(ctx, l.index(ix.Name)); err != nil {
				return nil, err
			}
		}
	}
	if added {
		next.Status = tabledef.StatusUpdating
	}
	if next.TTLAttribute != c.def.TTLAttribute {
		if c.def.TTLTable != "" {
			dropped = append(dropped, tabledef.Index{BigtableTable: c.def.TTLTable})
		}
		if err := ts.placeDueTimes(ctx, next); err != nil {
			return nil, err
		}
		if next.TTLTable != "" {
			next.TTLFillAgain = now.Add(fillAgainAfter)
		}
	}
	if err := ts.placeLog(ctx, c.def, next); err != nil {
		return nil, err
	}
	if c, err = ts.replaceTurned(ctx, c.def, next, c.version); err != nil {
		return nil, err
	}
	for _, ix := range dropped {
		if err := ts.dropIndex(ctx, ix); err != nil {
			return nil, err
		}
	}
	if added {
		ts.filler.fillIndexes(c)
	}
	return c.def.At(now), nil
}

// openCatalog creates the catalog if it does not exist, begins an epoch, finishes the pending
// changes of tables, and creates the tables of new mappings.
func (ts *tables) openCatalog(ctx context.Context) error {
	ts.cat.looked = ts.o.Now()
	for _, m := range ts.o.Mappings { // first, so that nothing is written if one is rejected
		if err := ts.checkLoaded(ctx, m); err != nil {
			return err
		}
	}
	if _, err := ts.bt.EnsureTable(ctx, ts.o.Catalog, CatalogFamilies(), nil); err != nil {
		return err
	}
	if err := ts.beginEpoch(ctx); err != nil {
		return err
	}
	ts.logs.Start(uint64(ts.epoch))
	if err := ts.logs.Appear(ctx); err != nil {
		return err
	}
	names, _, err := ts.cat.ListTables(ctx, "", maxCatalogTables)
	if err != nil {
		return err
	}
	var unfilled []*cachedTable
	var unfilledTTL []string
	for _, name := range names {
		c, err := ts.cat.refresh(ctx, name)
		if errors.Is(err, ErrOutsideMapping) {
			ts.o.Logger.Warn("a table cannot be used", "table", name, "error", err)
			continue
		}
		if err != nil {
			return err
		}
		switch c.def.Status {
		case tabledef.StatusCreating:
			_, err = ts.finishCreate(ctx, c.def, c.version)
		case tabledef.StatusDeleting:
			err = ts.finishDelete(ctx, c.def)
		case tabledef.StatusUpdating:
			unfilled = append(unfilled, c)
		}
		if err != nil {
			return err
		}
		if c.def.TTLFilling && c.def.Status != tabledef.StatusDeleting {
			unfilledTTL = append(unfilledTTL, name)
		}
		if m := ts.cat.mappings[name]; m != nil {
			if err := ts.reconcile(ctx, c.def, m); err != nil {
				return err
			}
		}
	}
	for _, m := range ts.o.Mappings {
		if slices.Contains(names, m.SourceTable()) {
			continue
		}
		def, err := ts.CreateTable(ctx, tabledef.OfMapping(m))
		if err != nil && !errors.Is(err, ErrTableExists) {
			return fmt.Errorf("defining table %s from its mapping: %w", m.SourceTable(), err)
		}
		if err == nil && def.TTLFilling {
			unfilledTTL = append(unfilledTTL, def.Name)
		}
	}
	for _, m := range ts.o.Mappings {
		if err := ts.warnUnreadable(ctx, m); err != nil {
			return err
		}
	}
	for _, c := range unfilled {
		ts.filler.fillIndexes(c)
	}
	for _, name := range unfilledTTL {
		ts.filler.FillDueTimes(name)
	}
	return nil
}

// describeKey formats a key: "artist (S), song (S)".
func describeKey(key attr.KeySchema) string {
	var parts []string
	for _, a := range key.Attrs() {
		parts = append(parts, fmt.Sprintf("%s (%s)", a.Name, a.Type))
	}
	return strings.Join(parts, ", ")
}

// reconcile adapts the ACTIVE table that def defines to its mapping m, which may have changed
// since the table was created. m must name the same Bigtable table, key and indexes, and may
// add indexes. reconcile notes m in the definition as the mapping that serves the table.
func (ts *tables) reconcile(ctx context.Context, def *tabledef.Table, m *layout.Mapping) error {
	if def.At(ts.o.Now()).Status != tabledef.StatusActive {
		return nil
	}
	const advice = "restore that in the mapping, or first delete the table with the mapping that created it"
	if def.BigtableTable != m.TargetTable() {
		return fmt.Errorf("table %s was created in Bigtable table %s, but its mapping says %s: %s", def.Name, def.BigtableTable, m.TargetTable(), advice)
	}
	if def.Key != m.Key() {
		return fmt.Errorf("table %s was created with the key %s, but its mapping says %s: %s", def.Name, describeKey(def.Key), describeKey(m.Key()), advice)
	}
	for _, ix := range def.Indexes {
		kind, there := "in Bigtable table", m.Index(ix.Name) != nil || strings.HasPrefix(ix.BigtableTable, reservedPrefix)
		if ix.View {
			kind, there = "the materialized view", m.View(ix.Name) != nil
		}
		if !there {
			return fmt.Errorf("index %s of table %s is %s %s according to the mapping that the table was created with, but the current mapping does not have the index: %s",
				ix.Name, def.Name, kind, ix.BigtableTable, advice)
		}
	}
	if def.Mapped {
		if err := ts.checkServed(ctx, def, m); err != nil {
			return err
		}
	}
	note, err := noteOf(m)
	if err != nil {
		return err
	}
	l, err := ts.cat.newLayout(def)
	if err != nil {
		return err
	}
	for _, x := range l.views { // another client may have deleted it
		if err := ts.ensureIndex(ctx, x); err != nil {
			return err
		}
	}
	described := tabledef.OfMapping(m)
	known := !def.Mapped || maps.EqualFunc(def.Note, note, bytes.Equal)
	if known && !slices.ContainsFunc(described.Indexes, func(ix tabledef.Index) bool { return def.Index(ix.Name) == nil }) {
		return nil
	}
	_, err = ts.UpdateTable(ctx, def.Name, func(d *tabledef.Table) error {
		for _, ix := range described.Indexes {
			switch there := d.Index(ix.Name); {
			case there == nil:
				d.Indexes = append(d.Indexes, ix)
			case there.View: // its query is that of the mapping
				there.Key, there.Projection, there.NonKey = ix.Key, ix.Projection, ix.NonKey
			}
		}
		for _, a := range described.Attributes {
			if !slices.Contains(d.Attributes, a) {
				d.Attributes = append(d.Attributes, a)
			}
		}
		if d.Mapped {
			d.Note = note
		}
		return nil
	})
	return err
}

// sampledRows is the number of rows of a mapped table that warnUnreadable checks.
const sampledRows = 10

// warnUnreadable logs a warning if the mapping finds no item in the first rows of its table:
// most likely another mapping laid out the rows, and the table seems empty. It is not an
// error, since a table may hold rows of other writers.
func (ts *tables) warnUnreadable(ctx context.Context, m *layout.Mapping) error {
	var families []*btpb.RowFilter
	for _, f := range m.Families() {
		families = append(families, btclient.OfFamily(f.Name))
	}
	filter := btclient.AnyOf(families...)
	if m.SharesRows() { // a row can be too large for memory
		filter = btclient.Chain(filter, btclient.FirstCells(wideCells))
	}
	var first []byte
	for row, err := range ts.bt.Read(ctx, btclient.Read{Table: m.TargetTable(), Spans: m.PlanScan().Spans, Filter: filter, Limit: sampledRows}) {
		if err != nil {
			return fmt.Errorf("reading sample rows of table %s: %w", m.TargetTable(), err)
		}
		items, err := m.Items(row)
		if err != nil || len(items) > 0 {
			return nil // a request that reads a damaged row reports it
		}
		if first == nil {
			first = bytes.Clone(row.Key)
		}
	}
	if first != nil {
		ts.o.Logger.Warn("the mapping cannot read the first rows of its Bigtable table: did another mapping lay them out?",
			"table", m.SourceTable(), "bigtableTable", m.TargetTable(), "row", string(first))
	}
	return nil
}

// maxCatalogTables limits lists of all tables. It is more than a Bigtable instance can hold.
const maxCatalogTables = 1 << 20

// placeDueTimes sets the fields of def for due times after a change of TTLAttribute. If items
// expire, it creates the Bigtable table of due times. The caller drops the earlier one.
func (ts *tables) placeDueTimes(ctx context.Context, def *tabledef.Table) error {
	def.TTLTable, def.TTLFilling, def.TTLFillAgain = "", false, time.Time{}
	if def.TTLAttribute == "" {
		return nil
	}
	def.TTLTable, def.TTLFilling = newTableID(reservedPrefix+"t.", def.Name, def.ID, ts.newUUID()), true
	x, err := dueIndex(def)
	if err != nil {
		return err
	}
	_, err = ts.bt.EnsureTable(ctx, def.TTLTable, x.families(), nil)
	return err
}

// RemoveDeleted removes the remains of deleted tables that no longer appear as DELETING.
func (ts *tables) RemoveDeleted(ctx context.Context) error {
	if len(ts.cat.deleted()) == 0 {
		return nil
	}
	ts.cat.ddl.Lock()
	defer ts.cat.ddl.Unlock()
	return ts.finishDeletes(ctx)
}

// finishDeletes acts like RemoveDeleted for callers that hold ddl.
func (ts *tables) finishDeletes(ctx context.Context) error {
	var errs []error
	for _, def := range ts.cat.deleted() {
		errs = append(errs, ts.finishDelete(ctx, def))
	}
	return errors.Join(errs...)
}
