package migrate

import (
	"errors"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// itemKind is the kind of the failure that an item is in a verification, where the
// mapping cannot lay it out for this reason; "" for what makes a whole input bad.
func itemKind(err error) report.Kind {
	switch source.DamageOf(err) { //nolint:exhaustive // the other kinds are no failures
	case source.ItemUnmatched:
		return report.Unmatched
	case source.CellCollision:
		return report.KeyCollision
	case source.ItemBeyondLimit:
		return report.LimitExceeded
	}
	return ""
}

// failItem makes a failure of an item that cannot be laid out, and of which f says
// the place; other is the key of the item that it meets, if it meets one. What is
// said of either afterwards is the same fault, and is not told again.
func (j *job) failItem(e source.Entry, err error, f report.Failure, other string) {
	f.Kind, f.File = itemKind(err), e.Position.String()
	j.report.LeftOut++
	j.failures.Fail(f)
	for _, table := range j.targets() {
		j.failures.ItemFailed(table, j.keyJSON(e.Item))
		if other != "" {
			j.failures.ItemFailed(table, other)
		}
		if f.Kind == report.Unmatched {
			j.failures.Unruled(table)
		}
	}
}

// unplaced is the failure of an item that has no place in a table, for what the
// mapping says of it.
func (l rowLayout) unplaced(e source.Entry, err error) report.Failure {
	table := l.j.report.Target
	f := report.Failure{Table: table}
	if l.index != nil {
		f.Table = l.index.TargetTable()
	} else if at, err := l.j.mapping.Locate(e.Item); err == nil {
		f = report.InRow(table, at.Row)
	}
	of := l.ownerOf(e.Item)
	var broken *layout.Error
	if errors.As(err, &broken) {
		f.Column, f.Want, f.Got, f.Detail = broken.Attribute, broken.Expected, broken.What, string(broken.Code)
		if of.rule == "" && l.index == nil {
			of.rule = broken.Rule
		}
		if broken.Code == layout.CodeUnmatched {
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

// failed reports whether an item of the job has failed.
func (j *job) failed(item attr.Item) bool {
	return j.failures != nil && j.failures.ItemsFailed() && j.failures.HasFailed(j.report.Target, j.keyJSON(item))
}
