package emu

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

	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/engine"
)

// Policies of instances, tables, views, bundles and backups are stored and returned, and never
// enforced: callers have no identity, and may do everything. A policy's etag is
// its revision, eight bytes big-endian; that of a resource without one is
// unsetPolicyEtag.

// unsetPolicyEtag is what the service answers for a policy that was never set:
// python-bigtable, tests of policies.
var unsetPolicyEtag = []byte{0x00, 0x20, 0x01}

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

// TestIamPermissions grants all permissions on a table, an authorized view or a
// schema bundle or a backup that exists, and none on one that does not.
func (s tableAdminService) TestIamPermissions(_ context.Context, req *iampb.TestIamPermissionsRequest) (*iampb.TestIamPermissionsResponse, error) {
	err := s.tablePolicy(s.db, req.GetResource())
	if status.Code(err) == codes.InvalidArgument { // no name of such a resource
		return nil, err
	}
	return grant(req, err == nil)
}

// GetIamPolicy returns the policy of an instance.
func (s instanceAdminService) GetIamPolicy(ctx context.Context, req *iampb.GetIamPolicyRequest) (*iampb.Policy, error) {
	return s.policy(ctx, req, instancePolicy)
}

// SetIamPolicy replaces the policy of an instance.
func (s instanceAdminService) SetIamPolicy(ctx context.Context, req *iampb.SetIamPolicyRequest) (*iampb.Policy, error) {
	return s.setPolicy(ctx, req, instancePolicy)
}

// TestIamPermissions grants all permissions on an instance that exists, and
// none on one that does not.
func (s instanceAdminService) TestIamPermissions(_ context.Context, req *iampb.TestIamPermissionsRequest) (*iampb.TestIamPermissionsResponse, error) {
	if err := parseInstance("resource", req.GetResource()); err != nil {
		return nil, err
	}
	return grant(req, instancePolicy(s.db, req.GetResource()) == nil)
}

// tablePolicy refuses the name of a table, of what lies under one, or of a backup,
// that does not exist.
func (s *Server) tablePolicy(r catalogReader, name string) (err error) {
	switch {
	case resname.HasShape(name, "projects", "instances", "tables", "authorizedViews"):
		_, err = findAuthorizedView(r, "resource", name)
	case resname.HasShape(name, "projects", "instances", "clusters", "backups"):
		_, err = s.findBackup(r, "resource", name)
	case resname.HasShape(name, "projects", "instances", "tables", "schemaBundles"):
		_, err = findSchemaBundle(r, "resource", name)
	default:
		_, err = findTable(r, "resource", name)
	}
	return err
}

// instancePolicy refuses the name of an instance that does not exist.
func instancePolicy(r catalogReader, name string) error {
	if err := parseInstance("resource", name); err != nil {
		return err
	}
	return checkInstance(r, name)
}

// loadPolicy returns the stored policy of a resource, or the empty one, and its
// revision.
func loadPolicy(r catalogReader, resource string) (p *iampb.Policy, revision uint64, err error) {
	p = &iampb.Policy{}
	found, err := load(r, kindPolicy+resource, p)
	if err != nil || !found {
		p.Etag = slices.Clone(unsetPolicyEtag)
		return p, 0, err
	}
	if len(p.GetEtag()) == 8 {
		revision = binary.BigEndian.Uint64(p.GetEtag())
	}
	return p, revision, nil
}

// policy answers GetIamPolicy for a resource that check passes.
func (s *Server) policy(ctx context.Context, req *iampb.GetIamPolicyRequest, check func(catalogReader, string) error) (*iampb.Policy, error) {
	var p *iampb.Policy
	err := s.change(ctx, func(tx *engine.CatalogTx) error {
		if err := check(tx, req.GetResource()); err != nil {
			return err
		}
		version := req.GetOptions().GetRequestedPolicyVersion()
		if err := checkPolicyVersion("options.requested_policy_version", version); err != nil {
			return err
		}
		var err error
		p, _, err = loadPolicy(tx, req.GetResource())
		return err
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// setPolicy stores a policy of a resource that check passes. An etag in it must be that of the stored one. With
// an update mask, the fields that it names are replaced and the others stay.
func (s *Server) setPolicy(ctx context.Context, req *iampb.SetIamPolicyRequest, check func(catalogReader, string) error) (*iampb.Policy, error) {
	given := req.GetPolicy()
	if given == nil {
		return nil, refusal.Invalid("policy", "must be set")
	}
	var p *iampb.Policy
	err := s.change(ctx, func(tx *engine.CatalogTx) error {
		if err := check(tx, req.GetResource()); err != nil {
			return err
		}
		old, revision, err := loadPolicy(tx, req.GetResource())
		if err != nil {
			return err
		}
		if len(given.GetEtag()) > 0 && !bytes.Equal(given.GetEtag(), old.GetEtag()) {
			return refusal.Aborted("The policy of %s has changed: its etag is not %x.", req.GetResource(), given.GetEtag())
		}
		p = proto.CloneOf(given)
		if len(req.GetUpdateMask().GetPaths()) > 0 {
			paths, err := maskPaths(req.GetUpdateMask(), "version", "bindings", "audit_configs", "etag")
			if err != nil {
				return err
			}
			p = proto.CloneOf(old)
			if err := applyMask(p, proto.CloneOf(given), paths); err != nil {
				return err
			}
		}
		if err := s.checkPolicy(p); err != nil {
			return err
		}
		p.Etag = binary.BigEndian.AppendUint64(nil, revision+1)
		return store(tx, kindPolicy+req.GetResource(), p)
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

func checkPolicyVersion(field string, v int32) error {
	if v != 0 && v != 1 && v != 3 {
		return refusal.Invalid(field, "%d is not a version; expected 0, 1 or 3", v)
	}
	return nil
}

// checkPolicy checks a policy by the rules of google.iam.v1.Policy.
func (s *Server) checkPolicy(p *iampb.Policy) error {
	if err := checkPolicyVersion("policy.version", p.GetVersion()); err != nil {
		return err
	}
	principals := 0
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
		principals += len(b.GetMembers())
	}
	return s.limit(principals, maxPolicyPrincipals, "policy.bindings", "principals")
}

// grant answers TestIamPermissions.
func grant(req *iampb.TestIamPermissionsRequest, exists bool) (*iampb.TestIamPermissionsResponse, error) {
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
