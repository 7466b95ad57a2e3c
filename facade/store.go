package facade

import (
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"time"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
)

// The store is the seam between operations, which think in items, and the
// Bigtable behind them, which holds rows. Operations never see a row; the
// store never sees an expression or a request.
//
// It keeps four promises on any Bigtable, with single-row atomicity alone:
//   - an item write is one CheckAndMutateRow: it happens wholly, on the item
//     it was evaluated against, or not at all;
//   - an acknowledged write is in every index of its table;
//   - an item that was deleted leaves no row behind;
//   - what a loader or another client wrote natively is readable and
//     writable like any other item.

// The statuses of tables and indexes, in DynamoDB's words.
const (
	statusCreating = "CREATING"
	statusActive   = "ACTIVE"
	statusUpdating = "UPDATING"
	statusDeleting = "DELETING"
)

// The kinds of index projections, in DynamoDB's words.
const (
	projectAll      = "ALL"
	projectKeysOnly = "KEYS_ONLY"
	projectInclude  = "INCLUDE"
)

// Errors of the store that operations turn into AWS errors. They come wrapped:
// test with errors.Is. Any other error is a failure of the Bigtable behind.
var (
	errTableExists   = errors.New("table exists")
	errTableNotFound = errors.New("table not found")
	errTableInUse    = errors.New("table is being created, changed or deleted")
	// errSchemaConflict: a CreateTable whose key schema differs from that of
	// the mapping given for the table.
	errSchemaConflict = errors.New("key schema differs from the table's mapping")
	// errOutsideMapping: the item or key cannot be expressed in the table's
	// layout; the text names the rule and the attribute.
	errOutsideMapping = errors.New("outside the table's mapping")
	// errContended: the item changed under every attempt to write it.
	errContended = errors.New("too many concurrent writes of one item")
	// errIntent: the item belongs to a transaction in flight.
	errIntent = errors.New("item is held by a transaction")
)

// tableDef is a table's definition, as the catalogue stores it. A *tableDef
// that the store hands out is shared: never change it; updateTable gives its
// function a copy to change.
type tableDef struct {
	Name string `json:"name"`
	ID   string `json:"id"` // TableId, UUID form; set by createTable
	// BigtableTable is the id of the table that holds the rows; set by
	// createTable.
	BigtableTable      string            `json:"bigtableTable"`
	Key                mapping.KeySchema `json:"key"`
	Attributes         []mapping.KeyAttr `json:"attributes"` // AttributeDefinitions, in the order given
	Status             string            `json:"status"`     // set by the store
	Created            time.Time         `json:"created"`    // set by createTable
	BillingMode        string            `json:"billingMode,omitempty"`
	ReadUnits          int64             `json:"readUnits,omitempty"`
	WriteUnits         int64             `json:"writeUnits,omitempty"`
	Class              string            `json:"class,omitempty"`
	DeletionProtection bool              `json:"deletionProtection,omitempty"`
	StreamEnabled      bool              `json:"streamEnabled,omitempty"`
	StreamView         string            `json:"streamView,omitempty"` // StreamViewType
	TTLAttribute       string            `json:"ttlAttribute,omitempty"`
	Tags               map[string]string `json:"tags,omitempty"`
	Indexes            []indexDef        `json:"indexes,omitempty"` // local and global, in the order given
	// Extra holds request members that are only echoed by descriptions, by
	// name, as JSON text.
	Extra map[string]string `json:"extra,omitempty"`
}

// indexDef is a secondary index of a table.
type indexDef struct {
	Name       string            `json:"name"`
	Global     bool              `json:"global"`
	Key        mapping.KeySchema `json:"key"`
	Projection string            `json:"projection"`       // projectAll, …
	NonKey     []string          `json:"nonKey,omitempty"` // of projectInclude
	ReadUnits  int64             `json:"readUnits,omitempty"`
	WriteUnits int64             `json:"writeUnits,omitempty"`
	// Set by the store.
	Status        string `json:"status"`
	Backfilling   bool   `json:"backfilling,omitempty"`
	BigtableTable string `json:"bigtableTable"`
}

// index returns the index of that name, or nil.
func (t *tableDef) index(name string) *indexDef {
	for i := range t.Indexes {
		if t.Indexes[i].Name == name {
			return &t.Indexes[i]
		}
	}
	return nil
}

// presence is what a write requires of the item it replaces.
type presence uint8

const (
	anyPresence presence = iota // whatever is there
	mustExist
	mustNotExist
)

// writeHint lets writeItem go without reading the item. The zero value reads.
type writeHint struct {
	// blind says that the write's outcome does not depend on the old item
	// beyond require, and that the caller does not need the old item: the
	// item becomes replacement (nil: it is deleted) if require holds. When
	// require does not hold, or the store needs the old item for itself, it
	// falls back to reading and calling fn, which must give the same outcome.
	blind       bool
	replacement attr.Item
	require     presence
}

