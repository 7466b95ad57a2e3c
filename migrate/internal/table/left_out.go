package table

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// LeftOut returns the parts of a DynamoDB table that its mapping does not lay out: indexes
// that the mapping file leaves out, and indexes or a time to live that differ in the table's
// description. t is nil if there is no description.
func LeftOut(m *layout.Mapping, t *source.Table) []report.NotLaidOut {
	left := []report.NotLaidOut{}
	spec := m.Spec()
	if spec == nil {
		return left
	}
	table := m.SourceTable()
	if t != nil {
		table = t.Name
	}
	add := func(what, why string) {
		left = append(left, report.NotLaidOut{Table: table, What: what, Why: why})
	}
	for _, x := range spec.LeftOut() {
		add("index "+x.Index, x.Why)
	}
	if t == nil {
		return left
	}
	for _, x := range t.Indexes {
		i := slices.IndexFunc(spec.Source.GSIs, func(g mapfile.GSI) bool { return g.Name == x.Name })
		switch {
		case i < 0:
			add("index "+x.Name, "the description of the table has it, but its mapping does not (source.gsis)")
		case spec.Source.GSIs[i].As == mapfile.IndexAsNone: // reported
		case x.Surplus() != "":
			add("index "+x.Name, x.Surplus()+", and its mapping lays out only indexes of one HASH and one RANGE attribute")
		case !keyMatches(x.Key.Hash, indexKey(m, x.Name).Hash) || !keyMatches(x.Key.Range, indexKey(m, x.Name).Range):
			add("index "+x.Name, fmt.Sprintf("its key is %s in the description of the table, but %s in its mapping", source.KeyText(x.Key), source.KeyText(indexKey(m, x.Name))))
		case projectsLess(spec.Source.GSIs[i], x):
			add("index "+x.Name, fmt.Sprintf("it projects %s in the description of the table, but %s in its mapping: queries of it lack attributes",
				projectionText(x.Projection, x.Include), projectionText(spec.Source.GSIs[i].Projection, spec.Source.GSIs[i].Include)))
		}
	}
	switch expiry, by := t.TTL, spec.TTLAttribute(); {
	case expiry == "":
	case by == "":
		add("time to live by "+expiry, "the description of the table has it, but its mapping does not (source.ttl): items do not expire")
	case by != expiry:
		add("time to live by "+expiry, fmt.Sprintf("the description of the table has it, but in its mapping items expire by %s (source.ttl)", by))
	}
	return left
}

// indexKey returns the key of an index that the mapping lays out as a table or a view.
func indexKey(m *layout.Mapping, index string) attr.KeySchema {
	if v := m.View(index); v != nil {
		return v.Def().Key
	}
	return m.Index(index).Def().Key
}

// projectsLess reports whether the mapping's index g lacks attributes that the described
// index x projects.
func projectsLess(g mapfile.GSI, x source.Index) bool {
	switch {
	case g.Projection == mapfile.ProjectAll || x.Projection == mapfile.ProjectKeysOnly:
		return false
	case x.Projection == mapfile.ProjectAll:
		return true
	}
	return slices.ContainsFunc(x.Include, func(name string) bool { return !slices.Contains(g.Include, name) })
}

// projectionText formats a projection, with the included attributes if there are any.
func projectionText(projection string, include []string) string {
	if len(include) > 0 {
		return "[" + strings.Join(include, ", ") + "]"
	}
	return projection
}

// LeaveOut reports the parts of all tables that the mappings leave out.
func (r *Run) LeaveOut() {
	for _, j := range r.Jobs {
		r.Report.LeaveOut(j.Source.Name, LeftOut(j.Mapping, j.Source)...)
	}
}
