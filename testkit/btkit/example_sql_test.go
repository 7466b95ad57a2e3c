package btkit_test

import (
	"fmt"

	"cloud.google.com/go/bigtable"

	"github.com/tabletop-emu/tabletop/internal/test/faketb"
	"github.com/tabletop-emu/tabletop/testkit/btkit"
)

// A query of Bigtable's SQL, with its rows as Go values.
func ExampleEnv_SQL() {
	t := faketb.New() // in a test: its *testing.T
	defer t.End()
	ctx := t.Context()
	env := btkit.Start(t)

	admin := env.BigtableAdmin(t)
	must(admin.CreateTable(ctx, "orders"))
	must(admin.CreateColumnFamily(ctx, "orders", "o"))
	for key, state := range map[string]string{"customer7#1": "paid", "customer7#2": "sent", "customer8#1": "paid"} {
		set := bigtable.NewMutation()
		set.Set("o", "state", 1000, []byte(state))
		must(env.Bigtable(t).Open("orders").Apply(ctx, key, set))
	}

	for _, row := range env.SQL(t, "SELECT _key, o['state'] AS state FROM orders WHERE STARTS_WITH(_key, @prefix)", "prefix", []byte("customer7#")) {
		fmt.Println(row["_key"], row["state"])
	}
	fmt.Println(env.SQL(t, "SELECT o['state'] AS state, COUNT(*) AS n FROM orders GROUP BY state ORDER BY state"))
	// Output:
	// customer7#1 paid
	// customer7#2 sent
	// [map[n:2 state:paid] map[n:1 state:sent]]
}