type storeOptions struct {
	conn              grpc.ClientConnInterface
	project, instance string
	mappings          []*mapping.Mapping
	now               func() time.Time
	rand              io.Reader
	logger            *slog.Logger
}

// store holds items in Bigtable. It is safe for concurrent use.
type store struct {
	o storeOptions
}

// newStore opens the catalogue, creating it in an empty instance; defines the
// tables of the mappings that the catalogue does not know yet; and finishes
// what an earlier process left undone.
func newStore(ctx context.Context, o storeOptions) (*store, error) {
	return nil, errors.ErrUnsupported
}

// close waits for background work (index backfill) to stop and forgets it: it
// resumes at the next newStore.
func (s *store) close() error { return errors.ErrUnsupported }

// createTable creates a table, indexes included, from a definition without
// the fields that the store sets. It returns once the table is usable, with
// status ACTIVE. Errors: errTableExists, errSchemaConflict.
func (s *store) createTable(ctx context.Context, def *tableDef) (*tableDef, error) {
	return nil, errors.ErrUnsupported
}

// table returns a table's definition, whatever its status; errTableNotFound.
func (s *store) table(ctx context.Context, name string) (*tableDef, error) {
	return nil, errors.ErrUnsupported
}

// listTables returns up to limit table names that follow after, ascending,
// and whether there are more.
func (s *store) listTables(ctx context.Context, after string, limit int) (names []string, more bool, err error) {
	return nil, false, errors.ErrUnsupported
}

// deleteTable deletes a table with its indexes and rows. It returns the
// definition with status DELETING, once the table is gone. It does not look
// at DeletionProtection. Errors: errTableNotFound, errTableInUse.
func (s *store) deleteTable(ctx context.Context, name string) (*tableDef, error) {
	return nil, errors.ErrUnsupported
}

// updateTable changes a table's definition: fn changes the copy it is given,
// or returns an error that aborts. Indexes that fn appends to Indexes are
// created and filled in the background (status CREATING, Backfilling, then
// ACTIVE; the table is UPDATING meanwhile); indexes that it removes are
// deleted. fn may be called again when another update came first.
// Errors: errTableNotFound, errTableInUse, fn's.
func (s *store) updateTable(ctx context.Context, name string, fn func(*tableDef) error) (*tableDef, error) {
	return nil, errors.ErrUnsupported
}

// getItem returns the item with the given key (the key attributes alone), or
// nil. Errors: errOutsideMapping.
func (s *store) getItem(ctx context.Context, t *tableDef, key attr.Item) (attr.Item, error) {
	return nil, errors.ErrUnsupported
}

// getItems returns the items with the given keys, nil where there is none, in
// the order of keys, by one read.
func (s *store) getItems(ctx context.Context, t *tableDef, keys []attr.Item) ([]attr.Item, error) {
	return nil, errors.ErrUnsupported
}

// writeItem replaces the item with the given key by what fn makes of it. fn
// gets the item as it is (nil: none; never to be changed in place) and
// returns the new one (nil: none), which must have the same key; an error
// aborts the write and is returned as it is, together with the old item. fn may be
// called several times. It returns once the item and its index entries are
// written. Errors: errOutsideMapping, errContended, errIntent, fn's.
func (s *store) writeItem(ctx context.Context, t *tableDef, key attr.Item, fn func(old attr.Item) (attr.Item, error), hint writeHint) (old, updated attr.Item, err error) {
	return nil, nil, errors.ErrUnsupported
}

// query yields the items of the table, or of its index ix when that is not
// nil, that satisfy the condition, by sort key, ascending if forward, after
// startAfter (the key attributes of the table, and of the index; nil: from
// the start). From an index they hold the projected attributes. An error ends the
// sequence.
func (s *store) query(ctx context.Context, t *tableDef, ix *indexDef, cond mapping.KeyCondition, forward bool, startAfter attr.Item) iter.Seq2[attr.Item, error] {
	return func(yield func(attr.Item, error) bool) { yield(nil, errors.ErrUnsupported) }
}

// scan yields the items of one segment of the table or index, in an order
// that stays the same, after startAfter. total is at least 1.
func (s *store) scan(ctx context.Context, t *tableDef, ix *indexDef, segment, total int, startAfter attr.Item) iter.Seq2[attr.Item, error] {
	return func(yield func(attr.Item, error) bool) { yield(nil, errors.ErrUnsupported) }
}

// segmentOf returns the segment, in [0, total), that an item or key belongs to
// in a parallel scan of the table, or of its index ix when that is not nil.
func (s *store) segmentOf(t *tableDef, ix *indexDef, item attr.Item, total int) int {
	return 0
}
