package admin

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"

	"cloud.google.com/go/iam/apiv1/iampb"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/emu/internal/limits"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
)

// policyUnsetEtag is what the service answers for a policy that was never set:
// python-bigtable, tests of policies. That of another one is its revision, eight
// bytes big-endian.
var policyUnsetEtag = []byte{0x00, 0x20, 0x01}

// UnsetPolicy returns the policy of a resource that has none.
func UnsetPolicy() *iampb.Policy { return &iampb.Policy{Etag: slices.Clone(policyUnsetEtag)} }

// CheckPolicyVersion rejects unknown policy versions.
func CheckPolicyVersion(field string, v int32) error {
	if v != 0 && v != 1 && v != 3 {
		return refusal.Invalid(field, "%d is not a version; expected 0, 1 or 3", v)
	}
	return nil
}

// SetPolicy returns the policy that a request makes of an old one, with a new etag. An etag in
// it must be that of the old one. With an update mask, the fields that it names are
// replaced and the others stay. Errors: statuses.
func SetPolicy(old *iampb.Policy, req *iampb.SetIamPolicyRequest, m limits.Mode) (*iampb.Policy, error) {
	given := req.GetPolicy()
	if len(given.GetEtag()) > 0 && !bytes.Equal(given.GetEtag(), old.GetEtag()) {
		return nil, refusal.Aborted("The policy of %s has changed: its etag is not %x.", req.GetResource(), given.GetEtag())
	}
	p := proto.CloneOf(given)
	if paths := req.GetUpdateMask().GetPaths(); len(paths) > 0 {
		p = proto.CloneOf(old)
		for _, path := range paths {
			if !slices.Contains([]string{"version", "bindings", "audit_configs", "etag"}, path) ||
				!CopyField(p.ProtoReflect(), proto.CloneOf(given).ProtoReflect(), path) {
				return nil, refusal.Invalid("update_mask", "%q cannot be updated; expected one of version, bindings, audit_configs, etag", path)
			}
		}
	}
	if err := check(p, m); err != nil {
		return nil, err
	}
	var revision uint64
	if len(old.GetEtag()) == 8 {
		revision = binary.BigEndian.Uint64(old.GetEtag())
	}
	p.Etag = binary.BigEndian.AppendUint64(nil, revision+1)
	return p, nil
}

// check checks a policy by the rules of google.iam.v1.Policy.
func check(p *iampb.Policy, m limits.Mode) error {
	if err := CheckPolicyVersion("policy.version", p.GetVersion()); err != nil {
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

// GrantPermissions returns the response of TestIamPermissions: all requested permissions on an
// existing resource, and none on a missing one.
func GrantPermissions(req *iampb.TestIamPermissionsRequest, exists bool) (*iampb.TestIamPermissionsResponse, error) {
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
