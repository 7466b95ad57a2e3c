package emu

import (
	"context"
	"slices"
	"testing"

	"cloud.google.com/go/iam/apiv1/iampb"
	"google.golang.org/genproto/googleapis/type/expr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/engine"
)

// policies has the policy RPCs, which both admin services implement.
type policies interface {
	GetIamPolicy(context.Context, *iampb.GetIamPolicyRequest, ...grpc.CallOption) (*iampb.Policy, error)
	SetIamPolicy(context.Context, *iampb.SetIamPolicyRequest, ...grpc.CallOption) (*iampb.Policy, error)
	TestIamPermissions(context.Context, *iampb.TestIamPermissionsRequest, ...grpc.CallOption) (*iampb.TestIamPermissionsResponse, error)
}

func TestIamPolicies(t *testing.T) {
	t.Parallel()
	for resource, of := range map[string]func(*env) policies{
		testTable:    func(e *env) policies { return e.admin },
		testInstance: func(e *env) policies { return e.instances() },
	} {
		t.Run(resname.Last(resource), func(t *testing.T) {
			t.Parallel()
			testPolicies(t, resource, of)
		})
	}
}

func testPolicies(t *testing.T, resource string, of func(*env) policies) {
	t.Helper()
	dir := t.TempDir()
	e := newEnvWith(t, Options{}, engine.Options{Dir: dir})
	e.mustCreateInstance("i", nodes("z", 1))
	e.createTable("t")
	get := func() *iampb.Policy {
		t.Helper()
		p, err := of(e).GetIamPolicy(e.ctx(), &iampb.GetIamPolicyRequest{Resource: resource})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	put := func(p *iampb.Policy, paths ...string) (*iampb.Policy, error) {
		req := &iampb.SetIamPolicyRequest{Resource: resource, Policy: p}
		if paths != nil {
			req.UpdateMask = mask(paths...)
		}
		return of(e).SetIamPolicy(e.ctx(), req)
	}
	role := func(members ...string) []*iampb.Binding {
		return []*iampb.Binding{{Role: "roles/bigtable.user", Members: members}}
	}
	empty := get()
	if len(empty.GetBindings()) != 0 || len(empty.GetEtag()) == 0 {
		t.Errorf("got %v", empty)
	}
	first, err := put(&iampb.Policy{Version: 1, Bindings: role("user:a@example.com"), Etag: empty.GetEtag()})
	if err != nil || slices.Equal(first.GetEtag(), empty.GetEtag()) {
		t.Fatal(first, err)
	}
	wantProto(t, get(), first)
	// An outdated etag is rejected; an etag is not required.
	_, err = put(&iampb.Policy{Bindings: role("user:b@example.com"), Etag: empty.GetEtag()})
	wantCode(t, err, codes.Aborted)
	second, err := put(&iampb.Policy{Bindings: role("user:b@example.com"), Version: 3}, "bindings")
	if err != nil || second.GetVersion() != 1 || second.GetBindings()[0].GetMembers()[0] != "user:b@example.com" {
		t.Errorf("got %v, %v", second, err)
	}
	conditional := role("allUsers")
	conditional[0].Condition = &expr.Expr{Expression: "true"}
	for name, p := range map[string]*iampb.Policy{
		"nil":       nil,
		"version":   {Version: 2},
		"no role":   {Bindings: []*iampb.Binding{{Members: []string{"allUsers"}}}},
		"nobody":    {Bindings: role()},
		"condition": {Version: 1, Bindings: conditional},
		"crowd":     {Bindings: role(slices.Repeat([]string{"user:a@example.com"}, 1501)...)},
	} {
		if _, err := put(p); err == nil {
			t.Errorf("%s was accepted", name)
		} else {
			wantCode(t, err, codes.InvalidArgument)
		}
	}
	_, err = put(&iampb.Policy{}, "nope")
	wantCode(t, err, codes.InvalidArgument)
	third, err := put(&iampb.Policy{Version: 3, Bindings: conditional, Etag: second.GetEtag()})
	if err != nil {
		t.Fatal(err)
	}
	e = e.restart(dir)
	if got := get(); !proto.Equal(got, third) {
		t.Errorf("after a restart: %v, want %v", got, third)
	}

	granted, err := of(e).TestIamPermissions(e.ctx(), &iampb.TestIamPermissionsRequest{Resource: resource, Permissions: []string{"bigtable.tables.get", "bigtable.tables.delete"}})
	if err != nil || !slices.Equal(granted.GetPermissions(), []string{"bigtable.tables.get", "bigtable.tables.delete"}) {
		t.Errorf("got %v, %v", granted, err)
	}
	_, err = of(e).TestIamPermissions(e.ctx(), &iampb.TestIamPermissionsRequest{Resource: resource, Permissions: []string{"bigtable.*"}})
	wantCode(t, err, codes.InvalidArgument)

	// Missing resources.
	nowhere := resource + "-nowhere"
	_, err = of(e).GetIamPolicy(e.ctx(), &iampb.GetIamPolicyRequest{Resource: nowhere})
	wantCode(t, err, codes.NotFound)
	_, err = of(e).SetIamPolicy(e.ctx(), &iampb.SetIamPolicyRequest{Resource: nowhere, Policy: &iampb.Policy{}})
	wantCode(t, err, codes.NotFound)
	granted, err = of(e).TestIamPermissions(e.ctx(), &iampb.TestIamPermissionsRequest{Resource: nowhere, Permissions: []string{"bigtable.tables.get"}})
	if err != nil || len(granted.GetPermissions()) != 0 {
		t.Errorf("got %v, %v", granted, err)
	}
	_, err = of(e).GetIamPolicy(e.ctx(), &iampb.GetIamPolicyRequest{})
	wantCode(t, err, codes.InvalidArgument)
	_, err = of(e).GetIamPolicy(e.ctx(), &iampb.GetIamPolicyRequest{Resource: resource, Options: &iampb.GetPolicyOptions{RequestedPolicyVersion: 2}})
	wantCode(t, err, codes.InvalidArgument)
}
