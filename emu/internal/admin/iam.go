package admin

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"strings"

	"cloud.google.com/go/iam/apiv1/iampb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/emu/internal/limits"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/engine"
)

// Policies of instances, tables, views, bundles and backups are stored and
// returned, but never enforced: callers have no identity and all permissions.

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

// TestIamPermissions returns all requested permissions if the table, authorized view, schema bundle
// or backup exists, and none otherwise.
func (s tableAdminService) TestIamPermissions(_ context.Context, req *iampb.TestIamPermissionsRequest) (*iampb.TestIamPermissionsResponse, error) {
	err := s.tablePolicy(s.DB, req.GetResource())
	if status.Code(err) == codes.InvalidArgument { // not the name of such a resource
		return nil, err
	}
	return grantPermissions(req, err == nil)
}

// GetIamPolicy returns the policy of an instance, or of a logical or materialized view.
func (s instanceAdminService) GetIamPolicy(ctx context.Context, req *iampb.GetIamPolicyRequest) (*iampb.Policy, error) {
	return s.policy(ctx, req, instancePolicy)
}

// SetIamPolicy replaces the policy of an instance, or of a logical or materialized view.
func (s instanceAdminService) SetIamPolicy(ctx context.Context, req *iampb.SetIamPolicyRequest) (*iampb.Policy, error) {
	return s.setPolicy(ctx, req, instancePolicy)
}

// TestIamPermissions returns all requested permissions if the instance or the view exists, and none otherwise.
func (s instanceAdminService) TestIamPermissions(_ context.Context, req *iampb.TestIamPermissionsRequest) (*iampb.TestIamPermissionsResponse, error) {
	err := instancePolicy(s.DB, req.GetResource())
	if status.Code(err) == codes.InvalidArgument { // not the name of such a resource
		return nil, err
	}
	return grantPermissions(req, err == nil)
}

// tablePolicy returns an error if name is not an existing table, resource under
// a table, or backup.
func (s *Control) tablePolicy(r Catalog, name string) (err error) {
	switch {
	case resname.HasShape(name, "projects", "instances", "tables", "authorizedViews"):
		_, err = FindAuthorizedView(r, "resource", name)
	case resname.HasShape(name, "projects", "instances", "clusters", "backups"):
		_, err = s.findBackup(r, "resource", name)
	case resname.HasShape(name, "projects", "instances", "tables", "schemaBundles"):
		_, err = FindSchemaBundle(r, "resource", name)
	default:
		_, err = FindTable(r, "resource", name)
	}
	return err
}

// instancePolicy returns an error if name is not an existing instance, logical view or
// materialized view.
func instancePolicy(r Catalog, name string) error {
	switch {
	case resname.HasShape(name, "projects", "instances", "logicalViews"):
		_, err := LogicalView(r, name)
		return err
	case resname.HasShape(name, "projects", "instances", "materializedViews"):
		_, err := materializedView(r, name)
		return err
	}
	if err := resname.CheckInstance("resource", name); err != nil {
		return err
	}
	return CheckInstance(r, name)
}

// loadPolicy returns the stored policy of a resource, by default an empty one.
func loadPolicy(r Catalog, resource string) (*iampb.Policy, error) {
	p := &iampb.Policy{}
	if found, err := loadOne(r, KindPolicy+resource, p); err != nil || found {
		return p, err
	}
	return unsetPolicy(), nil
}

// policy answers GetIamPolicy for a resource that passes check.
func (s *Control) policy(ctx context.Context, req *iampb.GetIamPolicyRequest, check func(Catalog, string) error) (*iampb.Policy, error) {
	return changed(ctx, s, func(tx *engine.CatalogTx) (*iampb.Policy, error) {
		if err := check(tx, req.GetResource()); err != nil {
			return nil, err
		}
		if err := checkPolicyVersion("options.requested_policy_version", req.GetOptions().GetRequestedPolicyVersion()); err != nil {
			return nil, err
		}
		return loadPolicy(tx, req.GetResource())
	})
}

