package metamorphic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/model"
)

// store runs operations and answers with text, which must be the same for all stores.
type store interface {
	run(ctx context.Context, o op) string
}

// errTakenBack ends a catalog update without changes.
var errTakenBack = errors.New("taken back")

// updateAll runs the steps of a catalog update and returns their outcomes. If it returns an
// error, the caller must revert the steps.
func updateAll(o op, step func(op) error) (answer string, err error) {
	for _, s := range o.steps {
		err := step(s)
		answer += outcome(err)
		if err != nil && !o.ignore {
			return answer, err
		}
	}
	if o.fail {
		return answer, errTakenBack
	}
	return answer, nil
}

// tableText returns a table as read-catalog shows it.
func tableText(what, name string, micros bool, families []engine.Family) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s micros=%v\n", what, name, micros)
	for i := range families {
		fmt.Fprintf(&b, "\t%d ", families[i].Ordinal)
		b.WriteString(familyText("family", &families[i]) + "\n")
	}
	return b.String()
}

// outcome returns the name of the error that err wraps.
func outcome(err error) string {
	if err == nil {
		return "ok\n"
	}
	for _, sentinel := range []error{
		engine.ErrTableNotFound, engine.ErrTableExists, engine.ErrFamilyNotFound, engine.ErrFamilyExists,
		engine.ErrNotCounter, engine.ErrAggregate, engine.ErrInvalid, engine.ErrResourceNotFound, errTakenBack,
		engine.ErrBackupExists, engine.ErrBackupNotFound, engine.ErrNoJournal, engine.ErrJournalPosition, engine.ErrJournalTrimmed,
	} {
		if errors.Is(err, sentinel) {
			return "error: " + sentinel.Error() + "\n"
		}
	}
	return "unexpected error: " + err.Error() + "\n"
}

func writeCell(b *strings.Builder, row []byte, c engine.Cell) {
	fmt.Fprintf(b, "%q %s(%d):%q @%d %q\n", row, c.Family, c.Ordinal, c.Qualifier, c.Timestamp, c.Value)
}

// modelStore runs operations on the model, which is the reference for the other stores.
type modelStore struct {
	db        *model.DB
	snapshot  *model.DB // nil without one
	clock     *clock.Clock
	positions map[place]uint64
}

const noSnapshot = "no snapshot\n"

func (s *modelStore) run(_ context.Context, o op) string {
	switch o.kind {
	case createTable, deleteTable, modifyFamilies, softDeleteTable, undeleteTable, purgeTables, putResource, deleteResource,
		deleteBackup, setJournal:
		return outcome(s.update(func() error { return s.change(o) }))
	case updateCatalog:
		var answer string
		err := s.update(func() (err error) {
			answer, err = updateAll(o, s.change)
			return err
		})
		return answer + outcome(err)
	case createBackup:
		return outcome(s.backUp(o, s.db.CreateBackup(o.table, o.backup)))
	case copyBackup:
		return outcome(s.backUp(o, s.db.CopyBackup(o.from, o.backup)))
	case restoreBackup:
		return outcome(s.backUp(o, s.db.RestoreBackup(o.backup, o.table)))
	case readCatalog:
		var b strings.Builder
		for _, t := range s.db.Tables() {
			b.WriteString(tableText("table", t.Name, t.Micros, t.Families))
		}
		for _, t := range s.db.DeletedTables() {
			b.WriteString(tableText("deleted", t.Name, t.Micros, t.Families))
		}
		backups := s.db.Backups()
		for _, name := range slices.Sorted(maps.Keys(backups)) {
			t := backups[name]
			b.WriteString(tableText("backup "+name, t.Name, t.Micros, t.Families))
		}
		all := s.db.Resources()
		for _, name := range slices.Sorted(maps.Keys(all)) {
			fmt.Fprintf(&b, "resource %q %q\n", name, all[name])
		}
		return b.String() + outcome(nil)
	case dropRows:
		return outcome(s.db.DropRows(o.table, o.spans[0]))
	case mutate:
		return outcome(s.db.Mutate(o.table, o.row, o.muts))
	case update:
		rows, err := s.db.Scan(o.table, []engine.Span{{Start: []byte(o.row), End: []byte(o.row + "\x00")}}, false)
		if err != nil || len(rows) == 0 {
			return outcome(err)
		}
		at := s.db.Column(o.table, rows[0].Cells, o.family, []byte(o.qualifier))
		if at == len(rows[0].Cells) || rows[0].Cells[at].Family != o.family || string(rows[0].Cells[at].Qualifier) != o.qualifier {
			return outcome(nil)
		}
		if err := s.db.Mutate(o.table, o.row, o.muts); err != nil {
			return outcome(err)
		}
		s.db.PutResource(rowResource(o), o.qualifier)
		return outcome(nil)
	case readModifyWrite:
		cells, err := s.db.ReadModifyWrite(o.table, o.row, o.rules)
		return rowText(o.row, cells) + outcome(err)
	case scan:
		rows, err := s.db.Scan(o.table, o.spans, o.reverse)
		var b strings.Builder
		for _, r := range rows {
			fmt.Fprintf(&b, "row %q\n", r.Key)
			b.WriteString(rowText(r.Key, s.visited(o, r.Cells)))
		}
		return b.String() + outcome(err)
	case runGC:
		s.db.RunGC()
		return outcome(nil)
	case advance:
		s.clock.Advance(o.by)
		return outcome(nil)
	case takeSnapshot:
		s.snapshot = s.db.Snapshot()
		return outcome(nil)
	case restoreSnapshot:
		if s.snapshot == nil {
			return noSnapshot
		}
		s.db.Restore(s.snapshot)
		return outcome(nil)
	case readJournal:
		return s.readJournal(o, s.positions[place{o.table, o.after}])
	case readSince:
		after, err := s.db.JournalAt(o.table, o.reason, s.clock.Now().Add(-o.by).UnixMicro())
		if err != nil {
			return outcome(err)
		}
		return s.readJournal(o, after)
	case readEnd:
		at, err := s.db.JournalEnd(o.table, o.reason)
		if err == nil && o.to > 0 {
			s.positions[place{o.table, o.to}] = at
		}
		return outcome(err)
	case foldJournal:
		s.db.RunGC()
		_, err := s.db.Scan(o.table, nil, false)
		return outcome(err)
	case createView, updateView, deleteView, getView, scanView, mutateView, checkView, readModifyWriteView:
		return s.runView(o)
	case compact:
		return outcome(nil)
	case reopen, crash:
		s.snapshot = nil
		return outcome(nil)
	case kindsEnd:
	}
	return "unknown operation\n"
}

