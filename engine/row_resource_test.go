package engine

import (
	"errors"
	"testing"
)

// TestRowTx_PutResource commits a resource and a row together, or neither.
func TestRowTx_PutResource(t *testing.T) {
	t.Parallel()
	d, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	ctx := t.Context()
	version := d.ResourceVersion()
	if _, err := createTable(ctx, d, Table{Name: "t", Families: []Family{{Name: "f"}}}); err != nil {
		t.Fatal(err)
	}
	set := []Mutation{{Kind: SetCell, Family: "f", Timestamp: 1000, Value: []byte("v")}}
	refused := errors.New("no")
	for _, fail := range []bool{true, false} {
		err := d.Update(ctx, "t", []byte("r"), func(tx *RowTx) error {
			if err := tx.PutResource("early", nil); !errors.Is(err, ErrInvalid) {
				t.Errorf("before Mutate: %v", err)
			}
			if err := tx.Mutate(set); err != nil {
				return err
			}
			if err := tx.PutResource("", nil); !errors.Is(err, ErrInvalid) {
				t.Errorf("without a name: %v", err)
			}
			if err := tx.PutResource("a", []byte("1")); err != nil {
				return err
			}
			if _, err := tx.Resource("a"); !errors.Is(err, ErrResourceNotFound) {
				t.Errorf("own change: %v", err)
			}
			if fail {
				return refused
			}
			return nil
		})
		s, scanErr := d.Scan(ctx, "t", ScanOptions{})
		if scanErr != nil {
			t.Fatal(scanErr)
		}
		isRow := s.NextRow()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		value, resourceErr := d.Resource("a")
		if fail && (!errors.Is(err, refused) || isRow || !errors.Is(resourceErr, ErrResourceNotFound)) {
			t.Errorf("failed: %v, row %v, resource %v", err, isRow, resourceErr)
		}
		if !fail && (err != nil || !isRow || string(value) != "1") {
			t.Errorf("done: %v, row %v, resource %q, %v", err, isRow, value, resourceErr)
		}
	}
	var left *RowTx
	err = d.Update(ctx, "t", []byte("r"), func(tx *RowTx) error {
		left = tx
		value, err := tx.Resource("a")
		if string(value) != "1" {
			t.Errorf("resource %q, %v", value, err)
		}
		return err
	})
	if err != nil || !errors.Is(left.PutResource("a", nil), ErrInvalid) {
		t.Errorf("%v; a transaction that is over takes resources", err)
	}
	if got := d.ResourceVersion(); got != version {
		t.Errorf("the resources have version %d, %d before: resources of rows do not count", got, version)
	}
}
