package store

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"strconv"
	"time"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/changelog"
	"github.com/tabletop-emu/tabletop/facade/internal/jobs"
	"github.com/tabletop-emu/tabletop/facade/internal/store/history"
	"github.com/tabletop-emu/tabletop/facade/internal/store/marks"
	"github.com/tabletop-emu/tabletop/facade/internal/store/segment"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// Errors of the store that operations convert to AWS errors. They may be wrapped, so test
// for them with errors.Is. Any other error is a failure of the Bigtable.
var (
	ErrTableExists   = errors.New("table exists")
	ErrTooManyTables = errors.New("too many tables")
	ErrTableNotFound = errors.New("table not found")
	// ErrSchemaConflict means that the key schema in a CreateTable request differs from
	// that in the table's mapping.
	ErrSchemaConflict = errors.New("key schema differs from the table's mapping")
	// ErrOutsideMapping means that the item does not fit the layout of its table. The
	// text names the rule and the attribute. It may also mean that the mapping with which
	// the table was created is missing.
	ErrOutsideMapping = errors.New("outside the table's mapping")
	// ErrOtherMapping means that another mapping laid out the rows of a table, and placed
	// items elsewhere than the given mapping.
	ErrOtherMapping = errors.New("the rows were laid out with another mapping")
	// ErrContended means that the item changed during every attempt to write it.
	ErrContended = errors.New("too many concurrent writes of one item")
	// ErrOtherSegment means that the start key of a scan belongs to another segment.
	ErrOtherSegment = errors.New("the start key belongs to another segment")
	// ErrViewFilling means that Bigtable still fills the materialized view of an index.
	ErrViewFilling = errors.New("the index cannot be read yet")
	// errIndexesBehind means that the item is written, but its index entries are not. The
	// next read of an index of the table, or write of the item, writes them.
	errIndexesBehind = errors.New("the item is written, but its indexes are not yet")
	// ErrIntent means that a pending transaction holds the item.
	ErrIntent = errors.New("item is held by a transaction")
)

// Presence is the condition under which a write proceeds, depending on whether the item
// exists.
type Presence uint8

// Conditions on the existence of the item.
const (
	AnyPresence  Presence = iota // no condition
	MustExist                    // the item must exist
	MustNotExist                 // the item must not exist
)

// Hint allows WriteItem to write without reading the item. With the zero value, WriteItem
// reads the item.
type Hint struct {
	// Blind means that the outcome depends on the old item only through Require, and that
	// the caller does not need the old item. If Require holds, Replacement becomes the
	// item, or the item is deleted if Replacement is nil. If Require does not hold, or if
	// the store needs the old item, WriteItem reads the item and calls fn, which must
	// have the same outcome.
	Blind       bool
	Replacement attr.Item
	Require     Presence

	// Expired means that the write deletes the item because its time to live has ended.
	Expired bool
}

