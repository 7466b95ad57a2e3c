package emu

import (
	"context"
	"fmt"
	"slices"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/analysis"
)

// View is a logical or a materialized view.
type View struct {
	Name  string // resource name
	Query string
	// Reads has the ids of the tables and materialized views that the query reads, sorted. It and
	// Columns are empty if one of them does not exist.
	Reads        []string
	Columns      []ViewColumn
	Materialized *ViewState // nil for a logical view
}

// ViewColumn is a column of a view.
type ViewColumn struct {
	Name string
	Type string // as in SQL
}

// ViewState describes how far the rows of a materialized view follow its table.
type ViewState struct {
	Filling bool   // the rows are not complete: they are made from the rows of the table
	Next    []byte // with Filling: the key of the next row of the table
	// Hidden is the time of the oldest change that reads of the view do not show yet; see
	// Options.ViewLag. It is zero if they show all changes.
	Hidden time.Time
	// Refill: some changes are no longer recorded, so that the next read, or RefreshViews, fills the
	// view again.
	Refill bool
}

// Views returns all logical and materialized views, by kind and name.
func (s *Server) Views(ctx context.Context) ([]View, error) {
	found, err := s.control.Resources()
	if err != nil {
		return nil, fmt.Errorf("emu: %w", err)
	}
	var out []View
	for _, r := range found {
		view := View{Name: r.Name}
		switch m := r.Message.(type) {
		case *btapb.LogicalView:
			view.Query = m.GetQuery()
		case *btapb.MaterializedView:
			view.Query = m.GetQuery()
			state, err := s.views.State(ctx, r.Name)
			if status.Code(err) == codes.NotFound { // it was deleted meanwhile
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("emu: %w", err)
			}
			is := ViewState(state)
			view.Materialized = &is
		default:
			continue
		}
		if plan, err := analysis.Analyze(view.Query, analysis.Options{Catalog: s.catalog(s.db, resname.First(r.Name, 4))}); err == nil {
			for _, use := range plan.Tables {
				view.Reads = append(view.Reads, use.Table)
			}
			for _, c := range plan.Columns {
				view.Columns = append(view.Columns, ViewColumn{c.Name, c.Type.String()})
			}
		}
		slices.Sort(view.Reads)
		view.Reads = slices.Compact(view.Reads)
		out = append(out, view)
	}
	return out, nil
}

// RefreshViews makes all materialized views reflect all changes of their tables; see Options.ViewLag.
func (s *Server) RefreshViews(ctx context.Context) error {
	if err := s.views.Refresh(ctx); err != nil {
		return fmt.Errorf("emu: %w", err)
	}
	return nil
}
