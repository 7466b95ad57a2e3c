package store

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/loadnote"
)

// comparePhase is the Progress.Phase of a scan for items that the mapping places elsewhere.
const comparePhase = "comparing with the mapping"

// checkLoaded compares m with the migration's note about m's table, if any. It returns
// ErrOtherMapping if another mapping laid out the rows. It remembers the time of the load, and
// whether a migration follows a live table into this one.
func (ts *tables) checkLoaded(ctx context.Context, m *layout.Mapping) error {
	prefix := layout.SchemaRowPrefix(m.TargetTable())
	var rows []layout.Row
	for row, err := range ts.bt.Read(ctx, btclient.Read{
		Table: layout.SchemaTable, Spans: []layout.Span{cells.Prefixed(prefix)}, Filter: btclient.Newest(1),
	}) {
		if status.Code(err) == codes.NotFound {
			return nil
		}
		if err != nil {
			return fmt.Errorf("looking up the mapping with which table %s was loaded: %w", m.TargetTable(), err)
		}
		rows = append(rows, row)
	}
	if at := loadnote.At(rows, m.TargetTable()); !at.IsZero() {
		ts.cat.loaded[m.SourceTable()] = at.UnixMicro()
	}
	_, ts.cat.followed[m.SourceTable()] = loadnote.Followed(rows, m.TargetTable())
	return ts.checkLaidOut(ctx, m, rows)
}

// noteOf returns the note by which a definition identifies m: the columns of m's row in
// layout.SchemaTable, by qualifier. It returns nil for a default layout.
func noteOf(m *layout.Mapping) (map[string][]byte, error) {
	if m.Spec() == nil {
		return nil, nil // there is only one default layout
	}
	rows, err := m.SchemaRows(0)
	if err != nil {
		return nil, err
	}
	note := map[string][]byte{}
	for _, c := range rows[0].Cells {
		note[string(c.Qualifier)] = c.Value
	}
	return note, nil
}

// checkServed compares m with the mapping that last served the table, according to def. It
// does nothing if the migration noted a load, because checkLoaded has compared m with that.
func (ts *tables) checkServed(ctx context.Context, def *tabledef.Table, m *layout.Mapping) error {
	if _, loaded := ts.cat.loaded[def.Name]; loaded || len(def.Note) == 0 {
		return nil
	}
	row := layout.Row{Key: layout.SchemaRowPrefix(m.TargetTable())}
	for qualifier, value := range def.Note {
		row.Cells = append(row.Cells, layout.Cell{Family: layout.SchemaFamily, Qualifier: []byte(qualifier), Value: value})
	}
	return ts.checkLaidOut(ctx, m, []layout.Row{row})
}

// checkLaidOut returns ErrOtherMapping if m places an existing item of its table differently
// than the noted mapping: the item would be missing, and a write would duplicate it. m may add
// rules or rephrase them. checkLaidOut accepts a note that it cannot read, with a warning.
func (ts *tables) checkLaidOut(ctx context.Context, m *layout.Mapping, note []layout.Row) (err error) {
	changes := loadnote.Changes(note, m)
	if len(changes) == 0 {
		return nil
	}
	name, table := m.SourceTable(), m.TargetTable()
	unread := func(err error) error {
		ts.o.Logger.Warn("the recorded layout of a table cannot be read, so it is not compared with the mapping", "table", name, "bigtableTable", table, "error", err)
		return nil
	}
	was, err := layout.FromSchemaRows(table, note)
	if err != nil {
		return unread(err)
	}
	moves, err := loadnote.NewMoves(was, m)
	if err != nil {
		return unread(err)
	}
	progress := ts.reporter(name, comparePhase)
	defer progress.End(&err)
	for row, err := range ts.bt.Read(ctx, btclient.Read{Table: table, Spans: was.PlanScan().Spans}) {
		if status.Code(err) == codes.NotFound {
			return nil // the table was deleted in the meantime
		}
		if err != nil {
			return fmt.Errorf("comparing the rows of table %s with the mapping: %w", table, err)
		}
		items, err := was.Items(row)
		if err != nil {
			continue // not a row of that mapping
		}
		for _, item := range items {
			if what := moves.Of(item); what != "" {
				return fmt.Errorf("%w: table %s in Bigtable table %s (%s); item %s: %s: serve it with that mapping, or load it again with this one",
					ErrOtherMapping, name, table, strings.Join(changes, "; "), attr.AppendItemJSON(nil, was.Key().KeyOf(item)), what)
			}
			progress.Item()
		}
	}
	return nil
}
