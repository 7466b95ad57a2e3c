package btkit_test

import (
	"fmt"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tabletop-emu/tabletop/internal/test/faketb"
	"github.com/tabletop-emu/tabletop/testkit/btkit"
)

// The writes of a program, as consumers of the table's change stream get them.
func ExampleEnv_Changes() {
	t := faketb.New() // in a test: its *testing.T
	defer t.End()
	ctx := t.Context()
	env := btkit.Start(t)

	must(env.BigtableAdmin(t).CreateTableFromConf(ctx, &bigtable.TableConf{
		TableID: "orders", ChangeStreamRetention: 24 * time.Hour,
		ColumnFamilies: map[string]bigtable.Family{"o": {}},
	}))
	orders := env.Bigtable(t).Open("orders")
	paid := bigtable.NewMutation()
	paid.Set("o", "total", 1000, []byte("42"))
	paid.DeleteCellsInColumn("o", "open")
	must(orders.Apply(ctx, "customer7#0001", paid))
	gone := bigtable.NewMutation()
	gone.DeleteRow()
	must(orders.Apply(ctx, "customer7#0002", gone))

	for _, c := range env.Changes(t, "orders") {
		fmt.Println(c)
	}
	// Output:
	// customer7#0001: o:total @1000 = "42"; delete o:open
	// customer7#0002: delete o
}

// A consumer under test, and a test that waits for its writes.
func ExampleEnv_ReadChanges() {
	t := faketb.New() // in a test: its *testing.T
	defer t.End()
	ctx := t.Context()
	// Partitions are split and merged during reads: consumers must follow.
	env := btkit.Start(t, btkit.WithPartitionChurn(0.1))

	must(env.BigtableAdmin(t).CreateTableFromConf(ctx, &bigtable.TableConf{
		TableID: "orders", ChangeStreamRetention: 24 * time.Hour,
		ColumnFamilies: map[string]bigtable.Family{"o": {}},
	}))
	orders, changes := env.Bigtable(t).Open("orders"), env.ReadChanges(t, "orders")
	done := make(chan struct{})
	go func() { // the program under test
		defer close(done)
		paid := bigtable.NewMutation()
		paid.Set("o", "state", 1000, []byte("paid"))
		must(orders.Apply(ctx, "customer7#0001", paid))
	}()

	fmt.Println(changes.Next()) // waits
	<-done
	fmt.Println(len(changes.Rest()))
	// Output:
	// customer7#0001: o:state @1000 = "paid"
	// 0
}
