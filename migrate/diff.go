package migrate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/internal/pull"
	"github.com/tabletop-emu/tabletop/migrate/infer"
	"github.com/tabletop-emu/tabletop/migrate/internal/compare"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Side is one side of a [Diff]: either the items of a source or the rows of a Bigtable
// table.
type Side struct {
	// Name identifies the side in the report.
	Name   string
	Source *source.Source // nil if the side is rows
	// Conn, Project, Instance and Table locate the rows of a side that has no Source.
	Conn              grpc.ClientConnInterface
	Project, Instance string
	Table             string
	// Mapping turns rows into items. If both sides are rows without a mapping, Diff compares
	// them row by row.
	Mapping *mapping.Mapping
}

// Diff compares two sides by key, in bounded memory. A key found only on the first side
// is missing; a key found only on the second is extra. Several items with the same key on
// one side also count as a difference, and Diff then compares the first of them. All
// differences go into the report. Diff returns a [source.Error] if a side is damaged.
func Diff(ctx context.Context, first, second Side, options DiffOptions) (*report.Report, error) {
	o := options.options().Normalized()
	r := report.New(o.MaxDifferences)
	r.Source, r.Format, r.DiffOf, r.Compared = first.Name+", "+second.Name, "diff", "item", true
	if first.Source == nil && second.Source == nil && first.Mapping == nil && second.Mapping == nil {
		r.DiffOf = "row"
		err := r.Check("rows", first.Table, func() (string, error) { return diffRows(ctx, r, first, second, o) })
		return r, err
	}
	pairs, err := tablePairs(first, second)
	if err != nil {
		return nil, err
	}
	for _, p := range pairs {
		leaveOut(r, p[0], p[1])
		err := r.Check("items", p[0].name, func() (string, error) { return diffSides(ctx, r, p[0], p[1], o) })
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// sideTable is one table of a side.
type sideTable struct {
	side  Side
	name  string
	table *source.Table // if the side is a source
	key   attr.KeySchema
}

// tables returns the tables of a side.
func (s Side) tables() ([]sideTable, error) {
	if s.Source == nil {
		if s.Mapping == nil {
			return nil, source.Damaged(source.MappingRefused, source.Position{File: s.Name}, nil, "comparing rows with items needs a mapping")
		}
		return []sideTable{{side: s, name: s.Mapping.SourceTable(), key: (*layout.Mapping)(s.Mapping).Key()}}, nil
	}
	var all []sideTable
	for _, t := range s.Source.Tables {
		all = append(all, sideTable{s, t.Name, t, t.Key})
	}
	return all, nil
}

// tablePairs pairs the tables of two sides by name. If each side has a single table, it
// pairs those two.
func tablePairs(first, second Side) ([][2]sideTable, error) {
	a, err := first.tables()
	if err != nil {
		return nil, err
	}
	b, err := second.tables()
	if err != nil {
		return nil, err
	}
	if len(a) == 1 && len(b) == 1 {
		return [][2]sideTable{{a[0], b[0]}}, nil
	}
	var pairs [][2]sideTable
	for _, x := range a {
		for _, y := range b {
			if x.name == y.name {
				pairs = append(pairs, [2]sideTable{x, y})
			}
		}
	}
	if len(pairs) != len(a) || len(a) != len(b) {
		return nil, source.Damaged(source.Unrecognized, source.Position{File: second.Name}, nil, "the tables of the two sides do not match (%d and %d, %d with the same name): select one table by name", len(a), len(b), len(pairs))
	}
	return pairs, nil
}

// leaveOut reports the parts of tables that the mappings of row sides do not lay out.
func leaveOut(r *report.Report, first, second sideTable) {
	var reported *mapping.Mapping
	for _, p := range [][2]sideTable{{first, second}, {second, first}} {
		if m := p[0].side.Mapping; p[0].table == nil && m != reported { // the description is from the other side
			r.LeaveOut(p[0].name, table.LeftOut((*layout.Mapping)(m), p[1].table)...)
			reported = m
		}
	}
}

// diffSides compares the items of two tables.
func diffSides(ctx context.Context, r *report.Report, first, second sideTable, o table.Options) (string, error) {
	key := first.key
	if key.Hash.Name == "" {
		key = second.key
	}
	if key.Hash.Name == "" {
		found, err := infer.Table(ctx, first.table, o.Inference())
		if err != nil {
			return "", err
		}
		key = (*layout.Mapping)(found.Mapping).Key()
		r.Warnings = append(r.Warnings, found.Warnings...)
	}
	var counts [2]int64
	var streams [2]func() (compare.ExpectedPart, error)
	var twice [2]duplicates
	for i, t := range []sideTable{first, second} {
		sort := compare.NewRowSort(o.TempDir, o.Window)
		defer sort.Close()
		for item, err := range t.items(ctx, o) {
			if item.refused != nil { // the other items are compared
				f := report.InRow(t.side.table(), item.row)
				f.Kind, f.Detail = report.RowUnreadable, fmt.Sprintf("%s: the row cannot be read by the mapping: %v", t.side.Name, item.refused)
				r.Fail(f)
				continue
			}
			if err != nil {
				return "", err
			}
			keyed := attr.Item{}
			for _, k := range key.Attrs() {
				v, ok := item.Item[k.Name]
				if !ok {
					return "", source.Damaged(source.KeyMissing, source.Position{File: t.side.Name}, nil, "an item has no attribute %q, which is part of the key", k.Name)
				}
				keyed[k.Name] = v
			}
			text := attr.AppendItemJSON(nil, keyed)
			if err := sort.Add(compare.ExpectedPart{N: counts[i], Row: text, Key: string(text), Item: attr.AppendItemJSON(nil, item.Item)}); err != nil {
				return "", err
			}
			counts[i]++
		}
		sorted, err := sort.Sorted()
		if err != nil {
			return "", err
		}
		streams[i] = twice[i].skip(sorted, o.MaxDifferences)
	}
	detail := fmt.Sprintf("%s beside %s", phrase.Counted(counts[0], "item"), phrase.Counted(counts[1], "item"))
	r.Items += counts[0]
	a, errA := streams[0]()
	b, errB := streams[1]()
	for {
		for _, err := range []error{errA, errB} {
			if err != nil && !errors.Is(err, io.EOF) {
				return "", err
			}
		}
		f := report.Failure{Table: first.name, ItemKey: a.Key}
		switch {
		case errA != nil && errB != nil:
			for i, t := range []sideTable{first, second} {
				if err := duplicated(ctx, r, t, twice[i], first.name, o); err != nil {
					return "", err
				}
			}
			return detail, nil
		case errA == nil && (errB != nil || bytes.Compare(a.Row, b.Row) < 0):
			f.Kind, f.Want = report.MissingItem, phrase.Clip(string(a.Item))
			r.Fail(f)
			a, errA = streams[0]()
		case errA != nil || bytes.Compare(a.Row, b.Row) > 0:
			f.Kind, f.Got, f.ItemKey = report.ExtraItem, phrase.Clip(string(b.Item)), b.Key
			r.Fail(f)
			b, errB = streams[1]()
		default:
			if !bytes.Equal(a.Item, b.Item) {
				if err := diffTexts(r, f, a.Item, b.Item); err != nil {
					return "", err
				}
			}
			a, errA = streams[0]()
			b, errB = streams[1]()
		}
	}
}

// duplicates counts items whose key an earlier item has.
type duplicates struct {
	count int64
	pairs []duplicate // the first ones
}

// duplicate has the numbers of two items with the same key.
type duplicate struct {
	key           string
	first, second int64
}

// skip skips duplicates in sorted items, and records at most most pairs of them.
func (d *duplicates) skip(sorted func() (compare.ExpectedPart, error), most int) func() (compare.ExpectedPart, error) {
	last := compare.ExpectedPart{}
	return func() (compare.ExpectedPart, error) {
		for {
			p, err := sorted()
			if err != nil || last.Row == nil || !bytes.Equal(p.Row, last.Row) {
				last = p
				return p, err
			}
			if d.count++; len(d.pairs) < most {
				d.pairs = append(d.pairs, duplicate{p.Key, last.N, p.N})
			}
		}
	}
}

// duplicated reports the duplicates of a side with their positions. It reads the side
// again to find them.
func duplicated(ctx context.Context, r *report.Report, t sideTable, d duplicates, table string, o table.Options) error {
	if d.count == 0 {
		return nil
	}
	places := map[int64]string{}
	for _, p := range d.pairs {
		places[p.first], places[p.second] = "", ""
	}
	n := int64(0)
	for item, err := range t.items(ctx, o) {
		if item.refused != nil {
			continue
		}
		if err != nil {
			return err
		}
		if _, ok := places[n]; ok {
			places[n] = item.place()
		}
		n++
	}
	for _, p := range d.pairs {
		r.Fail(report.Failure{
			Kind: report.DuplicateItem, Table: table, ItemKey: p.key,
			Detail: fmt.Sprintf("%s has items with this key at %s and at %s; the first one is compared", t.side.Name, places[p.first], places[p.second]),
		})
	}
	r.Differences += d.count - int64(len(d.pairs))
	return nil
}

// diffTexts reports the attributes in which two items differ.
func diffTexts(r *report.Report, at report.Failure, first, second []byte) error {
	a, err := attr.UnmarshalItem(first)
	if err != nil {
		return err
	}
	b, err := attr.UnmarshalItem(second)
	if err != nil {
		return err
	}
	compare.DiffItems(a, b, func(f report.Failure) {
		f.Table, f.ItemKey = at.Table, at.ItemKey
		r.Fail(f)
	})
	return nil
}

// sideItem is an item of a side with its position in a file or table, or a row that the
// mapping cannot read.
type sideItem struct {
	attr.Item
	at      source.Position
	row     []byte
	refused error
}

func (i sideItem) place() string {
	if i.row == nil {
		return i.at.String()
	}
	return fmt.Sprintf("row %q", i.row)
}

// items streams the items of a table.
func (t sideTable) items(ctx context.Context, o table.Options) iter.Seq2[sideItem, error] {
	return func(yield func(sideItem, error) bool) {
		n := int64(0)
		progress := func() {
			if n++; n%256 == 0 {
				o.Progress(source.Progress{Table: t.name, Phase: "reading", Items: n, Total: -1})
			}
		}
		if t.table != nil {
			for e, err := range t.table.Entries() {
				if err == nil {
					err = ctx.Err()
				}
				if !yield(sideItem{Item: e.Item, at: e.Position}, err) || err != nil {
					return
				}
				progress()
			}
			return
		}
		for row, err := range compare.Groups(ctx, t.side.bigtable(o), t.side.table(), o, compare.ByItem((*layout.Mapping)(t.side.Mapping)), table.Retention{}) {
			if err != nil {
				yield(sideItem{}, err)
				return
			}
			found, err := t.side.Mapping.Items(row.Row)
			if err != nil && !yield(sideItem{row: row.Key, refused: err}, nil) {
				return
			}
			for _, item := range found {
				if !yield(sideItem{Item: item, row: row.Key}, nil) {
					return
				}
				progress()
			}
		}
	}
}

func (s Side) bigtable(o table.Options) *table.Bigtable {
	o.Project, o.Instance = s.Project, s.Instance
	return table.NewBigtable(s.Conn, o)
}

// table returns the Bigtable table of a side of rows.
func (s Side) table() string {
	if s.Table == "" && s.Mapping != nil {
		return s.Mapping.TargetTable()
	}
	return s.Table
}

// diffRows compares two tables row by row.
func diffRows(ctx context.Context, r *report.Report, first, second Side, o table.Options) (string, error) {
	nextA, stopA := pull.Seq2(first.bigtable(o).TableRows(ctx, first.table()))
	defer stopA()
	nextB, stopB := pull.Seq2(second.bigtable(o).TableRows(ctx, second.table()))
	defer stopB()
	var counts [2]int64
	a, errA, okA := nextA()
	b, errB, okB := nextB()
	for {
		if err := errors.Join(errA, errB); err != nil {
			return "", err
		}
		var at report.Failure
		order := bytes.Compare(a.Key, b.Key)
		switch {
		case !okA && !okB:
			return fmt.Sprintf("%s beside %s", phrase.Counted(counts[0], "row"), phrase.Counted(counts[1], "row")), nil
		case okA && (!okB || order < 0):
			at = report.InRow(first.table(), a.Key)
			at.Kind, at.Want = report.MissingRow, phrase.Counted(int64(len(a.Cells)), "cell")
			r.Fail(at)
			counts[0]++
			r.Rows++
			a, errA, okA = nextA()
		case !okA || order > 0:
			at = report.InRow(first.table(), b.Key)
			at.Kind, at.Got = report.ExtraRow, phrase.Counted(int64(len(b.Cells)), "cell")
			r.Fail(at)
			counts[1]++
			b, errB, okB = nextB()
		default:
			at = report.InRow(first.table(), a.Key)
			compare.DiffCells(a.Cells, b.Cells, func(d compare.CellDiff) { r.Fail(d.In(at)) })
			counts[0]++
			counts[1]++
			r.Rows++
			a, errA, okA = nextA()
			b, errB, okB = nextB()
		}
	}
}
