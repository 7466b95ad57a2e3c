package compare

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/rowtext"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/internal/pull"
	"github.com/tabletop-emu/tabletop/migrate/internal/golden"
	"github.com/tabletop-emu/tabletop/migrate/internal/parts"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

// differ finds the differences of a table: it walks the expected and the stored rows side by
// side, in key order.
type differ struct {
	j      *table.Job
	b      *table.Bigtable
	window int // bytes
	table  string
	layout table.RowLayout // of the table
	report *report.Report
	items  bool // also compare the items of the rows
	of     func(table.Placed) lens.Placed
	kept   func([]layout.Cell) []layout.Cell // after garbage collection; nil: all
	spans  []layout.Span                     // to compare; nil: the whole table

	retention table.Retention  // of the mapping's families
	aged      map[string]int64 // number of missing cells per family that has a maxAge
}

// expectedRow is the content that the source puts in one row.
type expectedRow struct {
	cells []layout.Cell
	parts []ExpectedPart
	from  []int // index of the first cell of each part
}

func (d *differ) run(ctx context.Context) error {
	d.retention, d.aged = table.NewRetention(d.j.Mapping.Families(), nil), map[string]int64{}
	defer d.warnOfAge()
	sort := NewRowSort(d.j.Options.TempDir, d.window)
	defer sort.Close()
	err := d.j.Each(ctx, "comparing", func(p table.Placed) error {
		at := d.of(p)
		if at.Row == nil || len(d.spans) > 0 && !slices.ContainsFunc(d.spans, func(s layout.Span) bool { return parts.InSpan(s, at.Row) }) {
			return nil
		}
		return sort.Add(ExpectedPart{
			N: p.N, rule: p.Base.Rule, Row: at.Row, cell: at.Cells,
			Item: attr.AppendItemJSON(nil, p.Back), Key: d.j.KeyJSON(p.Entry.Item),
		})
	})
	if err != nil {
		return err
	}
	parts, err := sort.Sorted()
	if err != nil {
		return err
	}
	ahead, err := parts()
	// wanted returns the next expected row, nil after the last.
	wanted := func() (*expectedRow, error) {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		row := &expectedRow{}
		for first := ahead; err == nil && bytes.Equal(ahead.Row, first.Row); ahead, err = parts() {
			row.from = append(row.from, len(row.cells))
			row.parts = append(row.parts, ahead)
			row.cells = append(row.cells, ahead.cell...)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		return row, nil
	}
	next, stop := pull.Seq2(d.j.Options.Pace.Rows(ctx, d.b.TableRows(ctx, d.table, d.spans...)))
	defer stop()
	got, gotErr, found := next()
	want, err2 := wanted()
	for want != nil || found {
		if err := errors.Join(gotErr, err2); err != nil {
			return err
		}
		switch order := d.order(want, got, found); {
		case order < 0:
			d.row(want.parts[0].Row, want, layout.Row{}, false)
			want, err2 = wanted()
		case order > 0:
			d.row(got.Key, nil, got, true)
			got, gotErr, found = next()
		default:
			d.row(got.Key, want, got, true)
			got, gotErr, found = next()
			want, err2 = wanted()
		}
	}
	return errors.Join(gotErr, err2)
}

// missing counts an expected cell that the table lacks, if its family has a maxAge.
func (d *differ) missing(c layout.Cell) {
	if d.retention.Of(c.Family).MaxAge > 0 {
		d.aged[c.Family]++
	}
}

// warnOfAge warns that another clock may have removed the missing cells.
func (d *differ) warnOfAge() {
	if len(d.aged) == 0 {
		return
	}
	families, n := slices.Sorted(maps.Keys(d.aged)), int64(0)
	for _, missing := range d.aged {
		n += missing
	}
	d.report.Warnings = append(d.report.Warnings, fmt.Sprintf("table %s: families with a maxAge (%s) lack %s: garbage collection uses the clock of the target, which may be ahead of this one",
		d.table, strings.Join(families, ", "), phrase.Counted(n, "cell")))
}

// order compares the keys of the current rows; a missing row comes last.
func (d *differ) order(want *expectedRow, got layout.Row, found bool) int {
	switch {
	case want == nil:
		return 1
	case !found:
		return -1
	}
	return bytes.Compare(want.parts[0].Row, got.Key)
}

// cellBytes is the memory overhead of a cell, in bytes.
const cellBytes = 64

func rowBytes(row layout.Row) int {
	n := len(row.Key)
	for _, c := range row.Cells {
		n += len(c.Family) + len(c.Qualifier) + len(c.Value) + cellBytes
	}
	return n
}

// ofPart adds the rule and the item of a part to a failure.
func (d *differ) ofPart(f report.Failure, p ExpectedPart) report.Failure {
	return d.layout.Owned(f, table.Owner{Rule: p.rule, Item: p.Key})
}

// partOf returns the part to which the expected cell with this index belongs.
func (e *expectedRow) partOf(cell int) ExpectedPart {
	part, _ := slices.BinarySearch(e.from, cell+1) // the last one that begins at or before it
	return e.parts[part-1]
}

// owners returns the owners of the expected cells.
func (e *expectedRow) owners() (o rowOwners) {
	for i, c := range e.cells {
		part := e.partOf(i)
		o.add(c, table.Owner{Rule: part.rule, Item: part.Key})
	}
	return o
}

// only returns the row with only the given cells, in any order. Each of them becomes a part
// with the owner of the nearest expected cell.
func (e *expectedRow) only(cells []layout.Cell) *expectedRow {
	owners := e.owners()
	left := &expectedRow{cells: cells, parts: e.parts[:1], from: []int{0}}
	for i, c := range cells {
		of := owners.nearest(c)
		left.parts = append(left.parts[:len(left.parts):len(left.parts)], ExpectedPart{rule: of.Rule, Key: of.Item, Row: e.parts[0].Row})
		left.from = append(left.from, i)
	}
	return left
}

// what describes the expected amount: "3 cells", or "7 cells of 5 items".
func (e *expectedRow) what() string {
	items := map[string]bool{}
	for _, part := range e.parts {
		items[part.Key] = true
	}
	text := phrase.Counted(int64(len(e.cells)), "cell")
	if len(items) > 1 {
		text += " of " + phrase.Counted(int64(len(items)), "item")
	}
	return text
}

// row compares the stored row got with the expected row, and reports the differences. want is
// nil for a row that the source does not have; found is false if the table lacks the row.
func (d *differ) row(key []byte, want *expectedRow, got layout.Row, found bool) {
	at := report.InRow(d.table, key)
	if want == nil {
		at.Kind, at.Got = report.ExtraRow, phrase.Counted(int64(len(got.Cells)), "cell")
		d.report.Fail(d.layout.Owned(at, ownersOf(d.layout, got).first))
		return
	}
	if d.kept != nil {
		if want = want.only(d.kept(golden.Canonical(layout.Row{Cells: want.cells}).Cells)); len(want.cells) == 0 && !found {
			return
		}
	}
	if !found {
		for _, c := range want.cells {
			d.missing(c)
		}
		at.Kind, at.Want = report.MissingRow, want.what()
		d.report.Fail(d.ofPart(at, want.parts[0]))
		return
	}
	before := d.report.Differences
	aligned, stored := alignTimes(d.j, want.cells, got.Cells)
	got.Cells = aligned
	element := func(i int) bool {
		return d.items && d.j.Mapping.ListElement(want.partOf(i).rule, want.cells, want.cells[i])
	}
	text := table.CellText
	if d.items {
		text = textsOf(d.j.Mapping, layout.Row{Key: key, Cells: want.cells})
	}
	diffCellsAs(want.cells, got.Cells, text, stored, element, func(c CellDiff) {
		if c.want < 0 {
			f := d.layout.Owned(c.In(at), d.ownerOfExtra(c.got, want, got))
			if i := hiddenBy(c.got, want.cells, got.Cells); i >= 0 && d.report.Lists(f.Kind) {
				f = d.hides(f, want.cells, want.cells[i], got, c.got, stored(c.got).Timestamp)
			}
			d.report.Fail(f)
			return
		}
		if !c.changed() {
			d.missing(want.cells[c.want])
		}
		f := d.ofPart(c.In(at), want.partOf(c.want))
		lenient := d.j.Options.LenientSets && len(c.got.Value) == 0 && bytes.Equal(want.cells[c.want].Value, []byte{0})
		if c.changed() && (lenient || d.report.Lists(c.failure.Kind)) {
			f.Decoded = decoded(d.layout, layout.Row{Key: key, Cells: want.cells}, layout.Row{Key: key, Cells: exchange(want.cells[c.want], want.cells, got.Cells)})
			if lenient && f.Decoded == "" && f.Kind == report.ValueDiffers {
				return // a member of a set: its value is the qualifier
			}
		}
		d.report.Fail(f)
	})
	if d.report.Differences == before && d.items {
		d.rowItems(at, want, got)
	}
}

// hides adds a note to f, the failure of the extra cell, if readers see extra instead of the
// expected cell old. It returns f unchanged if they see both, because the column is a list or
// has one version per item. micros is the stored time of extra.
func (d *differ) hides(f report.Failure, want []layout.Cell, old layout.Cell, got layout.Row, extra layout.Cell, micros int64) report.Failure {
	row := func(cells []layout.Cell) layout.Row { return layout.Row{Key: got.Key, Cells: cells} }
	now := row(exchange(old, want, got.Cells))
	if decoded(d.layout, now, row(exchange(old, want, []layout.Cell{extra}))) != "" {
		return f
	}
	f.Decoded = decoded(d.layout, row(want), now)
	f.Detail = fmt.Sprintf("a newer cell, of %s, hides the expected %s", time.UnixMicro(micros).UTC().Format(time.RFC3339Nano), phrase.Clip(rowtext.ValueText(old.Value)))
	if _, err := d.layout.Items(now); err == nil && f.Decoded != "" {
		f.Detail += "; the item now reads " + phrase.Clip(rowtext.ValueText(extra.Value))
	}
	return f
}

// ownerOfExtra returns the owner of a cell that no source item produces: the item that the
// cell creates, else the item that would write it, else the nearest one. A sidecar mark that
// may belong to several items, or to none, gets only its rule, since nearness means nothing
// in that family.
func (d *differ) ownerOfExtra(c layout.Cell, want *expectedRow, got layout.Row) table.Owner {
	if o, ok := ownersOf(d.layout, got).exact(c); ok {
		return o
	}
	nearest := want.owners().nearest(c)
	if d.layout.Index != nil || !slices.ContainsFunc(want.parts, func(p ExpectedPart) bool { return p.Key != want.parts[0].Key }) {
		return nearest
	}
	if g := d.j.Mapping.Groups(got.Key); g != nil {
		if key, err := attr.UnmarshalItem([]byte(g.Of(c))); err == nil { // else the group has no key
			return d.layout.OwnerOf(key)
		}
	}
	if o, ok := want.onlyOwner(c); ok {
		return o
	}
	if c.Family != lens.FamilyTypes {
		return nearest
	}
	return table.Owner{Rule: nearest.Rule}
}

// onlyOwner returns the only owner of the expected cells at the place of a cell. Without such
// cells it looks in the cell's column, and then in its family. It returns false if it finds
// several owners or no cells. A sidecar mark stands for its cell.
func (e *expectedRow) onlyOwner(c layout.Cell) (table.Owner, bool) {
	if c.Family == lens.FamilyTypes {
		form, of, _ := strings.Cut(string(c.Qualifier), "/")
		family, name, ok := strings.Cut(of, ":")
		if !ok || form != "c" && form != "r" {
			return table.Owner{}, false
		}
		c.Family, c.Qualifier = family, []byte(name)
	}
	places := placesOf(c)
	var found [len(places)]*table.Owner
	var several [len(places)]bool
	for i, cell := range e.cells {
		for n, at := range placesOf(cell) {
			if at != places[n] {
				continue
			}
			part := e.partOf(i)
			o := table.Owner{Rule: part.rule, Item: part.Key}
			several[n] = several[n] || found[n] != nil && *found[n] != o
			found[n] = &o
		}
	}
	for n, o := range found {
		if o != nil {
			return *o, !several[n]
		}
	}
	return table.Owner{}, false
}

// rowItems compares the items that the inverse mapping finds in a row of expected cells: a
// difference is a fault of the mapping.
func (d *differ) rowItems(at report.Failure, want *expectedRow, got layout.Row) {
	items, err := d.layout.Items(got)
	if err != nil {
		at.Kind, at.Want, at.Detail = report.RowUnreadable, phrase.Counted(int64(len(want.parts)), "item"), err.Error()
		d.report.Fail(d.ofPart(at, want.parts[0]))
		return
	}
	back := map[string]attr.Item{}
	for _, item := range items {
		back[d.j.KeyJSON(item)] = item
	}
	for _, part := range want.parts {
		f := d.ofPart(at, part)
		item, ok := back[part.Key]
		if !ok {
			f.Kind, f.Want = report.MissingItem, phrase.Clip(string(part.Item))
			d.report.Fail(f)
			continue
		}
		delete(back, part.Key)
		if bytes.Equal(attr.AppendItemJSON(nil, item), part.Item) {
			continue
		}
		wanted, err := attr.UnmarshalItem(part.Item)
		if err != nil {
			f.Kind, f.Detail = report.RowUnreadable, err.Error() // cannot happen: it is an item of the source
			d.report.Fail(f)
			continue
		}
		DiffItems(wanted, item, func(x report.Failure) {
			x.Table, x.RowKey, x.RowHex = f.Table, f.RowKey, f.RowHex
			d.report.Fail(d.ofPart(x, part))
		})
	}
	for _, key := range slices.Sorted(maps.Keys(back)) {
		f := d.layout.Owned(at, d.layout.OwnerOf(back[key]))
		f.Kind, f.Got = report.ExtraItem, ValueText(attr.MapOf(back[key]))
		d.report.Fail(f)
	}
}

// DiffItems calls fail for each attribute in which two items differ.
func DiffItems(want, got attr.Item, fail func(report.Failure)) {
	names := map[string]bool{}
	for name := range want {
		names[name] = true
	}
	for name := range got {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		w, g := want[name], got[name]
		if attr.Equal(w, g) && w.IsAbsent() == g.IsAbsent() {
			continue
		}
		f := report.Failure{Kind: report.ValueDiffers, Column: name, Want: ValueText(w), Got: ValueText(g)}
		if w.Type != g.Type && !w.IsAbsent() && !g.IsAbsent() {
			f.Kind = report.TypeDiffers
		}
		fail(f)
	}
}

// ValueText formats a value for reports, and truncates a long one.
func ValueText(v attr.Value) string {
	if v.IsAbsent() {
		return ""
	}
	return phrase.Clip(string(attr.AppendJSON(nil, v)))
}

// CellDiff describes a cell in which two rows differ.
type CellDiff struct {
	failure report.Failure // its place is only the column
	want    int            // index of the expected cell, or -1
	got     layout.Cell
}

// In returns the difference as a failure at the location of the given failure.
func (c CellDiff) In(at report.Failure) report.Failure {
	f := c.failure
	f.Table, f.RowKey, f.RowHex, f.File = at.Table, at.RowKey, at.RowHex, at.File
	return f
}

// changed reports whether a cell replaces another.
func (c CellDiff) changed() bool {
	return c.want >= 0 && c.failure.Got != ""
}

// sameColumn reports whether two cells are versions of one column.
func sameColumn(a, b layout.Cell) bool {
	return a.Family == b.Family && bytes.Equal(a.Qualifier, b.Qualifier)
}

// hiddenBy returns the index in want of the newest expected cell in the column of extra, or
// -1 if the column has a cell that is newer than extra, or no expected cell.
func hiddenBy(extra layout.Cell, want, got []layout.Cell) int {
	newer := func(o layout.Cell) bool { return sameColumn(o, extra) && o.Timestamp > extra.Timestamp }
	if slices.ContainsFunc(got, newer) || slices.ContainsFunc(want, newer) {
		return -1
	}
	hidden := -1
	for i, c := range want {
		if sameColumn(c, extra) && (hidden < 0 || c.Timestamp > want[hidden].Timestamp) {
			hidden = i
		}
	}
	return hidden
}

// exchange returns the cells of want, but in the column of the given cell those of got. It
// takes the whole column: in a list, a single cell could move past others that differ in the
// same way.
func exchange(column layout.Cell, want, got []layout.Cell) []layout.Cell {
	in := func(o layout.Cell) bool { return sameColumn(o, column) }
	cells := slices.DeleteFunc(slices.Clone(want), in)
	for _, o := range got {
		if in(o) {
			cells = append(cells, o)
		}
	}
	return cells
}

// DiffCells calls fail for each cell in which two rows differ.
func DiffCells(want, got []layout.Cell, fail func(CellDiff)) {
	diffCellsAs(want, got, table.CellText, asStored, func(int) bool { return false }, fail)
}

// diffCellsAs is like DiffCells, but formats cells with cellText, after stored has restored
// the time of a stored cell. element reports whether an expected cell is an element of a
// list, whose value begins with its type.
func diffCellsAs(want, got []layout.Cell, cellText func(layout.Cell) string, stored func(layout.Cell) layout.Cell, element func(i int) bool, fail func(CellDiff)) {
	gotText := func(c layout.Cell) string { return cellText(stored(c)) }
	type column struct{ family, qualifier string }
	type version struct {
		layout.Cell
		i int
	}
	type sides struct{ want, got []version }
	columns := map[column]*sides{}
	at := func(c layout.Cell) *sides {
		key := column{c.Family, string(c.Qualifier)}
		if columns[key] == nil {
			columns[key] = &sides{}
		}
		return columns[key]
	}
	for i, c := range want {
		s := at(c)
		s.want = append(s.want, version{c, i})
	}
	for _, c := range got {
		s := at(c)
		s.got = append(s.got, version{c, -1})
	}
	order := slices.SortedFunc(maps.Keys(columns), func(a, b column) int {
		return cmp.Or(cmp.Compare(a.family, b.family), cmp.Compare(a.qualifier, b.qualifier))
	})
	for _, key := range order {
		s := columns[key]
		// pair removes from both sides the cells that same considers equal.
		pair := func(same func(a, b version) bool, each func(a, b version)) {
			s.want = slices.DeleteFunc(s.want, func(a version) bool {
				i := slices.IndexFunc(s.got, func(b version) bool { return same(a, b) })
				if i < 0 {
					return false
				}
				each(a, s.got[i])
				s.got = slices.Delete(s.got, i, i+1)
				return true
			})
		}
		f := report.Failure{Column: key.family + ":" + phrase.Column(key.qualifier)}
		record := func(kind report.Kind, want, got string, i int, c layout.Cell) {
			f := f
			f.Kind, f.Want, f.Got = kind, want, got
			if key.family == lens.FamilyTypes && kind != report.TimestampDiffers {
				f.Kind = report.TypeDiffers
			}
			fail(CellDiff{f, i, c})
		}
		sameTime := func(a, b version) bool { return a.Timestamp == b.Timestamp }
		sameValue := func(a, b version) bool { return bytes.Equal(a.Value, b.Value) }
		// inOrder formats versions, oldest first: the order of a list.
		inOrder := func(versions []version, cellText func(layout.Cell) string) string {
			var b strings.Builder
			for i, v := range slices.Backward(versions) {
				if b.Len() > maxOrderBytes {
					fmt.Fprintf(&b, " and %d more", i+1)
					break
				}
				if b.Len() > 0 {
					b.WriteString(", ")
				}
				b.WriteString(cellText(v.Cell))
			}
			return b.String()
		}
		// Most cells are equal: removing these first saves a search for each.
		equal := map[int64]string{}
		for _, a := range s.want {
			equal[a.Timestamp] = string(a.Value)
		}
		isEqual := map[int64]bool{}
		for _, b := range s.got {
			if v, ok := equal[b.Timestamp]; ok && v == string(b.Value) {
				isEqual[b.Timestamp] = true
			}
		}
		for _, side := range [][]version{s.want, s.got} {
			slices.SortStableFunc(side, func(a, b version) int { return cmp.Compare(b.Timestamp, a.Timestamp) })
		}
		known := func(v version) bool { return isEqual[v.Timestamp] }
		s.want, s.got = slices.DeleteFunc(s.want, known), slices.DeleteFunc(s.got, known)
		if slices.EqualFunc(s.want, s.got, sameValue) { // the same order, whatever the times of the others are
			for i, a := range s.want {
				record(report.TimestampDiffers, cellText(a.Cell), gotText(s.got[i].Cell), a.i, s.got[i].Cell)
			}
			continue
		}
		if n := len(s.want); n > 1 && n == len(s.got) {
			rest := slices.Clone(s.got)
			times, values := 0, 0
			for _, a := range s.want {
				if slices.ContainsFunc(s.got, func(b version) bool { return sameTime(a, b) }) {
					times++
				}
				if i := slices.IndexFunc(rest, func(b version) bool { return sameValue(a, b) }); i >= 0 {
					rest = slices.Delete(rest, i, i+1)
					values++
				}
			}
			if times == n && values == n {
				record(report.OrderDiffers, inOrder(s.want, cellText), inOrder(s.got, gotText), s.want[0].i, s.got[0].Cell)
				continue
			}
		}
		pair(sameTime, func(a, b version) {
			kind := report.ValueDiffers
			if onlyTypesDiffer(a.Value, b.Value, element(a.i)) {
				kind = report.TypeDiffers
			}
			record(kind, cellText(a.Cell), gotText(b.Cell), a.i, b.Cell)
		})
		pair(sameValue, func(a, b version) {
			record(report.TimestampDiffers, cellText(a.Cell), gotText(b.Cell), a.i, b.Cell)
		})
		for _, a := range s.want {
			record(report.MissingCell, cellText(a.Cell), "", a.i, layout.Cell{})
		}
		for _, b := range s.got {
			record(report.ExtraCell, "", gotText(b.Cell), -1, b.Cell)
		}
	}
}

// onlyTypesDiffer reports whether two cells have the same content except for types. The cells
// are list elements, or DynamoDB JSON of an item or value.
func onlyTypesDiffer(want, got []byte, elements bool) bool {
	if elements {
		a, err := layout.ParseElement(want)
		if err != nil {
			return false
		}
		b, err := layout.ParseElement(got)
		return err == nil && sameButTypes(a, b)
	}
	if a, err := attr.UnmarshalItem(want); err == nil {
		b, err := attr.UnmarshalItem(got)
		return err == nil && sameButTypes(attr.MapOf(a), attr.MapOf(b))
	}
	a, err := attr.UnmarshalValue(want)
	if err != nil {
		return false
	}
	b, err := attr.UnmarshalValue(got)
	return err == nil && sameButTypes(a, b)
}

// sameButTypes reports whether two values are equal except for types. It compares maps and
// lists element by element, and other values by their texts.
func sameButTypes(a, b attr.Value) bool {
	if a.Type == attr.M && b.Type == attr.M {
		return len(a.Map) == len(b.Map) && !slices.ContainsFunc(slices.Collect(maps.Keys(a.Map)), func(k string) bool {
			v, ok := b.Map[k]
			return !ok || !sameButTypes(a.Map[k], v)
		})
	}
	if a.Type == attr.L && b.Type == attr.L {
		return slices.EqualFunc(a.List, b.List, sameButTypes)
	}
	return attr.Equal(a, b) || a.Type != b.Type && slices.Equal(scalarTexts(a), scalarTexts(b))
}

// scalarTexts returns the texts of a scalar, or of the members of a set or the scalars of a
// list.
func scalarTexts(v attr.Value) []string {
	switch v.Type {
	case attr.BOOL:
		return []string{strconv.FormatBool(v.Bool)}
	case attr.SS, attr.NS, attr.BS:
		return v.Set
	case attr.L:
		var texts []string
		for _, e := range v.List {
			texts = append(texts, scalarTexts(e)...)
		}
		return texts
	case attr.M:
		return nil
	case attr.S, attr.N, attr.B, attr.NULL, attr.Absent:
	}
	return []string{v.Str}
}

// maxOrderBytes bounds the text of a column's versions in a failure, in bytes. The version
// that exceeds it is the last one shown.
const maxOrderBytes = 1 << 10

// textsOf returns a function like cellText for the rows of a mapping's table. It shows a
// protobuf as its fields and bytes.
func textsOf(m *layout.Mapping, row layout.Row) func(layout.Cell) string {
	decoded := m.CellText(row)
	return func(c layout.Cell) string {
		text := rowtext.ValueText(c.Value)
		if fields := decoded(c); fields != text {
			text = fmt.Sprintf("%s [%x]", fields, c.Value)
		}
		return table.VersionText(c, text)
	}
}
