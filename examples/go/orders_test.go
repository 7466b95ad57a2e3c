package orders

import (
	"errors"
	"slices"
	"testing"

	"github.com/tabletop-emu/tabletop/testkit"
)

// start returns both stores over the same rows, which begin with the orders of ../orders.
func start(t *testing.T) (*testkit.Env, map[string]Store) {
	t.Helper()
	env := testkit.Start(t, testkit.WithSeedFiles("../orders"))
	return env, map[string]Store{"DynamoDB": &DynamoDB{env.DynamoDB(t)}, "Bigtable": NewBigtable(env.Bigtable(t))}
}

// TestStore: each store changes the orders, and both read the result.
func TestStore(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"DynamoDB", "Bigtable"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, stores := start(t)
			store, ctx := stores[name], t.Context()
			if err := store.Place(ctx, "ada", "2024-03", 5); err != nil {
				t.Fatal(err)
			}
			if err := store.Place(ctx, "ada", "2024-03", 6); !errors.Is(err, ErrExists) {
				t.Errorf("an order placed twice: %v, want %v", err, ErrExists)
			}
			if err := store.Pay(ctx, "ada", "2024-01"); err != nil {
				t.Fatal(err)
			}
			for _, id := range []string{"2024-01", "2024-02", "none"} {
				if err := store.Pay(ctx, "ada", id); !errors.Is(err, ErrNotOpen) {
					t.Errorf("order %s paid again: %v, want %v", id, err, ErrNotOpen)
				}
			}
			want := []Order{{"ada", "2024-01", "paid", 42}, {"ada", "2024-02", "paid", 7}, {"ada", "2024-03", "open", 5}}
			for reader, other := range stores {
				if got, err := other.Of(ctx, "ada"); err != nil || !slices.Equal(got, want) {
					t.Errorf("%s reads %v, %v; want %v", reader, got, err, want)
				}
			}
		})
	}
}

// TestRows: the row of an order is what mapping.yaml says.
func TestRows(t *testing.T) {
	t.Parallel()
	env, stores := start(t)
	if err := stores["DynamoDB"].Place(t.Context(), "cy", "1", 5); err != nil {
		t.Fatal(err)
	}
	env.CheckRow(t, "orders", "cy#1", `o:status = "open"`, `o:total = "5"`)
}
