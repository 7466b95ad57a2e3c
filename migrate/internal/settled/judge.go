package settled

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/secondary"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	compared "github.com/tabletop-emu/tabletop/migrate/internal/compare"
	"github.com/tabletop-emu/tabletop/migrate/internal/golden"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

// judge compares items with rows.
type judge struct {
	j         *table.Job
	retention table.Retention
	now       func() time.Time
	// exact: the mapping gives all cells a time. Otherwise the time of a cell with Job.Micros is that
	// of a change, and not compared.
	exact bool
	cells bool // items compare the cells, too
}

// otherMicros is the default time of cells in expected rows. It marks the cells without a time of
// their own, and is neither a likely time of an item nor a likely version number. It is early, so that
// a family with a maximum age need not have such a cell.
const otherMicros = 7_654_321_987_000

func newJudge(j *table.Job, now func() time.Time) *judge {
	c := &judge{j: j, retention: table.NewRetention(j.Mapping.Families(), now), now: now}
	if j.Micros, c.exact = j.Mapping.ImportTimeMicros(); !c.exact {
		j.Micros = otherMicros
	}
	return c
}

// outcome is the result of comparing one item.
type outcome struct {
	failures           []report.Failure
	stale              bool // only entries of indexes differ
	expired, collected bool // it differs, because of its time to live or of garbage collection
	newer              bool // it differs, and changed after the export
	stored             attr.Item
}

// item compares an item of the source with its row, or with the part of it in the item's extents.
// item is nil if the source does not have it.
func (c *judge) item(x *suspect, item attr.Item, row layout.Row) outcome {
	m := c.j.Mapping
	l := table.RowLayout{J: c.j}
	at := l.Owned(report.InRow(c.j.Report.Target, x.at.Row), table.Owner{Rule: x.at.Rule, Item: c.j.KeyJSON(x.key)})
	var out outcome
	fail := func(f report.Failure) {
		f.Table, f.RowKey, f.RowHex, f.Rule, f.ItemKey, f.Mapping = at.Table, at.RowKey, at.RowHex, at.Rule, at.ItemKey, at.Mapping
		out.failures = append(out.failures, f)
	}
	found, err := m.Item(row, x.key)
	if out.stored = found; err != nil {
		fail(report.Failure{Kind: report.RowUnreadable, Detail: phrase.Clip(err.Error())})
		return out
	}
	if item == nil {
		if found != nil {
			f := report.Failure{Kind: report.ExtraItem, Got: compared.ValueText(attr.MapOf(found))}
			if !m.SharesRows() {
				f.Kind = report.ExtraRow
			}
			fail(f)
		}
		return c.excused(out, found)
	}
	placed, err := m.Place(item, c.j.Micros)
	if err != nil {
		fail(report.Failure{Kind: report.ItemRefused, Detail: phrase.Clip(err.Error())})
		return out
	}
	want := c.timed(placed.Cells, row.Cells)
	kept := c.kept(want, row.Cells, placed.Own)
	back, _ := m.Returned(item, placed)
	lost := len(kept) < len(want)
	switch {
	case found == nil && lost && len(kept) == 0:
		out.collected = true
		return out
	case found == nil:
		f := report.Failure{Kind: report.MissingItem, Want: compared.ValueText(attr.MapOf(back))}
		if len(row.Cells) == 0 {
			f.Kind = report.MissingRow
		}
		fail(f)
		return c.excused(out, item)
	case !attr.EqualItems(back, found):
		if lost {
			if less, err := m.Item(layout.Row{Key: row.Key, Cells: kept}, x.key); err == nil && attr.EqualItems(less, found) {
				out.collected = true
				return out
			}
		}
		compared.DiffItems(back, found, fail)
		return c.excused(out, item)
	}
	if c.cells && !x.at.Derived {
		if m.SharesRows() {
			row.Cells = slices.DeleteFunc(slices.Clone(row.Cells), func(o layout.Cell) bool {
				return !slices.ContainsFunc(x.at.Own, func(e lens.Extent) bool { return e.Covers(o) })
			})
		}
		c.surplus(kept, row, fail)
	}
	return out
}

// excused drops the differences of an item whose time to live is over: the two sides delete it at
// different times.
func (c *judge) excused(out outcome, item attr.Item) outcome {
	ttl := c.j.Mapping.Expiry()
	if ttl.Attribute == "" || len(out.failures) == 0 {
		return out
	}
	oneSide := slices.ContainsFunc(out.failures, func(f report.Failure) bool {
		return f.Kind == report.MissingItem || f.Kind == report.MissingRow || f.Kind == report.ExtraItem || f.Kind == report.ExtraRow
	})
	v, now := item[ttl.Attribute], c.now()
	at, err := strconv.ParseInt(v.Str, 10, 64)
	over := err == nil && v.Type == attr.N && at <= now.Unix() && at >= now.AddDate(-5, 0, 0).Unix()
	if over && (oneSide || ttl.Collected) {
		out.failures, out.expired = nil, true
	}
	return out
}

type columnName struct{ family, qualifier string }

// timed returns expected cells in which those without a time of their own have the time of the
// stored cell.
func (c *judge) timed(want, got []layout.Cell) []layout.Cell {
	if c.exact {
		return want
	}
	newest := map[columnName]layout.Cell{}
	for _, o := range got {
		name := columnName{o.Family, string(o.Qualifier)}
		if before, ok := newest[name]; !ok || before.Timestamp < o.Timestamp {
			newest[name] = o
		}
	}
	want = slices.Clone(want)
	for i := range want {
		if o, ok := newest[columnName{want[i].Family, string(want[i].Qualifier)}]; ok && want[i].Timestamp == c.j.Micros {
			want[i].Timestamp = o.Timestamp
		}
	}
	return want
}

