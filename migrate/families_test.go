package migrate

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/migrate/internal/compare"
	"github.com/tabletop-emu/tabletop/migrate/internal/load"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

// setRule sets the rule of an existing family; nil deletes the family.
func setRule(t *testing.T, conn grpc.ClientConnInterface, table, family string, rule *btapb.GcRule) {
	t.Helper()
	mod := &btapb.ModifyColumnFamiliesRequest_Modification{Id: family, Mod: &btapb.ModifyColumnFamiliesRequest_Modification_Update{Update: &btapb.ColumnFamily{GcRule: rule}}}
	if rule == nil {
		mod.Mod = &btapb.ModifyColumnFamiliesRequest_Modification_Drop{Drop: true}
	}
	_, err := btapb.NewBigtableTableAdminClient(conn).ModifyColumnFamilies(t.Context(), &btapb.ModifyColumnFamiliesRequest{
		Name: "projects/tabletop/instances/tabletop/tables/" + table, Modifications: []*btapb.ModifyColumnFamiliesRequest_Modification{mod},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Another loader may create families whose garbage collection removes cells that the mapping
// keeps. Each such family is one failure, and the check of retention counts the cells.
func TestCompare_Families(t *testing.T) {
	t.Parallel()
	versions := func(n int) *btapb.GcRule { return btclient.GCRule(layout.GC{Versions: n}) }
	both := func(rules ...*btapb.GcRule) *btapb.GcRule {
		return &btapb.GcRule{Rule: &btapb.GcRule_Intersection_{Intersection: &btapb.GcRule_Intersection{Rules: rules}}}
	}
	for _, c := range []struct {
		name string
		rule *btapb.GcRule
		got  string // "" if it does not differ
		text string // of the report
	}{
		{"same", versions(4), "", ""},
		{"another form of the same", both(versions(4)), "", ""},
		{"fewer versions", versions(1), "gc versions: 1", "garbage collection would remove 3 cells; rule comment, family c by versions: 1: 3 cells of"},
		{"age besides", btclient.GCRule(layout.GC{Versions: 4, MaxAge: 50 * time.Hour}), "gc versions: 4, maxAge: 50h", "garbage collection would remove 3 cells; rule comment, family c by maxAge: 50h: 3 cells of"},
		{"none", &btapb.GcRule{}, "gc none", ""},
		{"intersection", both(versions(1), btclient.GCRule(layout.GC{MaxAge: time.Hour})), "gc {intersection:", "losses by the rule of c are not checked"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			src, m := comments(t, "versions: 4", "")
			conn, o := newCollected(t, commentsEpoch.Add(12*time.Hour))
			o.Mappings = []*mapping.Mapping{m}
			if _, err := Load(t.Context(), conn, src, LoadOptions{Common: o.Common}); err != nil {
				t.Fatal(err)
			}
			setRule(t, conn, "comments", "c", c.rule)
			r, err := Verify(t.Context(), conn, OfSource(src), VerifyOptions{Common: o.Common, Stored: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range r.Failures {
				switch {
				case f.Kind == report.FamilyDiffers:
					if f.Table != "comments" || f.Column != "c" || f.Want != "gc versions: 4" || !strings.HasPrefix(f.Got, c.got) || f.Mapping != "m.yaml:4" {
						t.Errorf("failure %+v", f)
					}
				default:
					t.Errorf("failure %s", f)
				}
			}
			if differs := strings.Contains(kinds(r), "FamilyDiffers"); differs != (c.got != "") {
				t.Errorf("families differ: %v\n%s", differs, r.Text())
			}
			if !strings.Contains(r.Text(), c.text) {
				t.Errorf("%q is not in\n%s", c.text, r.Text())
			}
		})
	}
}

// The families of index tables are compared too; a missing one differs, an extra one does not.
func TestCompare_IndexFamilies(t *testing.T) {
	t.Parallel()
	src, o := subject(t, "s5-order-entry")
	conn := newBigtableServer(t)
	if _, err := Load(t.Context(), conn, src, LoadOptions{Common: o}); err != nil {
		t.Fatal(err)
	}
	m := (*layout.Mapping)(o.Mappings[0])
	x := m.Indexes()[0]
	family := x.Families()[0].Name
	setRule(t, conn, x.TargetTable(), family, btclient.GCRule(layout.GC{Versions: 7}))
	if _, err := table.NewBigtable(conn, table.Options{}).MakeTable(t.Context(), m.TargetTable(), []layout.Family{{Name: "more"}}); err != nil {
		t.Fatal(err)
	}
	setRule(t, conn, m.TargetTable(), "a", nil)
	r, err := Verify(t.Context(), conn, OfSource(src), VerifyOptions{Common: o, Stored: true})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range r.Failures {
		if f.Kind == report.FamilyDiffers {
			got = append(got, f.Table+" "+f.Column+" "+f.Got)
			if f.Want != "gc versions: 1" || f.Mapping == "" {
				t.Errorf("failure %+v", f)
			}
		}
	}
	if want := []string{m.TargetTable() + " a no such family", x.TargetTable() + " " + family + " gc versions: 7"}; !slices.Equal(got, want) {
		t.Errorf("families differ %q, want %q\n%s", got, want, r.Text())
	}
	if c := checkNamed(t, r, compare.FamiliesCheck); !strings.Contains(c.Detail, "not declared: more") {
		t.Errorf("check %+v", c)
	}
}

// A loader without exceptions need not create their family; if there are exceptions, a missing
// family is reported.
func TestCompare_ExceptionsFamily(t *testing.T) {
	t.Parallel()
	for _, item := range []struct {
		attributes string
		want       string
	}{{`"n":{"N":"1"}`, ""}, {`"n":{"S":"one"}`, "FamilyDiffers TypeDiffers"}} {
		files := patternFixture()
		files["source/items.jsonl"] = &fstest.MapFile{Data: []byte(`{"pk":{"S":"a"},"sk":{"S":"1"},` + item.attributes + `}`)}
		conn := newBigtableServer(t)
		_, loaded, err := prepare(t.Context(), conn, OfFixture(files), table.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := load.Afresh(t.Context(), loaded.B, loaded.Jobs[0]); err != nil {
			t.Fatal(err)
		}
		setRule(t, conn, "letters", lens.FamilyTypes, nil)
		r, err := Verify(t.Context(), conn, OfFixture(files), VerifyOptions{Stored: true})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range r.Failures {
			got = append(got, string(f.Kind))
		}
		if strings.Join(got, " ") != item.want {
			t.Errorf("%s: failures %v, want %s\n%s", item.attributes, got, item.want, r.Text())
		}
	}
}

// noAdmin is a Bigtable that permits only reads of rows.
type noAdmin struct{ grpc.ClientConnInterface }

func (c noAdmin) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	if strings.Contains(method, "/google.bigtable.admin.") {
		return status.Error(codes.PermissionDenied, "bigtable.tables.get is denied")
	}
	return c.ClientConnInterface.Invoke(ctx, method, args, reply, opts...)
}

func TestCompare_FamiliesNotAllowed(t *testing.T) {
	t.Parallel()
	src, m := comments(t, "versions: 4", "")
	conn, o := newCollected(t, commentsEpoch)
	o.Mappings = []*mapping.Mapping{m}
	if _, err := Load(t.Context(), conn, src, LoadOptions{Common: o.Common}); err != nil {
		t.Fatal(err)
	}
	r, err := Verify(t.Context(), noAdmin{conn}, OfSource(src), VerifyOptions{Common: o.Common, Stored: true})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, r)
	if c := checkNamed(t, r, compare.FamiliesCheck); c.State != report.CheckSkipped || !strings.Contains(c.Detail, "bigtable.tables.get is denied") {
		t.Errorf("check %+v", c)
	}
}