// Options configures a store. These fields are optional: AppProfile, Mappings, IndexLag,
// StatusDelays, Deadline, Concurrency, Progress, Shards, Slot, StreamRetention,
// CountedItems, BatchBytes, Kinds and KeepDeleted.
type Options struct {
	Conn              grpc.ClientConnInterface
	Project, Instance string            // project and instance of the tables
	AppProfile        string            // app profile of data calls; "" means the default profile
	Catalog           string            // id of the catalog table
	Mappings          []*layout.Mapping // at most one per table
	Now               func() time.Time
	Wall              *clock.Clock // clock for the leases of jobs, and of processes that share logs
	Rand              io.Reader    // must be safe for concurrent use
	Logger            *slog.Logger
	IndexLag          time.Duration // delay from a write until its entries in global indexes are visible
	StatusDelays      StatusDelays
	MaxTables         int
	Deadline          time.Duration   // longest wait for a response of the Bigtable; 0 means no limit
	Concurrency       int             // most concurrent calls of one operation; 0 or 1 means sequential calls
	Progress          func(Progress)  // receives the progress of background work
	Shards            tabledef.Shards // rotation and slots of new streams; a zero field means its default
	// Slot is a name that only one process holds at a time. The process takes over
	// immediately from an earlier process with the same slot. "" means no slot.
	Slot            string
	StreamRetention time.Duration // retention of new streams; 0 means tabledef.StreamRetention
	CountedItems    int64         // maximum number of items that a description counts; 0 means countedItems
	// BatchBytes is the size, in bytes, at which a batch of items, index entries or log
	// records ends during work on a whole table. Zero means defaultBatchBytes, or the
	// default of package history.
	BatchBytes int

	// Kinds returns the kinds of jobs of the store. If it is nil, the store has no jobs.
	Kinds func(*Store) []jobs.Kind
	// KeepDeleted is called with a deleted table before its rows are removed. If keep is
	// true, the rows stay. It may be called again for the same table. If it is nil, all
	// rows are removed.
	KeepDeleted func(ctx context.Context, s *Store, t *tabledef.Table) (keep bool, err error)
}

// StatusDelays holds the times for which tables and their parts appear to be changing.
// Zero means no delay.
type StatusDelays struct {
	Create, Update, Delete, IndexCreate, IndexFill, IndexDelete, Backup, TimeToLive time.Duration
}

// Store stores items in a Bigtable. It is safe for concurrent use. The embedded parts do
// the work; operations call their exported methods.
type Store struct {
	*instance
	*catalog
	*rows
	*outbox
	*transactions
	*writer
	*transactor
	*reader
	*filler
	*tables
	*reaper
	*counter
	*keeper
	marks *marks.Marks
	logs  *changelog.Logs

	// Jobs runs the jobs of the kinds in Options.Kinds.
	Jobs *jobs.Runner
	// History reads past states of tables.
	History *history.Reader
}

// Open opens the catalog, and creates it if it does not exist. It creates the tables of
// mappings that are new to the catalog, and finishes the pending work of earlier
// processes. Fillings of indexes and jobs continue in the background.
func Open(ctx context.Context, o Options) (*Store, error) {
	mappings, err := mappingsOf(o.Mappings)
	if err != nil {
		return nil, err
	}
	in := newInstance(ctx, o)
	cat := newCatalog(in, mappings)
	m := marks.New(marks.Options{
		Bigtable: in.bt, Catalog: o.Catalog, Family: catalogFamily, Prefix: pendingRowPrefix,
		Now: o.Now, NewToken: in.newToken, Logger: o.Logger, Lanes: in.lanes, Life: in.life,
	})
	rs := &rows{in}
	var later func(func())
	if in.lanes.Wide() {
		later = in.background.Go
	}
	began := o.Wall.Now()
	elapsed := func() time.Duration { return o.Wall.Now().Sub(began) }
	ob := &outbox{instance: in, cat: cat, marks: m, rows: rs, whole: make(chan struct{}, 1)}
	lg := changelog.New(changelog.Options{
		Bigtable: in.bt, Catalog: o.Catalog, Family: catalogFamily, Prefix: logRowPrefix, Present: presentRowPrefix,
		Now: o.Now, Logger: o.Logger, Marks: m,
		Recover: func(ctx context.Context, table string, row []byte) error {
			_, err := ob.recoverRow(ctx, table, row, adoptedOrder)
			return err
		},
		RecoverAll: ob.recoverAll, Elapsed: elapsed, Slot: o.Slot, Life: in.life, Later: later,
	})
	ob.logs = lg
	tx := newTransactions(in, cat, m, rs, ob, lg)
	w := newWriter(in, cat, m, rs, ob, tx, lg)
	sg := segment.NewCutter(segment.CutterOptions{
		Bigtable: in.bt, Catalog: o.Catalog, Family: requestFamily, Prefix: segmentsRowPrefix, Now: o.Now, NewToken: in.newToken,
	})
	rd := &reader{in, cat, rs, ob, tx, sg}
	f := &filler{in, cat, rs, ob, w, rd}
	ts := &tables{in, cat, m, f, lg, nil}
	cat.fillAgain = f.fillAgain
	s := &Store{
		in, cat, rs, ob, tx, w, &transactor{in, cat, rs, tx, w}, rd, f, ts,
		&reaper{in, cat, tx, w, rd, ts}, &counter{in, cat, tx, rd}, &keeper{in, cat, rd, f, ts}, m, lg, nil, nil,
	}
	s.History = history.New(s.historyOptions())
	s.Jobs = jobs.New(ctx, jobs.Options{
		Client: in.bt, Table: o.Catalog, Family: catalogFamily, TokenFamily: requestFamily,
		Owner: func() string { return strconv.FormatInt(in.epoch, 10) }, Now: o.Now, Wall: o.Wall, NewToken: in.newToken, Logger: o.Logger,
	})
	if o.Kinds != nil {
		for _, k := range o.Kinds(s) {
			s.Jobs.Handle(k)
		}
	}
	if o.KeepDeleted != nil {
		ts.keepDeleted = func(ctx context.Context, t *tabledef.Table) (bool, error) { return o.KeepDeleted(ctx, s, t) }
	}
	err = s.openCatalog(ctx)
	if err == nil {
		err = s.recoverPending(ctx)
	}
	if err == nil {
		err = s.recoverTransactions(ctx, true)
	}
	if err == nil {
		err = s.Jobs.Start(ctx)
	}
	if err != nil {
		s.Jobs.Close()
		s.end()
		s.Wait()
		lg.Disappear(context.WithoutCancel(ctx))
		return nil, fmt.Errorf("opening the catalog: %w", err)
	}
	return s, nil
}

