package facade

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/cells"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// The catalog is one Bigtable table. Its rows are
//
//	t/<table name>                          a table's definition
//	w/<token>                               a row that may hold an outbox cell
//	x/<id>                                  a transaction
//	k/<token>                               a request that is not to be done twice
//	s/<Bigtable table>                      where parallel scans cut a table
//	epoch                                   how many stores were opened
//
// A definition is two cells: the JSON text, and a version that changes with
// every write, so that a change is guarded by one short value.
const (
	catalogTable     = reservedPrefix + "catalog"
	catalogFamily    = "d"
	tableRowPrefix   = "t/"
	pendingRowPrefix = "w/"
	epochRow         = "epoch"

	// reservedPrefix begins the ids of all Bigtable tables that the store
	// keeps for itself: the catalog and the index tables.
	reservedPrefix = "_tabletop."

	// maxBigtableNameChars is the longest table id that Bigtable takes.
	// https://cloud.google.com/bigtable/quotas
	maxBigtableNameChars = 50

	// catalogMaxAge bounds how long operations on items go by a definition that
	// another process has changed, where nothing tells them: tables and indexes
	// that came, and those that went, are noticed at once. What this process
	// writes in that time is missing in an index, or among the due times, that
	// another process has just added, until these are filled again.
	catalogMaxAge = time.Second

	// fillAgainAfter is when that is: it leaves as much time again to the writes
	// that are under way.
	fillAgainAfter = 2 * catalogMaxAge
)

var (
	definitionQualifier = []byte("definition")
	versionQualifier    = []byte("version")
)

// cachedTable is a definition with what the store derives from it.
type cachedTable struct {
	def     *tableDef
	version []byte
	fetched time.Time
	layout  *tableLayout

	fillAgain time.Time // the earliest one of the definition; zero: there is none
}

// catalog is the store's view of the definitions.
type catalog struct {
	mu     sync.RWMutex
	tables map[string]*cachedTable // by name

	// ddl serializes the changes of definitions in this process. It is taken
	// before a table's schema latch and before mu.
	ddl sync.Mutex
	// latches hold off item writes while a definition changes, so that after
	// the change no write is under way that does not know it. By name; under
	// mu.
	latches map[string]*sync.RWMutex
	// filling are the tables whose indexes this process fills again; under mu.
	filling map[string]bool

	// room is how many tables may come before they are counted again, and
	// counted when they were; under ddl.
	room    int
	counted time.Time
}

// lookup returns a table's definition as it looks now, from the cache while it
// is fresh.
func (s *store) lookup(ctx context.Context, name string) (*cachedTable, error) {
	now := s.o.Now()
	s.cat.mu.RLock()
	c := s.cat.tables[name]
	s.cat.mu.RUnlock()
	if c == nil || now.Sub(c.fetched) >= catalogMaxAge {
		var err error
		if c, err = s.refresh(ctx, name); err != nil {
			return nil, err
		}
	}
	if !c.fillAgain.IsZero() && !now.Before(c.fillAgain) {
		s.fillAgain(name)
	}
	return c.at(now)
}

// refresh reads a table's definition, as it is, into the cache.
func (s *store) refresh(ctx context.Context, name string) (*cachedTable, error) {
	fetched := s.o.Now()
	row, err := s.bt.ReadRow(ctx, s.o.Catalog, tableRow(name), btclient.Newest(1))
	if err != nil {
		return nil, err
	}
	var def *tableDef
	var version []byte
	for _, c := range row.Cells {
		switch string(c.Qualifier) {
		case string(definitionQualifier):
			if def, err = decodeTable(c.Value); err != nil {
				return nil, fmt.Errorf("definition of table %s: %w", name, err)
			}
		case string(versionQualifier):
			version = c.Value
		}
	}
	if def == nil {
		s.forget(name)
		return nil, fmt.Errorf("%w: %s", errTableNotFound, name)
	}
	return s.remember(def, version, fetched)
}

