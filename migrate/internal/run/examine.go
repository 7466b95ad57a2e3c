package run

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/extsort"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/internal/layout/rowtext"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/infer"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Placed is one item with its layout.
type Placed struct {
	n     int64 // of the item in its table, from 0
	Entry source.Entry
	Base  lens.Placed
	index []lens.Placed // one for each of job.indexes; Row is nil where the item is not in it
	// Back is the item as it comes back: without the losses that the mapping
	// accepts.
	Back   attr.Item
	losses []layout.Loss
}

// Each calls yield with the layout of every item that can be loaded, in the
// order of the source.
func (j *Job) Each(ctx context.Context, phase string, yield func(p Placed) error) error {
	return j.eachWanted(ctx, phase, nil, yield)
}

// eachWanted is each for the items that wanted takes by their number.
func (j *Job) eachWanted(ctx context.Context, phase string, wanted func(n int64) bool, yield func(p Placed) error) error {
	total := j.Source.Declared
	if j.Report.Items > 0 {
		total = j.Report.Items
	}
	done := j.Timed(phase)
	// The items to leave out, by their numbers: those of before this pass that are to
	// come, and those that were met or refused in it. Both only lose their first or
	// gain a last one.
	refused, left := j.refused, []int64(nil)
	n := int64(-1)
	j.left = 0
	p := Placed{n: -1, index: make([]lens.Placed, len(j.Indexes))}
	var failed error
	j.Source.All(func(e source.Entry, err error) bool {
		n++
		if len(refused) > 0 && refused[0] == n {
			refused, left = refused[1:], append(left, n)
			return true
		}
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && wanted != nil && !wanted(n) {
			return true
		}
		if err == nil {
			err = j.place(e, &p)
		}
		if err == nil && j.leavesOut(p) {
			j.left++
			return true
		}
		if err == nil {
			p.n = n
			err = yield(p)
		}
		item, refused := errors.AsType[*itemRefused](err)
		if err != nil && !refused && p.n != n {
			item, refused = &itemRefused{err: err}, true
		}
		if refused {
			if err = j.refuse(e, item); err == nil {
				left = append(left, n)
			}
		}
		if failed = err; err != nil {
			return false
		}
		if n%256 == 255 {
			j.Options.Progress(source.Progress{Table: j.Source.Name, Phase: phase, Items: n + 1, Total: total})
		}
		return true
	})
	j.refused = append(left, refused...)
	if failed != nil {
		return failed
	}
	n++
	j.Options.Progress(source.Progress{Table: j.Source.Name, Phase: phase, Items: n, Total: n})
	done(n)
	return nil
}

// itemRefused is the error of a pass about the one item at hand.
type itemRefused struct {
	err   error
	at    report.Failure // its place and values, where it can be a failure
	other string         // key of the item that it meets, "" for none
}

func (e *itemRefused) Error() string { return e.err.Error() }

// place lays out one item.
func (j *Job) place(e source.Entry, p *Placed) (err error) {
	p.n = -1
	if p.Base, err = j.Mapping.Place(e.Item, j.Micros); err != nil {
		return RowLayout{J: j}.refuses(e, err, "the mapping cannot hold the item")
	}
	p.Back, p.losses = j.Mapping.Returned(e.Item, p.Base)
	for i, x := range j.Indexes {
		// What the table loses its indexes never had: the DynamoDB door makes their
		// rows of those of the table.
		entry, ok, err := x.Place(p.Back, j.Micros)
		if err != nil {
			return RowLayout{j, x}.refuses(e, err, "index %s of the mapping cannot hold the item", x.Name())
		}
		if !ok {
			entry = lens.Placed{}
		}
		p.index[i] = entry
	}
	p.Entry = e
	return nil
}

// refuses is the error of an item that has no place in a table.
func (l RowLayout) refuses(e source.Entry, err error, format string, args ...any) *itemRefused {
	return &itemRefused{err: source.Refused(e.Position, err, format, args...), at: l.unplaced(e, err)}
}

