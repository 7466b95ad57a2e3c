package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// TestReadModifyWrite_MaxBytes appends up to a rule's limit and not beyond it.
func TestReadModifyWrite_MaxBytes(t *testing.T) {
	t.Parallel()
	d, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	ctx := t.Context()
	if _, err := createTable(ctx, d, Table{Name: "t", Families: []Family{{Name: "f"}}}); err != nil {
		t.Fatal(err)
	}
	appendAll := func(limit int, values ...string) (string, error) {
		var rules []RuleReadModifyWrite
		for _, v := range values {
			rules = append(rules, RuleReadModifyWrite{Family: "f", Append: []byte(v), MaxBytes: limit})
		}
		cells, err := d.ReadModifyWrite(ctx, "t", []byte("r"), rules)
		if err != nil {
			return "", err
		}
		return string(cells[0].Value), nil
	}
	if got, err := appendAll(4, "ab", "cd"); err != nil || got != "abcd" {
		t.Errorf("%q, %v", got, err)
	}
	for _, values := range [][]string{{"e"}, {"", "", "e"}} {
		if got, err := appendAll(4, values...); !errors.Is(err, ErrValueTooLarge) {
			t.Errorf("append %q: %q, %v", values, got, err)
		}
	}
	if got, err := appendAll(4, ""); err != nil || got != "abcd" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := appendAll(0, "e"); err != nil || got != "abcde" {
		t.Errorf("without a limit: %q, %v", got, err)
	}
}

// TestUpdate_ScanOfACanceledCall: a scan that ended with an error is closed like
// any other, so that the store can be.
func TestUpdate_ScanOfACanceledCall(t *testing.T) {
	t.Parallel()
	d := openTest(t, Options{})
	createTest(t, d, "f")
	var muts []Mutation
	for i := range 200 {
		muts = append(muts, set("f", fmt.Sprint(i), 1000, "v"))
	}
	mustMutate(t, d, "r", muts...)
	ctx, cancel := context.WithCancel(t.Context())
	if err := d.Update(ctx, "t", []byte("r"), func(tx *RowTx) error {
		s := tx.Scan()
		cancel()
		for s.NextCell() {
		}
		return s.Err()
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}
