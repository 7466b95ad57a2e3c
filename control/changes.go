package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/control/lab"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/rowtext"
	"github.com/tabletop-emu/tabletop/internal/pull"
)

const (
	// maxCompared limits the compared rows of all tables together. A row that both sides have
	// counts once.
	maxCompared = 200_000
	// maxChangedCells and maxChangedItems limit the cells and items that are shown for a row.
	maxChangedCells = 50
	maxChangedItems = 20
)

// The kinds of changes of a row or an item.
const (
	added   = "added"
	removed = "removed"
	changed = "changed"
)

// counted has the numbers of changed rows, or items, by kind.
type counted struct {
	Added   int `json:"added"`
	Removed int `json:"removed"`
	Changed int `json:"changed"`
}

func (c *counted) count(how string) {
	switch how {
	case added:
		c.Added++
	case removed:
		c.Removed++
	case changed:
		c.Changed++
	}
}

// changedItem is a changed DynamoDB item.
type changedItem struct {
	Table  string          `json:"table"`
	Change string          `json:"change"`
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

// changedRow is a changed row.
type changedRow struct {
	Key    Bytes         `json:"key"`
	Parts  []keyPart     `json:"parts,omitempty"`
	Change string        `json:"change"`
	Before []cell        `json:"before,omitempty"` // removed cells
	After  []cell        `json:"after,omitempty"`  // added cells
	More   int           `json:"more,omitempty"`   // number of cells and items that are not shown
	Items  []changedItem `json:"items,omitempty"`
}

// changedTable is a changed table.
type changedTable struct {
	Name     string       `json:"name"` // its resource name
	Instance string       `json:"instance"`
	Table    string       `json:"table"`
	Change   string       `json:"change"` // added, removed, or changed rows
	Rows     counted      `json:"rows"`
	Items    counted      `json:"items"`
	Shown    []changedRow `json:"shown"` // the first changed rows
}

type changes struct {
	From   string         `json:"from"`
	To     string         `json:"to,omitempty"` // "" is now
	Tables []changedTable `json:"tables"`
	Cut    bool           `json:"cut,omitempty"` // not all rows were compared
	left   int            // number of rows that may still be shown
	read   int            // number of compared rows
	bytes  int            // bytes of the shown rows
}

// snapshotChanges returns the changes between a snapshot and another one, or the present.
func (s *Server) snapshotChanges(r *http.Request) (answer any, err error) {
	out := &changes{From: r.PathValue("name"), To: r.URL.Query().Get("to"), Tables: []changedTable{}}
	if out.left, err = limit(r.URL.Query(), defaultRows); err != nil {
		return nil, err
	}
	from, err := s.snapshots.get(out.From)
	if err != nil {
		return nil, err
	}
	var to *engine.Snapshot
	if out.To != "" {
		kept, err := s.snapshots.get(out.To)
		if err != nil {
			return nil, err
		}
		to = kept.kept
	} else {
		if to, err = s.opts.Lab.Snapshot(r.Context()); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, to.Close()) }()
	}
	before, err := s.past(r.Context(), from.kept)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, before.Close()) }()
	after, err := s.past(r.Context(), to)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, after.Close()) }()
	return out, s.compare(r, out, before, after)
}

