package btkit_test

import (
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/civil"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/test/faketb"
	"github.com/tabletop-emu/tabletop/testkit/btkit"
)

// TestSQL: each type has its Go value, in the order of the query.
func TestSQL(t *testing.T) {
	t.Parallel()
	env := btkit.Start(t, btkit.WithFrozenClock(time.Unix(1_700_000_000, 0)))
	createTable(t, env, "users", 2, "f")
	set(t, env, "users", "u#2", "f", "\xff", []byte("Zoë"))
	set(t, env, "users", "u#1", "f", "name", []byte("Ada"))
	at := time.Unix(1_700_000_000, 0).UTC()
	for query, c := range map[string]struct {
		params []any
		want   []map[string]any
	}{
		"SELECT * FROM users ORDER BY _key DESC": {nil, []map[string]any{
			{"_key": "u#2", "f": map[string]any{"\xff": "Zoë"}}, {"_key": "u#1", "f": map[string]any{"name": "Ada"}},
		}},
		"SELECT f['name'] AS h FROM users(with_history => TRUE) WHERE _key = @k": {[]any{"k", []byte("u#1")}, []map[string]any{
			{"h": []any{map[string]any{"timestamp": at, "value": "Ada"}}},
		}},
		"SELECT 1 AS i, 0.5 AS f, TRUE AS b, 'x' AS s, DATE '2024-01-02' AS d, CAST(NULL AS STRING) AS n, [1, 2] AS a": {nil, []map[string]any{
			{"i": int64(1), "f": 0.5, "b": true, "s": "x", "d": "2024-01-02", "n": nil, "a": []any{int64(1), int64(2)}},
		}},
		"SELECT @s AS s, @i AS i, @f AS f, @b AS b, @t AS t, ARRAY_LENGTH(@l) AS l": {
			[]any{"s", "a", "i", 7, "f", 1.5, "b", false, "t", at, "l", []string{"a", "b"}},
			[]map[string]any{{"s": "a", "i": int64(7), "f": 1.5, "b": false, "t": at, "l": int64(2)}},
		},
		"SELECT DATE_ADD(@d, INTERVAL 1 DAY) AS d":           {[]any{"d", civil.Date{Year: 2024, Month: 2, Day: 28}}, []map[string]any{{"d": "2024-02-29"}}},
		"SELECT _key FROM users WHERE _key IN UNNEST(@keys)": {[]any{"keys", [][]byte{[]byte("u#2"), []byte("u#9")}}, []map[string]any{{"_key": "u#2"}}},
		"SELECT STRUCT(1, 2) AS s":                           {nil, []map[string]any{{"s": []any{int64(1), int64(2)}}}},
		"SELECT _key FROM users WHERE _key = 'no'":           {nil, []map[string]any{}},
	} {
		if diff := cmp.Diff(c.want, env.SQL(t, query, c.params...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
}

// TestSQL_Failures: a failed query names its error and the place of it.
func TestSQL_Failures(t *testing.T) {
	t.Parallel()
	env := btkit.Start(t, btkit.WithSQLMemory(2000))
	createTable(t, env, "users", 1, "f")
	for query, c := range map[string]struct {
		params []any
		want   string
	}{
		"SELECT *\nFROM users\nWHERE nosuch = 1": {nil, "testkit: SQL: InvalidArgument: Unrecognized name: nosuch [at 3:7]\n  WHERE nosuch = 1\n        ^"},
		"SELECT 1 AS a, 2 AS a":                  {nil, "two columns have the same name; rename one by AS"},
		"SELECT @k AS k":                         {[]any{"k"}, `params must be names and values in turn, but the parameter k has no value`},
		"SELECT @k AS j":                         {[]any{1, 2}, "params[0] is 1"},
		"SELECT @k AS l":                         {[]any{"k", nil}, "parameter k: a <nil> is not a parameter; expected string, []byte"},
		"SELECT x FROM UNNEST(GENERATE_ARRAY(1, 1000)) AS x ORDER BY x DESC": {nil, "ResourceExhausted: the query holds more than 2000 bytes"},
	} {
		if got := sqlFailure(t, env, query, c.params...); !strings.Contains(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", query, got, c.want)
		}
	}
	env.Fail("ExecuteQuery", status.Error(codes.Unavailable, "scripted"), btkit.Times(1))
	if got, want := sqlFailure(t, env, "SELECT 1 AS one"), "testkit: SQL: Unavailable: scripted\n  SELECT 1 AS one"; got != want {
		t.Errorf("after a fault:\n%s\nwant\n%s", got, want)
	}
}

// sqlFailure returns the message with which a query fails its test.
func sqlFailure(t *testing.T, env *btkit.Env, query string, params ...any) string {
	t.Helper()
	return faketb.Failure(t, func(tb testing.TB) {
		tb.Helper()
		env.SQL(tb, query, params...)
	})
}