// refuse makes a dead letter of an item, or a failure, if there are any: the error is
// then nil.
func (j *Job) refuse(e source.Entry, item *itemRefused) error {
	switch {
	case j.Letters != nil && source.OfItem(item.err):
		return j.Letters.add(j, e, item.err)
	case j.failures != nil && ItemKind(item.err) != "":
		j.failItem(e, item.err, item.at, item.other)
		return nil
	}
	return item.err
}

// tally is what a pass over the source finds that the tables must hold.
type tally struct {
	n          int64 // items
	rows       int64
	cells      extsort.Bag
	items      extsort.Bag
	index      map[string]extsort.Bag
	expired    int64 // items that the DynamoDB door deletes by now
	exceptions int64
	sidecar    []report.SidecarCells
	rules      []report.RuleRows
	entries    []report.RuleRows // of the indexes
	accepted   []report.AcceptedLoss
	strays     []stray
	attributes map[ruleAttribute]int64 // items that have it
}

// ruleAttribute is an attribute of the items of a rule.
type ruleAttribute struct{ rule, attribute string }

// maxCountedAttributes bounds how many of them are counted: a name can be data.
const maxCountedAttributes = 20_000

// examine reads all of the table's source, lays it out, and makes sure that
// no two items meet. What it finds is what the tables must hold.
//
// Where the mapping leaves the joiner open, all keys decide on it: that changes
// no row (see layout.JoinerProof).
func (j *Job) examine(ctx context.Context) (warnings []string, err error) {
	var proof *layout.JoinerProof
	for again := true; again; {
		proof = j.Mapping.ProveJoiner()
		if again, err = j.count(ctx, proof); err != nil {
			return nil, err
		}
	}
	if j.Report.Items == 0 {
		warnings = append(warnings, fmt.Sprintf("table %s: no items were read, and so nothing is shown of it", j.Source.Name))
	}
	warnings = append(warnings, j.unmet(mapfile.LossTypes, mapfile.LossEmpty, mapfile.LossPrecision, mapfile.LossNull)...)
	if text := j.expiryWarning(); text != "" {
		warnings = append(warnings, text)
	}
	warnings = append(append(warnings, j.strayWarnings()...), j.markerWarnings()...)
	if j.Options.Warn {
		lost, err := j.surplusWarnings(ctx)
		if err != nil {
			return nil, err
		}
		warnings = append(warnings, lost...)
	}
	if proof == nil {
		return warnings, nil
	}
	j.Report.Choices = append(j.Report.Choices, infer.JoinerChoice(proof, j.Report.Items))
	joiner := proof.Joiner()
	if j.Options.Share.Of > 0 { // other parts have other keys
		j.joiner, joiner = joiner, proof.Safe()
	}
	j.Mapping, err = j.Mapping.Proven(joiner)
	return warnings, err
}

