package admin

import (
	"context"

	"cloud.google.com/go/iam/apiv1/iampb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/engine"
)

// Policies of instances, tables, views, bundles and backups are stored and returned, and never
// enforced: callers have no identity, and may do everything.

// GetIamPolicy returns the policy of a table, an authorized view, a schema
// bundle or a backup.
func (s tableAdminService) GetIamPolicy(ctx context.Context, req *iampb.GetIamPolicyRequest) (*iampb.Policy, error) {
	return s.policy(ctx, req, s.tablePolicy)
}

// SetIamPolicy replaces the policy of a table, an authorized view, a schema
// bundle or a backup.
func (s tableAdminService) SetIamPolicy(ctx context.Context, req *iampb.SetIamPolicyRequest) (*iampb.Policy, error) {
	return s.setPolicy(ctx, req, s.tablePolicy)
}

// TestIamPermissions grants all permissions on an existing table, authorized view,
// schema bundle or backup, and none on a missing resource.
func (s tableAdminService) TestIamPermissions(_ context.Context, req *iampb.TestIamPermissionsRequest) (*iampb.TestIamPermissionsResponse, error) {
	err := s.tablePolicy(s.DB, req.GetResource())
	if status.Code(err) == codes.InvalidArgument { // no name of such a resource
		return nil, err
	}
	return GrantPermissions(req, err == nil)
}

// GetIamPolicy returns the policy of an instance.
func (s instanceAdminService) GetIamPolicy(ctx context.Context, req *iampb.GetIamPolicyRequest) (*iampb.Policy, error) {
	return s.policy(ctx, req, instancePolicy)
}

// SetIamPolicy replaces the policy of an instance.
func (s instanceAdminService) SetIamPolicy(ctx context.Context, req *iampb.SetIamPolicyRequest) (*iampb.Policy, error) {
	return s.setPolicy(ctx, req, instancePolicy)
}

// TestIamPermissions grants all permissions on an existing instance, and none on
// a missing one.
func (s instanceAdminService) TestIamPermissions(_ context.Context, req *iampb.TestIamPermissionsRequest) (*iampb.TestIamPermissionsResponse, error) {
	if err := resname.CheckInstance("resource", req.GetResource()); err != nil {
		return nil, err
	}
	return GrantPermissions(req, instancePolicy(s.DB, req.GetResource()) == nil)
}

// tablePolicy refuses the name of a table, of what lies under one, or of a backup,
// that does not exist.
func (s *Control) tablePolicy(r Catalog, name string) (err error) {
	switch {
	case resname.HasShape(name, "projects", "instances", "tables", "authorizedViews"):
		_, err = FindAuthorizedView(r, "resource", name)
	case resname.HasShape(name, "projects", "instances", "clusters", "backups"):
		_, err = s.findBackup(r, "resource", name)
	case resname.HasShape(name, "projects", "instances", "tables", "schemaBundles"):
		_, err = findSchemaBundle(r, "resource", name)
	default:
		_, err = FindTable(r, "resource", name)
	}
	return err
}

// instancePolicy refuses the name of an instance that does not exist.
func instancePolicy(r Catalog, name string) error {
	if err := resname.CheckInstance("resource", name); err != nil {
		return err
	}
	return CheckInstance(r, name)
}

// loadPolicy returns the stored policy of a resource, or the empty one.
func loadPolicy(r Catalog, resource string) (*iampb.Policy, error) {
	p := &iampb.Policy{}
	if found, err := loadOne(r, KindPolicy+resource, p); err != nil || found {
		return p, err
	}
	return UnsetPolicy(), nil
}

// policy answers GetIamPolicy for a resource that check passes.
func (s *Control) policy(ctx context.Context, req *iampb.GetIamPolicyRequest, check func(Catalog, string) error) (p *iampb.Policy, err error) {
	err = s.change(ctx, func(tx *engine.CatalogTx) error {
		if err := check(tx, req.GetResource()); err != nil {
			return err
		}
		if err := CheckPolicyVersion("options.requested_policy_version", req.GetOptions().GetRequestedPolicyVersion()); err != nil {
			return err
		}
		p, err = loadPolicy(tx, req.GetResource())
		return err
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// setPolicy stores a policy of a resource that check passes; see policy.Set.
func (s *Control) setPolicy(ctx context.Context, req *iampb.SetIamPolicyRequest, check func(Catalog, string) error) (p *iampb.Policy, err error) {
	if req.GetPolicy() == nil {
		return nil, refusal.Invalid("policy", "must be set")
	}
	err = s.change(ctx, func(tx *engine.CatalogTx) error {
		if err := check(tx, req.GetResource()); err != nil {
			return err
		}
		old, err := loadPolicy(tx, req.GetResource())
		if err != nil {
			return err
		}
		if p, err = SetPolicy(old, req, s.Limits); err != nil {
			return err
		}
		return store(tx, KindPolicy+req.GetResource(), p)
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}
