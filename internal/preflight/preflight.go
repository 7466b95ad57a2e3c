package preflight

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/iam/apiv1/iampb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/internal/btclient"
)

// Level is the severity of a finding.
type Level string

// These are the levels.
const (
	OK      Level = "ok"
	Unknown Level = "not known" // the check could not run
	Wrong   Level = "wrong"     // the target cannot be used
)

// Finding is the result of one check.
type Finding struct {
	Check string // "instance", "app profile", "permissions", "tables", "views", "clock"
	Level Level
	Text  string
}

// Table is a table that the caller will use.
type Table struct {
	ID       string
	Families []btclient.Family
}

// View is a materialized view that the caller will use.
type View struct{ ID, Query string }

// Options selects the target and the checks.
type Options struct {
	Conn              grpc.ClientConnInterface
	Project, Instance string
	AppProfile        string                  // "" for the instance's default profile
	Transactions      bool                    // single-row transactions are needed
	ReadOnly          bool                    // rows are only read, so permission to list tables is not required
	Tables            []Table                 // the tables to check if they exist
	More              iter.Seq2[Table, error] // further tables to check if they exist, which are found only in the Bigtable; may be nil
	Views             []View                  // the views to check if they exist
	Now               func() time.Time        // returns the current time; nil if the clock is not checked
	Deadline          time.Duration           // deadline of each call; 0 for none
}

// MaxSkew is the largest accepted difference between the clocks, which set the times of cells and
// leases.
const MaxSkew = time.Minute

// DefaultProfile is the app profile of calls that do not name one.
const DefaultProfile = "default"

// permissions are the permissions that an endpoint and a load need.
// https://cloud.google.com/bigtable/docs/access-control#permissions
var permissions = []string{
	"bigtable.tables.create", "bigtable.tables.delete", "bigtable.tables.get", "bigtable.tables.list", "bigtable.tables.mutateRows",
	"bigtable.tables.readRows", "bigtable.tables.sampleRowKeys", "bigtable.tables.update",
}

// viewPermissions are the further permissions that materialized views need.
var viewPermissions = []string{
	"bigtable.materializedViews.create", "bigtable.materializedViews.delete", "bigtable.materializedViews.get",
	"bigtable.materializedViews.readRows", "bigtable.materializedViews.sampleRowKeys",
}

// checker is the state of a preflight.
type checker struct {
	Options
	ctx       context.Context //nolint:containedctx // of one preflight
	name      string          // of the instance
	instances btapb.BigtableInstanceAdminClient
	findings  []Finding
}

// Start checks the instance and the app profile, which an endpoint and a load always need. Its
// error contains a remedy, or is the error of a call.
func Start(ctx context.Context, o Options) error {
	c := newChecker(ctx, o)
	if err := c.instance(); err != nil {
		return err
	}
	c.profile()
	for _, f := range c.findings {
		if f.Level == Wrong {
			return errors.New(f.Text)
		}
	}
	return nil
}

// Run runs all checks. It returns an error if the target cannot be checked at all.
func Run(ctx context.Context, o Options) ([]Finding, error) {
	c := newChecker(ctx, o)
	if err := c.instance(); err != nil {
		return nil, err
	}
	c.profile()
	c.permissions()
	c.tables()
	c.views()
	return c.findings, nil
}

func newChecker(ctx context.Context, o Options) *checker {
	return &checker{
		Options: o, ctx: ctx, name: "projects/" + o.Project + "/instances/" + o.Instance,
		instances: btapb.NewBigtableInstanceAdminClient(o.Conn),
	}
}

func (c *checker) found(check string, level Level, format string, args ...any) {
	c.findings = append(c.findings, Finding{check, level, fmt.Sprintf(format, args...)})
}

// timed returns the context of a call that has the routing parameter param with the value name,
// and the configured deadline. The caller must cancel it.
func (c *checker) timed(param, name string) (context.Context, context.CancelFunc) {
	ctx := metadata.AppendToOutgoingContext(c.ctx, "x-goog-request-params", param+"="+strings.ReplaceAll(name, "/", "%2F"))
	if c.Deadline <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.Deadline)
}