// remember puts a definition into the cache.
func (s *store) remember(def *tableDef, version []byte, fetched time.Time) (*cachedTable, error) {
	s.cat.mu.Lock()
	defer s.cat.mu.Unlock()
	old := s.cat.tables[def.Name]
	if old != nil && string(old.version) == string(version) {
		c := *old
		c.fetched = fetched
		s.cat.tables[def.Name] = &c
		return &c, nil
	}
	l, err := s.newLayout(def)
	if err != nil {
		return nil, err
	}
	c := &cachedTable{def: def, version: version, fetched: fetched, layout: l}
	for _, at := range def.fillTimes() {
		if c.fillAgain.IsZero() || at.Before(c.fillAgain) {
			c.fillAgain = at
		}
	}
	s.cat.tables[def.Name] = c
	return c, nil
}

func (s *store) forget(name string) {
	s.cat.mu.Lock()
	defer s.cat.mu.Unlock()
	delete(s.cat.tables, name)
}

// latchOf returns the latch that a table's writes share and a change of its
// definition takes alone.
func (s *store) latchOf(name string) *sync.RWMutex {
	s.cat.mu.RLock()
	l := s.cat.latches[name]
	s.cat.mu.RUnlock()
	if l != nil {
		return l
	}
	s.cat.mu.Lock()
	defer s.cat.mu.Unlock()
	if l = s.cat.latches[name]; l == nil {
		l = new(sync.RWMutex)
		s.cat.latches[name] = l
	}
	return l
}

// current returns the definition of the table that t was, when t was looked
// up: its indexes may have changed since.
func (s *store) current(ctx context.Context, t *tableDef) (*cachedTable, error) {
	c, err := s.lookup(ctx, t.Name)
	if err != nil {
		return nil, err
	}
	if c.def.ID != t.ID {
		return nil, fmt.Errorf("%w: %s was deleted and created again", errTableNotFound, t.Name)
	}
	return c, nil
}

// table returns a table's definition, whatever its status; errTableNotFound.
func (s *store) table(ctx context.Context, name string) (*tableDef, error) {
	c, err := s.lookup(ctx, name)
	if err != nil {
		return nil, err
	}
	return c.def, nil
}

// tableNow is table past the cache: what another process changed shows at
// once.
func (s *store) tableNow(ctx context.Context, name string) (*tableDef, error) {
	c, err := s.refresh(ctx, name)
	if err != nil {
		return nil, err
	}
	if c, err = c.at(s.o.Now()); err != nil {
		return nil, err
	}
	return c.def, nil
}

// outdated reports whether an operation failed, having written nothing, for
// want of a Bigtable table: another process may have deleted the table and
// made it anew. Then the definitions will be read again.
func (s *store) outdated(err error) bool {
	if status.Code(err) != codes.NotFound || errors.Is(err, errIndexesBehind) {
		return false
	}
	s.cat.mu.Lock()
	defer s.cat.mu.Unlock()
	clear(s.cat.tables)
	return true
}

// listTables returns up to limit table names that follow after, ascending,
// and whether there are more.
func (s *store) listTables(ctx context.Context, after string, limit int) (names []string, more bool, err error) {
	span := layout.Span{Start: append(tableRow(after), 0), End: cells.PrefixEnd([]byte(tableRowPrefix))}
	rows := s.bt.Read(ctx, btclient.Read{
		Table:  s.o.Catalog,
		Spans:  []layout.Span{span},
		Filter: btclient.Chain(btclient.OfColumn(catalogFamily, versionQualifier), btclient.Newest(1)),
		Limit:  int64(limit) + 1,
	})
	for row, err := range rows {
		if err != nil {
			return nil, false, err
		}
		if len(names) == limit {
			return names, true, nil
		}
		names = append(names, strings.TrimPrefix(string(row.Key), tableRowPrefix))
	}
	return names, false, nil
}

