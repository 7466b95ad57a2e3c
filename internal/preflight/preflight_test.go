package preflight_test

import (
	"context"
	"fmt"
	"io"
	"path"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/iam/apiv1/iampb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/preflight"
)

var now = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// fake is a server with an answer per RPC: a message, an error, or none, which hangs.
type fake map[string]any

func (f fake) Invoke(ctx context.Context, method string, _, reply any, options ...grpc.CallOption) error {
	for _, o := range options {
		if h, ok := o.(grpc.HeaderCallOption); ok {
			*h.HeaderAddr, _ = f["header"].(metadata.MD)
		}
	}
	switch answer := f[path.Base(method)].(type) {
	case error:
		return answer
	case proto.Message:
		proto.Merge(reply.(proto.Message), answer)
		return nil
	}
	<-ctx.Done()
	return status.FromContextError(ctx.Err()).Err()
}

func (fake) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, status.Error(codes.Unimplemented, "no streams")
}

// good returns a server without faults, except for the changes.
func good(changes fake) fake {
	f := fake{
		"header":             metadata.Pairs("date", "Tue, 24 Nov 2026 12:00:30 GMT"),
		"ListTables":         &btapb.ListTablesResponse{},
		"GetAppProfile":      routed("c1", true),
		"TestIamPermissions": allPermissions(),
		"GetTable": &btapb.Table{ColumnFamilies: map[string]*btapb.ColumnFamily{
			"f": {GcRule: btclient.GCRule(btclient.GC{Versions: 1})},
		}},
		"GetMaterializedView": &btapb.MaterializedView{Query: "SELECT 1"},
	}
	for rpc, answer := range changes {
		f[rpc] = answer
	}
	return f
}

func routed(cluster string, transactional bool) *btapb.AppProfile {
	return &btapb.AppProfile{RoutingPolicy: &btapb.AppProfile_SingleClusterRouting_{SingleClusterRouting: &btapb.AppProfile_SingleClusterRouting{
		ClusterId: cluster, AllowTransactionalWrites: transactional,
	}}}
}

func allPermissions() *iampb.TestIamPermissionsResponse {
	r := &iampb.TestIamPermissionsResponse{}
	for _, p := range []string{"create", "delete", "get", "list", "mutateRows", "readRows", "sampleRowKeys", "update"} {
		r.Permissions = append(r.Permissions, "bigtable.tables."+p)
	}
	for _, p := range []string{"create", "delete", "get", "readRows", "sampleRowKeys"} {
		r.Permissions = append(r.Permissions, "bigtable.materializedViews."+p)
	}
	return r
}

var several = &btapb.AppProfile{RoutingPolicy: &btapb.AppProfile_MultiClusterRoutingUseAny_{MultiClusterRoutingUseAny: &btapb.AppProfile_MultiClusterRoutingUseAny{}}}

func options(f fake) preflight.Options {
	return preflight.Options{
		Conn: f, Project: "p", Instance: "i", Transactions: true, Now: func() time.Time { return now }, Deadline: 10 * time.Second,
		Tables: []preflight.Table{{ID: "t", Families: []btclient.Family{{Name: "f", GC: btclient.GC{Versions: 1}}}}},
		Views:  []preflight.View{{ID: "t__g", Query: "SELECT 1\n"}},
	}
}

