package testkit

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/bigtable"
	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/iam/apiv1/iampb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/control/lab"
	"github.com/tabletop-emu/tabletop/testkit/internal/iam"
)

// principalHeader says on whose behalf a call is made. It is no identity: whoever
// reaches the server can send it.
const principalHeader = "x-tabletop-testkit-principal"

// WithIAM enforces IAM policies for the clients of [Env.BigtableAs] and
// [Env.BigtableAdminAs]: a call is PERMISSION_DENIED unless a policy of its
// resource, or of one above it (view, table, instance, and the project by
// [Env.GrantProject]), gives their principal the
// permission by a role: roles/bigtable.admin, user, reader and viewer, or one of
// [Env.DefineRole]. All other clients, and the DynamoDB door, own everything, as
// without it. Conditions of bindings are refused. Default: policies are
// stored and nothing is denied.
func WithIAM() Option { return func(c *config) { c.iam = &iam.Roles{} } }

// BigtableAs is [Env.Bigtable] on behalf of a principal, such as
// "user:a@example.com", in the form of the members of policies. It needs
// [WithIAM].
func (e *Env) BigtableAs(tb testing.TB, principal string) *bigtable.Client {
	tb.Helper()
	client, err := bigtable.NewClientWithConfig(tb.Context(), e.Project(), e.Instance(),
		bigtable.ClientConfig{MetricsProvider: bigtable.NoopMetricsProvider{}}, option.WithGRPCConn(e.dialAs(tb, principal)))
	if err != nil {
		tb.Fatalf("testkit: Bigtable client: %v", err)
	}
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

// BigtableAdminAs is [Env.BigtableAdmin] on behalf of a principal, like [Env.BigtableAs].
func (e *Env) BigtableAdminAs(tb testing.TB, principal string) *bigtable.AdminClient {
	tb.Helper()
	client, err := bigtable.NewAdminClient(tb.Context(), e.Project(), e.Instance(), option.WithGRPCConn(e.dialAs(tb, principal)))
	if err != nil {
		tb.Fatalf("testkit: Bigtable admin client: %v", err)
	}
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

// DefineRole makes a role of permissions, such as "bigtable.tables.readRows", for
// the policies that [WithIAM] enforces; again, it replaces it.
func (e *Env) DefineRole(name string, permissions ...string) {
	e.tb.Helper()
	e.enforced("DefineRole", name).Define(name, permissions...)
}

// GrantProject gives members, such as "user:a@example.com", a role on the environment's
// project, whose policy Bigtable's API does not have: it holds for all that is in the project,
// and for what is asked of the project itself, such as CreateInstance and ListInstances.
// It needs [WithIAM].
func (e *Env) GrantProject(role string, members ...string) {
	e.tb.Helper()
	e.enforced("GrantProject", role).Bind(role, members...)
}

// enforced returns the roles of policies that are enforced, and ends the test where none are.
func (e *Env) enforced(caller, arg string) *iam.Roles {
	e.tb.Helper()
	if e.config.iam == nil {
		e.tb.Fatalf("testkit: %s(%q): policies are not enforced; start with testkit.WithIAM()", caller, arg)
	}
	return e.config.iam
}

func (e *Env) dialAs(tb testing.TB, principal string) *grpc.ClientConn {
	tb.Helper()
	if e.config.iam == nil || principal == "" {
		tb.Fatalf("testkit: a client on behalf of %q: it needs a principal, and testkit.WithIAM()", principal)
	}
	return e.dial(tb, principalHeader, principal)
}

// guard enforces policies in front of the server's handlers.
type guard struct {
	env   *Env
	roles *iam.Roles
}

// enforce returns the interceptors that do what [WithIAM] says.
func (e *Env) enforce() (grpc.UnaryServerInterceptor, grpc.StreamServerInterceptor) {
	g := &guard{env: e, roles: e.config.iam}
	return g.unary, g.stream
}

func (g *guard) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if set, ok := req.(*iampb.SetIamPolicyRequest); ok && slices.ContainsFunc(set.GetPolicy().GetBindings(), func(b *iampb.Binding) bool { return b.GetCondition() != nil }) {
		return nil, status.Error(codes.InvalidArgument, "testkit.WithIAM does not evaluate conditions of bindings: set none")
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
	if values := metadata.ValueFromIncomingContext(ctx, principalHeader); len(values) > 0 {
		return values[0]
	}
	return ""
}

// check refuses a request for which a principal has no permission.
func (g *guard) check(ctx context.Context, principal, method string, req any) error {
	needs, known := iam.NeedsOf(method, req)
	if !known {
		return status.Errorf(codes.PermissionDenied, "%s may not call %s: testkit.WithIAM leaves it to the owner.", principal, method)
	}
	for _, n := range needs {
		if err := g.allows(ctx, principal, n); err != nil {
			return err
		}
	}
	return nil
}

// allows refuses a permission that no policy gives.
func (g *guard) allows(ctx context.Context, principal string, need iam.Need) error {
	if project := "projects/" + g.env.Project(); strings.HasPrefix(need.Resource+"/", project+"/") && g.roles.Grants(g.roles.Project(), principal, need.Permission) {
		return nil
	}
	conn := g.env.lab.Bigtable().Conn()
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