// createTable creates a table, indexes included, from a definition without
// the fields that the store sets. It returns once the table is usable, as it
// looks then: ACTIVE, or CREATING for a while. Errors: errTableExists,
// errTooManyTables, errSchemaConflict.
func (s *store) createTable(ctx context.Context, spec *tableDef) (*tableDef, error) {
	s.cat.ddl.Lock()
	defer s.cat.ddl.Unlock()
	if err := s.finishDeletes(ctx); err != nil {
		return nil, err
	}
	switch _, err := s.refresh(ctx, spec.Name); {
	case err == nil:
		return nil, fmt.Errorf("%w: %s", errTableExists, spec.Name)
	case !errors.Is(err, errTableNotFound):
		return nil, err
	}
	if err := s.takeRoom(ctx); err != nil {
		return nil, err
	}
	def, err := spec.clone()
	if err != nil {
		return nil, err
	}
	def.ID = s.newUUID()
	def.Created, def.Status = s.o.Now(), statusCreating
	def.BigtableTable = newTableID("ddb.", def.Name, def.ID)
	if m := s.mappings[def.Name]; m != nil {
		if m.Key() != def.Key {
			return nil, fmt.Errorf("%w: table %s has %v, its mapping has %v", errSchemaConflict, def.Name, def.Key, m.Key())
		}
		def.BigtableTable, def.Mapped = m.TargetTable(), true
	}
	for i := range def.Indexes {
		s.placeIndex(def, &def.Indexes[i])
		def.Indexes[i].Status = statusCreating
	}
	if err := s.placeDueTimes(ctx, def); err != nil {
		return nil, err
	}
	version, ok, err := s.writeTable(ctx, def, nil)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%w: %s", errTableExists, def.Name)
	}
	c, err := s.finishCreate(ctx, def, version)
	if err != nil {
		return nil, err
	}
	return c.def.at(s.o.Now()), nil
}

// takeRoom makes sure that there may be one more table. It counts the tables
// when those of this process can have become too many, or others can have
// come. Errors: errTooManyTables.
func (s *store) takeRoom(ctx context.Context) error {
	now := s.o.Now()
	if s.cat.room == 0 || now.Sub(s.cat.counted) >= catalogMaxAge {
		s.cat.room = 0
		names, more, err := s.listTables(ctx, "", s.o.MaxTables-1)
		if err != nil || more {
			return cmp.Or(err, errTooManyTables)
		}
		s.cat.room, s.cat.counted = s.o.MaxTables-len(names), now
	}
	s.cat.room--
	return nil
}

// finishCreate makes the Bigtable tables of a definition in status CREATING,
// those that are there already excepted, and the table ACTIVE. A table that
// adopts rows has its indexes filled first.
func (s *store) finishCreate(ctx context.Context, def *tableDef, version []byte) (*cachedTable, error) {
	l, err := s.newLayout(def)
	if err != nil {
		return nil, err
	}
	created, err := s.bt.EnsureTable(ctx, def.BigtableTable, l.families(), nil)
	if err != nil {
		return nil, err
	}
	for i := range def.Indexes {
		if _, err := s.bt.EnsureTable(ctx, def.Indexes[i].BigtableTable, l.indexes[i].families(), nil); err != nil {
			return nil, err
		}
		if !created {
			if err := s.backfill(ctx, l, l.indexes[i]); err != nil {
				return nil, err
			}
		}
	}
	next, err := def.clone()
	if err != nil {
		return nil, err
	}
	next.Status = statusActive
	for i := range next.Indexes {
		ix := &next.Indexes[i]
		ix.Status, ix.Backfilling, ix.Transition = statusActive, false, next.Transition
	}
	return s.replaceTable(ctx, next, version)
}

// deleteTable deletes a table with its indexes and rows. It returns the
// definition with status DELETING, once the table is gone, or is to be for its
// time as DELETING. It does not look at DeletionProtection. Errors:
// errTableNotFound, *TableInUseError.
func (s *store) deleteTable(ctx context.Context, name string) (*tableDef, error) {
	s.cat.ddl.Lock()
	defer s.cat.ddl.Unlock()
	if err := s.finishDeletes(ctx); err != nil {
		return nil, err
	}
	c, err := s.refresh(ctx, name)
	if err != nil {
		return nil, err
	}
	now := s.o.Now()
	if err := c.def.checkUnused(now); err != nil {
		return nil, err
	}
	def, err := c.def.clone()
	if err != nil {
		return nil, err
	}
	def.Status, def.Transition = statusDeleting, after(now, statusDeleting, s.o.StatusDelays.Delete)
	latch := s.latchOf(name)
	latch.Lock()
	c, err = s.replaceTable(ctx, def, c.version)
	latch.Unlock()
	if err != nil {
		return nil, err
	}
	if !c.def.isGone(now) {
		return c.def, nil
	}
	return c.def, s.finishDelete(ctx, c.def)
}

