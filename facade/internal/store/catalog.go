package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// CatalogTable is the Bigtable table of the catalog. Its rows are
//
//	t/<table name>                          a table's definition
//	w/<token>                               marks of rows that may contain unfinished work
//	x/<id>                                  a transaction
//	k/<token>                               a request that must not run twice
//	s/<Bigtable table>                      boundaries for parallel scans of a table
//	l/<epoch>                               a process that writes logs; l/past: ended processes
//	o/<epoch>                               a process with an open store
//	g/<table name>/<table id>               streams of a deleted table
//	j/<kind>/<id>                           a job: see package jobs
//	jk/<kind>/<hash of a token>             the job of a client token
//	epoch                                   the number of stores opened so far
//
// A definition is two cells: the JSON text, and a version that changes with every write,
// so that one short value guards a change. A third cell has the number of items at the
// last count of a large table.
const (
	CatalogTable     = reservedPrefix + "catalog"
	catalogFamily    = "d"
	tableRowPrefix   = "t/"
	pendingRowPrefix = "w/"
	logRowPrefix     = "l/"
	presentRowPrefix = "o/"
	// segmentsRowPrefix begins the rows of segment.Cutter.
	segmentsRowPrefix = "s/"
	epochRow          = "epoch"

	// reservedPrefix begins the ids of the store's own Bigtable tables: the catalog, the
	// indexes and the logs.
	reservedPrefix = "_tabletop."

	// maxBigtableNameChars is the maximum length of a Bigtable table id.
	// https://cloud.google.com/bigtable/quotas
	maxBigtableNameChars = 50

	// catalogMaxAge limits how long operations on items use a definition that another process
	// has changed; they notice new and deleted tables and indexes at once. If another process
	// has just added an index or due times, writes of this process in that time are missing
	// there, until the other process fills them again.
	catalogMaxAge = time.Second

	// fillAgainAfter is the time from the addition of an index or of due times until they are
	// filled again. It is twice catalogMaxAge, so that writes already in progress can end.
	fillAgainAfter = 2 * catalogMaxAge
)

var (
	definitionQualifier = []byte("definition")
	versionQualifier    = []byte("version")
)

// CatalogFamilies returns the column families of the catalog.
func CatalogFamilies() []layout.Family {
	return []layout.Family{
		{Name: catalogFamily, GC: layout.GC{Versions: 1}},
		{Name: requestFamily, GC: layout.GC{MaxAge: requestAge}},
	}
}

// cachedTable is a definition with data derived from it.
type cachedTable struct {
	def     *tabledef.Table
	version []byte
	fetched time.Time
	layout  *tableLayout

	fillAgain time.Time // earliest of def.FillTimes; zero if nothing must be filled again
}

// catalog reads, caches and writes the definitions.
type catalog struct {
	*instance
	mappings map[string]*layout.Mapping // by DynamoDB table
	// fillAgain is called, without a lock, for a table whose second filling is due.
	fillAgain func(name string)

	mu     sync.RWMutex
	tables map[string]*cachedTable // by name
	// changes counts this process's writes of each definition, by table name; under mu.
	changes map[string]uint64

	// loaded holds the load times that the migration noted, by DynamoDB table, in microseconds.
	// followed reports whether a migration followed a live table into a DynamoDB table. looked
	// is the time at which the notes were read. None changes after openCatalog.
	loaded   map[string]int64
	followed map[string]bool
	looked   time.Time

	// ddl serializes the changes of definitions in this process. Take it before a table's
	// schema latch and before mu.
	ddl sync.Mutex
	// latches holds the latch of each table, by name; under mu. It blocks item writes while
	// the definition changes, so that no write spans the change.
	latches map[string]*sync.RWMutex
	// filling holds the names of tables for which fillAgain is running; under mu.
	filling map[string]bool

	// room is the number of tables that can be created before the next count, and counted the
	// time of the last count; under ddl.
	room    int
	counted time.Time
}

func newCatalog(in *instance, mappings map[string]*layout.Mapping) *catalog {
	return &catalog{
		instance: in, mappings: mappings,
		tables: map[string]*cachedTable{}, changes: map[string]uint64{}, latches: map[string]*sync.RWMutex{}, filling: map[string]bool{}, loaded: map[string]int64{}, followed: map[string]bool{},
	}
}

