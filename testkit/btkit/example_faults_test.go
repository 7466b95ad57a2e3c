package btkit_test

import (
	"context"
	"fmt"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/test/faketb"
	"github.com/tabletop-emu/tabletop/testkit/btkit"
)

// A write whose answer is lost: a client that repeats it adds twice.
func ExampleEnv_Fail() {
	t := faketb.New() // in a test: its *testing.T
	defer t.End()
	ctx := t.Context()
	env := btkit.Start(t)
	admin := env.BigtableAdmin(t)
	must(admin.CreateTable(ctx, "orders"))
	must(admin.CreateColumnFamily(ctx, "orders", "o"))
	orders := env.Bigtable(t).Open("orders")

	fault := env.Fail("ReadModifyWriteRow", status.Error(codes.Unavailable, "the connection broke"),
		btkit.OnRow("customer7"), btkit.Times(1), btkit.Applied())
	visit := bigtable.NewReadModifyWrite()
	visit.Increment("o", "visits", 1)
	_, err := orders.ApplyReadModifyWrite(ctx, "customer7", visit)
	fmt.Println(err)
	env.Advance(time.Second)
	_, err = orders.ApplyReadModifyWrite(ctx, "customer7", visit) // as a caller might
	fmt.Println(err, fault.Hits())
	env.CheckRow(t, "orders", "customer7", "o:visits = 0000000000000002", "o:visits = 0000000000000001")
	// Output:
	// rpc error: code = Unavailable desc = the connection broke
	// <nil> 1
}

// Time passes on the environment's clock, without a wait.
func ExampleEnv_Latency() {
	t := faketb.New() // in a test: its *testing.T
	defer t.End()
	env := btkit.Start(t, btkit.WithFrozenClock(time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC)))
	env.Latency("CreateTable", 90*time.Second)

	must(env.BigtableAdmin(t).CreateTable(t.Context(), "orders"))
	fmt.Println(env.Now().Format(time.TimeOnly))

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := env.BigtableAdmin(t).CreateTable(ctx, "invoices")
	fmt.Println(status.Code(err))
	// Output:
	// 09:01:30
	// DeadlineExceeded
}

// A stream that breaks off: the official client continues at that row.
func ExampleEnv_CutReadRows() {
	t := faketb.New() // in a test: its *testing.T
	defer t.End()
	ctx := t.Context()
	env := btkit.Start(t)
	admin := env.BigtableAdmin(t)
	must(admin.CreateTable(ctx, "orders"))
	must(admin.CreateColumnFamily(ctx, "orders", "o"))
	orders := env.Bigtable(t).Open("orders")
	for _, key := range []string{"a", "b", "c"} {
		set := bigtable.NewMutation()
		set.Set("o", "total", 1000, []byte("42"))
		must(orders.Apply(ctx, key, set))
	}

	cut := env.CutReadRows(2, status.Error(codes.Unavailable, "the connection broke"), btkit.Times(1))
	must(orders.ReadRows(ctx, bigtable.InfiniteRange(""), func(r bigtable.Row) bool {
		fmt.Print(r.Key(), " ")
		return true
	}))
	fmt.Println("cut", cut.Hits())
	// Output: a b c cut 1
}

// A request that arrives twice.
func ExampleEnv_Duplicate() {
	t := faketb.New() // in a test: its *testing.T
	defer t.End()
	ctx := t.Context()
	env := btkit.Start(t)
	admin := env.BigtableAdmin(t)
	must(admin.CreateTable(ctx, "orders"))
	must(admin.CreateColumnFamily(ctx, "orders", "o"))

	env.Duplicate("MutateRow", btkit.OnTable("orders"))
	set := bigtable.NewMutation()
	set.Set("o", "total", 1000, []byte("42")) // with its own timestamp, two writes are the same as one
	must(env.Bigtable(t).Open("orders").Apply(ctx, "a", set))
	fmt.Print(env.Dump("orders"))
	// Output:
	// a [61]
	//   o:total @1000 = "42"
}