// count makes the tally. again says that items had to be taken out since.
func (j *Job) count(ctx context.Context, proof *layout.JoinerProof) (again bool, err error) {
	t := tally{index: map[string]extsort.Bag{}, accepted: []report.AcceptedLoss{}, sidecar: []report.SidecarCells{}, rules: []report.RuleRows{}, entries: []report.RuleRows{}, attributes: map[ruleAttribute]int64{}}
	if spec := j.Mapping.Spec(); spec != nil {
		for _, r := range spec.Rules {
			t.rules = append(t.rules, report.RuleRows{Rule: r.Name})
		}
	}
	for _, x := range j.Indexes {
		t.index[x.TargetTable()] = extsort.Bag{}
		t.entries = append(t.entries, report.RuleRows{Index: x.Name()})
	}
	for _, ranges := range j.ranges {
		for i := range ranges {
			ranges[i].Wanted = sums{}
		}
	}
	rows := extsort.NewSet(j.Options.TempDir)
	defer rows.Close()
	if j.Options.Share.Of > 0 && j.Options.Warn {
		kept, openErr := tablePart{j}.keepRows()
		if openErr != nil {
			return false, openErr
		}
		w := bufio.NewWriterSize(kept, 1<<16)
		defer func() { err = tablePart{j}.placeRows(kept, errors.Join(err, w.Flush())) }()
		rows.Keep = w
	}
	versions := j.Mapping.ProveVersions()
	err = j.Each(ctx, "checking", func(p Placed) error {
		if versions != nil {
			if err := versions.Add(p.Entry.Item); err != nil {
				return RowLayout{J: j}.refuses(p.Entry, err, "the mapping cannot hold the item")
			}
		}
		if proof != nil {
			if err := proof.Add(p.Entry.Item); err != nil {
				return RowLayout{J: j}.refuses(p.Entry, err, "the mapping cannot hold the item")
			}
		}
		t.add(j, p)
		t.stray(j, p)
		return rows.Add(extsort.HashOf(p.Base.Row))
	})
	if err != nil {
		return false, err
	}
	if versions != nil {
		if err := versions.Finish(); err != nil {
			return false, source.Refused(source.Position{}, err, "the mapping cannot hold the items")
		}
	}
	var shared []extsort.Hash
	if t.rows, shared, _, err = rows.Finish(1, 1); err != nil {
		return false, err
	}
	// Items that have their rows for themselves cannot meet.
	if len(shared) > 0 {
		if again, err = j.meetings(ctx); again || err != nil {
			return again, err
		}
	}
	if again, err = j.entriesMeet(ctx); again || err != nil {
		return again, err
	}
	j.cells, j.Items, j.index = t.cells, t.items, t.index
	j.Report.Items, j.Report.Rows, j.Report.Cells = t.n, t.rows, t.cells.Count
	j.Report.Exceptions, j.Report.Sidecar, j.Report.Rules = t.exceptions, t.sidecar, append(t.rules, t.entries...)
	j.Report.Accepted, j.attributes = t.accepted, t.attributes
	j.Report.Expired = t.expired + j.left
	j.strays = t.strays
	return false, nil
}

func (t *tally) add(j *Job, p Placed) {
	t.n++
	if j.expiredItem(p) {
		t.expired++
	}
	var items, cells extsort.Bag
	items.AddItem(p.Back)
	for name := range p.Entry.Item {
		at := ruleAttribute{p.Base.Rule, name}
		if n, known := t.attributes[at]; known || len(t.attributes) < maxCountedAttributes {
			t.attributes[at] = n + 1
		}
	}
	for _, l := range p.losses {
		t.accept(j, p, l)
	}
	for _, c := range p.Base.Cells {
		cells.AddCell(p.Base.Row, c)
	}
	t.items.Join(items)
	t.cells.Join(cells)
	j.ranges.wants(j.Report.Target, p.Base.Row, sums{Cells: cells, Items: items})
	i := slices.IndexFunc(t.rules, func(r report.RuleRows) bool { return r.Rule == p.Base.Rule })
	if i < 0 { // a layout without rules
		i = len(t.rules)
		t.rules = append(t.rules, report.RuleRows{Rule: p.Base.Rule})
	}
	key := func() string { return j.KeyJSON(p.Entry.Item) }
	t.rules[i].Count(key, p.Base.Row)
	for i, x := range j.Indexes {
		if p.index[i].Row != nil {
			t.entries[i].Count(key, p.index[i].Row)
		}
		var entry extsort.Bag
		for _, c := range p.index[i].Cells {
			entry.AddCell(p.index[i].Row, c)
		}
		sum := t.index[x.TargetTable()]
		sum.Join(entry)
		t.index[x.TargetTable()] = sum
		if p.index[i].Row != nil {
			j.ranges.wants(x.TargetTable(), p.index[i].Row, sums{Cells: entry})
		}
	}
	if p.Base.Exceptions > 0 {
		t.exceptions += int64(p.Base.Exceptions)
		t.addSidecar(j, p)
	}
}

