package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
)

// TestUpdateCatalog_Concurrent increments one resource from many goroutines and creates tables
// with it, during collections and snapshots.
func TestUpdateCatalog_Concurrent(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{})
	const goroutines, times = 8, 20
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for i := range times {
				err := d.UpdateCatalog(context.Background(), func(tx *CatalogTx) error {
					n, err := tx.Resource("n")
					if err != nil && !errors.Is(err, ErrResourceNotFound) {
						return err
					}
					if len(n) != len(tx.Tables("")) {
						t.Errorf("counted %d, there are %d tables", len(n), len(tx.Tables("")))
					}
					if _, err := tx.CreateTable(Table{Name: fmt.Sprint(g, i)}); err != nil {
						return err
					}
					return tx.PutResource("n", append(n, 'x'))
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 5 {
		s, err := d.Snapshot(t.Context())
		if err == nil {
			_, err = d.RunGC(t.Context())
		}
		if err == nil {
			err = s.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	all.Wait()
	if n, err := d.Resource("n"); err != nil || len(n) != goroutines*times || len(d.Tables("")) != goroutines*times {
		t.Errorf("%d, %d tables, error %v, want %d", len(n), len(d.Tables("")), err, goroutines*times)
	}
}

// TestCatalogTx_After uses a transaction after its end.
func TestCatalogTx_After(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{})
	for _, fail := range []error{nil, errors.New("fail")} {
		var tx *CatalogTx
		err := d.UpdateCatalog(t.Context(), func(in *CatalogTx) error {
			tx = in
			return errors.Join(tx.PutResource("a", nil), fail)
		})
		if !errors.Is(err, fail) {
			t.Fatal(err)
		}
		errs := []error{
			tx.PutResource("a", nil), tx.DeleteResource("a"), tx.DeleteTable("t"), tx.SoftDeleteTable("t"), tx.PurgeTables(""), tx.DeleteResources("a", "b"),
		}
		for _, call := range []func() error{
			func() error { _, err := tx.Resource("a"); return err },
			func() error { _, err := tx.Resources(""); return err },
			func() error { _, err := tx.Table("t"); return err },
			func() error { _, err := tx.CreateTable(Table{Name: "t"}); return err },
			func() error { _, err := tx.UpdateTable("t", nil); return err },
			func() error { _, err := tx.ModifyFamilies("t", nil); return err },
			func() error { _, err := tx.UndeleteTable("t"); return err },
		} {
			errs = append(errs, call())
		}
		for i, err := range errs {
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("call %d: error %v, want %v", i, err, ErrInvalid)
			}
		}
		if ts := tx.Tables(""); ts != nil {
			t.Errorf("tables %v", ts)
		}
	}
}

// TestResourceVersion: the version increases with a change of resources and with a restore, and not
// otherwise.
func TestResourceVersion(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{})
	refused := errors.New("no")
	var snapshot *Snapshot
	for _, step := range []struct {
		name    string
		do      func() error
		changes bool
	}{
		{"put", func() error {
			return d.UpdateCatalog(t.Context(), func(tx *CatalogTx) error { return tx.PutResource("a", nil) })
		}, true},
		{"read", func() error {
			return d.UpdateCatalog(t.Context(), func(tx *CatalogTx) error { _, err := tx.Resource("a"); return err })
		}, false},
		{"refused", func() error {
			err := d.UpdateCatalog(t.Context(), func(tx *CatalogTx) error { return errors.Join(tx.PutResource("a", nil), refused) })
			if !errors.Is(err, refused) {
				return fmt.Errorf("not refused: %w", err)
			}
			return nil
		}, false},
		{"table", func() error {
			return d.UpdateCatalog(t.Context(), func(tx *CatalogTx) error { _, err := tx.CreateTable(Table{Name: "t"}); return err })
		}, false},
		{"snapshot", func() (err error) { snapshot, err = d.Snapshot(t.Context()); return err }, false},
		{"delete", func() error {
			return d.UpdateCatalog(t.Context(), func(tx *CatalogTx) error { return tx.DeleteResource("a") })
		}, true},
		{"restore", func() error { return d.Restore(t.Context(), snapshot) }, true},
	} {
		before := d.ResourceVersion()
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if after := d.ResourceVersion(); after < before || (after != before) != step.changes {
			t.Errorf("%s: version %d after %d", step.name, after, before)
		}
	}
}