// lookup returns the definition of a table as it appears now. It reads the catalog only if
// the cached definition is missing or older than catalogMaxAge. If the table's second filling
// is due, lookup starts it. Errors: ErrTableNotFound, ErrOutsideMapping.
func (cat *catalog) lookup(ctx context.Context, name string) (*cachedTable, error) {
	now := cat.o.Now()
	cat.mu.RLock()
	c := cat.tables[name]
	cat.mu.RUnlock()
	if c == nil || now.Sub(c.fetched) >= catalogMaxAge {
		var err error
		if c, err = cat.refresh(ctx, name); err != nil {
			return nil, err
		}
	}
	if !c.fillAgain.IsZero() && !now.Before(c.fillAgain) {
		cat.fillAgain(name)
	}
	return c.at(now)
}

// refresh reads the stored definition of a table into the cache, and returns it. It may be
// the definition of a deleted table, since refresh ignores the clock. Errors: those of lookup.
func (cat *catalog) refresh(ctx context.Context, name string) (*cachedTable, error) {
	for {
		c, err := cat.read(ctx, name)
		if !errors.Is(err, errOvertaken) {
			return c, err
		}
	}
}

// errOvertaken means that this process changed a definition while it was being read. The old
// definition must not enter the cache, because later writes would use it.
var errOvertaken = errors.New("the definition changed while it was being read")

// read makes one attempt of refresh. Errors: errOvertaken, and those of refresh.
func (cat *catalog) read(ctx context.Context, name string) (*cachedTable, error) {
	fetched := cat.o.Now()
	cat.mu.RLock()
	changes := cat.changes[name]
	cat.mu.RUnlock()
	row, err := cat.bt.ReadRow(ctx, cat.o.Catalog, tableRow(name), btclient.Newest(1))
	if err != nil {
		return nil, err
	}
	var def *tabledef.Table
	var version, counts []byte
	for _, c := range row.Cells {
		switch string(c.Qualifier) {
		case string(definitionQualifier):
			if def, err = tabledef.Decode(c.Value); err != nil {
				return nil, fmt.Errorf("definition of table %s: %w", name, err)
			}
		case string(versionQualifier):
			version = c.Value
		case string(countsQualifier):
			counts = c.Value
		}
	}
	cat.mu.Lock()
	defer cat.mu.Unlock()
	if cat.changes[name] != changes {
		return nil, errOvertaken
	}
	if def == nil {
		delete(cat.tables, name)
		return nil, fmt.Errorf("%w: %s", ErrTableNotFound, name)
	}
	c, err := cat.rememberLocked(def, version, fetched)
	if err == nil && counts != nil {
		c.layout.sizes.Kept(counts)
	}
	return c, err
}

// remember caches a definition that this process has just written with the given version.
func (cat *catalog) remember(def *tabledef.Table, version []byte) (*cachedTable, error) {
	cat.mu.Lock()
	defer cat.mu.Unlock()
	return cat.rememberLocked(def, version, cat.o.Now())
}

func (cat *catalog) rememberLocked(def *tabledef.Table, version []byte, fetched time.Time) (*cachedTable, error) {
	old := cat.tables[def.Name]
	if old != nil && string(old.version) == string(version) {
		c := *old
		c.fetched = fetched
		cat.tables[def.Name] = &c
		return &c, nil
	}
	l, err := cat.newLayout(def)
	if err != nil {
		return nil, err
	}
	if old != nil && old.def.ID == def.ID {
		l.sizes, l.written = old.layout.sizes, old.layout.written
	}
	c := &cachedTable{def: def, version: version, fetched: fetched, layout: l}
	for _, at := range def.FillTimes() {
		if c.fillAgain.IsZero() || at.Before(c.fillAgain) {
			c.fillAgain = at
		}
	}
	cat.tables[def.Name] = c
	return c, nil
}

// changed counts a write of a definition by this process, or an attempt whose outcome is
// unknown.
func (cat *catalog) changed(name string) {
	cat.mu.Lock()
	defer cat.mu.Unlock()
	cat.changes[name]++
}

func (cat *catalog) forget(name string) {
	cat.mu.Lock()
	defer cat.mu.Unlock()
	delete(cat.tables, name)
}

// latchOf returns the latch of a table. Writes of items share the latch; a change of the
// definition holds it exclusively.
func (cat *catalog) latchOf(name string) *sync.RWMutex {
	cat.mu.RLock()
	l := cat.latches[name]
	cat.mu.RUnlock()
	if l != nil {
		return l
	}
	cat.mu.Lock()
	defer cat.mu.Unlock()
	if l = cat.latches[name]; l == nil {
		l = new(sync.RWMutex)
		cat.latches[name] = l
	}
	return l
}