// accept counts a loss that the mapping accepts.
func (t *tally) accept(j *Job, p Placed, l layout.Loss) {
	i := slices.IndexFunc(t.accepted, func(a report.AcceptedLoss) bool {
		return a.Rule == p.Base.Rule && a.What == l.What && a.Attribute == l.Attribute
	})
	if i < 0 {
		i = len(t.accepted)
		t.accepted = append(t.accepted, report.AcceptedLoss{
			Rule: p.Base.Rule, What: l.What, Attribute: l.Attribute, Example: j.KeyJSON(p.Entry.Item), Why: j.why(p.Base.Rule, l.What),
		})
	}
	t.accepted[i].Values++
}

// addSidecar counts the sidecar cells of an item by what they say.
func (t *tally) addSidecar(j *Job, p Placed) {
	for _, c := range p.Base.Cells {
		if c.Family != lens.FamilyTypes {
			continue
		}
		kind := rowtext.SidecarKindOf(c)
		i := slices.IndexFunc(t.sidecar, func(s report.SidecarCells) bool { return s.Kind == kind })
		if i < 0 {
			i = len(t.sidecar)
			t.sidecar = append(t.sidecar, report.SidecarCells{
				Kind: kind, What: kind.String(), Item: j.KeyJSON(p.Entry.Item), Column: c.Family + ":" + phrase.Column(string(c.Qualifier)),
			})
		}
		t.sidecar[i].Cells++
	}
}

// maxMeetings is how many keys and cells that are there twice one pass looks out
// for.
const maxMeetings = 100_000

// meetings finds items of one key, and items on one cell. All but the first item of
// each are refused, and again is true; where that is an error, it is the first in
// the order of the source (one of the first, where there are more than maxMeetings).
func (j *Job) meetings(ctx context.Context) (again bool, err error) {
	keys, cells := extsort.NewSet(j.Options.TempDir), extsort.NewSet(j.Options.TempDir)
	defer keys.Close()
	defer cells.Close()
	err = j.Each(ctx, "checking", func(p Placed) error {
		for _, c := range p.Base.Cells {
			if err := cells.Add(extsort.CellHash(p.Base.Row, c)); err != nil {
				return err
			}
		}
		return keys.Add(keyHash(j.Mapping, p.Entry.Item))
	})
	if err != nil {
		return false, err
	}
	_, sameKey, _, err := keys.Finish(maxMeetings, 1)
	if err != nil {
		return false, err
	}
	_, sameCell, _, err := cells.Finish(maxMeetings, 1)
	if err != nil || len(sameKey)+len(sameCell) == 0 {
		return false, err
	}
	if len(sameKey) > 0 {
		sameCell = nil // items of one key share their cells
	}
	first := newMeeting(sameKey, sameCell)
	err = j.Each(ctx, "checking", func(p Placed) error {
		if len(sameKey) > 0 {
			m := j.meets(p, keyHash(j.Mapping, p.Entry.Item), "")
			m.at = RowLayout{J: j}.Owned(report.InRow(j.Report.Target, p.Base.Row), Owner{p.Base.Rule, m.key})
			return first.meet(m, source.KeyDuplicate, "the item has the same key as the item at %s: %s")
		}
		onCell := func(c layout.Cell) met {
			m := j.meets(p, extsort.CellHash(p.Base.Row, c), cellText(c))
			m.at = RowLayout{J: j}.Owned(report.InRow(j.Report.Target, p.Base.Row), Owner{p.Base.Rule, m.key})
			m.at.Column = c.Family + ":" + phrase.Column(string(c.Qualifier))
			return m
		}
		for _, c := range p.Base.Cells { // first all, then none: an item that is taken out holds no cell
			if first.there(extsort.CellHash(p.Base.Row, c)) {
				return first.meet(onCell(c), source.CellCollision, "the mapping lays out the item on a cell of the item at %s: %s")
			}
		}
		for _, c := range p.Base.Cells {
			if !first.awaited(extsort.CellHash(p.Base.Row, c)) {
				continue
			}
			if err := first.meet(onCell(c), source.CellCollision, "the mapping lays out the item twice on one cell, at %s: %s"); err != nil {
				return err
			}
		}
		return nil
	})
	return true, err
}

