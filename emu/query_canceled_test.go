package emu_test

import (
	"context"
	"errors"
	"testing"
)

// TestQuery_CanceledWithoutRows ends queries that compute much without a row of a table or of the result.
func TestQuery_CanceledWithoutRows(t *testing.T) {
	t.Parallel()
	for _, query := range []string{
		"SELECT x FROM UNNEST(GENERATE_ARRAY(1, 1000)) AS x, UNNEST(GENERATE_ARRAY(1, 10)) AS y WHERE x + y < 0",
		"SELECT x FROM UNNEST(GENERATE_ARRAY(1, 1000000)) AS x WHERE x < 0",
		"SELECT COUNT(*) FROM UNNEST(GENERATE_ARRAY(1, 1000)), UNNEST(GENERATE_ARRAY(1, 1000)), UNNEST(GENERATE_ARRAY(1, 1000))",
		"SELECT ARRAY_FILTER(GENERATE_ARRAY(1, 1000000), x -> IFERROR(x < 0, FALSE))",
		"SELECT ARRAY_FILTER(GENERATE_ARRAY(1, 1000), x -> ARRAY_INCLUDES(GENERATE_ARRAY(1, 1000), y -> ARRAY_INCLUDES(GENERATE_ARRAY(1, 1000), z -> z < 0)))",
	} {
		if n, err := countOf(&looks{Context: t.Context(), left: 100}, t, query, 1<<20); !errors.Is(err, context.Canceled) || n != 0 {
			t.Errorf("%s: %d rows, %v, want a query that has ended", query, n, err)
		}
	}
}