// finishDelete removes the Bigtable tables of a definition in status
// DELETING, and then the definition.
func (s *store) finishDelete(ctx context.Context, def *tableDef) error {
	for _, ix := range def.Indexes {
		if err := s.bt.DropTable(ctx, ix.BigtableTable); err != nil {
			return err
		}
	}
	if def.TTLTable != "" {
		if err := s.bt.DropTable(ctx, def.TTLTable); err != nil {
			return err
		}
	}
	if err := s.bt.DropTable(ctx, def.BigtableTable); err != nil {
		return err
	}
	if err := s.forgetMarks(ctx, def.Name); err != nil {
		return err
	}
	err := s.bt.MutateRow(ctx, s.o.Catalog, tableRow(def.Name), []*btpb.Mutation{btclient.DeleteRow()})
	s.forget(def.Name)
	return err
}

// updateTable changes a table's definition: fn changes the copy it is given,
// or returns an error that aborts. Indexes that fn appends to Indexes are
// created and filled in the background (status CREATING, Backfilling, then
// ACTIVE; the table is UPDATING meanwhile); indexes that it removes are
// deleted. A change of TTLAttribute gives the table due times, which the
// caller has to fill, or takes them away. fn may be called again when another update came first.
// Errors: errTableNotFound, *TableInUseError, fn's.
func (s *store) updateTable(ctx context.Context, name string, fn func(*tableDef) error) (*tableDef, error) {
	s.cat.ddl.Lock()
	defer s.cat.ddl.Unlock()
	c, err := s.refresh(ctx, name)
	if err != nil {
		return nil, err
	}
	now := s.o.Now()
	if err := c.def.checkUnused(now); err != nil {
		return nil, err
	}
	next, err := c.def.clone()
	if err != nil {
		return nil, err
	}
	if err := fn(next); err != nil {
		return nil, err
	}
	next.Leaving = next.at(now).Leaving
	var dropped []string
	for i := range c.def.Indexes {
		if ix := c.def.Indexes[i]; next.index(ix.Name) == nil {
			dropped = append(dropped, ix.BigtableTable)
			if ix.Transition = after(now, statusDeleting, s.o.StatusDelays.IndexDelete); ix.Transition.lasts(now) {
				ix.Status = statusDeleting
				next.Leaving = append(next.Leaving, ix)
				next.Transition = later(next.Transition, ix.Transition.Until)
			}
		}
	}
	added := false
	for i := range next.Indexes {
		if ix := &next.Indexes[i]; c.def.index(ix.Name) == nil {
			s.placeIndex(next, ix)
			ix.Status, ix.Backfilling, added = statusCreating, true, true
			ix.FillAgain = now.Add(fillAgainAfter)
			delays := s.o.StatusDelays
			if ix.Transition = after(now, statusCreating, delays.IndexCreate+delays.IndexFill); ix.Transition.lasts(now) {
				ix.FillFrom = now.Add(delays.IndexCreate)
				next.Transition = later(next.Transition, ix.Transition.Until)
			}
			l, err := s.newLayout(next)
			if err != nil {
				return nil, err
			}
			// The table is there before any writer knows the index.
			if _, err := s.bt.EnsureTable(ctx, ix.BigtableTable, l.indexes[i].families(), nil); err != nil {
				return nil, err
			}
		}
	}
	if added {
		next.Status = statusUpdating
	}
	if next.TTLAttribute != c.def.TTLAttribute {
		if c.def.TTLTable != "" {
			dropped = append(dropped, c.def.TTLTable)
		}
		if err := s.placeDueTimes(ctx, next); err != nil {
			return nil, err
		}
		if next.TTLTable != "" {
			next.TTLFillAgain = now.Add(fillAgainAfter)
		}
	}
	latch := s.latchOf(name)
	latch.Lock()
	c, err = s.replaceTable(ctx, next, c.version)
	latch.Unlock()
	if err != nil {
		return nil, err
	}
	for _, table := range dropped {
		if err := s.bt.DropTable(ctx, table); err != nil {
			return nil, err
		}
	}
	if added {
		s.fillIndexes(c)
	}
	return c.def.at(now), nil
}

