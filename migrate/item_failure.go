package migrate

import (
	"errors"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/extsort"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// itemKind is the kind of the failure that an item is in a verification, where the
// mapping cannot lay it out for this reason; "" for what makes a whole input bad.
func itemKind(err error) Kind {
	switch source.DamageOf(err) { //nolint:exhaustive // the other kinds are no failures
	case source.ItemUnmatched:
		return Unmatched
	case source.CellCollision:
		return KeyCollision
	case source.ItemBeyondLimit:
		return LimitExceeded
	}
	return ""
}

// failItem makes a failure of an item that cannot be laid out, and of which f says
// the place; other is the key of the item that it meets, if it meets one. What is
// said of either afterwards is the same fault, and is not told again.
func (j *job) failItem(e source.Entry, err error, f Failure, other string) {
	f.Kind, f.File = itemKind(err), e.Position.String()
	j.report.LeftOut++
	j.failures.fail(f)
	failed := &j.failures.failed
	for _, table := range j.targets() {
		failed.add(table, j.keyJSON(e.Item))
		if other != "" {
			failed.add(table, other)
		}
		if f.Kind == Unmatched {
			failed.unruled[table] = true
		}
	}
}

// unplaced is the failure of an item that has no place in a table, for what the
// mapping says of it.
func (l rowLayout) unplaced(e source.Entry, err error) Failure {
	table := l.j.report.Target
	f := Failure{Table: table}
	if l.index != nil {
		f.Table = l.index.TargetTable()
	} else if at, err := l.j.mapping.Locate(e.Item); err == nil {
		f = inRow(table, at.Row)
	}
	of := l.ownerOf(e.Item)
	var broken *lens.Error
	if errors.As(err, &broken) {
		f.Column, f.Want, f.Got, f.Detail = broken.Attribute, broken.Expected, broken.What, string(broken.Code)
		if of.rule == "" && l.index == nil {
			of.rule = broken.Rule
		}
		if broken.Code == lens.CodeUnmatched {
			f.Want = "a rule that takes the item"
		}
	}
	f = l.owned(f, of)
	if spec := l.j.mapping.Spec(); spec != nil && of.rule == "" && l.index == nil {
		if file, line, _ := spec.Position("rules"); file != "" {
			f.Mapping = source.Position{File: file, Line: line}.String()
		}
	}
	return f
}

// failedItems are the items that have failed before their rows were compared. The
// zero value has none.
type failedItems struct {
	items   map[extsort.Hash]bool // by Bigtable table and key
	unruled map[string]bool       // the Bigtable tables of items that no rule takes
}

// maxFailedItems bounds how many items are remembered; what is said of others is
// told again.
const maxFailedItems = 100_000

func (s *failedItems) add(table, key string) {
	if s.items == nil {
		s.items, s.unruled = map[extsort.Hash]bool{}, map[string]bool{}
	}
	if len(s.items) < maxFailedItems {
		s.items[extsort.HashOf([]byte(table), []byte(key))] = true
	}
}

// explain reports whether a difference is only what follows from an item that has
// failed: it is of the item, or of a row that no rule reads where there are items
// that no rule takes.
func (s *failedItems) explain(f Failure) bool {
	switch f.Kind { //nolint:exhaustive // these are of items as they come, or of many of which one is the example
	case Unmatched, KeyCollision, LimitExceeded, NotLoaded, LossNotAccepted, LintError:
		return false
	}
	if f.ItemKey == "" {
		return f.RowKey != "" && s.unruled[f.Table]
	}
	return s.items[extsort.HashOf([]byte(f.Table), []byte(f.ItemKey))]
}

// failed reports whether an item of the job has failed.
func (j *job) failed(item attr.Item) bool {
	return j.failures != nil && len(j.failures.failed.items) > 0 &&
		j.failures.failed.items[extsort.HashOf([]byte(j.report.Target), []byte(j.keyJSON(item)))]
}