func (s *Store) historyOptions() history.Options {
	return history.Options{
		Bigtable: s.bt, Wall: s.o.Wall, Log: s.logs, Order: s.comparePlaces, BatchBytes: s.o.BatchBytes,
		NewScratch: func() string { return reservedPrefix + "h." + hex.EncodeToString(s.newToken()) },
		Scan: func(ctx context.Context, t *tabledef.Table) iter.Seq2[layout.Stored, error] {
			return s.Scan(ctx, t, nil, 0, 1, nil)
		},
	}
}

// mappingsOf returns the given mappings by DynamoDB table. It rejects mappings that lose
// data, name no DynamoDB table, or share a table.
func mappingsOf(given []*layout.Mapping) (map[string]*layout.Mapping, error) {
	mappings, targets := map[string]*layout.Mapping{}, map[string]string{}
	for _, m := range given {
		source, target := m.SourceTable(), m.TargetTable()
		if source == "" {
			return nil, fmt.Errorf("facade: the mapping to table %s names no source table", target)
		}
		if spec := m.Spec(); spec != nil && spec.Compat != "" {
			return nil, fmt.Errorf("facade: the layout %s of table %s loses data: it cannot be served", spec.Compat, source)
		}
		if mappings[source] != nil {
			return nil, fmt.Errorf("facade: two mappings for table %s", source)
		}
		if other, ok := targets[target]; ok {
			return nil, fmt.Errorf("facade: the mappings of %s and %s have the same target table %s", other, source, target)
		}
		mappings[source], targets[target] = m, source
	}
	return mappings, nil
}

// Close stops background work such as index backfills and jobs, which the next Open
// resumes. Then it appends the pending log records and removes the idle marks.
func (s *Store) Close() error {
	s.Jobs.Close()
	s.end()
	s.Wait()
	ctx := context.WithoutCancel(s.life)
	return errors.Join(s.logs.Close(ctx), s.marks.Flush(ctx, 0))
}

// Wait waits until all background work has ended.
func (s *Store) Wait() { s.background.Wait() }
