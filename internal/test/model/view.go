package model

import (
	"errors"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/engine"
)

// View is the definition of an authorized view. It contains rows and qualifiers that begin with one
// of the prefixes, and the named qualifiers.
type View struct {
	Rows     []string // prefixes of row keys
	Families map[string]Columns
}

// Columns selects the columns of a family that are in a view.
type Columns struct{ Qualifiers, Prefixes []string }

// These are errors of views, which the engine does not have.
var (
	ErrViewExists   = errors.New("view exists")
	ErrViewNotFound = errors.New("view not found")
	ErrOutside      = errors.New("outside the view")
)

func (v View) holdsRow(row string) bool {
	return slices.ContainsFunc(v.Rows, func(p string) bool { return strings.HasPrefix(row, p) })
}

func (v View) holdsColumn(family string, qualifier []byte) bool {
	c := v.Families[family]
	return slices.Contains(c.Qualifiers, string(qualifier)) ||
		slices.ContainsFunc(c.Prefixes, func(p string) bool { return strings.HasPrefix(string(qualifier), p) })
}

// allows reports whether all cells that a mutation can change are in the view.
func (v View) allows(m engine.Mutation) bool {
	switch m.Kind {
	case engine.DeleteFromRow:
		return false
	case engine.DeleteFromFamily:
		return slices.Contains(v.Families[m.Family].Prefixes, "")
	case engine.SetCell, engine.DeleteFromColumn, engine.AddToCell, engine.MergeToCell:
	}
	return v.holdsColumn(m.Family, m.Qualifier)
}

// viewName identifies a view of a table.
type viewName struct{ table, id string }

// view returns a view of an existing table.
func (d *DB) view(name, id string) (View, error) {
	if _, err := d.table(name); err != nil {
		return View{}, err
	}
	v, ok := d.views[viewName{name, id}]
	if !ok {
		return View{}, ErrViewNotFound
	}
	return v, nil
}

// CreateView creates a view of a table. Views of an earlier table with the same name apply again,
// because only the API deletes views with their table.
func (d *DB) CreateView(name, id string, v View) error {
	t, err := d.table(name)
	if err != nil {
		return err
	}
	if _, ok := d.views[viewName{name, id}]; ok {
		return ErrViewExists
	}
	return d.setView(t, id, View{}, v)
}

// UpdateView replaces the definition of a view.
func (d *DB) UpdateView(name, id string, v View) error {
	was, err := d.view(name, id)
	if err != nil {
		return err
	}
	return d.setView(d.tables[name], id, was, v)
}

// setView stores v in place of was. It rejects families that t does not have, unless was had them.
func (d *DB) setView(t *table, id string, was, v View) error {
	for family := range v.Families {
		if _, err := t.family(family); err != nil {
			if _, had := was.Families[family]; !had {
				return engine.ErrInvalid
			}
		}
	}
	d.views[viewName{t.name, id}] = v
	return nil
}

// DeleteView removes a view.
func (d *DB) DeleteView(name, id string) error {
	if _, err := d.view(name, id); err != nil {
		return err
	}
	delete(d.views, viewName{name, id})
	return nil
}

// GetView returns a view.
func (d *DB) GetView(name, id string) (View, error) { return d.view(name, id) }

// ScanView is like Scan, but through a view.
func (d *DB) ScanView(name, id string, spans []engine.Span, reverse bool) ([]Row, error) {
	v, err := d.view(name, id)
	if err != nil {
		return nil, err
	}
	rows, err := d.Scan(name, spans, reverse)
	for i := range rows {
		rows[i].Cells = slices.DeleteFunc(rows[i].Cells, func(c engine.Cell) bool { return !v.holdsColumn(c.Family, c.Qualifier) })
	}
	return slices.DeleteFunc(rows, func(r Row) bool { return !v.holdsRow(r.Key) || len(r.Cells) == 0 }), err
}

// MutateView is like Mutate, but through a view.
func (d *DB) MutateView(name, id, row string, muts []engine.Mutation) error {
	if err := d.checkWrite(name, id, row, muts); err != nil {
		return err
	}
	return d.Mutate(name, row, muts)
}

func (d *DB) checkWrite(name, id, row string, muts []engine.Mutation) error {
	v, err := d.view(name, id)
	switch {
	case err != nil:
		return err
	case row == "":
		return engine.ErrInvalid
	case !v.holdsRow(row) || slices.ContainsFunc(muts, func(m engine.Mutation) bool { return !v.allows(m) }):
		return ErrOutside
	}
	return nil
}

// CheckView applies onTrue if the view contains a cell of a row, and otherwise onFalse. It reports
// which of them it applied. Both must be valid.
func (d *DB) CheckView(name, id, row string, onTrue, onFalse []engine.Mutation) (matched bool, err error) {
	if err := d.checkWrite(name, id, row, slices.Concat(onTrue, onFalse)); err != nil {
		return false, err
	}
	for _, muts := range [][]engine.Mutation{onTrue, onFalse} {
		if err := d.Snapshot().Mutate(name, row, muts); err != nil {
			return false, err
		}
	}
	rows, err := d.ScanView(name, id, []engine.Span{{Start: []byte(row), End: []byte(row + "\x00")}}, false)
	if err != nil {
		return false, err
	}
	chosen := onFalse
	if matched = len(rows) > 0; matched {
		chosen = onTrue
	}
	if len(chosen) == 0 {
		return matched, nil
	}
	return matched, d.Mutate(name, row, chosen)
}

// ReadModifyWriteView is like ReadModifyWrite, but through a view.
func (d *DB) ReadModifyWriteView(name, id, row string, rules []engine.RuleReadModifyWrite) ([]engine.Cell, error) {
	v, err := d.view(name, id)
	switch {
	case err != nil:
		return nil, err
	case row == "":
		return nil, engine.ErrInvalid
	case !v.holdsRow(row) || slices.ContainsFunc(rules, func(r engine.RuleReadModifyWrite) bool { return !v.holdsColumn(r.Family, r.Qualifier) }):
		return nil, ErrOutside
	}
	return d.ReadModifyWrite(name, row, rules)
}
