package emu_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
)

// createView creates a materialized view of the instance of newSQL.
func createView(tb testing.TB, conn grpc.ClientConnInterface, id, query string) error {
	tb.Helper()
	_, err := btapb.NewBigtableInstanceAdminClient(conn).CreateMaterializedView(tb.Context(), &btapb.CreateMaterializedViewRequest{
		Parent: sqlInstance, MaterializedViewId: id, MaterializedView: &btapb.MaterializedView{Query: query},
	})
	return err
}

func mustCreateView(tb testing.TB, conn grpc.ClientConnInterface, id, query string) {
	tb.Helper()
	if err := createView(tb, conn, id, query); err != nil {
		tb.Fatalf("%s: %v", query, err)
	}
}

// viewText returns the rows of a materialized view as ReadRows shows them, a cell a line.
func viewText(tb testing.TB, conn grpc.ClientConnInterface, id string) string {
	tb.Helper()
	stream, err := btpb.NewBigtableClient(conn).ReadRows(tb.Context(), &btpb.ReadRowsRequest{MaterializedViewName: sqlInstance + "/materializedViews/" + id})
	if err != nil {
		tb.Fatal(err)
	}
	var b strings.Builder
	row, family, qualifier := "", "", ""
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return b.String()
		}
		if err != nil {
			tb.Fatal(err)
		}
		for _, c := range m.GetChunks() {
			if len(c.GetRowKey()) > 0 {
				row = string(c.GetRowKey())
			}
			if c.GetFamilyName() != nil {
				family = c.GetFamilyName().GetValue()
			}
			if c.GetQualifier() != nil {
				qualifier = string(c.GetQualifier().GetValue())
			}
			fmt.Fprintf(&b, "%q %s:%s @%d = %q\n", row, family, qualifier, c.GetTimestampMicros(), c.GetValue())
		}
	}
}

const (
	countsByType = "SELECT SPLIT(_key, '#')[0] AS t, COUNT(*) AS n, SUM(total['n']) AS s FROM g GROUP BY t"
	byCity       = "SELECT info['city'] AS city, _key AS k, info['name'] AS name FROM g WHERE info['city'] IS NOT NULL ORDER BY city, k"
)

