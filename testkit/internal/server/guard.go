package server

import (
	"context"
	"errors"
	"slices"
	"strings"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/iam/apiv1/iampb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/control/lab"
	"github.com/tabletop-emu/tabletop/testkit/internal/iam"
)

// PrincipalHeader is the request header that names the principal of a call. It does not prove an
// identity, because every client of the server can send it.
const PrincipalHeader = "x-tabletop-testkit-principal"

// guard enforces policies in front of the server's handlers.
type guard struct {
	server *Server
	roles  *iam.Roles
}

func (g *guard) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if set, ok := req.(*iampb.SetIamPolicyRequest); ok && slices.ContainsFunc(set.GetPolicy().GetBindings(), func(b *iampb.Binding) bool { return b.GetCondition() != nil }) {
		return nil, status.Error(codes.InvalidArgument, "testkit.WithIAM does not evaluate conditions; remove the condition from the binding")
	}
	principal := principalOf(ctx)
	if principal == "" {
		return handler(ctx, req)
	}
	if err := g.check(ctx, principal, info.FullMethod, req); err != nil {
		return nil, err
	}
	resp, err := handler(ctx, req)
	if asked, ok := resp.(*iampb.TestIamPermissionsResponse); ok && err == nil {
		resource := req.(*iampb.TestIamPermissionsRequest).GetResource()
		granted := slices.DeleteFunc(slices.Clone(asked.GetPermissions()), func(p string) bool {
			return g.allows(ctx, principal, iam.Need{Permission: p, Resource: resource}) != nil
		})
		return &iampb.TestIamPermissionsResponse{Permissions: granted}, nil
	}
	return resp, err
}

func (g *guard) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if principal := principalOf(ss.Context()); principal != "" {
		ss = &guardedStream{ServerStream: ss, guard: g, principal: principal, method: info.FullMethod}
	}
	return handler(srv, ss)
}

// guardedStream checks the first message that the handler receives.
type guardedStream struct {
	grpc.ServerStream
	guard             *guard
	principal, method string
	checked           bool
}

// RecvMsg implements grpc.ServerStream.
func (s *guardedStream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil || s.checked {
		return err
	}
	s.checked = true
	return s.guard.check(s.Context(), s.principal, s.method, m)
}

func principalOf(ctx context.Context) string {
	if values := metadata.ValueFromIncomingContext(ctx, PrincipalHeader); len(values) > 0 {
		return values[0]
	}
	return ""
}

// check rejects a request without permission for its principal.
func (g *guard) check(ctx context.Context, principal, method string, req any) error {
	needs, known := iam.NeedsOf(method, req)
	if !known {
		return status.Errorf(codes.PermissionDenied, "%s may not call %s: with testkit.WithIAM only the owner may.", principal, method)
	}
	for _, n := range needs {
		if err := g.allows(ctx, principal, n); err != nil {
			return err
		}
	}
	return nil
}

// allows returns an error unless a policy grants a permission.
func (g *guard) allows(ctx context.Context, principal string, need iam.Need) error {
	if project := "projects/" + g.server.config.Lab.Project; strings.HasPrefix(need.Resource+"/", project+"/") && g.roles.Grants(g.roles.Project(), principal, need.Permission) {
		return nil
	}
	conn := g.server.lab.Bigtable().Conn()
	for _, resource := range iam.Above(need.Resource) {
		req := &iampb.GetIamPolicyRequest{Resource: resource}
		p, err := btapb.NewBigtableTableAdminClient(conn).GetIamPolicy(lab.Probe(ctx), req)
		if status.Code(err) == codes.InvalidArgument {
			p, err = btapb.NewBigtableInstanceAdminClient(conn).GetIamPolicy(lab.Probe(ctx), req)
		}
		switch {
		case err == nil && g.roles.Grants(p, principal, need.Permission):
			return nil
		case err != nil && status.Code(err) != codes.NotFound && status.Code(err) != codes.InvalidArgument:
			return errors.Join(err, ctx.Err())
		}
	}
	return status.Errorf(codes.PermissionDenied, "%s lacks permission %s on %s.", principal, need.Permission, need.Resource)
}
