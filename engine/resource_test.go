package engine

import (
	"context"
	"errors"
	"sync"
	"testing"
)

// TestUpdateResources_Concurrent counts in one resource from many goroutines,
// beside calls of tables and collections from inside.
func TestUpdateResources_Concurrent(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{})
	if err := d.PutResource(t.Context(), "n", nil); err != nil {
		t.Fatal(err)
	}
	const goroutines, times = 8, 20
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for i := range times {
				err := d.UpdateResources(context.Background(), func(tx *ResourceTx) error {
					n, err := tx.Resource("n")
					if err != nil {
						return err
					}
					if i == 0 {
						if _, err := d.CreateTable(context.Background(), Table{Name: string(rune('a' + g))}); err != nil {
							return err
						}
						if _, err := d.RunGC(context.Background()); err != nil {
							return err
						}
					}
					return tx.Put("n", append(n, 'x'))
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 5 {
		s, err := d.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	all.Wait()
	if n, err := d.Resource("n"); err != nil || len(n) != goroutines*times {
		t.Errorf("%d, error %v, want %d", len(n), err, goroutines*times)
	}
}

// TestResourceTx_After uses a transaction that is over.
func TestResourceTx_After(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{})
	var over *ResourceTx
	if err := d.UpdateResources(t.Context(), func(tx *ResourceTx) error { over = tx; return tx.Put("a", nil) }); err != nil {
		t.Fatal(err)
	}
	_, get := over.Resource("a")
	_, list := over.Resources("")
	for _, err := range []error{get, list, over.Put("a", nil), over.Delete("a")} {
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("error %v, want %v", err, ErrInvalid)
		}
	}
}
