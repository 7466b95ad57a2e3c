package admin

import (
	"context"
	"errors"
	"slices"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/tabletop-emu/tabletop/emu/internal/limits"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/engine"
)

// A logical view is a query with a name in an instance. Queries read it like a table. It stores no rows.

// CreateLogicalView creates a view. It checks the query as PrepareQuery does.
func (s instanceAdminService) CreateLogicalView(ctx context.Context, req *btapb.CreateLogicalViewRequest) (*longrunningpb.Operation, error) {
	if err := resname.CheckInstance("parent", req.GetParent()); err != nil {
		return nil, err
	}
	id := req.GetLogicalViewId()
	if err := s.checkViewID("logical_view_id", id); err != nil {
		return nil, err
	}
	if req.GetLogicalView().GetQuery() == "" {
		return nil, refusal.Invalid("logical_view.query", "must be set")
	}
	v := &btapb.LogicalView{
		Name:  req.GetParent() + "/logicalViews/" + id,
		Query: req.GetLogicalView().GetQuery(), DeletionProtection: req.GetLogicalView().GetDeletionProtection(),
	}
	return changed(ctx, s.Control, func(tx *engine.CatalogTx) (*longrunningpb.Operation, error) {
		if _, _, err := instance(tx, req.GetParent()); err != nil {
			return nil, err
		}
		if err := s.CheckQuery(tx, req.GetParent(), v.GetQuery()); err != nil {
			return nil, err
		}
		if kind, name, err := idInUse(tx, req.GetParent(), id); err != nil {
			return nil, err
		} else if kind != "" {
			return nil, refusal.Exists(kind, name)
		}
		if err := record(tx, req.GetParent()); err != nil {
			return nil, err
		}
		began, doneAt := s.span()
		return s.storeUnder(tx, kindLogicalView, v, &v.Etag, &btapb.CreateLogicalViewMetadata{OriginalRequest: req, StartTime: began, EndTime: doneAt}, doneAt)
	})
}

// LogicalView returns the logical view with the given name.
func LogicalView(r Catalog, name string) (*btapb.LogicalView, error) {
	if !resname.HasShape(name, "projects", "instances", "logicalViews") {
		return nil, refusal.BadName("name", name, "projects/PROJECT/instances/INSTANCE/logicalViews/VIEW")
	}
	return find[btapb.LogicalView](r, kindLogicalView, "Logical view", name)
}

// GetLogicalView returns a view.
func (s instanceAdminService) GetLogicalView(_ context.Context, req *btapb.GetLogicalViewRequest) (*btapb.LogicalView, error) {
	return LogicalView(s.DB, req.GetName())
}

// ListLogicalViews returns the views of an instance, sorted by name, in pages.
func (s instanceAdminService) ListLogicalViews(ctx context.Context, req *btapb.ListLogicalViewsRequest) (*btapb.ListLogicalViewsResponse, error) {
	found, err := viewsUnder[btapb.LogicalView](ctx, s.Control, req.GetParent(), kindLogicalView, "/logicalViews/")
	if err != nil {
		return nil, err
	}
	resp := &btapb.ListLogicalViewsResponse{}
	resp.LogicalViews, resp.NextPageToken, err = page(found, req.GetPageSize(), req.GetPageToken(), (*btapb.LogicalView).GetName)
	return resp, err
}

// UpdateLogicalView changes the fields that the mask names: query and deletion_protection. An
// empty mask selects the fields that are set, and "*" selects both. Queries that were prepared
// with the old query expire.
func (s instanceAdminService) UpdateLogicalView(ctx context.Context, req *btapb.UpdateLogicalViewRequest) (*longrunningpb.Operation, error) {
	given := req.GetLogicalView()
	paths, err := viewPaths(req.GetUpdateMask(), given, "query", "deletion_protection")
	if err != nil {
		return nil, err
	}
	return changed(ctx, s.Control, func(tx *engine.CatalogTx) (*longrunningpb.Operation, error) {
		v, err := LogicalView(tx, given.GetName())
		if err != nil {
			return nil, err
		}
		if err := checkEtag(v.GetName(), given.GetEtag(), v.GetEtag()); err != nil {
			return nil, err
		}
		for _, p := range paths {
			switch p {
			case "query":
				v.Query = given.GetQuery()
			case "deletion_protection":
				v.DeletionProtection = given.GetDeletionProtection()
			default:
				return nil, refusal.Invalid("update_mask", "%q cannot be updated; expected query or deletion_protection", p)
			}
		}
		if err := s.CheckQuery(tx, resname.First(v.GetName(), 4), v.GetQuery()); err != nil {
			return nil, err
		}
		began, doneAt := s.span()
		return s.storeUnder(tx, kindLogicalView, v, &v.Etag, &btapb.UpdateLogicalViewMetadata{OriginalRequest: req, StartTime: began, EndTime: doneAt}, doneAt)
	})
}

// DeleteLogicalView deletes a view and its IAM policy, unless the view has deletion_protection.
func (s instanceAdminService) DeleteLogicalView(ctx context.Context, req *btapb.DeleteLogicalViewRequest) (*emptypb.Empty, error) {
	return empty(s.change(ctx, func(tx *engine.CatalogTx) error {
		v, err := LogicalView(tx, req.GetName())
		if err != nil {
			return err
		}
		if err := checkEtag(v.GetName(), req.GetEtag(), v.GetEtag()); err != nil {
			return err
		}
		if v.GetDeletionProtection() {
			return refusal.Precondition("Logical View %s has deletion protection enabled.", v.GetName())
		}
		return errors.Join(tx.DeleteResource(kindLogicalView+v.GetName()), remove(tx, KindPolicy+v.GetName()))
	}))
}

// checkViewID checks the id of a new logical or materialized view, which a request has in the given field.
func (s *Control) checkViewID(field, id string) error {
	if !resname.IsResourceID(id) {
		return refusal.Invalid(field, "%q is not an id; expected [_a-zA-Z0-9][-_.a-zA-Z0-9]*", id)
	}
	return s.Limits.Check(len(id), limits.MaxViewIDBytes, field, "characters")
}

// viewsUnder returns the views of an instance, or of all instances of a project for the instance "-", sorted by
// name within an instance. collection is the part of their names between instance and id.
func viewsUnder[M any, P message[M]](ctx context.Context, s *Control, parent, kind, collection string) (found []P, err error) {
	err = s.change(ctx, func(tx *engine.CatalogTx) error {
		names, err := parents(tx, parent)
		if err != nil {
			return err
		}
		for _, name := range names {
			views, err := loadAll[M, P](tx, kind, name+collection)
			if err != nil {
				return err
			}
			found = append(found, views...)
		}
		return nil
	})
	return found, err
}

// viewPaths returns the fields that an update of a view changes: those of the mask, which may name only the
// allowed ones. An empty mask selects the fields that are set, and "*" selects query and deletion_protection.
func viewPaths(mask *fieldmaskpb.FieldMask, given interface {
	GetQuery() string
	GetDeletionProtection() bool
}, allowed ...string,
) (paths []string, err error) {
	switch {
	case slices.Equal(mask.GetPaths(), []string{"*"}):
		return []string{"query", "deletion_protection"}, nil
	case len(mask.GetPaths()) > 0:
		return maskPaths(mask, allowed...)
	}
	if given.GetQuery() != "" {
		paths = append(paths, "query")
	}
	if given.GetDeletionProtection() {
		paths = append(paths, "deletion_protection")
	}
	return paths, nil
}
