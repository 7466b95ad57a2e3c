package emu_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// TestQuery_LambdaManyColumns sorts groups, and rows with window functions, by a lambda over the last of many columns.
func TestQuery_LambdaManyColumns(t *testing.T) {
	t.Parallel()
	const columns = 1100
	for _, c := range []struct{ item, tail string }{
		{"x - %d AS c%d", "GROUP BY 1"},
		{"SUM(x - %d) OVER (PARTITION BY x) AS c%d", ""},
	} {
		var items strings.Builder
		tail := c.tail
		for i := range columns {
			fmt.Fprintf(&items, c.item+", ", i, i)
			if tail != "" && i > 0 {
				tail += fmt.Sprintf(", %d", i+1)
			}
		}
		query := fmt.Sprintf("SELECT %s FROM UNNEST([1, 3, 2]) AS x %s ORDER BY ARRAY_TRANSFORM([1000], y -> y - c%d)[0]", items.String(), tail, columns-1)
		var got []int64
		err := eachOf(t.Context(), t, query, 64<<20, func(row []value.Value) { got = append(got, row[0].Int64()) })
		if err != nil || fmt.Sprint(got) != "[3 2 1]" {
			t.Errorf("%s: %v, %v", c.item, got, err)
		}
	}
}