// instance checks that the Bigtable has the instance, by listing its tables. The answer has
// the server's clock.
func (c *checker) instance() error {
	ctx, cancel := c.timed("parent", c.name)
	defer cancel()
	var header metadata.MD
	_, err := btapb.NewBigtableTableAdminClient(c.Conn).ListTables(ctx, &btapb.ListTablesRequest{Parent: c.name, View: btapb.Table_NAME_ONLY, PageSize: 1}, grpc.Header(&header))
	switch code := status.Code(err); {
	case err == nil:
		c.found("instance", OK, "%s exists", c.name)
	case code == codes.NotFound:
		return fmt.Errorf("%s not found: check the project and the instance (%w)", c.name, err)
	case code == codes.PermissionDenied && c.ReadOnly:
		c.found("instance", Unknown, "the credentials may not list the tables of %s", c.name)
	case code == codes.PermissionDenied:
		return fmt.Errorf("%s does not exist, or the credentials may not use it: an endpoint and a load need roles/bigtable.admin, or the permissions %s (%w)", c.name, strings.Join(permissions, ", "), err)
	case code == codes.Unimplemented:
		return &explained{noBigtable, err}
	case ctx.Err() != nil && c.ctx.Err() == nil:
		return fmt.Errorf("the Bigtable did not respond to ListTables of %s within %v (%w)", c.name, c.Deadline, err)
	default:
		if said := Explain(err); said != err { //nolint:errorlint // the same value is an unchanged error
			return said
		}
		return fmt.Errorf("the Bigtable cannot be reached or used: %w", err)
	}
	c.clock(header)
	return nil
}

// clock compares the clocks, if the server reports its own.
func (c *checker) clock(header metadata.MD) {
	if c.Now == nil {
		return
	}
	date := header.Get("date")
	if len(date) == 0 {
		c.found("clock", Unknown, "the server does not report its own")
		return
	}
	theirs, err := http.ParseTime(date[0])
	if err != nil {
		c.found("clock", Unknown, "the server reports the time %q, which is invalid", date[0])
		return
	}
	skew := c.Now().Sub(theirs)
	if skew.Abs() > MaxSkew {
		c.found("clock", Wrong, "this machine's clock differs from the server's by %v, want at most %v: times of cells and leases would be wrong; set this machine's clock", skew.Round(time.Second), MaxSkew)
		return
	}
	c.found("clock", OK, "within %v of the server's", MaxSkew)
}

// profile checks the app profile.
func (c *checker) profile() {
	const check = "app profile"
	id := c.AppProfile
	if id == "" {
		id = DefaultProfile
	}
	name := c.name + "/appProfiles/" + id
	ctx, cancel := c.timed("name", name)
	defer cancel()
	p, err := c.instances.GetAppProfile(ctx, &btapb.GetAppProfileRequest{Name: name})
	switch status.Code(err) { //nolint:exhaustive // the default has the others
	case codes.OK:
	case codes.NotFound:
		if c.AppProfile == "" {
			c.found(check, Unknown, "%s has no app profile with the name %s", c.name, id)
			return
		}
		c.found(check, Wrong, "app profile %s of %s not found: pass an existing one with --app-profile (gcloud bigtable app-profiles list --instance=%s)", id, c.name, c.Instance)
		return
	case codes.Unimplemented:
		c.found(check, Unknown, "the server reports none, as is usual for emulators: %s is unchecked", id)
		return
	default: // the caller may lack the permission
		c.found(check, Unknown, "%s cannot be read: %v", id, err)
		return
	}
	if !c.Transactions {
		c.found(check, OK, "%s", id)
		return
	}
	single := p.GetSingleClusterRouting()
	switch {
	case p.GetDataBoostIsolationReadOnly() != nil:
		c.found(check, Wrong, "app profile %s is for Data Boost, which only reads: pass another one (--app-profile)", id)
	case single == nil:
		c.found(check, Wrong, "app profile %s routes to several clusters, which excludes the single-row transactions (CheckAndMutateRow, ReadModifyWriteRow) that the DynamoDB endpoint needs: create one that routes to a single cluster, gcloud bigtable app-profiles create ID --instance=%s --route-to=CLUSTER --transactional-writes, and pass --app-profile ID", id, c.Instance)
	case !single.GetAllowTransactionalWrites():
		c.found(check, Wrong, "app profile %s does not allow the single-row transactions (CheckAndMutateRow, ReadModifyWriteRow) that the DynamoDB endpoint needs: gcloud bigtable app-profiles update %s --instance=%s --route-to=%s --transactional-writes", id, id, c.Instance, single.GetClusterId())
	default:
		c.found(check, OK, "%s routes to cluster %s, and allows single-row transactions", id, single.GetClusterId())
	}
}