// current is like lookup, for a table that the caller looked up before. The indexes may have
// changed since. Errors: those of lookup; ErrTableNotFound if another table has the name now.
func (cat *catalog) current(ctx context.Context, t *tabledef.Table) (*cachedTable, error) {
	c, err := cat.lookup(ctx, t.Name)
	if err != nil {
		return nil, err
	}
	if c.def.ID != t.ID {
		return nil, fmt.Errorf("%w: %s was deleted and created again", ErrTableNotFound, t.Name)
	}
	return c, nil
}

// Table returns the definition of a table in any status. It returns ErrTableNotFound if
// the table does not exist.
func (cat *catalog) Table(ctx context.Context, name string) (*tabledef.Table, error) {
	c, err := cat.lookup(ctx, name)
	if err != nil {
		return nil, err
	}
	return c.def, nil
}

// TableNow is like Table, but bypasses the cache, so that it sees changes by other
// processes at once.
func (cat *catalog) TableNow(ctx context.Context, name string) (*tabledef.Table, error) {
	c, err := cat.refresh(ctx, name)
	if err != nil {
		return nil, err
	}
	if c, err = c.at(cat.o.Now()); err != nil {
		return nil, err
	}
	return c.def, nil
}

// Settled is like TableNow, but serves operations on settings. A table that is being
// restored has no settings yet, so Settled returns ErrTableNotFound.
func (cat *catalog) Settled(ctx context.Context, name string) (*tabledef.Table, error) {
	t, err := cat.TableNow(ctx, name)
	if err == nil && t.Restoring() {
		return nil, fmt.Errorf("%w: %s is being restored", ErrTableNotFound, name)
	}
	return t, err
}

// Outdated reports whether err means that an operation failed because a Bigtable table is
// missing, before it wrote anything. Another process may have deleted and recreated the
// DynamoDB table, so Outdated then clears the cache of definitions.
func (cat *catalog) Outdated(err error) bool {
	if status.Code(err) != codes.NotFound || errors.Is(err, errIndexesBehind) {
		return false
	}
	cat.mu.Lock()
	defer cat.mu.Unlock()
	clear(cat.tables)
	return true
}

// ListTables returns up to limit table names that follow after, in ascending order. more
// reports whether others follow.
func (cat *catalog) ListTables(ctx context.Context, after string, limit int) (names []string, more bool, err error) {
	span := layout.Span{Start: append(tableRow(after), 0), End: cells.PrefixEnd([]byte(tableRowPrefix))}
	rows := cat.bt.Read(ctx, btclient.Read{
		Table:  cat.o.Catalog,
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

// replaceTable writes and caches a changed definition. If another process has changed the
// stored one, whose version the caller read, replaceTable returns a *TableInUseError.
func (cat *catalog) replaceTable(ctx context.Context, def *tabledef.Table, version []byte) (*cachedTable, error) {
	next, ok, err := cat.writeTable(ctx, def, version)
	if err != nil {
		return nil, err
	}
	if !ok {
		cat.forget(def.Name)
		return nil, &tabledef.TableInUseError{Table: def.Name, Status: tabledef.StatusUpdating} // another process changed it
	}
	return cat.remember(def, next)
}

// writeTable writes a definition if the stored one still has the given version (nil: if the
// row does not exist). It returns the new version; ok reports whether it wrote.
func (cat *catalog) writeTable(ctx context.Context, def *tabledef.Table, version []byte) (next []byte, ok bool, err error) {
	text, err := tabledef.Encode(def)
	if err != nil {
		return nil, false, err
	}
	defer cat.changed(def.Name)
	next = cat.newToken()
	micros := cat.nowMicros()
	guard := btclient.Guard{Family: catalogFamily, Qualifier: versionQualifier, Was: version}
	ok, err = cat.bt.Replace(ctx, cat.o.Catalog, tableRow(def.Name), guard, next, micros, btclient.SetCell(catalogFamily, definitionQualifier, micros, text))
	return next, ok, err
}

func tableRow(name string) []byte { return []byte(tableRowPrefix + name) }

// newTableID returns a Bigtable table id: prefix, as much of the DynamoDB name as fits, and a
// hash of name and parts.
func newTableID(prefix, name string, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(append([]string{name}, parts...), "\x00")))
	tail := "-" + hex.EncodeToString(sum[:6])
	if room := maxBigtableNameChars - len(prefix) - len(tail); len(name) > room {
		name = name[:room]
	}
	return prefix + name + tail
}
