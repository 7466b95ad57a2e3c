package run

import (
	"slices"

	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

// leftOut are the parts of the job's table that its mapping lays out nothing of: those
// that its file says so of, and those that the description of the table has and the
// file does not.
func (j *Job) leftOut() []report.NotLaidOut {
	spec := j.Mapping.Spec()
	if spec == nil {
		return nil
	}
	var left []report.NotLaidOut
	add := func(what, why string) {
		left = append(left, report.NotLaidOut{Table: j.Source.Name, What: what, Why: why})
	}
	for _, x := range spec.LeftOut() {
		add("index "+x.Index, x.Why)
	}
	for _, x := range j.Source.Indexes {
		if !slices.ContainsFunc(spec.Source.GSIs, func(g mapfile.GSI) bool { return g.Name == x.Name }) {
			add("index "+x.Name, "the description of the table has it, and its mapping does not (source.gsis)")
		}
	}
	if expiry := j.Source.TTL; expiry != "" && spec.Source.TTL == nil {
		add("time to live by "+expiry, "the description of the table has it, and its mapping does not (source.ttl): no item expires")
	}
	return left
}

// LeaveOut tells of them, of all tables.
func (r *Run) LeaveOut() {
	for _, j := range r.Jobs {
		r.Report.LeaveOut(j.Source.Name, j.leftOut()...)
	}
}