// past returns a lab with the data of a snapshot and only the Bigtable endpoint.
func (s *Server) past(ctx context.Context, kept *engine.Snapshot) (*lab.Lab, error) {
	o := s.opts.Lab.Options()
	l := lab.New(lab.Options{Clock: o.Clock, Logger: o.Logger, Project: o.Project, Instance: o.Instance, Faultless: true})
	if err := l.Open(); err != nil {
		return nil, err
	}
	if err := l.Restore(ctx, kept); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// compare compares the tables of two labs row by row, and adds those that differ to out.
func (s *Server) compare(r *http.Request, out *changes, before, after *lab.Lab) error {
	sides := map[string][2]bool{} // whether a table exists on each side
	var names []string
	for i, l := range []*lab.Lab{before, after} {
		for _, t := range l.DB().Tables("") {
			if _, id := ids(t.Name); strings.HasPrefix(id, lab.OwnTables) {
				continue
			}
			there, known := sides[t.Name]
			if !known {
				names = append(names, t.Name)
			}
			there[i] = true
			sides[t.Name] = there
		}
	}
	slices.Sort(names)
	for _, name := range names {
		instance, id := ids(name)
		t := changedTable{Name: name, Instance: instance, Table: id, Change: changed, Shown: []changedRow{}}
		there := sides[name]
		switch {
		case !there[0]:
			t.Change = added
		case !there[1]:
			t.Change = removed
		}
		mappings, err := s.mappingsOf(r, name)
		if err == nil {
			err = out.rows(r.Context(), &t, mappings, rowsOf(r.Context(), before, name, there[0]), rowsOf(r.Context(), after, name, there[1]))
		}
		if err != nil {
			return err
		}
		if t.Change != changed || t.Rows != (counted{}) {
			out.Tables = append(out.Tables, t)
		}
	}
	return nil
}

// rowsOf returns the rows of a table, without the bookkeeping of the DynamoDB endpoint; none
// if the table is missing.
func rowsOf(ctx context.Context, l *lab.Lab, name string, there bool) iter.Seq2[btclient.Row, error] {
	return func(yield func(btclient.Row, error) bool) {
		if !there {
			return
		}
		parent, id, _ := strings.Cut(name, "/tables/")
		project, instance, _ := strings.Cut(strings.TrimPrefix(parent, "projects/"), "/instances/")
		client := btclient.New(l.Bigtable().Conn(), project, instance, btclient.Options{})
		for row, err := range client.Read(lab.Probe(ctx), btclient.Read{Table: id, Spans: []btclient.Span{{}}}) {
			row.Cells = slices.DeleteFunc(row.Cells, rowtext.Hidden)
			if err == nil && len(row.Cells) == 0 {
				continue
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// rows compares the rows of a table, which arrive in the order of their keys.
func (c *changes) rows(ctx context.Context, t *changedTable, mappings []*mapping.Mapping, before, after iter.Seq2[btclient.Row, error]) error {
	nextBefore, stopBefore := pull.Seq2(before)
	defer stopBefore()
	nextAfter, stopAfter := pull.Seq2(after)
	defer stopAfter()
	was, err, isWas := nextBefore()
	if err != nil {
		return err
	}
	is, err, isIs := nextAfter()
	for err == nil && (isWas || isIs) {
		if c.read++; c.read > maxCompared {
			c.Cut = true
			return nil
		}
		order := bytes.Compare(was.Key, is.Key)
		hasWas, hasIs := isWas && (!isIs || order <= 0), isIs && (!isWas || order >= 0)
		switch {
		case !hasIs:
			c.row(t, mappings, removed, was, btclient.Row{Key: was.Key})
		case !hasWas:
			c.row(t, mappings, added, btclient.Row{Key: is.Key}, is)
		case !sameRow(was, is):
			c.row(t, mappings, changed, was, is)
		}
		if hasWas {
			was, err, isWas = nextBefore()
		}
		if hasIs && err == nil {
			is, err, isIs = nextAfter()
		}
		if err == nil {
			err = ctx.Err()
		}
	}
	return err
}

// row records a changed row.
func (c *changes) row(t *changedTable, mappings []*mapping.Mapping, how string, was, is btclient.Row) {
	t.Rows.count(how)
	out := newChangedRow(mappings, how, was, is)
	for _, m := range mappings {
		c.items(t, out, m, was, is)
	}
	if c.left == 0 || c.bytes > maxPageBytes {
		return
	}
	c.left--
	out.Before = c.cells(out, was.Cells, is.Cells)
	out.After = c.cells(out, is.Cells, was.Cells)
	t.Shown = append(t.Shown, *out)
}

// newChangedRow returns a changed row without its cells.
func newChangedRow(mappings []*mapping.Mapping, how string, was, is btclient.Row) *changedRow {
	out := &changedRow{Key: bytesOf(is.Key), Change: how, Parts: partsBy(mappings, is)}
	if out.Parts == nil {
		out.Parts = partsBy(mappings, was)
	}
	return out
}

// cellName returns a name that is unique among cells.
func cellName(x mapping.Cell) string {
	return fmt.Sprintf("%q %q %d %q", x.Family, x.Qualifier, x.Timestamp, x.Value)
}

// cells returns the cells of `of` that others lacks. It cuts long values, and counts cells
// beyond maxChangedCells in row.More.
func (c *changes) cells(row *changedRow, of, others []mapping.Cell) []cell {
	has := make(map[string]bool, len(others))
	for _, x := range others {
		has[cellName(x)] = true
	}
	var found []mapping.Cell
	for _, x := range of {
		switch {
		case has[cellName(x)]:
		case len(found) == maxChangedCells:
			row.More++
		default:
			x.Value = x.Value[:min(len(x.Value), maxPreviewCell)]
			c.bytes += len(x.Value) + len(x.Qualifier)
			found = append(found, x)
		}
	}
	return rowOf(btclient.Row{Cells: found}).Cells
}

// items records the changed DynamoDB items. A row outside the mapping has no items.
func (c *changes) items(t *changedTable, row *changedRow, m *mapping.Mapping, was, is btclient.Row) {
	of := func(r btclient.Row) map[string]attr.Item {
		out := map[string]attr.Item{}
		found, err := m.Items(r)
		if len(r.Cells) == 0 || err != nil {
			return out
		}
		key := (*layout.Mapping)(m).Key()
		for _, item := range found {
			out[string(attr.AppendItemJSON(nil, key.KeyOf(item)))] = item
		}
		return out
	}
	before, after := of(was), of(is)
	var keys []string
	for key := range before {
		keys = append(keys, key)
	}
	for key := range after {
		if before[key] == nil {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		out := changedItem{Table: m.SourceTable(), Change: changed}
		x, y := before[key], after[key]
		switch {
		case x == nil:
			out.Change = added
		case y == nil:
			out.Change = removed
		case attr.EqualItems(x, y):
			continue
		}
		t.Items.count(out.Change)
		if len(row.Items) == maxChangedItems {
			row.More++
			continue
		}
		out.Before, out.After = c.item(x), c.item(y)
		row.Items = append(row.Items, out)
	}
}

// item returns an item in its shown form, and counts its bytes. It returns nil for a missing or large
// item, and if no further row fits the answer.
func (c *changes) item(item attr.Item) json.RawMessage {
	if item == nil || c.left == 0 || c.bytes > maxPageBytes {
		return nil
	}
	text := attr.AppendItemJSON(nil, item)
	if len(text) > maxPreviewItem {
		return nil
	}
	c.bytes += len(text)
	return text
}