// update runs fn and keeps all of its changes or none.
func (s *modelStore) update(fn func() error) error {
	before := s.db.Snapshot()
	if err := fn(); err != nil {
		s.db.TakeBack(before)
		return err
	}
	s.db.RecordDropped(before)
	return nil
}

// backUp returns err, the result of o on a backup. If it is nil, backUp puts the resource that
// accompanies o.
func (s *modelStore) backUp(o op, err error) error {
	if err == nil {
		s.db.PutResource(backupResource(o), o.table)
	}
	return err
}

func backupResource(o op) string { return "backup " + o.backup }

// change runs a catalog change.
func (s *modelStore) change(o op) error {
	switch o.kind { //nolint:exhaustive // the others do not change the catalog
	case createTable:
		return s.db.CreateTable(o.def)
	case deleteTable:
		return s.db.DeleteTable(o.table)
	case modifyFamilies:
		return s.db.ModifyFamilies(o.table, o.changes)
	case softDeleteTable:
		return s.db.SoftDeleteTable(o.table)
	case undeleteTable:
		return s.db.UndeleteTable(o.table)
	case purgeTables:
		s.db.PurgeTables(o.table)
		return nil
	case putResource:
		s.db.PutResource(o.row, o.qualifier)
		return nil
	case deleteResource:
		return s.db.DeleteResource(o.row)
	case deleteBackup:
		return s.db.DeleteBackup(o.backup)
	case setJournal:
		return s.db.SetJournal(o.table, o.reason, o.by)
	}
	return errUnknown
}

var errUnknown = errors.New("unknown operation")

// rowResource returns the name of the resource that update puts.
func rowResource(o op) string { return "row " + o.table + " " + o.row }

func rowText(row string, cells []engine.Cell) string {
	var b strings.Builder
	for _, c := range cells {
		writeCell(&b, []byte(row), c)
	}
	return b.String()
}

// visited returns the cells of a row that a scan in the mode of o visits.
func (s *modelStore) visited(o op, cells []engine.Cell) []engine.Cell {
	column := s.db.Column(o.table, cells, o.family, []byte(o.qualifier))
	var out []engine.Cell
	switch o.mode {
	case allCells, scanModesEnd:
		return cells
	case skipColumns, skipFamilies:
		for i, c := range cells {
			same := i > 0 && c.Ordinal == cells[i-1].Ordinal &&
				(o.mode == skipFamilies || string(c.Qualifier) == string(cells[i-1].Qualifier))
			if !same {
				out = append(out, c)
			}
		}
	case seekColumn:
		return cells[column:]
	case seekInside:
		return append(append(out, cells[0]), cells[max(1, column):]...)
	case rewindOnce:
		return append(append(out, cells[:min(2, len(cells))]...), cells...)
	case firstCells:
		return cells[:1]
	}
	return out
}

