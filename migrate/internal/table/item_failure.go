package table

import (
	"errors"
	"maps"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// ItemKind returns the kind of the failure that err causes if it concerns a single item, and
// "" if err concerns the whole input.
func ItemKind(err error) report.Kind {
	switch source.DamageOf(err) { //nolint:exhaustive // the other kinds are no failures
	case source.ItemUnmatched:
		return report.Unmatched
	case source.MappingRefused:
		return report.ItemRefused
	case source.KeyDuplicate:
		return report.DuplicateItem
	case source.CellCollision:
		return report.KeyCollision
	case source.ItemBeyondLimit:
		return report.LimitExceeded
	}
	return ""
}

// failItem records the failure f of an item that cannot be laid out; other is the key of the
// item that it collides with, or "". Later failures of either item have the same cause, and
// are not listed.
func failItem(j *Job, e source.Entry, err error, f report.Failure, other string) {
	f.Kind, f.File = ItemKind(err), e.Position.String()
	j.Report.LeftOut++
	x := refusal(j, e, err, f)
	countRefused(j, x)
	j.failures.Fail(f.Grouped(x.Error + " " + x.Rule + " " + x.Attribute))
	refuseRest(j, e, err)
	for _, table := range j.Targets() {
		j.failures.ItemFailed(table, j.KeyJSON(e.Item))
		if other != "" {
			j.failures.ItemFailed(table, other)
		}
		if f.Kind == report.Unmatched {
			j.failures.ItemUnmatched(table)
		}
	}
}

// refusal describes the reason err of a refused item, whose failure is f.
func refusal(j *Job, e source.Entry, err error, f report.Failure) report.RefusedItems {
	x := report.RefusedItems{Error: string(f.Kind), Rule: f.Rule, Item: j.KeyJSON(e.Item), At: e.Position.String(), What: f.Detail}
	if broken, ok := errors.AsType[*maperr.Error](err); ok {
		x.Error, x.Attribute, x.What = string(broken.Code), broken.Attribute, broken.What
		if broken.Expected != "" {
			x.What += "; expected " + broken.Expected
		}
	}
	x.What = phrase.Clip(x.What)
	return x
}

// maxRefusals bounds the listed reasons, since an attribute's name can be data. Further ones
// are counted together.
const maxRefusals = 1000

// countRefused counts a refused item by reason.
func countRefused(j *Job, x report.RefusedItems) {
	all := j.Report.Refused
	i := slices.IndexFunc(all, func(o report.RefusedItems) bool {
		return o.Error == x.Error && o.Rule == x.Rule && o.Attribute == x.Attribute
	})
	if i < 0 && len(all) >= maxRefusals {
		const others = "others"
		x.Error, x.Rule, x.Attribute = others, "", ""
		if i = len(all) - 1; all[i].Error != others {
			i = -1
		}
	}
	if i < 0 {
		i = len(all)
		j.Report.Refused = append(all, x)
	}
	j.Report.Refused[i].Items++
}

// refuseRest counts further faults of an item that was refused for one of its attributes,
// since a mapping reports only the first. It removes that attribute, and tries again.
func refuseRest(j *Job, e source.Entry, err error) {
	rest := maps.Clone(e.Item)
	for range e.Item {
		broken, ok := errors.AsType[*maperr.Error](err)
		if !ok || broken.Attribute == "" || j.Mapping.Key().IsKey(broken.Attribute) {
			return
		}
		if _, has := rest[broken.Attribute]; !has {
			return
		}
		delete(rest, broken.Attribute)
		_, err = j.Mapping.Place(rest, j.Micros)
		e.Item = rest
		if x := refusal(j, e, err, RowLayout{J: j}.unplaced(e, err)); x.Attribute != "" { // else the removed attribute may be the cause
			countRefused(j, x)
		}
	}
}

// unplaced returns the failure of item e, which has no place in the table of l because of
// err.
func (l RowLayout) unplaced(e source.Entry, err error) report.Failure {
	table := l.J.Report.Target
	f := report.Failure{Table: table}
	if l.Index != nil {
		f.Table = l.Index.TargetTable()
	} else if at, err := l.J.Mapping.Locate(e.Item); err == nil {
		f = report.InRow(table, at.Row)
	}
	of := l.OwnerOf(e.Item)
	var broken *maperr.Error
	if errors.As(err, &broken) {
		f.Column, f.Want, f.Got, f.Detail = broken.Attribute, broken.Expected, broken.What, string(broken.Code)
		if of.Rule == "" && l.Index == nil {
			of.Rule = broken.Rule
		}
		if broken.Code == maperr.CodeUnmatched {
			f.Want = "a rule that takes the item"
		}
	}
	f = l.Owned(f, of)
	if spec := l.J.Mapping.Spec(); spec != nil && of.Rule == "" && l.Index == nil {
		if file, line, _ := spec.Position("rules"); file != "" {
			f.Mapping = source.Position{File: file, Line: line}.String()
		}
	}
	return f
}

// Failed reports whether the given item of the job has failed.
func (j *Job) Failed(item attr.Item) bool {
	return j.failures != nil && j.failures.ItemsFailed() && j.failures.HasFailed(j.Report.Target, j.KeyJSON(item))
}