// The rows of a view are those of its query, at once after each change. Seen: better-bttest.
func TestMaterializedViews(t *testing.T) {
	t.Parallel()
	conn := newSQL(t).conn
	mustCreateView(t, conn, "v1", countsByType)
	mustCreateView(t, conn, "v2", byCity)
	want := func(id, query, rows, sql string) {
		t.Helper()
		if got := viewText(t, conn, id); got != rows {
			t.Errorf("%s has the rows\n%s\nwant\n%s", id, got, rows)
		}
		if got := queryText(t.Context(), conn, query, nil); got != sql {
			t.Errorf("%s:\n%s\nwant\n%s", query, got, sql)
		}
	}
	number := func(n byte) string { return `"\x00\x00\x00\x00\x00\x00\x00\x0` + string('0'+n) + `"` }
	want("v1", "SELECT * FROM v1",
		"\"u\" default: @0 = \"\"\n\"u\" default:n @0 = "+number(3)+"\n\"u\" default:s @0 = "+number(5)+"\n"+
			"\"v\" default: @0 = \"\"\n\"v\" default:n @0 = "+number(2)+"\n\"v\" default:s @0 = "+number(2)+"\n",
		"t BYTES, n INT64, s INT64\n(b'u', 3, 5)\n(b'v', 2, 2)\n")
	for query, want := range map[string]string{ // by the first fields of the key, and by others
		"SELECT name FROM v2 WHERE city = 'Rome'":                                     "name BYTES\n(b'Zo\\xc3\\xab')\n",
		"SELECT name FROM v2 WHERE city = 'Rome' AND k = 'u#003'":                     "name BYTES\n(b'Zo\\xc3\\xab')\n",
		"SELECT name FROM v2 WHERE city = 'Rom'":                                      "name BYTES\n",
		"SELECT city FROM v2 WHERE name = 'Ada' OR k = 'u#009'":                       "city BYTES\n(b'Paris')\n",
		"SELECT name, COUNT(*) AS n FROM v2 GROUP BY name ORDER BY name DESC LIMIT 1": "name BYTES, n INT64\n(b'Zo\\xc3\\xab', 1)\n",
		"SELECT s FROM (SELECT * FROM v1 WHERE t = 'v')":                              "s INT64\n(2)\n",
	} {
		if got := queryText(t.Context(), conn, query, nil); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", query, got, want)
		}
	}
	paris := `"Paris\x00\x01u#001" default: @0 = ""` + "\n" + `"Paris\x00\x01u#001" default:k @0 = "u#001"` + "\n" + `"Paris\x00\x01u#001" default:name @0 = "Ada"` + "\n"
	rome := `"Rome\x00\x01u#003" default: @0 = ""` + "\n" + `"Rome\x00\x01u#003" default:k @0 = "u#003"` + "\n" + `"Rome\x00\x01u#003" default:name @0 = "Zoë"` + "\n"
	want("v2", "SELECT * FROM v2", paris+rome, "city BYTES, k BYTES, name BYTES\n(b'Paris', b'u#001', b'Ada')\n(b'Rome', b'u#003', b'Zo\\xc3\\xab')\n")
	if got := queryText(t.Context(), conn, "SELECT _key FROM v2", nil); got != "error INVALID_ARGUMENT: Unrecognized name: _key [at 1:8]\n" {
		t.Errorf("_key of a view: %s", got)
	}

	mutate(t, conn, "u#001", &btpb.Mutation{Mutation: &btpb.Mutation_DeleteFromRow_{}})
	mutate(t, conn, "w#1", &btpb.Mutation{Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{FamilyName: "info", ColumnQualifier: []byte("city"), TimestampMicros: 1000, Value: []byte("Bonn")}}})
	want("v1", "SELECT t, n, s FROM v1 WHERE n < 3",
		"\"u\" default: @0 = \"\"\n\"u\" default:n @0 = "+number(2)+"\n"+
			"\"v\" default: @0 = \"\"\n\"v\" default:n @0 = "+number(2)+"\n\"v\" default:s @0 = "+number(2)+"\n"+
			"\"w\" default: @0 = \"\"\n\"w\" default:n @0 = "+number(1)+"\n",
		"t BYTES, n INT64, s INT64\n(b'u', 2, NULL)\n(b'v', 2, 2)\n(b'w', 1, NULL)\n")
	want("v2", "SELECT COUNT(*) AS n FROM v2", `"Bonn\x00\x01w#1" default: @0 = ""`+"\n"+`"Bonn\x00\x01w#1" default:k @0 = "w#1"`+"\n"+rome, "n INT64\n(2)\n")
}