// kept returns the expected cells that garbage collection keeps. In columns that several items
// share, the stored versions count.
func (c *judge) kept(want, got []layout.Cell, own []lens.Extent) []layout.Cell {
	if c.retention.Empty() {
		return want
	}
	all := slices.Clone(want)
	if slices.ContainsFunc(own, func(e lens.Extent) bool { return e.MinTime != 0 || e.MaxTime != 0 }) {
		for _, o := range got {
			if !slices.ContainsFunc(want, func(w layout.Cell) bool { return samePlace(w, o) }) {
				all = append(all, o)
			}
		}
	}
	all = golden.Canonical(layout.Row{Cells: all}).Cells
	left := c.retention.Kept(all)
	if len(left) == len(all) {
		return want
	}
	return slices.DeleteFunc(slices.Clone(want), func(w layout.Cell) bool {
		return !slices.ContainsFunc(left, func(o layout.Cell) bool { return samePlace(w, o) })
	})
}

func samePlace(a, b layout.Cell) bool {
	return a.Timestamp == b.Timestamp && a.Family == b.Family && bytes.Equal(a.Qualifier, b.Qualifier)
}

// surplus compares the cells of a row whose items are equal to the expected ones: each cell must be
// there, at its time and with its bytes, and no other. A number with another text is a difference, as
// for migrate.Verify.
func (c *judge) surplus(want []layout.Cell, row layout.Row, fail func(report.Failure)) {
	got := row.Cells
	if len(got) == len(want) {
		there := make(map[string][]byte, len(got))
		for _, o := range got {
			there[placeText(o)] = o.Value
		}
		if !slices.ContainsFunc(want, func(w layout.Cell) bool {
			value, ok := there[placeText(w)]
			return !ok || !bytes.Equal(value, w.Value)
		}) {
			return
		}
	}
	got = c.retention.Kept(golden.Canonical(row).Cells)
	compared.DiffCells(want, got, func(d compared.CellDiff) { fail(d.In(report.Failure{})) })
}

func placeText(c layout.Cell) string {
	return c.Family + ":" + strconv.FormatInt(c.Timestamp, 10) + ":" + string(c.Qualifier)
}

// group compares the cells of a row, or of a part of it that has whole items, with its own items.
func (c *judge) group(row layout.Row, items []attr.Item, fail func(report.Failure)) {
	l := table.RowLayout{J: c.j}
	var want []layout.Cell
	for _, item := range items {
		want = append(want, l.Place(item).Cells...)
	}
	want = c.kept(c.timed(want, row.Cells), nil, nil)
	of := table.Owner{}
	if len(items) == 1 {
		of = l.OwnerOf(items[0])
	}
	at := report.InRow(c.j.Report.Target, row.Key)
	c.surplus(want, row, func(f report.Failure) {
		f.Table, f.RowKey, f.RowHex = at.Table, at.RowKey, at.RowHex
		fail(l.Owned(f, of))
	})
}

// entry is a row of an index.
type entry struct {
	index *secondary.Index
	row   []byte
}

func (e entry) compare(o entry) int {
	return cmp.Or(cmp.Compare(e.index.Name(), o.index.Name()), bytes.Compare(e.row, o.row))
}

// expected returns the entry of a stored item in an index; ok is false if it has none.
func (c *judge) expected(x *secondary.Index, stored attr.Item) (placed lens.Placed, ok bool) {
	if stored == nil {
		return placed, false
	}
	placed, ok, err := x.Place(stored, c.j.Micros)
	return placed, ok && err == nil
}

// entryRow compares a row of an index with the entry of a stored item of that key, which may have
// none there.
func (c *judge) entryRow(key, stored attr.Item, e entry, row layout.Row) (failures []report.Failure) {
	l := table.RowLayout{J: c.j, Index: e.index}
	at := l.Owned(report.InRow(e.index.TargetTable(), e.row), table.Owner{Item: c.j.KeyJSON(key)})
	fail := func(f report.Failure) {
		if f.Detail = string(f.Kind); f.Column == "" {
			f.Detail = "a former entry of the item"
		}
		f.Kind, f.Table, f.RowKey, f.RowHex, f.Rule, f.ItemKey, f.Mapping = report.IndexStale, at.Table, at.RowKey, at.RowHex, at.Rule, at.ItemKey, at.Mapping
		failures = append(failures, f)
	}
	placed, ok := c.expected(e.index, stored)
	if !ok || !bytes.Equal(placed.Row, e.row) {
		found, err := e.index.Items(row)
		if err == nil && slices.ContainsFunc(found, func(o attr.Item) bool { return c.j.KeyJSON(o) == c.j.KeyJSON(key) }) {
			fail(report.Failure{Got: phrase.Counted(int64(len(row.Cells)), "cell")})
		}
		return failures
	}
	if len(row.Cells) == 0 {
		at.Kind, at.Want, at.Detail = report.IndexStale, phrase.Counted(int64(len(placed.Cells)), "cell"), string(report.MissingRow)
		return []report.Failure{at}
	}
	want := c.timed(placed.Cells, row.Cells)
	found, err := e.index.Items(row)
	wanted, bad := e.index.Items(layout.Row{Key: e.row, Cells: placed.Cells})
	if err == nil && bad == nil && slices.EqualFunc(found, wanted, attr.EqualItems) {
		c.surplus(want, row, fail)
		return failures
	}
	compared.DiffCells(want, row.Cells, func(d compared.CellDiff) { fail(d.In(report.Failure{})) })
	return failures
}
