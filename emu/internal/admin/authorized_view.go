package admin

import (
	"context"
	"errors"
	"maps"
	"slices"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tabletop-emu/tabletop/emu/internal/limits"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/emu/internal/view"
	"github.com/tabletop-emu/tabletop/engine"
)

// An authorized view is a resource under its table. DeleteTable hides it and
// UndeleteTable restores it, with the table. Package view implements the
// selection of data; emu/target.go applies it to requests.

// CreateAuthorizedView adds a view of a table. The view is usable at once: the
// official Go client does not wait for the operation.
func (s tableAdminService) CreateAuthorizedView(ctx context.Context, req *btapb.CreateAuthorizedViewRequest) (*longrunningpb.Operation, error) {
	if err := resname.CheckTable("parent", req.GetParent()); err != nil {
		return nil, err
	}
	if err := s.Limits.CheckID("authorized_view_id", "an id", req.GetAuthorizedViewId()); err != nil {
		return nil, err
	}
	given := req.GetAuthorizedView()
	if given.GetSubsetView() == nil {
		return nil, refusal.Invalid("authorized_view.subset_view", "must be set; an empty message selects no cells")
	}
	v := &btapb.AuthorizedView{
		Name:               req.GetParent() + "/authorizedViews/" + req.GetAuthorizedViewId(),
		AuthorizedView:     &btapb.AuthorizedView_SubsetView_{SubsetView: proto.CloneOf(given.GetSubsetView())},
		DeletionProtection: given.GetDeletionProtection(),
	}
	now := timestamppb.New(s.now())
	return changed(ctx, s.Control, func(tx *engine.CatalogTx) (*longrunningpb.Operation, error) {
		t, err := FindTable(tx, "parent", req.GetParent())
		if err != nil {
			return nil, err
		}
		if found, err := loadOne(tx, KindAuthorizedView+v.GetName(), &btapb.AuthorizedView{}); err != nil {
			return nil, err
		} else if found {
			return nil, refusal.Exists("Authorized view", v.GetName())
		}
		if err := s.checkSubset(t, nil, v.GetSubsetView()); err != nil {
			return nil, err
		}
		return s.storeUnder(tx, KindAuthorizedView, v, &v.Etag, &btapb.CreateAuthorizedViewMetadata{OriginalRequest: req, RequestTime: now, FinishTime: now}, now)
	})
}

// checkSubset checks the definition d of a view of t: the number of parameters, the sizes of row
// prefixes and qualifiers, and that its families exist. Families in the previous definition, was,
// may have been dropped since; was is nil for a new view.
func (s *Control) checkSubset(t *engine.Table, was, d *btapb.AuthorizedView_SubsetView) error {
	const field = "authorized_view.subset_view"
	if err := s.Limits.Check(view.Parameters(d), limits.MaxViewParameters, field, "row prefixes, families and qualifiers"); err != nil {
		return err
	}
	for i, p := range d.GetRowPrefixes() {
		if err := s.Limits.Check(len(p), limits.MaxRowKeyBytes, refusal.Element(field+".row_prefixes", i), "bytes"); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.GetFamilySubsets())) {
		at := field + ".family_subsets[" + name + "]"
		if _, err := FindFamily(t, name); err != nil && was.GetFamilySubsets()[name] == nil {
			return refusal.Invalid(at, "table %s does not have this family", t.Name)
		}
		subset := d.GetFamilySubsets()[name]
		for i, q := range subset.GetQualifiers() {
			if err := s.Limits.CheckQualifier(refusal.Element(at+".qualifiers", i), q); err != nil {
				return err
			}
		}
		for i, p := range subset.GetQualifierPrefixes() {
			if err := s.Limits.CheckQualifier(refusal.Element(at+".qualifier_prefixes", i), p); err != nil {
				return err
			}
		}
	}
	return nil
}

