package migrate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/test/peer"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

const viewMapping = `apiVersion: migration/v1
source:
  table: orders
  key: {hash: {name: id, type: S}}
  schema: {city: S, total: N, note: S}
  gsis: [{name: by-city, hash: city, projection: [total], as: view}]
target: {table: orders, joiner: oc, families: {a: {}, _t: {}}}
rules: [{name: item, row: ["{id}"], put: [{attr: "*", cell: "a:{attr}"}]}]
`

// orders returns a source of orders with the given cities.
func orders(t *testing.T, cities ...string) *source.Source {
	t.Helper()
	var lines strings.Builder
	for i, city := range cities {
		lines.WriteString(`{"id":{"S":"` + string(rune('a'+i)) + `"},"city":{"S":"` + city + `"},"total":{"N":"7"},"note":{"S":"x"}}` + "\n")
	}
	src, err := source.OpenFS(fstest.MapFS{"orders.jsonl": {Data: []byte(lines.String())}}, "orders.jsonl", source.Options{Key: "id"})
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// checkOf returns the result of a check.
func checkOf(r *report.Report, name string) report.Check {
	if i := slices.IndexFunc(r.Checks, func(c report.Check) bool { return c.Name == name }); i >= 0 {
		return r.Checks[i]
	}
	return report.Check{}
}

// withoutViews is a Bigtable that rejects calls about views with a code.
type withoutViews struct {
	grpc.ClientConnInterface

	code codes.Code
	only string // the RPC; "": all
}

func (c withoutViews) Invoke(ctx context.Context, method string, req, resp any, opts ...grpc.CallOption) error {
	if strings.Contains(method, "MaterializedView") && strings.HasSuffix(method, c.only) {
		return status.Error(c.code, "refused")
	}
	return c.ClientConnInterface.Invoke(ctx, method, req, resp, opts...)
}

// A load creates the views of the mapping, and leaves equal ones unchanged.
func TestLoad_Views(t *testing.T) {
	t.Parallel()
	conn := newBigtableServer(t)
	src, o := orders(t, "Rome", "Oslo"), LoadOptions{Common: Common{Mappings: []*mapping.Mapping{mappingOf(t, viewMapping)}}}
	for _, want := range []string{"created; Bigtable fills it, and updates it with the table", "already there, with the same query"} {
		r, err := Load(t.Context(), conn, src, o)
		if err != nil {
			t.Fatal(err)
		}
		if c := checkOf(r, "view of index by-city"); c.Table != "orders__by-city" || c.Detail != want || len(r.NotLaidOut) > 0 {
			t.Errorf("the report has %+v, want %s\n%s", c, want, r.Text())
		}
	}
	b := table.NewBigtable(conn, table.Options{})
	var rows []string
	for row, err := range b.Read(t.Context(), btclient.Read{Table: "orders__by-city", View: true, Spans: []btclient.Span{{}}}) {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, string(row.Key))
	}
	if want := []string{"Oslo\x00\x01b", "Rome\x00\x01a"}; !slices.Equal(rows, want) {
		t.Errorf("the view has %q, want %q", rows, want)
	}
}

// A load rejects a target that cannot have a view, before it writes anything.
func TestLoad_ViewsRefused(t *testing.T) {
	t.Parallel()
	loaded := func(text string) func(*testing.T, grpc.ClientConnInterface) grpc.ClientConnInterface {
		return func(t *testing.T, conn grpc.ClientConnInterface) grpc.ClientConnInterface {
			t.Helper()
			if _, err := Load(t.Context(), conn, orders(t, "Rome", "Oslo"), LoadOptions{Common: Common{Mappings: []*mapping.Mapping{mappingOf(t, text)}}}); err != nil {
				t.Fatal(err)
			}
			return conn
		}
	}
	with := func(code codes.Code, only string) func(*testing.T, grpc.ClientConnInterface) grpc.ClientConnInterface {
		return func(_ *testing.T, conn grpc.ClientConnInterface) grpc.ClientConnInterface {
			return withoutViews{conn, code, only}
		}
	}
	for name, c := range map[string]struct {
		before func(*testing.T, grpc.ClientConnInterface) grpc.ClientConnInterface
		want   string
		damage source.Damage
		writes bool
	}{
		"another query": {loaded(strings.Replace(viewMapping, "[total]", "KEYS_ONLY", 1)), "index by-city, the continuous materialized view orders__by-city (as: view): the materialized view orders__by-city exists with another query, which cannot be changed: delete the view", source.MappingRefused, true},
		"a table":       {loaded(strings.Replace(viewMapping, "as: view", "as: table", 1)), "a table has the id of the materialized view orders__by-city: delete the table", source.MappingRefused, true},
		"no views":      {with(codes.Unimplemented, ""), "index by-city, the continuous materialized view orders__by-city (as: view): this Bigtable has no continuous materialized views: use as: table or as: none for the index", source.MappingRefused, false},
		"no permission": {with(codes.PermissionDenied, ""), "they need bigtable.materializedViews.create, or create the view with the query that migrate plan prints", source.MappingRefused, true},
		"query":         {with(codes.InvalidArgument, "CreateMaterializedView"), "Bigtable rejects the query\nSELECT\n  `a`['city'] AS `city`", source.MappingRefused, true},
		"limit":         {with(codes.ResourceExhausted, "CreateMaterializedView"), "index by-city: creating the materialized view orders__by-city: ", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newBigtableServer(t)
			conn := c.before(t, server)
			_, err := Load(t.Context(), conn, orders(t, "Rome", "Oslo"), LoadOptions{Common: Common{Mappings: []*mapping.Mapping{mappingOf(t, viewMapping)}}})
			if err == nil || !strings.Contains(err.Error(), c.want) || source.DamageOf(err) != c.damage {
				t.Errorf("the load returns %v, %s; want %s", err, source.DamageOf(err), c.want)
			}
			if wrote := len(tableIDs(t, server)) > 0; wrote != c.writes {
				t.Errorf("the instance has tables: %t", wrote)
			}
		})
	}
}

