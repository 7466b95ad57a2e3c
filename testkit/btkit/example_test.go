package btkit_test

import (
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/test/faketb"
	"github.com/tabletop-emu/tabletop/testkit/btkit"
)

// A test of an application that uses only Bigtable: its clock, its faults and its rows.
func Example() {
	t := faketb.New() // in a test: its *testing.T
	defer t.End()
	ctx := t.Context()
	env := btkit.Start(t, btkit.WithFrozenClock(time.Unix(1_700_000_000, 0)))

	admin := env.BigtableAdmin(t)
	must(admin.CreateTable(ctx, "orders"))
	must(admin.CreateColumnFamilyWithConfig(ctx, "orders", "o", bigtable.Family{GCPolicy: bigtable.MaxAgePolicy(time.Hour)}))

	// The client retries a write that failed once.
	lost := env.Fail("MutateRow", status.Error(codes.Unavailable, "scripted"), btkit.OnRow("customer7#0001"), btkit.Times(1))
	m := bigtable.NewMutation()
	m.Set("o", "total", bigtable.Time(env.Now()), []byte("42"))
	must(env.Bigtable(t).Open("orders").Apply(ctx, "customer7#0001", m))
	fmt.Println(lost.Hits(), "attempt failed")
	env.CheckRow(t, "orders", "customer7#0001", `o:total = "42"`)

	before := env.Snapshot()
	env.Advance(2 * time.Hour)
	fmt.Println(env.RunGC(), "cell collected")
	env.Restore(before)
	fmt.Print(env.Dump("orders"))
	// Output:
	// 1 attempt failed
	// 1 cell collected
	// customer7#0001 [637573746f6d6572372330303031]
	//   o:total @1700000000000000 = "42"
}

// The Bigtable endpoint: official clients on a private server.
func ExampleEnv_Bigtable() {
	t := faketb.New() // in a test: its *testing.T
	defer t.End()
	ctx := t.Context()
	env := btkit.Start(t)

	admin := env.BigtableAdmin(t)
	must(admin.CreateTable(ctx, "orders"))
	must(admin.CreateColumnFamily(ctx, "orders", "o"))

	orders := env.Bigtable(t).Open("orders")
	set := bigtable.NewMutation()
	set.Set("o", "total", 1000, []byte("42"))
	must(orders.Apply(ctx, "customer7#0001", set))

	must(orders.ReadRows(ctx, bigtable.PrefixRange("customer7#"), func(r bigtable.Row) bool {
		fmt.Printf("%s %s\n", r.Key(), r["o"][0].Value)
		return true
	}))
	// Output: customer7#0001 42
}

// One start, many cases: each begins with the same tables and rows.
func ExampleEnv_Restore() {
	t := faketb.New() // in a test: its *testing.T
	defer t.End()
	ctx := t.Context()
	env := btkit.Start(t)
	admin := env.BigtableAdmin(t)
	must(admin.CreateTable(ctx, "orders"))
	must(admin.CreateColumnFamily(ctx, "orders", "o"))
	base := env.Snapshot()

	for _, key := range []string{"a", "b"} {
		env.Restore(base)
		set := bigtable.NewMutation()
		set.Set("o", "total", 1000, []byte("42"))
		must(env.Bigtable(t).Open("orders").Apply(ctx, key, set))
		fmt.Print(env.DumpAll())
	}
	// Output:
	// table orders
	// # family o, gc never
	// a [61]
	//   o:total @1000 = "42"
	// table orders
	// # family o, gc never
	// b [62]
	//   o:total @1000 = "42"
}

// A failed check shows a diff.
func ExampleEnv_CheckRow() {
	t := faketb.New() // in a test: its *testing.T
	defer t.End()
	ctx := t.Context()
	env := btkit.Start(t)
	admin := env.BigtableAdmin(t)
	must(admin.CreateTable(ctx, "orders"))
	must(admin.CreateColumnFamily(ctx, "orders", "o"))
	set := bigtable.NewMutation()
	set.Set("o", "state", 1000, []byte("paid"))
	set.Set("o", "total", 1000, []byte("42"))
	must(env.Bigtable(t).Open("orders").Apply(ctx, "a", set))

	env.CheckRow(t, "orders", "a",
		`o:state = "paid"`,
		`o:total @1000 = "43"`)
	// Output:
	// failed: testkit: row "a" of table orders differs (- want, + got):
	//     o:state = "paid"
	//   - o:total @1000 = "43"
	//   + o:total @1000 = "42"
}

// Expired cells are deleted a minute later, as in the service.
func ExampleWithGC() {
	t := faketb.New() // in a test: its *testing.T
	defer t.End()
	ctx := t.Context()
	env := btkit.Start(t, btkit.WithGC(btkit.GCBackground))
	admin := env.BigtableAdmin(t)
	must(admin.CreateTable(ctx, "orders"))
	must(admin.CreateColumnFamilyWithConfig(ctx, "orders", "o", bigtable.Family{GCPolicy: bigtable.MaxVersionsGCPolicy(1)}))
	set := bigtable.NewMutation()
	set.Set("o", "total", 1000, []byte("42"))
	set.Set("o", "total", 2000, []byte("43"))
	must(env.Bigtable(t).Open("orders").Apply(ctx, "a", set))

	fmt.Println(strings.Count(env.Dump("orders"), "o:total"))
	env.Advance(time.Minute)
	fmt.Println(strings.Count(env.Dump("orders"), "o:total"))
	// Output:
	// 2
	// 1
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