// fillIndexes fills, in the background, the indexes that are backfilling, and
// makes the table ACTIVE. What close interrupts goes on at the next start.
func (s *store) fillIndexes(c *cachedTable) {
	s.background.Go(func() {
		ctx := s.life
		err := s.fillAndActivate(ctx, c)
		if err != nil && ctx.Err() == nil {
			s.o.Logger.Error("filling the indexes of a table", "table", c.def.Name, "error", err)
		}
	})
}

func (s *store) fillAndActivate(ctx context.Context, c *cachedTable) error {
	for i, ix := range c.def.Indexes {
		if ix.Backfilling {
			if err := s.backfill(ctx, c.layout, c.layout.indexes[i]); err != nil {
				return err
			}
		}
	}
	s.cat.ddl.Lock()
	defer s.cat.ddl.Unlock()
	c, err := s.refresh(ctx, c.def.Name)
	if err != nil {
		return err
	}
	next, err := c.def.clone()
	if err != nil {
		return err
	}
	next.Status = statusActive
	for i := range next.Indexes {
		next.Indexes[i].Status, next.Indexes[i].Backfilling = statusActive, false
	}
	_, err = s.replaceTable(ctx, next, c.version)
	return err
}

// fillTimes returns when what was added to the table is to be filled again.
func (t *tableDef) fillTimes() map[string]time.Time {
	times := map[string]time.Time{} // by Bigtable table
	for i := range t.Indexes {
		if ix := &t.Indexes[i]; !ix.FillAgain.IsZero() && !ix.Backfilling {
			times[ix.BigtableTable] = ix.FillAgain
		}
	}
	if !t.TTLFillAgain.IsZero() && !t.TTLFilling {
		times[t.TTLTable] = t.TTLFillAgain
	}
	return times
}

// fillAgain makes complete, in the background, the indexes and due times that
// were added to a table while other processes may not have known of them.
func (s *store) fillAgain(name string) {
	s.cat.mu.Lock()
	defer s.cat.mu.Unlock()
	if s.cat.filling[name] {
		return
	}
	s.cat.filling[name] = true
	s.background.Go(func() {
		err := s.fillAgainNow(s.life, name)
		if err != nil && s.life.Err() == nil {
			s.o.Logger.Error("filling the indexes of a table again", "table", name, "error", err)
		}
		s.cat.mu.Lock()
		defer s.cat.mu.Unlock()
		delete(s.cat.filling, name)
	})
}

func (s *store) fillAgainNow(ctx context.Context, name string) error {
	c, err := s.refresh(ctx, name)
	if err != nil {
		return err
	}
	now := s.o.Now()
	filled := c.def.fillTimes()
	maps.DeleteFunc(filled, func(_ string, at time.Time) bool { return now.Before(at) })
	for _, x := range c.layout.indexes {
		if _, ok := filled[x.table]; !ok {
			continue
		}
		if err := s.dropStale(ctx, c, x); err != nil {
			return err
		}
		if err := s.backfill(ctx, c.layout, x); err != nil {
			return err
		}
	}
	s.cat.ddl.Lock()
	defer s.cat.ddl.Unlock()
	if c, err = s.refresh(ctx, name); err != nil {
		return err
	}
	next, err := c.def.clone()
	if err != nil {
		return err
	}
	for i := range next.Indexes {
		if ix := &next.Indexes[i]; ix.FillAgain.Equal(filled[ix.BigtableTable]) {
			ix.FillAgain = time.Time{}
		}
	}
	if next.TTLFillAgain.Equal(filled[next.TTLTable]) {
		next.TTLFillAgain = time.Time{}
	}
	_, err = s.replaceTable(ctx, next, c.version)
	return err
}

// replaceTable writes a changed definition over the version it was made from.
func (s *store) replaceTable(ctx context.Context, def *tableDef, version []byte) (*cachedTable, error) {
	next, ok, err := s.writeTable(ctx, def, version)
	if err != nil {
		return nil, err
	}
	if !ok {
		s.forget(def.Name)
		return nil, &TableInUseError{def.Name, statusUpdating} // by another process
	}
	return s.remember(def, next, s.o.Now())
}

