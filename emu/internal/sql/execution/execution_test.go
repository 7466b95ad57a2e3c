package execution_test

import (
	"context"
	"errors"
	"testing"

	"github.com/tabletop-emu/tabletop/emu/internal/filter"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/analysis"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/execution"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/function"
)

// tables has the table g with one row, whose first reader ends the query.
type tables struct{ end context.CancelFunc }

func (tables) Table(string) (*analysis.Table, bool) { return &analysis.Table{}, true }
func (tables) View(string) (string, bool)           { return "", false }

func (t tables) Scan(context.Context, string, filter.RowSet, bool) (execution.Source, error) {
	return &source{end: t.end}, nil
}

type source struct {
	execution.Source
	end  context.CancelFunc
	read bool
}

func (s *source) NextRow() bool {
	defer func() { s.read = true }()
	s.end()
	return !s.read
}

func (s *source) Row() []byte { return []byte("k") }
func (s *source) Err() error  { return nil }

// A query that computes for years ends with its context.
func TestRun_Canceled(t *testing.T) {
	t.Parallel()
	for _, query := range []string{
		"SELECT COUNT(*) FROM g, UNNEST(GENERATE_ARRAY(1, 1000000)), UNNEST(GENERATE_ARRAY(1, 1000000)), UNNEST(GENERATE_ARRAY(1, 1000000))",
		"SELECT ARRAY_LENGTH(ARRAY_FILTER(GENERATE_ARRAY(1, 1000000), a -> ARRAY_INCLUDES(GENERATE_ARRAY(1, 1000000), b -> ARRAY_INCLUDES(GENERATE_ARRAY(1, 1000000), c -> c < 0)))) FROM g",
	} {
		ctx, cancel := context.WithCancel(t.Context())
		plan, err := analysis.Analyze(query, analysis.Options{Catalog: tables{}})
		if err != nil {
			t.Fatal(err)
		}
		rows, err := execution.Run(ctx, plan, execution.Options{Tables: tables{cancel}, Functions: &function.Context{}, Memory: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		if row, err := rows.Next(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, %v", query, row, err)
		}
	}
}