// GetAuthorizedView returns a view, by default with all fields. The request's documentation says
// that the default is BASIC, but official clients leave the field unset and expect the definition
// (google-cloud-go, TestIntegration_AuthorizedView).
func (s tableAdminService) GetAuthorizedView(_ context.Context, req *btapb.GetAuthorizedViewRequest) (*btapb.AuthorizedView, error) {
	as, err := responseView(req.GetView(), btapb.AuthorizedView_FULL, btapb.AuthorizedView_ResponseView_name)
	if err != nil {
		return nil, err
	}
	v, err := FindAuthorizedView(s.DB, "name", req.GetName())
	if err != nil {
		return nil, err
	}
	return shownView(v, as), nil
}

// ListAuthorizedViews returns the views of a table, sorted by name, in pages, with the
// fields of the request's view; by default only their names.
func (s tableAdminService) ListAuthorizedViews(ctx context.Context, req *btapb.ListAuthorizedViewsRequest) (*btapb.ListAuthorizedViewsResponse, error) {
	as, err := responseView(req.GetView(), btapb.AuthorizedView_NAME_ONLY, btapb.AuthorizedView_ResponseView_name)
	if err != nil {
		return nil, err
	}
	var found []*btapb.AuthorizedView
	err = s.change(ctx, func(tx *engine.CatalogTx) error {
		if _, err := FindTable(tx, "parent", req.GetParent()); err != nil {
			return err
		}
		found, err = loadAll[btapb.AuthorizedView](tx, KindAuthorizedView, req.GetParent()+"/authorizedViews/")
		return err
	})
	if err != nil {
		return nil, err
	}
	resp := &btapb.ListAuthorizedViewsResponse{}
	found, resp.NextPageToken, err = page(found, req.GetPageSize(), req.GetPageToken(), (*btapb.AuthorizedView).GetName)
	if err != nil {
		return nil, err
	}
	for _, v := range found {
		resp.AuthorizedViews = append(resp.AuthorizedViews, shownView(v, as))
	}
	return resp, nil
}

// UpdateAuthorizedView changes the fields that the mask names: subset_view, row_prefixes or
// family_subsets in it, and deletion_protection. An empty mask selects the fields that are set, and
// "*" selects all fields. Requests that are already running keep the old view.
func (s tableAdminService) UpdateAuthorizedView(ctx context.Context, req *btapb.UpdateAuthorizedViewRequest) (*longrunningpb.Operation, error) {
	given := req.GetAuthorizedView()
	if err := resname.CheckAuthorizedView("authorized_view.name", given.GetName()); err != nil {
		return nil, err
	}
	paths := req.GetUpdateMask().GetPaths()
	switch {
	case slices.Equal(paths, []string{"*"}):
		paths = []string{"subset_view", "deletion_protection"}
	case len(paths) > 0:
		var err error
		if paths, err = maskPaths(req.GetUpdateMask(), "subset_view", "deletion_protection"); err != nil {
			return nil, err
		}
	default:
		if given.GetSubsetView() != nil {
			paths = append(paths, "subset_view")
		}
		if given.GetDeletionProtection() {
			paths = append(paths, "deletion_protection")
		}
	}
	for _, p := range paths {
		switch p {
		case "subset_view", "subset_view.row_prefixes", "subset_view.family_subsets", "deletion_protection":
		default:
			return nil, refusal.Invalid("update_mask", "%q cannot be updated", p)
		}
	}
	now := timestamppb.New(s.now())
	return changed(ctx, s.Control, func(tx *engine.CatalogTx) (*longrunningpb.Operation, error) {
		v, err := FindAuthorizedView(tx, "authorized_view.name", given.GetName())
		if err != nil {
			return nil, err
		}
		if err := checkEtag(v.GetName(), given.GetEtag(), v.GetEtag()); err != nil {
			return nil, err
		}
		was := proto.CloneOf(v.GetSubsetView())
		if err := applyMask(v, proto.CloneOf(given), paths); err != nil {
			return nil, err
		}
		if v.GetSubsetView() == nil { // a cleared subset matches nothing; clients crash on a view without one
			v.AuthorizedView = &btapb.AuthorizedView_SubsetView_{SubsetView: &btapb.AuthorizedView_SubsetView{}}
		}
		if fieldsUnder(paths, "subset_view") {
			t, err := tx.Table(resname.First(v.GetName(), 6))
			if err != nil {
				return nil, err
			}
			if err := s.checkSubset(t, was, v.GetSubsetView()); err != nil {
				return nil, err
			}
		}
		return s.storeUnder(tx, KindAuthorizedView, v, &v.Etag, &btapb.UpdateAuthorizedViewMetadata{OriginalRequest: req, RequestTime: now, FinishTime: now}, now)
	})
}