// permissions checks the permissions of the caller.
func (c *checker) permissions() {
	permissions := slices.Clone(permissions)
	if len(c.Views) > 0 {
		permissions = append(permissions, viewPermissions...)
	}
	ctx, cancel := c.timed("resource", c.name)
	defer cancel()
	resp, err := c.instances.TestIamPermissions(ctx, &iampb.TestIamPermissionsRequest{Resource: c.name, Permissions: permissions})
	switch {
	case status.Code(err) == codes.Unimplemented:
		c.found("permissions", Unknown, "the server reports none, as is usual for emulators")
		return
	case err != nil:
		c.found("permissions", Unknown, "the permissions cannot be read: %v", err)
		return
	}
	missing := slices.DeleteFunc(permissions, func(p string) bool { return slices.Contains(resp.GetPermissions(), p) })
	if len(missing) > 0 {
		c.found("permissions", Wrong, "the credentials lack %s on %s: roles/bigtable.admin has them", strings.Join(missing, ", "), c.name)
		return
	}
	c.found("permissions", OK, "complete")
}

// tables checks the garbage-collection rules of the families.
func (c *checker) tables() {
	client := c.client()
	for _, t := range c.Tables {
		c.table(client, t)
	}
	if c.More == nil {
		return
	}
	for t, err := range c.More {
		if err != nil {
			c.found("tables", Unknown, "the existing tables cannot be read: %v", err)
			return
		}
		c.table(client, t)
	}
}

func (c *checker) client() *btclient.Client {
	return btclient.New(c.Conn, c.Project, c.Instance, btclient.Options{Deadline: c.Deadline})
}

// views checks that the target has materialized views, and the queries of existing ones.
func (c *checker) views() {
	var conflict *btclient.Conflict
	for _, v := range c.Views {
		switch there, err := c.client().FindView(c.ctx, v.ID, v.Query); {
		case errors.As(err, &conflict):
			c.found("views", Wrong, "%v", conflict)
		case status.Code(err) == codes.Unimplemented:
			c.found("views", Wrong, "the server has no materialized views, and %s is one (as: view)", v.ID)
		case err != nil:
			c.found("views", Unknown, "%v", err)
		case !there:
			c.found("views", OK, "%s does not exist yet", v.ID)
		default:
			c.found("views", OK, "%s has the expected query", v.ID)
		}
	}
}

func (c *checker) table(client *btclient.Client, t Table) {
	have, err := client.Families(c.ctx, t.ID)
	switch {
	case status.Code(err) == codes.NotFound:
		switch err, conflict := client.ViewInPlace(c.ctx, t.ID), (*btclient.Conflict)(nil); {
		case err == nil:
			c.found("tables", OK, "%s does not exist yet", t.ID)
		case errors.As(err, &conflict):
			c.found("tables", Wrong, "%v", conflict)
		default:
			c.found("tables", Unknown, "%v", err)
		}
		return
	case err != nil:
		c.found("tables", Unknown, "%v", err)
		return
	}
	differ := false
	for _, f := range t.Families {
		rule, there := have[f.Name]
		if want := btclient.GCRule(f.GC); there && !proto.Equal(rule, want) {
			differ = true
			c.found("tables", Wrong, "family %s of %s has the garbage-collection rule {%v}, want {%v}", f.Name, t.ID, rule, want)
		}
	}
	if !differ {
		c.found("tables", OK, "%s has the expected garbage-collection rules", t.ID)
	}
}
