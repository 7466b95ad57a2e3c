package btkit

import (
	"testing"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/testkit/internal/iam"
	"github.com/tabletop-emu/tabletop/testkit/internal/server"
)

// WithIAM enforces IAM policies for the clients of [Env.BigtableAs] and [Env.BigtableAdminAs]. A
// call fails with PERMISSION_DENIED unless a policy grants its principal a role with the required
// permission. The policy may belong to the resource of the call or to an ancestor: the view, table
// or instance, or the project ([Env.GrantProject]). The roles are roles/bigtable.admin, user,
// reader and viewer, and the roles defined with [Env.DefineRole]. All other clients, and the
// DynamoDB endpoint, keep all permissions. Bindings with conditions are rejected. Default: policies
// are stored, and no call is denied.
func WithIAM() Option { return func(c *server.Config) { c.Roles = &iam.Roles{} } }

// BigtableAs is like [Env.Bigtable], but the client acts on behalf of a principal, such as
// "user:a@example.com", written like a member of a policy. It requires [WithIAM].
func (e *Env) BigtableAs(tb testing.TB, principal string) *bigtable.Client {
	tb.Helper()
	return e.client(tb, e.dialAs(tb, principal))
}

// BigtableAdminAs is like [Env.BigtableAdmin], but the client acts on behalf of a principal; see
// [Env.BigtableAs].
func (e *Env) BigtableAdminAs(tb testing.TB, principal string) *bigtable.AdminClient {
	tb.Helper()
	return e.adminClient(tb, e.dialAs(tb, principal))
}

// DefineRole defines or replaces a role with the given permissions, such as
// "bigtable.tables.readRows", for the policies that [WithIAM] enforces.
func (e *Env) DefineRole(name string, permissions ...string) {
	e.server.TB().Helper()
	e.enforced("DefineRole", name).Define(name, permissions...)
}

// GrantProject grants members, such as "user:a@example.com", a role on the environment's project,
// because Bigtable's API cannot set the policy of a project. The role applies to all resources in
// the project, and to calls on the project itself, such as CreateInstance and ListInstances. It
// requires [WithIAM].
func (e *Env) GrantProject(role string, members ...string) {
	e.server.TB().Helper()
	e.enforced("GrantProject", role).Bind(role, members...)
}

// enforced returns the roles of the enforced policies, and ends the test without [WithIAM].
func (e *Env) enforced(caller, arg string) *iam.Roles {
	e.server.TB().Helper()
	if e.server.Roles() == nil {
		e.server.TB().Fatalf("testkit: %s(%q): policies are not enforced; start with WithIAM()", caller, arg)
	}
	return e.server.Roles()
}

func (e *Env) dialAs(tb testing.TB, principal string) *grpc.ClientConn {
	tb.Helper()
	if e.server.Roles() == nil || principal == "" {
		tb.Fatalf("testkit: a client on behalf of %q needs a non-empty principal and WithIAM()", principal)
	}
	return e.server.ClientConn(tb, server.PrincipalHeader, principal)
}