// DeleteAuthorizedView deletes a view and its IAM policy, unless the view has deletion_protection.
func (s tableAdminService) DeleteAuthorizedView(ctx context.Context, req *btapb.DeleteAuthorizedViewRequest) (*emptypb.Empty, error) {
	return empty(s.change(ctx, func(tx *engine.CatalogTx) error {
		v, err := FindAuthorizedView(tx, "name", req.GetName())
		if err != nil {
			return err
		}
		if err := checkEtag(v.GetName(), req.GetEtag(), v.GetEtag()); err != nil {
			return err
		}
		if v.GetDeletionProtection() {
			return refusal.ViewProtected(v.GetName(), "DeleteAuthorizedView")
		}
		return errors.Join(tx.DeleteResource(KindAuthorizedView+v.GetName()), remove(tx, KindPolicy+v.GetName()))
	}))
}

// FindAuthorizedView returns the view with the given name; errors name the request field. It does
// not find the views of a deleted table.
func FindAuthorizedView(r Catalog, field, name string) (*btapb.AuthorizedView, error) {
	if err := resname.CheckAuthorizedView(field, name); err != nil {
		return nil, err
	}
	if _, err := r.Table(resname.First(name, 6)); err != nil {
		return nil, refusal.Of(err)
	}
	return find[btapb.AuthorizedView](r, KindAuthorizedView, "Authorized view", name)
}

// CompiledView returns the compiled authorized view with the given name, which it caches until
// resources change. Errors name the request field.
func (s *Control) CompiledView(field, name string) (*view.View, error) {
	routes, err := s.CurrentRoutes() // before the view is read, so that the view is not older
	if err != nil {
		return nil, refusal.Of(err)
	}
	if v, ok := routes.views.Load(name); ok {
		return v.(*view.View), nil
	}
	v, err := FindAuthorizedView(s.DB, field, name)
	if err != nil {
		return nil, err
	}
	compiled := view.Compile(name, v.GetSubsetView())
	routes.views.Store(name, compiled)
	return compiled, nil
}

// checkUnprotectedViews returns an error if an authorized view whose name begins with prefix has
// deletion_protection. The error names the RPC what.
func checkUnprotectedViews(tx *engine.CatalogTx, prefix, what string) error {
	found, err := loadAll[btapb.AuthorizedView](tx, KindAuthorizedView, prefix)
	if err != nil {
		return err
	}
	for _, v := range found {
		if v.GetDeletionProtection() {
			return refusal.ViewProtected(v.GetName(), what)
		}
	}
	return nil
}

// shownView returns v with only the fields that the response view as selects. It may change v.
func shownView(v *btapb.AuthorizedView, as btapb.AuthorizedView_ResponseView) *btapb.AuthorizedView {
	switch as {
	case btapb.AuthorizedView_NAME_ONLY:
		return &btapb.AuthorizedView{Name: v.GetName()}
	case btapb.AuthorizedView_BASIC:
		v.AuthorizedView = nil
	case btapb.AuthorizedView_FULL, btapb.AuthorizedView_RESPONSE_VIEW_UNSPECIFIED:
	}
	return v
}