// entriesMeet finds items on one row of an index whose mapping says that there
// are none such.
func (j *Job) entriesMeet(ctx context.Context) (again bool, err error) {
	for i, x := range j.Indexes {
		if x.Distinct() {
			continue
		}
		if again, err = j.entriesOnRow(ctx, i); again || err != nil {
			return again, err
		}
	}
	return false, nil
}

func (j *Job) entriesOnRow(ctx context.Context, index int) (again bool, err error) {
	rows := extsort.NewSet(j.Options.TempDir)
	defer rows.Close()
	each := func(yield func(p Placed, row extsort.Hash) error) error {
		return j.Each(ctx, "checking", func(p Placed) error {
			if p.index[index].Row == nil {
				return nil
			}
			return yield(p, extsort.HashOf(p.index[index].Row))
		})
	}
	if err := each(func(_ Placed, row extsort.Hash) error { return rows.Add(row) }); err != nil {
		return false, err
	}
	_, same, _, err := rows.Finish(maxMeetings, 1)
	if err != nil || len(same) == 0 {
		return false, err
	}
	first := newMeeting(same)
	x := j.Indexes[index]
	return true, each(func(p Placed, row extsort.Hash) error {
		if !first.awaited(row) {
			return nil
		}
		m := j.meets(p, row, "the row of "+phrase.Clip(j.KeyJSON(p.Entry.Item)))
		m.at = RowLayout{j, x}.Owned(report.InRow(x.TargetTable(), p.index[index].Row), Owner{p.Base.Rule, m.key})
		return first.meet(m, source.CellCollision, "index "+x.Name()+" has the item on the row of the item at %s: %s")
	})
}

// meeting is who was first at each key, cell or row that several items have.
type meeting map[extsort.Hash]met

// met is an item at such a place.
type met struct {
	place    extsort.Hash
	position source.Position // in the source; none where nobody was there yet
	key      string          // of the item
	text     string          // of what it has there
	at       report.Failure  // its place
}

func newMeeting(places ...[]extsort.Hash) meeting {
	first := meeting{}
	for _, h := range slices.Concat(places...) {
		first[h] = met{}
	}
	return first
}

// awaited reports whether several items have the place.
func (m meeting) awaited(place extsort.Hash) bool {
	_, ok := m[place]
	return ok
}

// there reports whether an item was at the place.
func (m meeting) there(place extsort.Hash) bool { return m[place].position != source.Position{} }

// meets is an item at a place, of which text says what it has there.
func (j *Job) meets(p Placed, place extsort.Hash, text string) met {
	return met{place: place, position: p.Entry.Position, key: j.KeyJSON(p.Entry.Item), text: text}
}

// meet refuses an item at a place where another one was before.
func (m meeting) meet(item met, d source.Damage, format string) error {
	first, ok := m[item.place]
	switch {
	case !ok:
		return nil
	case first.position == source.Position{}:
		item.at = report.Failure{} // only who comes later needs it
		m[item.place] = item
		return nil
	}
	err := source.Damaged(d, item.position, nil, format, first.position, item.key)
	item.at.Want, item.at.Got, item.at.Detail = first.text, item.text, err.Detail
	return &itemRefused{err, item.at, first.key}
}

func keyHash(m *layout.Mapping, item attr.Item) extsort.Hash {
	key := m.Key()
	return extsort.HashOf([]byte(item[key.Hash.Name].Str), []byte(item[key.Range.Name].Str))
}
