package control_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/internal/sqlclient"
)

type sqlAnswer struct {
	Columns []struct{ Name, Type string }
	Rows    [][]any
	More    bool
	Request *struct {
		shownRequest
		Statement      string
		Rows, RowsRead int
	}
}

// TestSQL: a query returns its columns and rows, within a limit, and is recorded with the rows that it read.
func TestSQL(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.createRows("t", "a", "b", "c")
	e.must("DELETE", "requests", "", nil)
	var got sqlAnswer
	e.must("POST", "sql", `{"query":"SELECT _key AS k, _key > 'b' AS late, 9007199254740993 AS n, 1 AS n FROM t WHERE _key >= @from AND @yes","params":["from:BYTES=b","yes:BOOL=true"]}`, &got)
	if text := fmt.Sprint(got.Columns, got.Rows, got.More); text != "[{k BYTES} {late BOOL} {n INT64} {n INT64}] [[b false 9007199254740993 1] [c true 9007199254740993 1]] false" {
		t.Errorf("the answer is %s", text)
	}
	if q := got.Request; q == nil || q.Operation != "ExecuteQuery" || q.RowsRead != 2 || !strings.HasPrefix(q.Statement, "SELECT _key AS k") || q.Table != "projects/p/instances/i/tables/t" {
		t.Errorf("the execution is %+v", q)
	}
	got = sqlAnswer{}
	e.must("POST", "sql", `{"query":"SELECT _key FROM t","limit":2,"instance":"i","project":"p"}`, &got)
	if len(got.Rows) != 2 || !got.More {
		t.Errorf("with a limit: %+v", got)
	}
	e.must("POST", "sql", `{"query":"SELECT 1 AS one FROM t WHERE FALSE"}`, &got)
	if got.Rows == nil || len(got.Rows) != 0 {
		t.Errorf("without rows: %+v", got)
	}
	for body, want := range map[string]string{
		`{"query":"SELECT nosuch FROM t"}`:                         "Unrecognized name: nosuch [at 1:8]",
		`{"query":"SELECT 1","params":["k=1"]}`:                    `params: "k=1" must be NAME:TYPE=VALUE`,
		`{"query":"SELECT 1","limit":-1}`:                          "limit is -1, want 1 to 1000",
		`{"query":"SELECT _key FROM t","instance":"none"}`:         "Table not found: t",
		`{"query":"SELECT 1 / (LENGTH(_key) - 1) AS n FROM t"}`:    "division by zero",
		`{"query":"SELECT _key FROM t WHERE _key = @k","par":"k"}`: "par",
	} {
		var refused failed
		if code := e.ask("POST", "sql", body, &refused); code != http.StatusBadRequest || !strings.Contains(refused.Error.Text, want) {
			t.Errorf("%s: %d %+v, want %s", body, code, refused, want)
		}
	}
}

// TestRequests_SQL: the execution of a query has its statement and the rows that it read, and its preparation is
// a call of it.
func TestRequests_SQL(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.createRows("t", "a", "b", "c")
	e.must("DELETE", "requests", "", nil)
	for _, query := range []string{"SELECT COUNT(*) AS n FROM t", "SELECT nosuch FROM t"} {
		rows, err := sqlclient.Run(t.Context(), e.lab.Bigtable().Conn(), sqlclient.Query{Instance: "projects/p/instances/i", Text: query})
		if err != nil {
			continue
		}
		for range rows.All() { // its errors have no reason
		}
		rows.Close()
	}
	var listed struct {
		Requests []struct {
			shownRequest
			Statement      string
			Rows, RowsRead int
		}
	}
	e.must("GET", "requests", "", &listed)
	slices.Reverse(listed.Requests)
	if len(listed.Requests) != 3 {
		t.Fatalf("the list has %+v", listed.Requests)
	}
	prepared, executed, refused := listed.Requests[0], listed.Requests[1], listed.Requests[2]
	const text, table = "SELECT COUNT(*) AS n FROM t", "projects/p/instances/i/tables/t"
	if prepared.Operation != "PrepareQuery" || prepared.Statement != text || prepared.Table != table || prepared.Cause == "" || prepared.Cause != executed.RequestID {
		t.Errorf("the preparation is %+v, of %s", prepared, executed.RequestID)
	}
	if executed.Operation != "ExecuteQuery" || executed.Statement != text || executed.Table != table || executed.Rows != 1 || executed.RowsRead != 3 || executed.Cause != "" {
		t.Errorf("the execution is %+v", executed)
	}
	if refused.Operation != "PrepareQuery" || refused.Statement != "SELECT nosuch FROM t" || refused.Cause != "" || refused.Status != "InvalidArgument" {
		t.Errorf("the refused one is %+v", refused)
	}
	var whole shownRequest
	e.must("GET", "requests/"+jsonOf(executed.ID), "", &whole)
	if len(whole.Calls) != 1 || whole.Calls[0].ID != prepared.ID {
		t.Errorf("its calls are %+v", whole.Calls)
	}
}