// A load rejects a target with a view in place of the table of an index, before it writes anything.
func TestLoad_ViewInPlace(t *testing.T) {
	t.Parallel()
	conn := newBigtableServer(t)
	load := func(text string) error {
		_, err := Load(t.Context(), conn, orders(t, "Rome", "Oslo"), LoadOptions{Common: Common{Mappings: []*mapping.Mapping{mappingOf(t, text)}}})
		return err
	}
	if err := load(viewMapping); err != nil {
		t.Fatal(err)
	}
	const want = "index by-city, the table orders__by-city (as: table): a materialized view has the id of the table orders__by-city: delete the view"
	err := load(strings.Replace(viewMapping, "as: view", "as: table", 1))
	if err == nil || !strings.HasPrefix(err.Error(), want) || source.DamageOf(err) != source.MappingRefused {
		t.Errorf("the load returns %v, %s; want %s", err, source.DamageOf(err), want)
	}
}

// lagging returns a Bigtable whose views follow only refresh, with a loaded table and its view.
func lagging(t *testing.T, src *source.Source) (conn grpc.ClientConnInterface, refresh func()) {
	t.Helper()
	server := peer.Start(t, engine.Options{}, emu.Options{ViewLag: emu.ManualViews})
	if _, err := Load(t.Context(), server.Conn(), src, LoadOptions{Common: Common{Mappings: []*mapping.Mapping{mappingOf(t, viewMapping)}}}); err != nil {
		t.Fatal(err)
	}
	return server.Conn(), func() {
		if err := server.RefreshViews(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A verification waits for a view that lags. A view that still differs after that is a difference.
func TestVerify_Views(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		wait      time.Duration
		refreshed int // the pause after which the view is fresh; 0: never
		table     bool
		pauses    string
		detail    string
		stale     int64
	}{
		"at once":    {10 * time.Second, -1, true, "", "2 rows", 0},
		"in time":    {10 * time.Second, 2, true, "1s 2s", "2 rows; the view followed after a wait of 3s", 0},
		"never":      {4 * time.Second, 0, true, "1s 2s 1s", "0 rows; still different after a wait of 4s (--view-wait)", 2},
		"no wait":    {0, 0, true, "", "0 rows", 2},
		"other rows": {10 * time.Second, -1, false, "", "2 rows", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src := orders(t, "Rome", "Oslo")
			conn, refresh := lagging(t, src)
			if c.refreshed < 0 {
				refresh()
			}
			if !c.table { // the view follows a table that differs
				src = orders(t, "Rome", "Bern")
			}
			var pauses []string
			o := VerifyOptions{Stored: true, ViewWait: c.wait, Common: Common{Mappings: []*mapping.Mapping{mappingOf(t, viewMapping)}}}
			o.Sleep = func(_ context.Context, d time.Duration) error {
				if pauses = append(pauses, d.String()); len(pauses) == c.refreshed {
					refresh()
				}
				return nil
			}
			var phases []string
			o.Progress = func(p source.Progress) {
				if strings.HasPrefix(p.Phase, "waiting") {
					phases = append(phases, p.Phase)
				}
			}
			r, err := Verify(t.Context(), conn, OfSource(src), o)
			if err != nil {
				t.Fatal(err)
			}
			got := checkOf(r, "index by-city")
			if strings.Join(pauses, " ") != c.pauses || got.Detail != c.detail || got.Differences != c.stale || len(phases) != len(pauses) {
				t.Errorf("pauses %v and %+v, want %s and %s\n%s", pauses, got, c.pauses, c.detail, r.Text())
			}
			for _, f := range r.Failures {
				if f.Table == "orders__by-city" && f.Kind != report.IndexStale {
					t.Errorf("failure %v", f)
				}
			}
		})
	}
}

// A verification reports a view that does not exist or cannot be read.
func TestVerify_ViewsUnread(t *testing.T) {
	t.Parallel()
	src := orders(t, "Rome", "Oslo")
	conn := newBigtableServer(t)
	o := VerifyOptions{Common: Common{Mappings: []*mapping.Mapping{mappingOf(t, viewMapping)}}}
	if r, err := Verify(t.Context(), conn, OfSource(src), o); err != nil || !r.Equal() {
		t.Fatalf("a verification with a load: %v\n%s", err, r.Text())
	}
	admin := btapb.NewBigtableInstanceAdminClient(conn)
	if _, err := admin.DeleteMaterializedView(t.Context(), &btapb.DeleteMaterializedViewRequest{Name: "projects/tabletop/instances/tabletop/materializedViews/orders__by-city"}); err != nil {
		t.Fatal(err)
	}
	o.Stored, o.ViewWait = true, time.Second
	o.Sleep = func(context.Context, time.Duration) error {
		return errors.New("a view that does not exist does not lag")
	}
	r, err := Verify(t.Context(), conn, OfSource(src), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Failures) != 1 || r.Failures[0].Kind != report.IndexStale || r.Failures[0].Want != "2 rows" || r.Failures[0].Detail != "the view does not exist" {
		t.Errorf("failures %v", r.Failures)
	}
}
