package table

import (
	"context"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/extsort"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// maxMeetings bounds the repeated keys and cells that one pass looks for.
const maxMeetings = 100_000

// places are hashes of the keys, cells and rows at which items can collide.
type places struct {
	keys, cells *extsort.Set   // nil: each item has a row of its own, unless it occurs twice
	rows        []*extsort.Set // of the indexes; nil: row keys of entries are unique
}

// newPlaces returns empty sets for the places at which items of the job can collide.
func newPlaces(j *Job) *places {
	at := &places{}
	if j.Mapping.SharesRows() {
		at.keys, at.cells = extsort.NewSet(j.Options.TempDir), extsort.NewSet(j.Options.TempDir)
	}
	for _, x := range j.Indexes {
		var rows *extsort.Set
		if !x.Distinct() {
			rows = extsort.NewSet(j.Options.TempDir)
		}
		at.rows = append(at.rows, rows)
	}
	return at
}

func (at *places) close() {
	for _, set := range append(at.rows, at.keys, at.cells) {
		if set != nil {
			set.Close()
		}
	}
}

// add collects the places of an item.
func (at *places) add(j *Job, p Placed) error {
	for i, rows := range at.rows {
		if rows == nil || p.Index[i].Row == nil {
			continue
		}
		if err := rows.Add(extsort.HashOf(p.Index[i].Row)); err != nil {
			return err
		}
	}
	if at.keys == nil {
		return nil
	}
	return at.addToRow(j, p)
}

// addToRow collects the key of an item and its cells.
func (at *places) addToRow(j *Job, p Placed) error {
	for _, c := range p.Base.Cells {
		if err := at.cells.Add(extsort.CellHash(p.Base.Row, c)); err != nil {
			return err
		}
	}
	return at.keys.Add(keyHash(j.Mapping, p.Entry.Item))
}

// meetings finds items with the same key or the same cell. It refuses all but the first of
// them, and then again is true. If a refusal is an error, meetings returns the first in the
// order of the source, or one of the first if more than maxMeetings keys or cells repeat.
func meetings(ctx context.Context, j *Job, at *places) (again bool, err error) {
	if at.keys == nil { // an item occurs twice: no other pass has collected its key
		at.keys, at.cells = extsort.NewSet(j.Options.TempDir), extsort.NewSet(j.Options.TempDir)
		if err := j.Each(ctx, "checking", func(p Placed) error { return at.addToRow(j, p) }); err != nil {
			return false, err
		}
	}
	_, sameKey, _, err := at.keys.Finish(maxMeetings, 1)
	if err != nil {
		return false, err
	}
	_, sameCell, _, err := at.cells.Finish(maxMeetings, 1)
	if err != nil || len(sameKey)+len(sameCell) == 0 {
		return false, err
	}
	if len(sameKey) > 0 {
		sameCell = nil // items of one key share their cells
	}
	first := newMeeting(sameKey, sameCell)
	err = j.Each(ctx, "checking", func(p Placed) error {
		if len(sameKey) > 0 {
			m := meets(j, p, keyHash(j.Mapping, p.Entry.Item), "")
			m.at = RowLayout{J: j}.Owned(report.InRow(j.Report.Target, p.Base.Row), Owner{p.Base.Rule, m.key})
			return first.meet(m, source.KeyDuplicate, "the item has the same key as the item at %s: %s")
		}
		onCell := func(c layout.Cell) met {
			m := meets(j, p, extsort.CellHash(p.Base.Row, c), CellText(c))
			m.at = RowLayout{J: j}.Owned(report.InRow(j.Report.Target, p.Base.Row), Owner{p.Base.Rule, m.key})
			m.at.Column = c.Family + ":" + phrase.Column(string(c.Qualifier))
			return m
		}
		for _, c := range p.Base.Cells { // check all before adding any: a refused item holds no cell
			if first.there(extsort.CellHash(p.Base.Row, c)) {
				return first.meet(onCell(c), source.CellCollision, "the mapping puts the item in a cell of the item at %s: %s")
			}
		}
		for _, c := range p.Base.Cells {
			if !first.awaited(extsort.CellHash(p.Base.Row, c)) {
				continue
			}
			if err := first.meet(onCell(c), source.CellCollision, "the mapping puts the item in one cell twice, at %s: %s"); err != nil {
				return err
			}
		}
		return nil
	})
	return true, err
}

// entriesMeet finds items that share a row of an index, and refuses all but the first in each
// row. again reports whether it found any.
func entriesMeet(ctx context.Context, j *Job, at *places) (again bool, err error) {
	for i, rows := range at.rows {
		if rows == nil {
			continue
		}
		_, same, _, err := rows.Finish(maxMeetings, 1)
		if err != nil {
			return false, err
		}
		if len(same) > 0 {
			return true, entriesOnRow(ctx, j, i, same)
		}
	}
	return false, nil
}

// entriesOnRow refuses all but the first item of each row of an index.
func entriesOnRow(ctx context.Context, j *Job, index int, same []extsort.Hash) error {
	first := newMeeting(same)
	x := j.Indexes[index]
	return j.Each(ctx, "checking", func(p Placed) error {
		row := extsort.HashOf(p.Index[index].Row)
		if p.Index[index].Row == nil || !first.awaited(row) {
			return nil
		}
		m := meets(j, p, row, "the row of "+phrase.Clip(j.KeyJSON(p.Entry.Item)))
		m.at = RowLayout{J: j, Index: x}.Owned(report.InRow(x.TargetTable(), p.Index[index].Row), Owner{p.Base.Rule, m.key})
		return first.meet(m, source.CellCollision, "index "+x.Name()+" puts the item in the row of the item at %s: %s")
	})
}

// meeting holds the first item at each shared key, cell or row.
type meeting map[extsort.Hash]met

// met is an item at such a place.
type met struct {
	place    extsort.Hash
	position source.Position // in the source; zero while no item has been there
	key      string          // of the item
	text     string          // its cell or key there
	at       report.Failure  // its place
}

func newMeeting(places ...[]extsort.Hash) meeting {
	first := meeting{}
	for _, h := range slices.Concat(places...) {
		first[h] = met{}
	}
	return first
}

// awaited reports whether several items share the place.
func (m meeting) awaited(place extsort.Hash) bool {
	_, ok := m[place]
	return ok
}

// there reports whether an item has been found at the place.
func (m meeting) there(place extsort.Hash) bool { return m[place].position != source.Position{} }

// meets returns item p as the met at a place; text is its cell or key there.
func meets(j *Job, p Placed, place extsort.Hash, text string) met {
	return met{place: place, position: p.Entry.Position, key: j.KeyJSON(p.Entry.Item), text: text}
}

// meet records the item if it is the first at its place. If another item is already there, it
// returns an [*itemRefused]. It ignores places that items do not share.
func (m meeting) meet(item met, d source.Damage, format string) error {
	first, ok := m[item.place]
	switch {
	case !ok:
		return nil
	case first.position == source.Position{}:
		item.at = report.Failure{} // only later items need it
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
