package btkit_test

import (
	"fmt"

	"cloud.google.com/go/bigtable"

	"github.com/tabletop-emu/tabletop/internal/test/faketb"
	"github.com/tabletop-emu/tabletop/testkit/btkit"
)

// A backup keeps the state of a table; a restore creates another table from it.
func ExampleEnv_Backup() {
	t := faketb.New() // in a test: its *testing.T
	defer t.End()
	ctx := t.Context()
	env := btkit.Start(t)

	admin := env.BigtableAdmin(t)
	must(admin.CreateTable(ctx, "orders"))
	must(admin.CreateColumnFamily(ctx, "orders", "o"))
	set := func(total string) {
		m := bigtable.NewMutation()
		m.Set("o", "total", 1000, []byte(total))
		must(env.Bigtable(t).Open("orders").Apply(ctx, "customer7#0001", m))
	}
	set("42")
	backup := env.Backup(t, "orders")
	set("0")
	env.RestoreBackup(t, backup, "orders-of-before")

	fmt.Print(env.Dump("orders-of-before"))
	// Output:
	// customer7#0001 [637573746f6d6572372330303031]
	//   o:total @1000 = "42"
}
