package btkit

import (
	"fmt"
	"strings"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/sqlclient"
	"github.com/tabletop-emu/tabletop/testkit/internal/server"
)

// WithSQLMemory limits the bytes that one SQL query holds of rows that it sorts, groups or unpacks. A
// query that needs more fails. Default: 64 MiB.
func WithSQLMemory(bytes int64) Option {
	return func(c *server.Config) { c.Lab.Bigtable.SQLMemory = bytes }
}

// SQL runs a query of Bigtable's SQL on the environment's instance, and returns its rows. An error of the
// query fails the test tb, with the place in the query. params are names of parameters and their values:
//
//	rows := env.SQL(t, "SELECT _key, o['total'] AS total FROM orders WHERE _key = @k", "k", []byte("customer7"))
//	want := []map[string]any{{"_key": "customer7", "total": "42"}}
//
// A row has its values by the names of the columns: string for STRING and BYTES, int64, float64, bool,
// time.Time in UTC, string for DATE, []any for an array, map[string]any for a family, a map or a struct, and
// nil for NULL. A parameter is a string, []byte, int, int64, float64, bool, time.Time, civil.Date, or a slice of these;
// row keys, qualifiers and values are BYTES, and need []byte.
func (e *Env) SQL(tb testing.TB, query string, params ...any) []map[string]any {
	tb.Helper()
	e.server.Use(tb)
	q := sqlclient.Query{Instance: e.server.InstanceName(), Text: query, Params: map[string]*btpb.Value{}}
	for i := 0; i < len(params); i += 2 {
		name, ok := params[i].(string)
		if !ok {
			tb.Fatalf("testkit: SQL: params must be names and values in turn, but params[%d] is %#v", i, params[i])
		}
		if i+1 == len(params) {
			tb.Fatalf("testkit: SQL: params must be names and values in turn, but the parameter %s has no value", name)
		}
		value, err := sqlclient.ParamOf(params[i+1])
		if err != nil {
			tb.Fatalf("testkit: SQL: parameter %s: %v", name, err)
		}
		q.Params[name] = value
	}
	found, err := sqlclient.Run(tb.Context(), e.Conn(), q)
	if err != nil {
		tb.Fatalf("testkit: %s", sqlFailure(query, err))
	}
	defer found.Close()
	rows := []map[string]any{}
	for row, err := range found.All() {
		if err != nil {
			tb.Fatalf("testkit: %s", sqlFailure(query, err))
		}
		values, ok := sqlclient.Go(row, found.Columns)
		if !ok {
			tb.Fatalf("testkit: SQL: two columns have the same name; rename one by AS:\n%s", query)
		}
		rows = append(rows, values)
	}
	return rows
}

// sqlFailure returns the text of an error of a query, with its place.
func sqlFailure(query string, err error) string {
	st := status.Convert(err)
	text := fmt.Sprintf("SQL: %v: %s", st.Code(), st.Message())
	if mark := sqlclient.Mark(query, err); mark != "" {
		query = mark
	}
	return text + "\n  " + strings.ReplaceAll(query, "\n", "\n  ")
}