// engineStore is an engine. The operations reopen and crash open it again if it has a directory.
type engineStore struct {
	db       *engine.DB
	server   *emu.Server      // over db, for views
	snapshot *engine.Snapshot // nil without one
	options  engine.Options
	clock    *clock.Clock

	positions map[place]engine.JournalPosition
	// whole has the beginnings of the journals that began when their table was created.
	whole  map[uint64]bool
	folded int // number of folded records
}

func newEngineStore(o engine.Options, c *clock.Clock) (*engineStore, error) {
	o.Now = c.Now
	s := &engineStore{options: o, clock: c, positions: map[place]engine.JournalPosition{}, whole: map[uint64]bool{}}
	return s, s.open()
}

func (s *engineStore) open() error {
	db, err := engine.Open(s.options)
	if err != nil {
		return err
	}
	server, err := emu.New(emu.Options{DB: db, Clock: s.clock, CloneInProcess: true})
	if err != nil {
		return errors.Join(err, db.Close())
	}
	s.db, s.server = db, server
	return nil
}

func (s *engineStore) close() error { return errors.Join(s.server.Close(), s.db.Close()) }

func (s *engineStore) run(ctx context.Context, o op) string {
	switch o.kind {
	case createTable, deleteTable, modifyFamilies, softDeleteTable, undeleteTable, purgeTables, putResource, deleteResource,
		deleteBackup, setJournal:
		return outcome(s.update(ctx, func(tx *engine.CatalogTx, begun map[uint64]bool) error { return change(tx, o, begun) }))
	case updateCatalog:
		var answer string
		err := s.update(ctx, func(tx *engine.CatalogTx, begun map[uint64]bool) (err error) {
			answer, err = updateAll(o, func(step op) error { return change(tx, step, begun) })
			return err
		})
		return answer + outcome(err)
	case createBackup, copyBackup:
		put := func(tx *engine.CatalogTx, _ *engine.Backup) error {
			return tx.PutResource(backupResource(o), []byte(o.table))
		}
		if o.kind == copyBackup {
			return outcome(s.db.Backups().Copy(ctx, o.from, o.backup, put))
		}
		return outcome(s.db.Backups().Create(ctx, o.table, o.backup, put))
	case restoreBackup:
		return outcome(s.db.Backups().Restore(ctx, o.backup, o.table, func(tx *engine.CatalogTx) error {
			return tx.PutResource(backupResource(o), []byte(o.table))
		}))
	case readJournal:
		return s.readJournal(o, s.positions[place{o.table, o.after}])
	case readSince:
		after, err := s.db.JournalAt(o.table, o.reason, s.clock.Now().Add(-o.by).UnixMicro())
		if err != nil {
			return outcome(err)
		}
		return s.readJournal(o, engine.JournalPosition{Number: after})
	case readEnd:
		end, err := s.db.JournalEnd(o.table, o.reason)
		if err == nil && o.to > 0 {
			s.positions[place{o.table, o.to}] = end.JournalPosition
		}
		return outcome(err)
	case foldJournal:
		text, err := s.foldJournal(ctx, o)
		return text + outcome(err)
	case readCatalog:
		var b strings.Builder
		for _, t := range s.db.Tables("") {
			b.WriteString(tableText("table", t.Name, t.Granularity == engine.Micros, t.Families))
		}
		for _, x := range s.db.DeletedTables("") {
			b.WriteString(tableText("deleted", x.Table.Name, x.Table.Granularity == engine.Micros, x.Table.Families))
		}
		for _, x := range s.db.Backups().List("") {
			b.WriteString(tableText("backup "+x.Name, x.Table.Name, x.Table.Granularity == engine.Micros, x.Table.Families))
		}
		all, err := s.db.Resources("")
		for _, r := range all {
			if !ofServer(r.Name) {
				fmt.Fprintf(&b, "resource %q %q\n", r.Name, r.Value)
			}
		}
		return b.String() + outcome(err)
	case dropRows:
		return outcome(s.db.DropRows(ctx, o.table, o.spans[0]))
	case mutate:
		return outcome(s.db.Mutate(ctx, o.table, []byte(o.row), o.muts))
	case update:
		return outcome(s.db.Update(ctx, o.table, []byte(o.row), func(tx *engine.RowTx) error {
			r := tx.Scan()
			r.SeekColumn(o.family, []byte(o.qualifier))
			found := r.NextCell() && r.Cell().Family == o.family && string(r.Cell().Qualifier) == o.qualifier
			if err := r.Close(); err != nil || !found {
				return err
			}
			if err := tx.Mutate(o.muts); err != nil {
				return err
			}
			return tx.PutResource(rowResource(o), []byte(o.qualifier))
		}))
	case readModifyWrite:
		cells, err := s.db.ReadModifyWrite(ctx, o.table, []byte(o.row), o.rules)
		return rowText(o.row, cells) + outcome(err)
	case scan:
		r, err := s.db.Scan(ctx, o.table, engine.ScanOptions{Spans: o.spans, Reverse: o.reverse})
		if err != nil {
			return outcome(err)
		}
		var b strings.Builder
		for r.NextRow() {
			fmt.Fprintf(&b, "row %q\n", r.Row())
			visit(&b, r, o)
		}
		return b.String() + outcome(r.Close())
	case runGC:
		_, err := s.db.RunGC(ctx)
		return outcome(err)
	case advance:
		s.clock.Advance(o.by)
		return outcome(nil)
	case createView, updateView, deleteView, getView, scanView, mutateView, checkView, readModifyWriteView:
		return s.runView(ctx, o)
	case compact:
		return outcome(s.db.Compact(ctx))
	case takeSnapshot:
		if s.snapshot != nil {
			if err := s.snapshot.Close(); err != nil {
				return outcome(err)
			}
		}
		var err error
		s.snapshot, err = s.db.Snapshot(ctx)
		return outcome(err)
	case restoreSnapshot:
		if s.snapshot == nil {
			return noSnapshot
		}
		return outcome(s.db.Restore(ctx, s.snapshot))
	case reopen, crash:
		snapshot := s.snapshot
		s.snapshot = nil
		if s.options.Dir == "" {
			if snapshot != nil {
				return outcome(snapshot.Close())
			}
			return outcome(nil)
		}
		if disk, ok := s.options.FS.(*vfs.MemFS); ok && o.kind == crash {
			s.options.FS = disk.CrashClone(vfs.CrashCloneCfg{})
		}
		if err := s.close(); err != nil {
			return outcome(err)
		}
		return outcome(s.open())
	case kindsEnd:
	}
	return "unknown operation\n"
}