// The refusals of the service. Seen: better-bttest.
func TestMaterializedViews_Refusals(t *testing.T) {
	t.Parallel()
	conn := newSQL(t).conn
	const many = "This query is not valid. Please ensure that all parts of the query are valid"
	for query, want := range map[string]string{
		"SELECT _key AS k FROM g":                                                                   "queries must contain a GROUP BY or ORDER BY clause",
		"SELECT COUNT(*) AS n FROM g":                                                               "queries must contain a GROUP BY or ORDER BY clause",
		"SELECT _key AS k, COUNT(*) AS n FROM g GROUP BY k ORDER BY k":                              "ORDER BY is not supported with GROUP BY in materialized views.",
		"SELECT k, COUNT(*) AS n FROM (SELECT _key AS k FROM g ORDER BY k) GROUP BY k":              "ORDER BY is not supported with GROUP BY in materialized views.",
		"SELECT n, COUNT(*) AS m FROM (SELECT _key, COUNT(*) AS n FROM g GROUP BY _key) GROUP BY n": many,
		"SELECT k FROM (SELECT _key AS k FROM g ORDER BY k) ORDER BY k":                             many,
		"SELECT info['a'] AS a, _key AS k FROM g ORDER BY a DESC, k":                                "Only ascending order in ORDER BY by is supported in materialized views.",
		"SELECT _key AS k FROM g ORDER BY k LIMIT 3":                                                "Limit and offset are not supported in materialized views.",
		"SELECT COUNT(*) AS n FROM g GROUP BY SPLIT(_key, '#')[0]":                                  "every GROUP BY column must be selected in the final query",
		"SELECT _key AS k FROM g ORDER BY info['a'], k":                                             "every ORDER BY column must be selected in the final query",
		"SELECT info['a'] AS a FROM g ORDER BY a":                                                   "queries must select and order by the unmodified _key column from the source table",
		"SELECT _key, info['a'] AS a, COUNT(*) AS n FROM g GROUP BY _key, a":                        "queries that provide a _key hint must only group by _key",
		"SELECT info['a'] AS a, COUNT(*) AS _key FROM g GROUP BY a":                                 "queries that provide a _key hint must only group by _key",
		"SELECT _key AS k, COUNT(*) AS n, GENERATE_UUID() AS u FROM g GROUP BY k":                   "Only immutable functions are supported in materialized views (GoogleSQL:generate_uuid is not immutable)",
		"SELECT _key AS k, COUNT(*) AS n FROM g WHERE RAND() < 0.5 GROUP BY k":                      "Only immutable functions are supported in materialized views (GoogleSQL:rand is not immutable)",
		"SELECT info['a'] AS a, ARRAY_AGG(_key) AS n FROM g GROUP BY a":                             "Only stable functions are supported in materialized views (GoogleSQL:array_agg is not stable)",
		"SELECT info['a'] AS a, ANY_VALUE(_key) AS n FROM g GROUP BY a":                             "Only stable functions are supported in materialized views (GoogleSQL:any_value is not stable)",
		"SELECT * FROM g ORDER BY _key":                                                             "SELECT * is not supported in materialized views.",
		"SELECT info['a'] AS a, COUNT(DISTINCT _key) AS n FROM g GROUP BY a":                        "DISTINCT in an aggregate function is not supported in materialized views.",
		"SELECT _key AS k, [1] AS n FROM g ORDER BY k":                                              "Columns of type ARRAY<INT64> are not supported in materialized views: n",
		"SELECT _key AS k FROM lv ORDER BY k":                                                       "Table not found: lv",
		"SELECT k FROM mv ORDER BY k":                                                               "Table not found: mv",
		"SELECT nosuch FROM g ORDER BY _key":                                                        "Unrecognized name: nosuch [at 1:8]",
		"SELECT 1 AS x GROUP BY x":                                                                  many,
		"SELECT info['a'] = 'x' AS b, COUNT(*) AS n FROM g GROUP BY b":                              "GROUP BY columns of type BOOL are not supported in materialized views: b",
		"SELECT total['n'] / 2 AS h, _key AS k FROM g ORDER BY h, k":                                "ORDER BY columns of type FLOAT64 are not supported in materialized views: h",
	} {
		if strings.Contains(want, "not found: mv") {
			mustCreateView(t, conn, "mv", byCity)
		}
		wantQueryError(t, createView(t, conn, "bad", query), codes.InvalidArgument, want)
	}
	wantQueryError(t, createView(t, conn, "bad", "SELECT _key, CAST(info['a'] AS `b.m.Album`).title AS t FROM g ORDER BY _key"),
		codes.Unimplemented, "Types of schema bundles are not implemented in materialized views [at 1:32]")
	wantQueryError(t, createView(t, conn, "g", byCity), codes.AlreadyExists, "Table g already exists.")
	wantQueryError(t, createView(t, conn, "mv", byCity), codes.AlreadyExists, "Materialized View mv already exists.")
	wantQueryError(t, createView(t, conn, "mv", "SELECT _key AS k FROM g"), codes.InvalidArgument, "queries must contain")
}

