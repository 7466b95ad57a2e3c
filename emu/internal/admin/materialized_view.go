package admin

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/engine"
)

// MaterializedViews keeps the rows of materialized views. All names of views and tables are
// resource names.
type MaterializedViews interface {
	// Check returns an error for a query that no view of the instance may have.
	Check(r Catalog, instance, query string) error
	// Create makes a view whose query Check has accepted, and Delete removes it.
	Create(tx *engine.CatalogTx, name, query string) error
	Delete(tx *engine.CatalogTx, name string) error
	// Reading returns the names of the views that read a table.
	Reading(r Catalog, table string) ([]string, error)
	// Populate fills a new view, which cannot be read until then. Ready sets a later time until which
	// it cannot be read.
	Populate(ctx context.Context, name string) error
	Ready(tx *engine.CatalogTx, name string, at time.Time) error
	// Reset makes the views of an instance fill again.
	Reset(ctx context.Context, instance string) error
}

// CreateMaterializedView creates a view and fills it, and deletes it if that fails. The operation
// is done Control.Delay after the view was filled.
func (s instanceAdminService) CreateMaterializedView(ctx context.Context, req *btapb.CreateMaterializedViewRequest) (*longrunningpb.Operation, error) {
	if err := resname.CheckInstance("parent", req.GetParent()); err != nil {
		return nil, err
	}
	id := req.GetMaterializedViewId()
	if err := s.checkViewID("materialized_view_id", id); err != nil {
		return nil, err
	}
	if req.GetMaterializedView().GetQuery() == "" {
		return nil, refusal.Invalid("materialized_view.query", "must be set")
	}
	v := &btapb.MaterializedView{
		Name:  req.GetParent() + "/materializedViews/" + id,
		Query: req.GetMaterializedView().GetQuery(), DeletionProtection: req.GetMaterializedView().GetDeletionProtection(),
	}
	began, _ := s.span()
	err := s.change(ctx, func(tx *engine.CatalogTx) error {
		if err := CheckInstance(tx, req.GetParent()); err != nil {
			return err
		}
		if err := s.Views.Check(tx, req.GetParent(), v.GetQuery()); err != nil {
			return err
		}
		if kind, _, err := idInUse(tx, req.GetParent(), id); err != nil {
			return err
		} else if kind != "" {
			return refusal.New(codes.AlreadyExists, "%s %s already exists.", kind, id)
		}
		if err := s.checkTableCount(tx, req.GetParent()); err != nil {
			return err
		}
		if err := record(tx, req.GetParent()); err != nil {
			return err
		}
		var err error
		if v.Etag, err = newEtag(tx); err != nil {
			return err
		}
		if err := s.Views.Create(tx, v.GetName(), v.GetQuery()); err != nil {
			return err
		}
		return store(tx, kindMaterializedView+v.GetName(), v)
	})
	if err != nil {
		return nil, err
	}
	if err := s.Views.Populate(ctx, v.GetName()); err != nil {
		if undo := s.change(context.WithoutCancel(ctx), func(tx *engine.CatalogTx) error { return s.deleteMaterializedView(tx, v.GetName()) }); undo != nil {
			s.Logger.Warn("a materialized view that could not be filled is left", "view", v.GetName(), "error", undo)
		}
		return nil, err
	}
	return changed(ctx, s.Control, func(tx *engine.CatalogTx) (*longrunningpb.Operation, error) {
		_, doneAt := s.span()
		if s.Delay > 0 {
			if err := s.Views.Ready(tx, v.GetName(), doneAt.AsTime()); err != nil {
				return nil, err
			}
		}
		return s.start(tx, req.GetParent(), &btapb.CreateMaterializedViewMetadata{OriginalRequest: req, StartTime: began, EndTime: doneAt}, v, doneAt.AsTime())
	})
}

// idInUse returns the kind and the name of the table, logical view or materialized view with the
// given id in an instance, or "" if the id is free. An id can be used only once among all three
// kinds.
func idInUse(r Catalog, instance, id string) (kind, name string, err error) {
	name = resname.TablesOf(instance) + id
	if _, err := r.Table(name); err == nil {
		return "Table", name, nil
	}
	for _, k := range []struct{ key, kind, name string }{
		{kindLogicalView, "Logical view", instance + "/logicalViews/" + id},
		{kindMaterializedView, "Materialized View", instance + "/materializedViews/" + id},
	} {
		switch _, err := r.Resource(k.key + k.name); {
		case err == nil:
			return k.kind, k.name, nil
		case !errors.Is(err, engine.ErrResourceNotFound):
			return "", "", err
		}
	}
	return "", "", nil
}