// update runs fn, and adds the beginnings of journals that fn collects to s.whole.
func (s *engineStore) update(ctx context.Context, fn func(*engine.CatalogTx, map[uint64]bool) error) error {
	begun := map[uint64]bool{}
	err := s.db.UpdateCatalog(ctx, func(tx *engine.CatalogTx) error { return fn(tx, begun) })
	if err == nil {
		maps.Copy(s.whole, begun)
	}
	return err
}

// change runs a catalog change.
func change(tx *engine.CatalogTx, o op, begun map[uint64]bool) error {
	var err error
	switch o.kind { //nolint:exhaustive // the others do not change the catalog
	case createTable:
		var t *engine.Table
		if t, err = tx.CreateTable(o.def); err == nil {
			begun[t.Journal[engine.JournalStream].Since] = true
		}
	case deleteTable:
		err = tx.DeleteTable(o.table)
	case modifyFamilies:
		_, err = tx.ModifyFamilies(o.table, o.changes)
	case softDeleteTable:
		err = tx.SoftDeleteTable(o.table)
	case undeleteTable:
		_, err = tx.UndeleteTable(o.table)
	case purgeTables:
		err = tx.PurgeTables(o.table)
	case putResource:
		err = tx.PutResource(o.row, []byte(o.qualifier))
	case deleteResource:
		err = tx.DeleteResource(o.row)
	case deleteBackup:
		err = tx.DeleteBackup(o.backup)
	case setJournal:
		_, err = tx.UpdateTable(o.table, func(t *engine.Table) error { t.Journal[o.reason].Keep = o.by; return nil })
	default:
		err = errUnknown
	}
	return err
}

// visit reads the current row of r in the mode of o.
func visit(b *strings.Builder, r *engine.Scan, o op) {
	switch o.mode {
	case seekColumn:
		r.SeekColumn(o.family, []byte(o.qualifier))
	case rewindOnce:
		for range 2 {
			if r.NextCell() {
				writeCell(b, r.Row(), *r.Cell())
			}
		}
		r.Rewind()
	case allCells, skipColumns, skipFamilies, seekInside, firstCells, scanModesEnd:
	}
	for n := 1; r.NextCell(); n++ {
		writeCell(b, r.Row(), *r.Cell())
		switch o.mode {
		case skipColumns:
			r.SkipColumn()
		case skipFamilies:
			r.SkipFamily()
		case seekInside:
			if n == 1 {
				r.SeekColumn(o.family, []byte(o.qualifier))
			}
		case firstCells:
			return
		case allCells, seekColumn, rewindOnce, scanModesEnd:
		}
	}
}