// writeTable writes a definition if its row still has the given version (nil:
// if there is no such row). It returns the new version and whether it wrote.
func (s *store) writeTable(ctx context.Context, def *tableDef, version []byte) (next []byte, ok bool, err error) {
	text, err := encodeTable(def)
	if err != nil {
		return nil, false, err
	}
	next = s.newToken()
	ts := s.nowMicros()
	write := []*btpb.Mutation{
		btclient.DeleteRow(),
		btclient.SetCell(catalogFamily, definitionQualifier, ts, text),
		btclient.SetCell(catalogFamily, versionQualifier, ts, next),
	}
	guard := btclient.OfColumn(catalogFamily, versionQualifier)
	if version == nil {
		ok, err = s.bt.CheckAndMutate(ctx, s.o.Catalog, tableRow(def.Name), guard, nil, write)
		return next, !ok, err
	}
	ok, err = s.bt.CheckAndMutate(ctx, s.o.Catalog, tableRow(def.Name), btclient.Chain(guard, btclient.Newest(1), btclient.OfValue(version)), write, nil)
	return next, ok, err
}

// openCatalog creates the catalog in an empty instance, finishes what was
// under way when an earlier process ended, and defines the tables of the
// mappings that it does not know.
func (s *store) openCatalog(ctx context.Context) error {
	if _, err := s.bt.EnsureTable(ctx, s.o.Catalog, []layout.Family{
		{Name: catalogFamily, GC: layout.GC{Versions: 1}},
		{Name: requestFamily, GC: layout.GC{MaxAge: requestAge}},
	}, nil); err != nil {
		return err
	}
	if err := s.beginEpoch(ctx); err != nil {
		return err
	}
	names, _, err := s.listTables(ctx, "", maxCatalogTables)
	if err != nil {
		return err
	}
	var unfilled []*cachedTable
	var unfilledTTL []string
	for _, name := range names {
		c, err := s.refresh(ctx, name)
		if errors.Is(err, errOutsideMapping) {
			s.o.Logger.Warn("a table cannot be used", "table", name, "error", err)
			continue
		}
		if err != nil {
			return err
		}
		switch c.def.Status {
		case statusCreating:
			_, err = s.finishCreate(ctx, c.def, c.version)
		case statusDeleting:
			err = s.finishDelete(ctx, c.def)
		case statusUpdating:
			unfilled = append(unfilled, c)
		}
		if err != nil {
			return err
		}
		if c.def.TTLFilling && c.def.Status != statusDeleting {
			unfilledTTL = append(unfilledTTL, name)
		}
		if m := s.mappings[name]; m != nil {
			if err := s.reconcile(ctx, c.def, m); err != nil {
				return err
			}
		}
	}
	for _, m := range s.o.Mappings {
		if slices.Contains(names, m.SourceTable()) {
			continue
		}
		def, err := s.createTable(ctx, tableOfMapping(m))
		if err != nil && !errors.Is(err, errTableExists) {
			return fmt.Errorf("defining table %s from its mapping: %w", m.SourceTable(), err)
		}
		if err == nil && def.TTLFilling {
			unfilledTTL = append(unfilledTTL, def.Name)
		}
	}
	for _, m := range s.o.Mappings {
		if err := s.warnUnreadable(ctx, m); err != nil {
			return err
		}
	}
	for _, c := range unfilled {
		s.fillIndexes(c)
	}
	for _, name := range unfilledTTL {
		s.fillDueTimes(name)
	}
	return nil
}

// beginEpoch counts this start, so that what it makes differs from what any
// other start makes, even with the same Options.Rand.
func (s *store) beginEpoch(ctx context.Context) error {
	row, err := s.bt.ReadModifyWrite(ctx, s.o.Catalog, []byte(epochRow), btclient.Increment(catalogFamily, versionQualifier, 1))
	if err != nil {
		return fmt.Errorf("counting the starts: %w", err)
	}
	if len(row.Cells) != 1 || len(row.Cells[0].Value) != 8 {
		return fmt.Errorf("counting the starts: the counter is %v, expected one cell of 8 bytes", row.Cells)
	}
	s.epoch = int64(binary.BigEndian.Uint64(row.Cells[0].Value))
	var seed [32]byte
	if _, err := io.ReadFull(s.o.Rand, seed[:]); err != nil {
		return fmt.Errorf("reading Options.Rand: %w", err)
	}
	// The first store has the seed as given, later ones have others.
	earlier := uint64(s.epoch - 1)
	binary.BigEndian.PutUint64(seed[24:], binary.BigEndian.Uint64(seed[24:])^earlier)
	s.rand = rand.NewChaCha8(seed)
	// Tokens count from anywhere: a catalog that was deleted counts its
	// starts anew, while rows of a mapped table may still hold old tokens.
	s.tokens.Store(s.rand.Uint64())
	return nil
}

