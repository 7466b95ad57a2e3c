package emu

import (
	"context"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/emu/internal/admin"
	"github.com/tabletop-emu/tabletop/emu/internal/filter"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/replica"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/emu/internal/view"
	"github.com/tabletop-emu/tabletop/engine"
)

// target is the table of a data request, or its part in an authorized view. It does not change
// while the request runs, even if the view does.
type target struct {
	*engine.Table
	view *view.View // nil for the whole table
	// materialized is the name of the materialized view whose rows the table has, or "".
	materialized string
}

// resource returns the name of the table or materialized view.
func (t target) resource() string {
	if t.materialized != "" {
		return t.materialized
	}
	return t.Name
}

// scan scans the target as a cluster sees it. All clusters see the same rows of a materialized view.
func (s *Server) scan(ctx context.Context, t target, at replica.At, o engine.ScanOptions) (replica.Scan, error) {
	if t.materialized == "" {
		return s.rows.Scan(ctx, t.Table, at, o)
	}
	in, err := s.db.Scan(ctx, t.Name, o)
	if err != nil {
		return nil, err
	}
	return replica.Stored(in), nil
}

// readTarget resolves the target of a read: exactly one of a table, an authorized view and a
// materialized view.
func (s *Server) readTarget(ctx context.Context, table, authorizedView, materializedView string) (target, error) {
	set := 0
	for _, name := range []string{table, authorizedView, materializedView} {
		if name != "" {
			set++
		}
	}
	switch {
	case set != 1:
		return target{}, refusal.Invalid("table_name", "exactly one of table_name, authorized_view_name and materialized_view_name must be set, but %d are", set)
	case authorizedView != "":
		return s.viewTarget(authorizedView)
	case materializedView != "":
		return s.materializedTarget(ctx, materializedView, false)
	}
	t, err := admin.FindTable(s.db, "table_name", table)
	return target{Table: t}, err
}

// writeTarget resolves the target of a write: a table or an authorized view.
func (s *Server) writeTarget(table, authorizedView string) (target, error) {
	return s.readTarget(context.Background(), table, authorizedView, "")
}

// materializedTarget resolves a materialized view, after its rows caught up with the changes that
// Options.ViewLag makes visible. A view that is being populated is rejected, unless incomplete is set.
func (s *Server) materializedTarget(ctx context.Context, name string, incomplete bool) (target, error) {
	if err := resname.CheckMaterializedView("materialized_view_name", name); err != nil {
		return target{}, err
	}
	if err := admin.CheckInstance(s.db, resname.First(name, 4)); err != nil {
		return target{}, err
	}
	t, err := s.views.Rows(ctx, name, incomplete)
	return target{Table: t, materialized: name}, err
}

// viewTarget resolves an authorized view.
func (s *Server) viewTarget(name string) (target, error) {
	if err := resname.CheckAuthorizedView("authorized_view_name", name); err != nil {
		return target{}, err
	}
	t, err := s.db.Table(resname.First(name, 6))
	if err != nil {
		return target{}, refusal.Of(err)
	}
	v, err := s.control.CompiledView("authorized_view_name", name)
	return target{Table: t, view: v}, err
}

// rows restricts a set to the keys inside the target's view.
func (t target) rows(set filter.RowSet) filter.RowSet {
	if t.view == nil {
		return set
	}
	return set.Intersect(t.view.Rows())
}

// cells returns the cells of a scan's current row that the target contains, as the source of a
// filter. The gate is nil if the target is a whole table. The last result is false if the
// target has no columns.
func (t target) cells(src filter.Source) (filter.Source, *view.Gate, bool) {
	if t.view == nil {
		return src, nil, true
	}
	gate := t.view.Over(src, t.Families)
	return gate, gate, gate != nil
}

// checkFamily rejects a filter that requires a family by name if the target does not have that
// family.
func (t target) checkFamily(p *filter.Program) error {
	name := p.Family()
	switch {
	case name == "":
		return nil
	case t.view != nil && !t.view.HoldsFamily(name):
		return refusal.FamilyOutsideView(t.view.Name(), name)
	case admin.LookUpFamily(t.Table, name) == nil:
		return refusal.NoFamilyToRead(t.resource())
	}
	return nil
}

// checkRow rejects a write to a row outside the target's view.
func (t target) checkRow(key []byte) error {
	if t.view == nil || t.view.HoldsRow(key) {
		return nil
	}
	return refusal.OutsideView(t.view.Name())
}

// checkMutations rejects mutations that reach outside the target's view. It runs before
// families are looked up, since a view must not reveal whether other families exist.
func (t target) checkMutations(muts []*btpb.Mutation) error {
	if t.view == nil {
		return nil
	}
	for _, m := range muts {
		if !t.view.Allows(m) {
			return refusal.OutsideView(t.view.Name())
		}
	}
	return nil
}

// checkRules acts like checkMutations for the rules of ReadModifyWriteRow.
func (t target) checkRules(rules []*btpb.ReadModifyWriteRule) error {
	if t.view == nil {
		return nil
	}
	for _, r := range rules {
		if !t.view.HoldsColumn(r.GetFamilyName(), r.GetColumnQualifier()) {
			return refusal.OutsideView(t.view.Name())
		}
	}
	return nil
}