// A view cannot change, and its table stays while the view reads it.
func TestMaterializedViews_Admin(t *testing.T) {
	t.Parallel()
	conn := newSQL(t).conn
	admin, tables := btapb.NewBigtableInstanceAdminClient(conn), btapb.NewBigtableTableAdminClient(conn)
	name := sqlInstance + "/materializedViews/v1"
	_, err := admin.GetMaterializedView(t.Context(), &btapb.GetMaterializedViewRequest{Name: name})
	wantQueryError(t, err, codes.NotFound, "Failed to read: "+name)
	op, err := admin.CreateMaterializedView(t.Context(), &btapb.CreateMaterializedViewRequest{
		Parent: sqlInstance, MaterializedViewId: "v1", MaterializedView: &btapb.MaterializedView{Query: countsByType, DeletionProtection: true},
	})
	if err != nil || !op.GetDone() || op.GetResponse() == nil {
		t.Fatalf("create: %v, %v", op, err)
	}
	mustCreateView(t, conn, "v0", byCity)
	list, err := admin.ListMaterializedViews(t.Context(), &btapb.ListMaterializedViewsRequest{Parent: sqlInstance})
	if err != nil || len(list.GetMaterializedViews()) != 2 || list.GetMaterializedViews()[1].GetName() != name || list.GetMaterializedViews()[1].GetQuery() != countsByType {
		t.Errorf("list: %v, %v", list, err)
	}
	found, err := tables.ListTables(t.Context(), &btapb.ListTablesRequest{Parent: sqlInstance})
	if err != nil || len(found.GetTables()) != 3 {
		t.Errorf("the tables are %v, %v", found, err)
	}
	_, err = tables.DeleteTable(t.Context(), &btapb.DeleteTableRequest{Name: sqlInstance + "/tables/g"})
	wantQueryError(t, err, codes.FailedPrecondition, "Unable to delete resource "+sqlInstance+"/tables/g because the resource is referenced by another resource. The existing references are: {"+sqlInstance+"/materializedViews/v0, "+name+"}")
	_, err = tables.CreateTable(t.Context(), &btapb.CreateTableRequest{Parent: sqlInstance, TableId: "v1"})
	wantQueryError(t, err, codes.AlreadyExists, "Materialized View "+name+" already exists.")
	_, err = admin.DeleteMaterializedView(t.Context(), &btapb.DeleteMaterializedViewRequest{Name: name})
	wantQueryError(t, err, codes.FailedPrecondition, "Materialized View "+name+" has deletion protection enabled.")
	update := func(v *btapb.MaterializedView, path string) error {
		v.Name = name
		_, err := admin.UpdateMaterializedView(t.Context(), &btapb.UpdateMaterializedViewRequest{MaterializedView: v, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{path}}})
		return err
	}
	wantQueryError(t, update(&btapb.MaterializedView{Query: byCity}, "query"), codes.InvalidArgument, "Immutable fields 'query,name' cannot be updated.")
	wantQueryError(t, update(&btapb.MaterializedView{Etag: "other"}, "deletion_protection"), codes.Aborted, "")
	if err := errors.Join(update(&btapb.MaterializedView{Query: countsByType}, "query"), update(&btapb.MaterializedView{}, "deletion_protection")); err != nil {
		t.Error(err)
	}
	prepared, err := btpb.NewBigtableClient(conn).PrepareQuery(t.Context(), &btpb.PrepareQueryRequest{InstanceName: sqlInstance, Query: "SELECT n FROM v1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"v1", "v0"} {
		if _, err := admin.DeleteMaterializedView(t.Context(), &btapb.DeleteMaterializedViewRequest{Name: sqlInstance + "/materializedViews/" + id}); err != nil {
			t.Error(err)
		}
	}
	_, err = execute(t, btpb.NewBigtableClient(conn), &btpb.ExecuteQueryRequest{PreparedQuery: prepared.GetPreparedQuery()})
	wantQueryError(t, err, codes.NotFound, "Failed to read: ")
	mustCreateView(t, conn, "v1", countsByType) // the same name and query begin again
	if got := queryText(t.Context(), conn, "SELECT COUNT(*) AS n FROM v1", nil); got != "n INT64\n(2)\n" {
		t.Errorf("after the view was created again: %s", got)
	}
	if _, err := admin.DeleteMaterializedView(t.Context(), &btapb.DeleteMaterializedViewRequest{Name: name}); err != nil {
		t.Error(err)
	}
	if _, err := tables.DeleteTable(t.Context(), &btapb.DeleteTableRequest{Name: sqlInstance + "/tables/g"}); err != nil {
		t.Error(err)
	}
}