// setPolicy stores the policy of a resource that passes check; see
// changePolicy.
func (s *Control) setPolicy(ctx context.Context, req *iampb.SetIamPolicyRequest, check func(Catalog, string) error) (*iampb.Policy, error) {
	if req.GetPolicy() == nil {
		return nil, refusal.Invalid("policy", "must be set")
	}
	return changed(ctx, s, func(tx *engine.CatalogTx) (*iampb.Policy, error) {
		if err := check(tx, req.GetResource()); err != nil {
			return nil, err
		}
		old, err := loadPolicy(tx, req.GetResource())
		if err != nil {
			return nil, err
		}
		p, err := changePolicy(old, req, s.Limits)
		if err != nil {
			return nil, err
		}
		return p, store(tx, KindPolicy+req.GetResource(), p)
	})
}

// policyUnsetEtag is the etag of a policy that was never set, as in
// python-bigtable's tests of policies. The etag of a set policy is its
// revision, eight bytes big-endian.
var policyUnsetEtag = []byte{0x00, 0x20, 0x01}

// unsetPolicy returns a policy that was never set.
func unsetPolicy() *iampb.Policy { return &iampb.Policy{Etag: slices.Clone(policyUnsetEtag)} }

// checkPolicyVersion rejects unknown policy versions.
func checkPolicyVersion(field string, v int32) error {
	if v != 0 && v != 1 && v != 3 {
		return refusal.Invalid(field, "%d is not a policy version; expected 0, 1 or 3", v)
	}
	return nil
}

// changePolicy applies a request to an old policy and returns the result with a new etag. An etag
// in the request must match the old one. An update mask restricts the change to its fields.
// Errors are statuses.
func changePolicy(old *iampb.Policy, req *iampb.SetIamPolicyRequest, m limits.Mode) (*iampb.Policy, error) {
	given := req.GetPolicy()
	if len(given.GetEtag()) > 0 && !bytes.Equal(given.GetEtag(), old.GetEtag()) {
		return nil, refusal.Aborted("The policy of %s has changed: its etag is not %x.", req.GetResource(), given.GetEtag())
	}
	p := proto.CloneOf(given)
	if paths := req.GetUpdateMask().GetPaths(); len(paths) > 0 {
		p = proto.CloneOf(old)
		for _, path := range paths {
			if !slices.Contains([]string{"version", "bindings", "audit_configs", "etag"}, path) ||
				!copyField(p.ProtoReflect(), proto.CloneOf(given).ProtoReflect(), path) {
				return nil, refusal.Invalid("update_mask", "%q cannot be updated; expected one of version, bindings, audit_configs, etag", path)
			}
		}
	}
	if err := checkPolicy(p, m); err != nil {
		return nil, err
	}
	var revision uint64
	if len(old.GetEtag()) == 8 {
		revision = binary.BigEndian.Uint64(old.GetEtag())
	}
	p.Etag = binary.BigEndian.AppendUint64(nil, revision+1)
	return p, nil
}

// checkPolicy checks a policy by the rules of google.iam.v1.Policy.
func checkPolicy(p *iampb.Policy, m limits.Mode) error {
	if err := checkPolicyVersion("policy.version", p.GetVersion()); err != nil {
		return err
	}
	named := 0
	for i, b := range p.GetBindings() {
		field := refusal.Element("policy.bindings", i)
		if b.GetRole() == "" {
			return refusal.Invalid(field+".role", "must be set")
		}
		if len(b.GetMembers()) == 0 {
			return refusal.Invalid(field+".members", "must specify at least one member")
		}
		if b.GetCondition() != nil && p.GetVersion() != 3 {
			return refusal.Invalid(field+".condition", "needs policy version 3")
		}
		named += len(b.GetMembers())
	}
	return m.Check(named, limits.MaxPolicyPrincipals, "policy.bindings", "principals")
}

// grantPermissions returns the response of TestIamPermissions: all requested permissions on an
// existing resource, and none on a missing one.
func grantPermissions(req *iampb.TestIamPermissionsRequest, exists bool) (*iampb.TestIamPermissionsResponse, error) {
	for i, p := range req.GetPermissions() {
		if p == "" || strings.Contains(p, "*") {
			return nil, refusal.Invalid(refusal.Element("permissions", i), "%q is not a permission; wildcards are not allowed", p)
		}
	}
	resp := &iampb.TestIamPermissionsResponse{}
	if exists {
		resp.Permissions = slices.Clone(req.GetPermissions())
	}
	return resp, nil
}