// materializedView returns the materialized view with the given name.
func materializedView(r Catalog, name string) (*btapb.MaterializedView, error) {
	if err := resname.CheckMaterializedView("name", name); err != nil {
		return nil, err
	}
	v := &btapb.MaterializedView{}
	if found, err := loadOne(r, kindMaterializedView+name, v); err != nil {
		return nil, refusal.Of(err)
	} else if !found {
		return nil, refusal.NoMaterializedView(name)
	}
	return v, nil
}

// GetMaterializedView returns a view.
func (s instanceAdminService) GetMaterializedView(_ context.Context, req *btapb.GetMaterializedViewRequest) (*btapb.MaterializedView, error) {
	return materializedView(s.DB, req.GetName())
}

// ListMaterializedViews returns the views of an instance, sorted by name, in pages.
func (s instanceAdminService) ListMaterializedViews(ctx context.Context, req *btapb.ListMaterializedViewsRequest) (*btapb.ListMaterializedViewsResponse, error) {
	found, err := viewsUnder[btapb.MaterializedView](ctx, s.Control, req.GetParent(), kindMaterializedView, "/materializedViews/")
	if err != nil {
		return nil, err
	}
	resp := &btapb.ListMaterializedViewsResponse{}
	resp.MaterializedViews, resp.NextPageToken, err = page(found, req.GetPageSize(), req.GetPageToken(), (*btapb.MaterializedView).GetName)
	return resp, err
}

// UpdateMaterializedView changes deletion_protection. The query cannot be changed.
func (s instanceAdminService) UpdateMaterializedView(ctx context.Context, req *btapb.UpdateMaterializedViewRequest) (*longrunningpb.Operation, error) {
	given := req.GetMaterializedView()
	paths, err := viewPaths(req.GetUpdateMask(), given, "query", "name", "deletion_protection")
	if err != nil {
		return nil, err
	}
	return changed(ctx, s.Control, func(tx *engine.CatalogTx) (*longrunningpb.Operation, error) {
		v, err := materializedView(tx, given.GetName())
		if err != nil {
			return nil, err
		}
		if err := checkEtag(v.GetName(), given.GetEtag(), v.GetEtag()); err != nil {
			return nil, err
		}
		if given.GetQuery() != v.GetQuery() && slices.Contains(paths, "query") {
			return nil, refusal.ImmutableView()
		}
		if slices.Contains(paths, "deletion_protection") {
			v.DeletionProtection = given.GetDeletionProtection()
		}
		began, doneAt := s.span()
		return s.storeUnder(tx, kindMaterializedView, v, &v.Etag, &btapb.UpdateMaterializedViewMetadata{OriginalRequest: req, StartTime: began, EndTime: doneAt}, doneAt)
	})
}

// DeleteMaterializedView deletes a view with its rows and its IAM policy, unless the view has
// deletion_protection.
func (s instanceAdminService) DeleteMaterializedView(ctx context.Context, req *btapb.DeleteMaterializedViewRequest) (*emptypb.Empty, error) {
	return empty(s.change(ctx, func(tx *engine.CatalogTx) error {
		v, err := materializedView(tx, req.GetName())
		if err != nil {
			return err
		}
		if err := checkEtag(v.GetName(), req.GetEtag(), v.GetEtag()); err != nil {
			return err
		}
		if err := checkUnprotected(v); err != nil {
			return err
		}
		return s.deleteMaterializedView(tx, v.GetName())
	}))
}

// checkUnprotected returns an error for a view that has deletion_protection.
func checkUnprotected(v *btapb.MaterializedView) error {
	if v.GetDeletionProtection() {
		return refusal.Precondition("Materialized View %s has deletion protection enabled.", v.GetName())
	}
	return nil
}

func (s *Control) deleteMaterializedView(tx *engine.CatalogTx, name string) error {
	return errors.Join(s.Views.Delete(tx, name), tx.DeleteResource(kindMaterializedView+name), remove(tx, KindPolicy+name))
}

// deleteMaterializedViews deletes the views of an instance, unless one has deletion_protection.
func (s *Control) deleteMaterializedViews(tx *engine.CatalogTx, instance string) error {
	views, err := loadAll[btapb.MaterializedView](tx, kindMaterializedView, instance+"/materializedViews/")
	if err != nil {
		return err
	}
	for _, v := range views {
		if err := checkUnprotected(v); err != nil {
			return err
		}
	}
	for _, v := range views {
		if err := s.deleteMaterializedView(tx, v.GetName()); err != nil {
			return err
		}
	}
	return nil
}

// checkUnread returns an error if a materialized view reads a table.
func (s *Control) checkUnread(r Catalog, table string) error {
	views, err := s.Views.Reading(r, table)
	if err != nil || len(views) == 0 {
		return err
	}
	return refusal.Precondition("Unable to delete resource %s because the resource is referenced by another resource. The existing references are: {%s}", table, strings.Join(views, ", "))
}
