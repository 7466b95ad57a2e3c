package btkit

import (
	"testing"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/testkit/internal/iam"
	"github.com/tabletop-emu/tabletop/testkit/internal/server"
)

// WithIAM enforces IAM policies for the clients of [Env.BigtableAs] and [Env.BigtableAdminAs].
// A call is PERMISSION_DENIED unless a policy gives their principal the permission by a role.
// The policy is that of the call's resource or of one above it: view, table, instance, and the
// project by [Env.GrantProject]. Roles are roles/bigtable.admin, user, reader and viewer, and
// those of [Env.DefineRole]. All other clients, and the DynamoDB endpoint, have all
// permissions, as without this option. Bindings with conditions are rejected. Default:
// policies are stored and nothing is denied.
func WithIAM() Option { return func(c *server.Config) { c.Roles = &iam.Roles{} } }

// BigtableAs is [Env.Bigtable] on behalf of a principal, such as
// "user:a@example.com", in the form of the members of policies. It needs
// [WithIAM].
func (e *Env) BigtableAs(tb testing.TB, principal string) *bigtable.Client {
	tb.Helper()
	return e.client(tb, e.dialAs(tb, principal))
}

// BigtableAdminAs is [Env.BigtableAdmin] on behalf of a principal, like [Env.BigtableAs].
func (e *Env) BigtableAdminAs(tb testing.TB, principal string) *bigtable.AdminClient {
	tb.Helper()
	return e.adminClient(tb, e.dialAs(tb, principal))
}

// DefineRole defines a role of permissions, such as "bigtable.tables.readRows", for the
// policies that [WithIAM] enforces, or replaces it.
func (e *Env) DefineRole(name string, permissions ...string) {
	e.server.TB().Helper()
	e.enforced("DefineRole", name).Define(name, permissions...)
}

// GrantProject gives members, such as "user:a@example.com", a role on the environment's
// project. Bigtable's API has no policy of a project: the role applies to all resources in
// the project, and to calls on the project itself, such as CreateInstance and ListInstances.
// It needs [WithIAM].
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
		tb.Fatalf("testkit: a client on behalf of %q: it needs a principal, and WithIAM()", principal)
	}
	return e.server.ClientConn(tb, server.PrincipalHeader, principal)
}
