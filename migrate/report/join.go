package report

import "slices"

// Joined returns the combined report of work that was done in parts. The report of each
// part must cover the same tables in the same order, and have the form that
// [Report.WriteJSON] writes.
func Joined(most int, parts []*Report) *Report {
	r := New(most)
	for _, part := range parts {
		r.Source, r.Format, r.Compared = part.Source, part.Format, part.Compared
		r.JoinChecks(part, func(string) bool { return true })
		for _, w := range part.Warnings {
			if !slices.Contains(r.Warnings, w) {
				r.Warnings = append(r.Warnings, w)
			}
		}
		for _, left := range part.NotLaidOut {
			if !slices.Contains(r.NotLaidOut, left) {
				r.NotLaidOut = append(r.NotLaidOut, left)
			}
		}
		for i, t := range part.Tables {
			if i == len(r.Tables) {
				r.Tables = append(r.Tables, t)
				continue
			}
			r.Tables[i].join(t)
		}
	}
	for _, t := range r.Tables {
		r.Items, r.Rows, r.Exceptions = r.Items+t.Items, r.Rows+t.Rows, r.Exceptions+t.Exceptions
	}
	return r
}

// JoinChecks adds the checks of a part that wanted selects, with their failures. A check
// that several parts ran becomes a single check.
func (r *Report) JoinChecks(part *Report, wanted func(check string) bool) {
	for _, c := range part.Checks {
		if !wanted(c.Name) {
			continue
		}
		i := r.check(c.Name, c.Table)
		if i < 0 {
			r.Checks = append(r.Checks, c)
			r.Differences += c.Differences
			continue
		}
		r.Checks[i].Differences += c.Differences
		r.Differences += c.Differences
		if r.Checks[i].Detail != c.Detail {
			r.Checks[i].Detail += "; " + c.Detail
		}
		if c.State == CheckFailed {
			r.Checks[i].State = CheckFailed
		}
	}
	for _, f := range part.Failures {
		if !wanted(f.Check) {
			continue
		}
		if f.check = r.check(f.Check, f.Table); f.check < 0 {
			f.check = r.check(f.Check, "")
		}
		r.list(f)
	}
}

// Restate replaces the detail of a check that several parts ran with the detail for all
// of them together.
func (r *Report) Restate(name, table, detail string) {
	if i := r.check(name, table); i >= 0 {
		r.Checks[i].Detail = detail
	}
}

// check returns the index of a check, or -1.
func (r *Report) check(name, table string) int {
	return slices.IndexFunc(r.Checks, func(c Check) bool { return c.Name == name && c.Table == table })
}

// join adds the result of a part for the table.
func (t *TableReport) join(o TableReport) {
	for _, n := range []struct {
		sum *int64
		of  int64
	}{
		{&t.Items, o.Items},
		{&t.Rows, o.Rows},
		{&t.Cells, o.Cells},
		{&t.Exceptions, o.Exceptions},
		{&t.DerivedBytes, o.DerivedBytes},
		{&t.IndexRows, o.IndexRows},
		{&t.CellsWritten, o.CellsWritten},
		{&t.CellsUnchanged, o.CellsUnchanged},
		{&t.CellsDeleted, o.CellsDeleted},
		{&t.ChangesLeft, o.ChangesLeft},
		{&t.ItemsResumed, o.ItemsResumed},
		{&t.ItemsKept, o.ItemsKept},
		{&t.DeadLetters, o.DeadLetters},
		{&t.LeftOut, o.LeftOut},
		{&t.Expired, o.Expired},
	} {
		*n.sum += n.of
	}
	t.Refused = joined(t.Refused, o.Refused, func(a, b RefusedItems) bool {
		return a.Error == b.Error && a.Rule == b.Rule && a.Attribute == b.Attribute
	}, func(a *RefusedItems, b RefusedItems) { a.Items += b.Items })
	t.Fidelity = joined(t.Fidelity, o.Fidelity, func(a, b Fidelity) bool { return a.Rule == b.Rule && a.Attribute == b.Attribute },
		func(a *Fidelity, b Fidelity) { a.Items += b.Items })
	t.Samples = joined(t.Samples, o.Samples, func(a, b Sample) bool { return a.Rule == b.Rule }, func(*Sample, Sample) {})
	t.Rules = joined(t.Rules, o.Rules, func(a, b RuleRows) bool { return a.Rule == b.Rule && a.Index == b.Index }, func(a *RuleRows, b RuleRows) {
		if a.Items == 0 {
			a.Item, a.Row, a.RowHex = b.Item, b.Row, b.RowHex
		}
		a.Items += b.Items
	})
	t.Sidecar = joined(t.Sidecar, o.Sidecar, func(a, b SidecarCells) bool { return a.Kind == b.Kind }, func(a *SidecarCells, b SidecarCells) { a.Cells += b.Cells })
	t.Accepted = joined(t.Accepted, o.Accepted, func(a, b AcceptedLoss) bool {
		return a.Rule == b.Rule && a.What == b.What && a.Family == b.Family && a.GC == b.GC && a.Attribute == b.Attribute
	}, func(a *AcceptedLoss, b AcceptedLoss) { a.Cells, a.Values = a.Cells+b.Cells, a.Values+b.Values })
	// Parts run in parallel: the seconds are the sum of all processes.
	t.Phases = joined(t.Phases, o.Phases, func(a, b Phase) bool { return a.Name == b.Name }, func(a *Phase, b Phase) {
		a.Items, a.Handled, a.Seconds, a.Passes = a.Items+b.Items, a.Handled+b.Handled, a.Seconds+b.Seconds, max(a.Passes, b.Passes)
	})
}

// joined adds others to the same elements of all, and appends the rest.
func joined[T any](all, others []T, same func(a, b T) bool, add func(*T, T)) []T {
	for _, o := range others {
		if i := slices.IndexFunc(all, func(a T) bool { return same(a, o) }); i >= 0 {
			add(&all[i], o)
			continue
		}
		all = append(all, o)
	}
	return all
}