// Rows whose evaluation fails are left out: a source row, or a group. NULL is a key, and a column has the cell
// that its name says.
func TestMaterializedViews_Rows(t *testing.T) {
	t.Parallel()
	conn := newSQL(t).conn
	for id, c := range map[string]struct{ query, want string }{
		"failing": { // two of the names have no second part
			"SELECT _key AS k, SPLIT(info['name'], 'a')[OFFSET(1)] AS x FROM g ORDER BY k",
			`"u#001" default: @0 = ""|"u#001" default:k @0 = "u#001"|"u#001" default:x @0 = ""|` +
				`"v#001" default: @0 = ""|"v#001" default:k @0 = "v#001"|"v#\xff" default: @0 = ""|"v#\xff" default:k @0 = "v#\xff"`,
		},
		"groups": {
			"SELECT SUBSTR(_key, 1, 1) AS t, DIV(6, SUM(total['m'])) AS x, SUM(total['n']) AS s FROM g GROUP BY t",
			`"u" default: @0 = ""|"u" default:s @0 = "\x00\x00\x00\x00\x00\x00\x00\x05"|` +
				`"v" default: @0 = ""|"v" default:s @0 = "\x00\x00\x00\x00\x00\x00\x00\x02"|"v" default:x @0 = "\xff\xff\xff\xff\xff\xff\xff\xfa"`,
		},
		"nulls": {
			"SELECT total['n'] AS n, COUNT(*) AS c FROM g GROUP BY n",
			`"\x00\x00" default: @0 = ""|"\x00\x00" default:c @0 = "\x00\x00\x00\x00\x00\x00\x00\x03"|` +
				`"\x82" default: @0 = ""|"\x82" default:c @0 = "\x00\x00\x00\x00\x00\x00\x00\x01"|"\x85" default: @0 = ""|"\x85" default:c @0 = "\x00\x00\x00\x00\x00\x00\x00\x01"`,
		},
		"named": {
			"SELECT _key, COUNT(info['name']) AS `f.n`, MAX(LENGTH(info['name'])) > 3 AS b, TIMESTAMP_MICROS(MIN(total['n'])) AS t FROM g WHERE _key < 'u#003' GROUP BY _key",
			`"u#001" default: @0 = ""|"u#001" default:b @0 = "\x00"|"u#001" default:t @0 = "\x00\x00\x00\x00\x00\x00\x00\x05"|"u#001" f:n @0 = "\x00\x00\x00\x00\x00\x00\x00\x01"|` +
				`"u#002" default: @0 = ""|"u#002" default:b @0 = "\x00"|"u#002" f:n @0 = "\x00\x00\x00\x00\x00\x00\x00\x01"`,
		},
		"times": {
			"SELECT _key, _timestamp, COUNT(c) AS n FROM UNPACK((SELECT _key, info['name'] AS c FROM g(with_history => TRUE) WHERE _key = 'u#001')) GROUP BY _key, _timestamp",
			`"u#001" default: @1704070800000000 = ""|"u#001" default: @1704067200000000 = ""|` +
				`"u#001" default:n @1704070800000000 = "\x00\x00\x00\x00\x00\x00\x00\x01"|"u#001" default:n @1704067200000000 = "\x00\x00\x00\x00\x00\x00\x00\x01"`,
		},
	} {
		mustCreateView(t, conn, id, c.query)
		if got := viewText(t, conn, id); got != strings.ReplaceAll(c.want, "|", "\n")+"\n" {
			t.Errorf("%s has\n%swant\n%s", c.query, got, strings.ReplaceAll(c.want, "|", "\n"))
		}
	}
	wantQueryError(t, createView(t, conn, "sixth", byCity), codes.ResourceExhausted, "Table "+sqlInstance+"/tables/g has 5 materialized views")
	if got := queryText(t.Context(), conn, "SELECT `f.n`, b, t FROM named WHERE _key = b'u#001'", nil); got != "f.n INT64, b BOOL, t TIMESTAMP\n(1, false, 1970-01-01T00:00:00.000005Z)\n" {
		t.Errorf("typed columns: %s", got)
	}
}

// SampleRowKeys reads a view too, and nothing writes it.
func TestMaterializedViews_Reads(t *testing.T) {
	t.Parallel()
	conn := newSQL(t).conn
	mustCreateView(t, conn, "v1", countsByType)
	client, name := btpb.NewBigtableClient(conn), sqlInstance+"/materializedViews/v1"
	samples, err := client.SampleRowKeys(t.Context(), &btpb.SampleRowKeysRequest{MaterializedViewName: name})
	if err == nil {
		_, err = samples.Recv()
	}
	if err != nil {
		t.Error(err)
	}
	rows, err := client.ReadRows(t.Context(), &btpb.ReadRowsRequest{MaterializedViewName: sqlInstance + "/materializedViews/none"})
	if err == nil {
		_, err = rows.Recv()
	}
	wantQueryError(t, err, codes.NotFound, "Failed to read: "+sqlInstance+"/materializedViews/none")
	_, err = client.MutateRow(t.Context(), &btpb.MutateRowRequest{TableName: "internal:" + name, RowKey: []byte("u"), Mutations: []*btpb.Mutation{{Mutation: &btpb.Mutation_DeleteFromRow_{}}}})
	wantQueryError(t, err, codes.InvalidArgument, "")
	_, err = client.MutateRow(t.Context(), &btpb.MutateRowRequest{TableName: sqlInstance + "/tables/v1", RowKey: []byte("u"), Mutations: []*btpb.Mutation{{Mutation: &btpb.Mutation_DeleteFromRow_{}}}})
	wantQueryError(t, err, codes.NotFound, "")
}