// describeKey shows a key: "artist (S), song (S)".
func describeKey(key layout.KeySchema) string {
	var parts []string
	for _, a := range key.Attrs() {
		parts = append(parts, fmt.Sprintf("%s (%s)", a.Name, a.Type))
	}
	return strings.Join(parts, ", ")
}

// reconcile brings a table to a mapping that may have changed since the table
// was created: it must be in the same place, and lacks no index.
func (s *store) reconcile(ctx context.Context, def *tableDef, m *layout.Mapping) error {
	if def.at(s.o.Now()).Status != statusActive {
		return nil
	}
	const advice = "keep that in the mapping, or delete the table first, with the mapping that it was created with"
	if def.BigtableTable != m.TargetTable() {
		return fmt.Errorf("table %s was created in Bigtable table %s, but its mapping says %s: %s", def.Name, def.BigtableTable, m.TargetTable(), advice)
	}
	if def.Key != m.Key() {
		return fmt.Errorf("table %s was created with the key %s, but its mapping says %s: %s", def.Name, describeKey(def.Key), describeKey(m.Key()), advice)
	}
	if !slices.ContainsFunc(m.Indexes(), func(x *layout.Index) bool { return def.index(x.Name()) == nil }) {
		return nil
	}
	described := tableOfMapping(m)
	_, err := s.updateTable(ctx, def.Name, func(d *tableDef) error {
		for _, ix := range described.Indexes {
			if d.index(ix.Name) == nil {
				d.Indexes = append(d.Indexes, ix)
			}
		}
		for _, a := range described.Attributes {
			if !slices.Contains(d.Attributes, a) {
				d.Attributes = append(d.Attributes, a)
			}
		}
		return nil
	})
	return err
}

// sampledRows is how many rows of a mapped table a start looks at.
const sampledRows = 10

// warnUnreadable tells of a mapping that reads nothing of what its table holds:
// most likely the rows were laid out by another one, and the table seems empty.
// It is no error, since a table may hold the rows of others too.
func (s *store) warnUnreadable(ctx context.Context, m *layout.Mapping) error {
	var families []*btpb.RowFilter
	for _, f := range m.Families() {
		families = append(families, btclient.OfFamily(f.Name))
	}
	filter := btclient.AnyOf(families...)
	if m.SharesRows() { // a row can be larger than what may be held
		filter = btclient.Chain(filter, btclient.FirstCells(wideCells))
	}
	var first []byte
	for row, err := range s.bt.Read(ctx, btclient.Read{Table: m.TargetTable(), Spans: m.PlanScan().Spans, Filter: filter, Limit: sampledRows}) {
		if err != nil {
			return fmt.Errorf("looking at the rows of table %s: %w", m.TargetTable(), err)
		}
		items, err := m.Items(row)
		if err != nil || len(items) > 0 {
			return nil // a row that is damaged is told when it is asked for
		}
		if first == nil {
			first = bytes.Clone(row.Key)
		}
	}
	if first != nil {
		s.o.Logger.Warn("the mapping reads none of the first rows of its Bigtable table: were they laid out by another mapping?",
			"table", m.SourceTable(), "bigtableTable", m.TargetTable(), "row", string(first))
	}
	return nil
}

// maxCatalogTables is the most tables that a start looks at: as many as a
// Bigtable instance can hold and more.
const maxCatalogTables = 1 << 20

func tableRow(name string) []byte { return []byte(tableRowPrefix + name) }

// newTableID makes a Bigtable table id of a DynamoDB name, which may be
// longer: as much of the name as fits and a hash of all parts.
func newTableID(prefix, name string, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(append([]string{name}, parts...), "\x00")))
	tail := "-" + hex.EncodeToString(sum[:6])
	if room := maxBigtableNameChars - len(prefix) - len(tail); len(name) > room {
		name = name[:room]
	}
	return prefix + name + tail
}
