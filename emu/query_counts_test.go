package emu

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/emu/internal/instancedef"
	"github.com/tabletop-emu/tabletop/engine"
)

// sql prepares and runs a query to its end.
func (e *env) sql(text string) error {
	e.t.Helper()
	p, err := e.data.PrepareQuery(e.ctx(), &btpb.PrepareQueryRequest{InstanceName: testInstance, Query: text})
	if err != nil {
		return err
	}
	stream, err := e.data.ExecuteQuery(e.ctx(), &btpb.ExecuteQueryRequest{InstanceName: testInstance, PreparedQuery: p.GetPreparedQuery()})
	for err == nil {
		_, err = stream.Recv()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// keyLoad returns the load of each key of table t since a time.
func (e *env) keyLoad() map[string]LoadCounts {
	m := e.srv.LoadMap(time.Time{}, e.clock.Now().Add(time.Hour), time.Second, 100, LoadPlace{instancedef.ImplicitCluster, testTable})
	out := map[string]LoadCounts{}
	for _, k := range m.Keys {
		out[string(k.First)] = k.LoadCounts
	}
	return out
}

// TestObserve_SQL: the observer sees the text of a query, its tables, and the rows that it read and returned.
func TestObserve_SQL(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen []string
	e := newEnvWith(t, Options{Observe: func(c *Call) {
		if !strings.HasSuffix(c.Method, "Query") {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		line := fmt.Sprintf("%s %v rows=%d bytes=%v", c.Method[strings.LastIndexByte(c.Method, '/')+1:], status.Code(c.Err), c.Rows, c.Bytes > 0)
		if c.Query != nil {
			line += fmt.Sprintf(" of %q %v read=%d", c.Query.Text, c.Query.Tables, c.Query.RowsRead)
		}
		seen = append(seen, line)
	}}, engine.Options{})
	e.createTable("t", "f")
	for _, key := range []string{"a", "b", "c"} {
		e.put(key)
	}
	for _, query := range []string{"SELECT COUNT(*) AS n FROM t WHERE _key > 'a'", "SELECT 1 AS one", "SELECT nosuch FROM t", "SELECT 1 / LENGTH(REPLACE(_key, 'b', '')) AS n FROM t"} {
		_ = e.sql(query) // the observer sees the error
	}
	if _, err := e.data.PrepareQuery(e.ctx(), &btpb.PrepareQueryRequest{InstanceName: testInstance + "/x", Query: "SELECT 1"}); err == nil {
		t.Error("a bad instance is accepted")
	}
	stream, err := e.data.ExecuteQuery(e.ctx(), &btpb.ExecuteQueryRequest{InstanceName: testInstance, PreparedQuery: []byte("what?")})
	if err == nil {
		_, err = stream.Recv()
	}
	if err == nil {
		t.Error("an unknown query is accepted")
	}
	const table = "[" + testTable + "]"
	want := []string{
		`PrepareQuery OK rows=0 bytes=false of "SELECT COUNT(*) AS n FROM t WHERE _key > 'a'" ` + table + ` read=0`,
		`ExecuteQuery OK rows=1 bytes=true of "SELECT COUNT(*) AS n FROM t WHERE _key > 'a'" ` + table + ` read=2`,
		`PrepareQuery OK rows=0 bytes=false of "SELECT 1 AS one" [] read=0`,
		`ExecuteQuery OK rows=1 bytes=true of "SELECT 1 AS one" [] read=0`,
		`PrepareQuery InvalidArgument rows=0 bytes=false of "SELECT nosuch FROM t" [] read=0`,
		`PrepareQuery OK rows=0 bytes=false of "SELECT 1 / LENGTH(REPLACE(_key, 'b', '')) AS n FROM t" ` + table + ` read=0`,
		`ExecuteQuery OutOfRange rows=0 bytes=false of "SELECT 1 / LENGTH(REPLACE(_key, 'b', '')) AS n FROM t" ` + table + ` read=2`,
		`PrepareQuery InvalidArgument rows=0 bytes=false`,
		`ExecuteQuery InvalidArgument rows=0 bytes=false`,
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(seen, want) {
		t.Errorf("seen\n%s\nwant\n%s", strings.Join(seen, "\n"), strings.Join(want, "\n"))
	}
}

// TestLoad_SQL: the rows that a query reads count as those of ReadRows do, at their keys.
func TestLoad_SQL(t *testing.T) {
	t.Parallel()
	load := func(read func(e *env)) map[string]LoadCounts {
		e := newEnvWith(t, Options{CountLoad: true}, engine.Options{})
		e.createTable("t", "f", "g")
		for _, key := range []string{"a", "b", "c"} {
			e.put(key)
		}
		e.clock.Advance(time.Minute)
		read(e)
		counts := e.keyLoad()
		for key, c := range counts {
			if c.Writes > 0 { // that of the put
				c.Writes, c.Rows, c.Bytes = 0, c.Rows-1, c.Bytes-uint64(len(key)+len("q")+len("v"))
				counts[key] = c
			}
		}
		return counts
	}
	of := &btpb.RowSet{RowRanges: []*btpb.RowRange{{StartKey: &btpb.RowRange_StartKeyClosed{StartKeyClosed: []byte("b")}}}}
	want := load(func(e *env) {
		if _, err := e.read(&btpb.ReadRowsRequest{TableName: testTable, Rows: of}); err != nil {
			t.Fatal(err)
		}
	})
	got := load(func(e *env) {
		if err := e.sql("SELECT * FROM t WHERE _key >= 'b'"); err != nil {
			t.Fatal(err)
		}
	})
	if fmt.Sprint(got) != fmt.Sprint(want) || got["b"] != (LoadCounts{Reads: 1, Rows: 1, Bytes: 3}) || got["a"] != (LoadCounts{}) {
		t.Errorf("the load is %+v, that of ReadRows is %+v", got, want)
	}
	keys := load(func(e *env) {
		if err := e.sql("SELECT _key FROM t LIMIT 2"); err != nil {
			t.Fatal(err)
		}
	})
	if keys["a"] != (LoadCounts{Rows: 1, Bytes: 1}) || keys["b"] != (LoadCounts{Rows: 1, Bytes: 1}) || keys["c"] != (LoadCounts{}) || keys[""] != (LoadCounts{Reads: 1}) {
		t.Errorf("the load of a limited query is %+v", keys)
	}
}