// TestRun: each fault is one finding with a remedy.
func TestRun(t *testing.T) {
	t.Parallel()
	notFound := status.Error(codes.NotFound, "n")
	for name, c := range map[string]struct {
		changes fake
		wrong   string // "": no fault
	}{
		"all is well":                  {},
		"routed to several clusters":   {fake{"GetAppProfile": several}, "app profile: app profile default routes to several clusters, which excludes the single-row transactions"},
		"no transactions":              {fake{"GetAppProfile": routed("c1", false)}, "--route-to=c1 --transactional-writes"},
		"a profile that only reads":    {fake{"GetAppProfile": &btapb.AppProfile{Isolation: &btapb.AppProfile_DataBoostIsolationReadOnly_{DataBoostIsolationReadOnly: &btapb.AppProfile_DataBoostIsolationReadOnly{}}}}, "Data Boost"},
		"an emulator":                  {fake{"GetAppProfile": status.Error(codes.Unimplemented, "u"), "TestIamPermissions": status.Error(codes.Unimplemented, "u"), "header": nil}, ""},
		"permissions that are missing": {fake{"TestIamPermissions": &iampb.TestIamPermissionsResponse{Permissions: allPermissions().GetPermissions()[1:]}}, "permissions: the credentials lack bigtable.tables.create on projects/p/instances/i"},
		"another rule":                 {fake{"GetTable": &btapb.Table{ColumnFamilies: map[string]*btapb.ColumnFamily{"f": {}}}}, "tables: family f of t has the garbage-collection rule"},
		"no such table":                {fake{"GetTable": notFound, "GetMaterializedView": notFound}, ""},
		"a view instead of a table":    {fake{"GetTable": notFound}, "tables: a materialized view has the id of the table t: delete the view, so that the table is created, or use another instance (gcloud bigtable materialized-views delete t --instance=i)"},
		"no permission for views":      {fake{"TestIamPermissions": &iampb.TestIamPermissionsResponse{Permissions: allPermissions().GetPermissions()[:9]}}, "permissions: the credentials lack bigtable.materializedViews.delete, bigtable.materializedViews.get, bigtable.materializedViews.readRows, bigtable.materializedViews.sampleRowKeys on"},
		"a table instead of a view":    {fake{"GetMaterializedView": notFound}, "views: a table has the id of the materialized view t__g: delete the table"},
		"no views":                     {fake{"GetMaterializedView": status.Error(codes.Unimplemented, "u")}, "views: the server has no materialized views, and t__g is one (as: view)"},
		"another query":                {fake{"GetMaterializedView": &btapb.MaterializedView{Query: "SELECT 2"}}, "views: the materialized view t__g exists with another query"},
		"a clock that is off":          {fake{"header": metadata.Pairs("date", "Tue, 24 Nov 2026 11:58:00 GMT")}, "clock: this machine's clock differs from the server's by 2m0s"},
	} {
		findings, err := preflight.Run(t.Context(), options(good(c.changes)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var wrong []string
		for _, f := range findings {
			if f.Level == preflight.Wrong {
				wrong = append(wrong, f.Check+": "+f.Text)
			}
		}
		if c.wrong == "" && len(wrong) > 0 || c.wrong != "" && (len(wrong) != 1 || !strings.Contains(wrong[0], c.wrong)) || len(findings) != 6 {
			t.Errorf("%s: %d findings, wrong are %q, want %q", name, len(findings), wrong, c.wrong)
		}
	}
}

// TestRun_Emulator: the findings name features that emulators lack.
func TestRun_Emulator(t *testing.T) {
	t.Parallel()
	unimplemented := status.Error(codes.Unimplemented, "unimplemented feature")
	findings, err := preflight.Run(t.Context(), options(good(fake{"GetAppProfile": unimplemented, "TestIamPermissions": unimplemented})))
	if err != nil {
		t.Fatal(err)
	}
	said := 0
	for _, f := range findings {
		if f.Level == preflight.Unknown && strings.Contains(f.Text, "as is usual for emulators") && !strings.Contains(f.Text, "rpc error") {
			said++
		}
	}
	if said != 2 {
		t.Errorf("%v, want words for the app profile and the permissions", findings)
	}
}

// TestExplain: an error is explained once, keeps its code, and is otherwise unchanged.
func TestExplain(t *testing.T) {
	t.Parallel()
	unknown := status.Error(codes.Unauthenticated, "no token")
	said := preflight.Explain(fmt.Errorf("reading table t: %w", unknown))
	if again := preflight.Explain(fmt.Errorf("--target h:1: %w", said)); again.Error() != "--target h:1: "+said.Error() {
		t.Errorf("explained again: %v", again)
	}
	const want = "the Bigtable rejects the credentials: check that they belong to the project and that the token is valid (reading table t: "
	if status.Code(said) != codes.Unauthenticated || !strings.HasPrefix(said.Error(), want) {
		t.Errorf("%v, code %v; want %q and its code", said, status.Code(said), want)
	}
	for text, want := range map[string]string{
		`unexpected HTTP status code received from server: 404 (Not Found); transport: received unexpected content-type "text/html"`:   "the server is not a Bigtable: expected its gRPC API",
		`unexpected HTTP status code received from server: 502 (Bad Gateway); transport: received unexpected content-type "text/html"`: "a server other than the Bigtable answered, perhaps a proxy",
		"tls: failed to verify certificate: x509: certificate signed by unknown authority":                                             "the certificate of the server is not trusted: pass the trusted ones (--ca FILE)",
		"no access token is available: tls: failed to verify certificate: x509: certificate signed by unknown authority":               "the certificate of the token server is not trusted: add it to the trusted certificates of the system, or set $SSL_CERT_FILE",
	} {
		if got := preflight.Explain(status.Error(codes.Unavailable, text)).Error(); !strings.HasPrefix(got, want+" (") {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, err := range []error{nil, io.EOF, status.Error(codes.Unimplemented, "no such method")} {
		if got := preflight.Explain(err); got != err { //nolint:errorlint // the same value
			t.Errorf("%v became %v", err, got)
		}
	}
}

// TestStart: an unusable target is an error with the reason, in less than 15 seconds.
func TestStart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		changes fake
		want    string // "": no error
	}{
		{nil, ""},
		{fake{"GetAppProfile": several}, "--app-profile ID"},
		{fake{"GetAppProfile": status.Error(codes.PermissionDenied, "d")}, ""},
		{fake{"ListTables": status.Error(codes.NotFound, "n")}, "projects/p/instances/i not found"},
		{fake{"ListTables": status.Error(codes.PermissionDenied, "d")}, "roles/bigtable.admin"},
		{fake{"ListTables": status.Error(codes.Unauthenticated, "u")}, "rejects the credentials"},
		{fake{"ListTables": status.Error(codes.Unimplemented, "u")}, "is not a Bigtable"},
		{fake{"ListTables": status.Error(codes.Unavailable, "connection error: desc = \"error reading server preface: http2: frame too large\"")}, "is not a Bigtable"},
		{fake{"ListTables": status.Error(codes.Unavailable, "x509: certificate signed by unknown authority")}, "--ca FILE"},
		{fake{"ListTables": status.Error(codes.Unavailable, "tls: first record does not look like a TLS handshake")}, "without --ca"},
		{fake{"ListTables": status.Error(codes.Unavailable, "connection refused")}, "cannot be reached"},
		{fake{"ListTables": nil}, "did not respond to ListTables of projects/p/instances/i within 10s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			err := preflight.Start(t.Context(), options(good(c.changes)))
			if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if after := time.Since(begun); after >= 15*time.Second {
				t.Errorf("%q: after %v", c.want, after)
			}
		})
	}
	o := options(good(fake{"GetAppProfile": status.Error(codes.NotFound, "n")}))
	if err := preflight.Start(t.Context(), o); err != nil {
		t.Errorf("an instance without a default app profile: %v", err)
	}
	denied := options(good(fake{"ListTables": status.Error(codes.PermissionDenied, "d")}))
	if denied.ReadOnly = true; preflight.Start(t.Context(), denied) != nil {
		t.Error("permission to list tables is required for reading rows only")
	}
	o.AppProfile = "mine"
	if err := preflight.Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), "app profile mine of projects/p/instances/i not found") {
		t.Errorf("an app profile that is not there: %v", err)
	}
}