// Rows from which too much is selected or output are left out of a view, and of no other.
func TestMaterializedViews_LargeRows(t *testing.T) {
	t.Parallel()
	conn := newSQL(t).conn
	set := func(row string, columns ...string) {
		for i, v := range columns {
			mutate(t, conn, row, setCell("tags", "ab"[i:][:1], v, 1000))
		}
	}
	large := strings.Repeat("x", 600<<10)
	set("large", large, large)
	set("half", large)
	set("hundred", strings.Repeat("x", 100))
	set("small", "x")
	for id, c := range map[string]struct{ query, want string }{
		"both":     {"SELECT _key AS k, LENGTH(tags['a']) + LENGTH(tags['b']) AS n FROM g WHERE tags['a'] IS NOT NULL ORDER BY k", "half hundred small u#001 u#002"},
		"one":      {"SELECT _key AS k, LENGTH(tags['a']) AS n FROM g WHERE tags['a'] IS NOT NULL ORDER BY k", "half hundred large small u#001 u#002"},
		"repeated": {"SELECT _key AS k, REPEAT(tags['a'], 4) AS x FROM g WHERE tags['a'] IS NOT NULL ORDER BY k", "hundred small u#001 u#002"},
		"grown":    {"SELECT REPEAT(tags['a'], 20) AS x, COUNT(*) AS n, MIN(_key) AS k FROM g WHERE LENGTH(tags['a']) < 200 GROUP BY x", "small u#001 u#002"},
		"unnested": {"SELECT _key AS k, i, tags['a'] AS a FROM g, UNNEST([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]) AS i WHERE i < 12 AND LENGTH(tags['a']) = 100 ORDER BY k, i", ""},
	} {
		mustCreateView(t, conn, id, c.query)
		got := strings.Fields(strings.NewReplacer("(b'", " ", "')", " ", "k BYTES", "").Replace(queryText(t.Context(), conn, "SELECT DISTINCT k FROM "+id+" ORDER BY k", nil)))
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s has the rows %q, want %q", c.query, got, c.want)
		}
	}
}

// A sum that overflows leaves its group out, until a change makes it fit again. The other totals of the group
// follow meanwhile.
func TestMaterializedViews_Overflow(t *testing.T) {
	t.Parallel()
	conn := newSQL(t).conn
	mustCreateView(t, conn, "v", "SELECT SUBSTR(_key, 1, 1) AS p, COUNT(*) AS n, SUM(TO_INT64(info['x'])) AS s FROM g WHERE info['x'] IS NOT NULL GROUP BY p")
	set := func(row string, x int64) {
		mutate(t, conn, row, setCell("info", "x", string(binary.BigEndian.AppendUint64(nil, uint64(x))), 1000)) //nolint:gosec // two's complement
	}
	for i, c := range []struct {
		change func()
		want   string
	}{
		{func() { set("a1", 5) }, "(b'a', 1, 5)\n"},
		{func() { set("a2", math.MaxInt64) }, ""},
		{func() { set("a3", -7); set("b1", -1) }, "(b'b', 1, -1)\n"},
		{func() { set("a2", 1) }, "(b'a', 3, -1)\n(b'b', 1, -1)\n"},
		{func() { set("a3", math.MinInt64) }, "(b'a', 3, -9223372036854775802)\n(b'b', 1, -1)\n"}, // after 6
		{func() { set("a2", -9) }, "(b'b', 1, -1)\n"},
		{func() { mutate(t, conn, "a3", &btpb.Mutation{Mutation: &btpb.Mutation_DeleteFromRow_{}}) }, "(b'a', 2, -4)\n(b'b', 1, -1)\n"},
		{func() { mutate(t, conn, "b1", &btpb.Mutation{Mutation: &btpb.Mutation_DeleteFromRow_{}}) }, "(b'a', 2, -4)\n"},
		{func() { set("b1", 2) }, "(b'a', 2, -4)\n(b'b', 1, 2)\n"},
	} {
		c.change()
		got := strings.TrimPrefix(queryText(t.Context(), conn, "SELECT * FROM v ORDER BY p", nil), "p BYTES, n INT64, s INT64\n")
		if got != c.want {
			t.Errorf("after change %d the view has %q, want %q", i, got, c.want)
		}
	}
}
