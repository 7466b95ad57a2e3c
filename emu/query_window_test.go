package emu_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/analysis"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/execution"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/function"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// eachOf runs a query without tables, and calls yield with each row.
func eachOf(ctx context.Context, t *testing.T, query string, memory int64, yield func(row []value.Value)) error {
	t.Helper()
	q, err := analysis.Analyze(query, analysis.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := execution.Run(ctx, q, execution.Options{Functions: &function.Context{}, Memory: memory})
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for {
		row, err := rows.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		yield(row)
	}
}

// countOf runs a query without tables and returns the number of its rows.
func countOf(ctx context.Context, t *testing.T, query string, memory int64) (n int, err error) {
	t.Helper()
	err = eachOf(ctx, t, query, memory, func([]value.Value) { n++ })
	return n, err
}

// TestQuery_WindowMemory checks that window functions respect the limit, and that the memory of each window is free
// again after it.
func TestQuery_WindowMemory(t *testing.T) {
	t.Parallel()
	const from = " FROM UNNEST(GENERATE_ARRAY(1, 2000)) AS x"
	for _, c := range []struct {
		calls string
		fits  bool
	}{
		{"ROW_NUMBER() OVER (ORDER BY x)", true},
		{"ROW_NUMBER() OVER (ORDER BY x)" + strings.Repeat(", SUM(x) OVER (PARTITION BY -x), LAST_VALUE(x) OVER (ORDER BY x + 1)", 3), true},
		{"COUNT(*) OVER (PARTITION BY REPEAT('x', 1000 + x))", false},
		{"COUNT(*) OVER (ORDER BY REPEAT('x', 1000 + x))", false},
		{"FIRST_VALUE(REPEAT('x', 1000 + x)) OVER (ORDER BY x)", false},
		{"ARRAY_AGG(x) OVER (ORDER BY x)", false},
	} {
		n, err := countOf(t.Context(), t, "SELECT "+c.calls+from, 1<<20)
		var e *value.Error
		switch {
		case c.fits && (err != nil || n != 2000):
			t.Errorf("%s: %d rows, %v", c.calls, n, err)
		case !c.fits && (!errors.As(err, &e) || e.Code != codes.ResourceExhausted || n != 0):
			t.Errorf("%s: %d rows, %v, want a query that holds too much", c.calls, n, err)
		}
	}
}

// TestQuery_WindowCanceled ends the query while an aggregate function adds the rows of its frames: after all looks of
// a query that differs in its frames alone.
func TestQuery_WindowCanceled(t *testing.T) {
	t.Parallel()
	query := func(frame string) string {
		return "SELECT SUM(x) OVER (ORDER BY x ROWS " + frame + ") FROM UNNEST(GENERATE_ARRAY(1, 1000)) AS x"
	}
	const most = 1 << 30
	small := &looks{Context: t.Context(), left: most}
	if n, err := countOf(small, t, query("CURRENT ROW"), 1<<20); err != nil || n != 1000 {
		t.Fatalf("%d rows, %v", n, err)
	}
	ended := &looks{Context: t.Context(), left: most - small.left}
	if n, err := countOf(ended, t, query("BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"), 1<<20); !errors.Is(err, context.Canceled) || n != 0 {
		t.Errorf("%d rows, %v, want a query that has ended", n, err)
	}
}

// looks is a context that ends after a number of calls of Err.
type looks struct {
	context.Context
	left int
}

func (l *looks) Err() error {
	if l.left == 0 {
		return context.Canceled
	}
	l.left--
	return nil
}
