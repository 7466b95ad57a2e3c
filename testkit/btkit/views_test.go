package btkit_test

import (
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/iam/apiv1/iampb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/testkit/btkit"
)

// viewOf creates the table t with a row, and a view v of it, which counts rows by their cities.
func viewOf(t *testing.T, env *btkit.Env) (write func(row, city string)) {
	t.Helper()
	createTable(t, env, "t", 1, "f")
	table := env.Bigtable(t).OpenTable("t")
	write = func(row, city string) {
		m := bigtable.NewMutation()
		m.Set("f", "city", 1000, []byte(city))
		if err := table.Apply(t.Context(), row, m); err != nil {
			t.Fatal(err)
		}
	}
	write("r1", "Paris")
	_, err := btapb.NewBigtableInstanceAdminClient(env.Conn()).CreateMaterializedView(t.Context(), &btapb.CreateMaterializedViewRequest{
		Parent: instanceOf(env), MaterializedViewId: "v",
		MaterializedView: &btapb.MaterializedView{Query: "SELECT f['city'] AS city, COUNT(*) AS n FROM t GROUP BY city"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return write
}

// rowsOf returns the number of rows of the view.
func rowsOf(t *testing.T, client *bigtable.Client) (n int, err error) {
	t.Helper()
	err = client.OpenMaterializedView("v").ReadRows(t.Context(), bigtable.InfiniteRange(""), func(bigtable.Row) bool {
		n++
		return true
	})
	return n, err
}

// A fault can be for the reads of a view alone, and one for its table leaves them unaffected.
func TestOnTable_View(t *testing.T) {
	t.Parallel()
	env := btkit.Start(t)
	viewOf(t, env)
	client := env.Bigtable(t)
	lost := status.Error(codes.DataLoss, "scripted")
	env.Fail("ReadRows", lost, btkit.OnTable("t"))
	if n, err := rowsOf(t, client); err != nil || n != 1 {
		t.Errorf("with a fault for the table, the view has %d rows, %v", n, err)
	}
	fault := env.Fail("ReadRows", lost, btkit.OnTable("v"), btkit.OnRow("Paris"), btkit.Times(1))
	if _, err := rowsOf(t, client); status.Code(err) != codes.DataLoss || fault.Hits() != 1 {
		t.Errorf("with a fault for the view: %v, %d hits", err, fault.Hits())
	}
	drop := env.Fail("DeleteMaterializedView", lost, btkit.OnTable("v"))
	_, err := btapb.NewBigtableInstanceAdminClient(env.Conn()).DeleteMaterializedView(t.Context(), &btapb.DeleteMaterializedViewRequest{Name: instanceOf(env) + "/materializedViews/v"})
	if status.Code(err) != codes.DataLoss || drop.Hits() != 1 {
		t.Errorf("a deletion of the view: %v, %d hits", err, drop.Hits())
	}
}

// A view follows its table at once, after a lag, or on request.
func TestViewLag(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lag    time.Duration
		follow func(env *btkit.Env)
	}{
		{0, func(*btkit.Env) {}},
		{time.Minute, func(env *btkit.Env) { env.Advance(time.Minute) }},
		{btkit.ManualViews, (*btkit.Env).RefreshViews},
	} {
		env := btkit.Start(t, btkit.WithViewLag(c.lag), btkit.WithFrozenClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)))
		write, client := viewOf(t, env), env.Bigtable(t)
		write("r2", "Rome")
		if n, err := rowsOf(t, client); err != nil || (n == 2) != (c.lag == 0) {
			t.Errorf("with the lag %v, a view has %d rows after a write, %v", c.lag, n, err)
		}
		c.follow(env)
		if n, err := rowsOf(t, client); err != nil || n != 2 {
			t.Errorf("with the lag %v, a view has %d rows in the end, %v", c.lag, n, err)
		}
	}
}

// A principal that may read a view needs no access to its table.
func TestWithIAM_MaterializedView(t *testing.T) {
	t.Parallel()
	env := btkit.Start(t, btkit.WithIAM())
	viewOf(t, env)
	const member = "user:reader@example.com"
	client := env.BigtableAs(t, member)
	if _, err := rowsOf(t, client); status.Code(err) != codes.PermissionDenied {
		t.Errorf("without a policy: %v", err)
	}
	_, err := btapb.NewBigtableInstanceAdminClient(env.Conn()).SetIamPolicy(t.Context(), &iampb.SetIamPolicyRequest{
		Resource: instanceOf(env) + "/materializedViews/v", Policy: &iampb.Policy{Bindings: []*iampb.Binding{{Role: "roles/bigtable.reader", Members: []string{member}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := rowsOf(t, client); err != nil || n != 1 {
		t.Errorf("with a policy: %d rows, %v", n, err)
	}
	if _, err := client.OpenTable("t").ReadRow(t.Context(), "r1"); status.Code(err) != codes.PermissionDenied {
		t.Errorf("the table: %v", err)
	}
}
