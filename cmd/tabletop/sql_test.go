package main

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/types/known/durationpb"
)

// TestSQL runs queries in each format, and says what is wrong with others.
func TestSQL(t *testing.T) {
	t.Parallel()
	s := serveHere(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "off")
	conn := s.dial(t)
	createTable(t, conn, "users")
	for row, value := range map[string]string{"u#1": "Ada", "u#2": "Zoë, \"Z\"", "u#3": "\xff"} {
		_, err := btpb.NewBigtableClient(conn).MutateRow(t.Context(), &btpb.MutateRowRequest{
			TableName: parent + "/tables/users", RowKey: []byte(row),
			Mutations: []*btpb.Mutation{{Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{FamilyName: "f", ColumnQualifier: []byte("name"), Value: []byte(value)}}}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	run := func(stdin string, args ...string) (stdout, stderr string, code int) {
		return tabletopWith(t, stdin, append([]string{"sql", "--target", s.env["BIGTABLE_EMULATOR_HOST"]}, args...)...)
	}
	const query = "SELECT _key AS k, f['name'] AS name, LENGTH(f['name']) AS n FROM users"
	for name, c := range map[string]struct {
		stdin string
		args  []string
		want  string
	}{
		"table": {"", []string{query}, "k    name          n\nu#1  Ada           3\nu#2  Zoë, \"Z\"      9\nu#3  b'\\xff'       1\n(3 rows)\n"},
		"csv":   {"", []string{query, "--format", "csv"}, "k,name,n\nu#1,Ada,3\nu#2,\"Zoë, \"\"Z\"\"\",9\nu#3,b'\\xff',1\n"},
		"json":  {query, []string{"--format", "json"}, "{\"k\":\"u#1\",\"name\":\"Ada\",\"n\":3}\n{\"k\":\"u#2\",\"name\":\"Zoë, \\\"Z\\\"\",\"n\":9}\n{\"k\":\"u#3\",\"name\":\"base64:/w==\",\"n\":1}\n"},
		"parameters": {
			"",
			[]string{"SELECT f FROM users WHERE _key = @k AND @n = 1", "--param", "k:BYTES=u#1", "--param", "n:INT64=1", "--format", "json"},
			"{\"f\":{\"name\":\"Ada\"}}\n",
		},
		"times and lists": {
			"",
			[]string{"SELECT _key AS k, @at AS t FROM users(as_of => @at) WHERE _key IN UNNEST(@keys)", "--param", `keys:ARRAY<BYTES>=["u#1","u#9"]`, "--param", "at:TIMESTAMP=2024-01-01T00:00:00Z"},
			"k    t\nu#1  2024-01-01T00:00:00Z\n(1 row)\n",
		},
		"no rows": {"", []string{"SELECT _key FROM users WHERE _key = 'no'"}, "_key\n(0 rows)\n"},
	} {
		stdout, stderr, code := run(c.stdin, c.args...)
		if strings.Join(strings.Fields(stdout), " ") != strings.Join(strings.Fields(c.want), " ") || code != 0 {
			t.Errorf("%s: exit code %d\n%s%s\nwant\n%s", name, code, stdout, stderr, c.want)
		}
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"an unknown column":  {[]string{"SELECT nosuch FROM users"}, "Unrecognized name: nosuch [at 1:8]"},
		"no query":           {nil, "there is no query"},
		"a bad parameter":    {[]string{"SELECT 1", "--param", "k=1"}, "NAME:TYPE=VALUE"},
		"an unknown type":    {[]string{"SELECT 1", "--param", "k:TIME=1"}, "expected STRING, BYTES, INT64, FLOAT64, BOOL, DATE, TIMESTAMP, or ARRAY<...> of one of these"},
		"a bad number":       {[]string{"SELECT 1", "--param", "k:INT64=x"}, `"x" is not of type INT64`},
		"a missing function": {[]string{"SELECT ST_ASTEXT(f) FROM users"}, "ST_ASTEXT"},
	} {
		if stdout, stderr, code := run("", c.args...); code != 2 || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit code %d\n%s%s\nwant %s", name, code, stdout, stderr, c.want)
		}
	}
}

// TestSQL_DynamoDBTable: the error for the name of a DynamoDB table names the Bigtable table with its items.
func TestSQL_DynamoDBTable(t *testing.T) {
	t.Parallel()
	s := serveHere(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "off")
	conn := s.dial(t)
	const long = "a-name-that-is-too-long-for-the-id-of-a-table"
	for _, id := range []string{"ddb.orders-b2a54976c752", "ddb.orders-of-2026-b2a54976c752", "ddb.other-x", "ddb." + long[:33] + "-b2a54976c752"} {
		createTable(t, conn, id)
	}
	for name, want := range map[string]string{
		"orders": "The items of the DynamoDB table orders are in `ddb.orders-b2a54976c752`; keep",
		long:     "The items of the DynamoDB table " + long + " are in `ddb." + long[:33] + "-b2a54976c752`; keep",
		"order":  "",
		"other":  "",
	} {
		text, _ := tabletop(t, "sql", "--target", s.env["BIGTABLE_EMULATOR_HOST"], "SELECT * FROM `"+name+"`")
		if hint := strings.Contains(text, "DynamoDB"); hint != (want != "") || !strings.Contains(text, want) || !strings.Contains(text, "Table not found: "+name+" [at 1:15]\n") {
			t.Errorf("%s: %s\nwant %s", name, text, want)
		}
	}
}

// TestSQL_Runtime: the error of a running query has no words of gRPC around it.
func TestSQL_Runtime(t *testing.T) {
	t.Parallel()
	target := sqlTables(t)
	cmd := exec.CommandContext(t.Context(), "tabletop", "sql", target, "SELECT DIV(1, LENGTH(_key) - 3) AS n FROM users")
	var errs strings.Builder
	cmd.Stderr = &errs
	_ = cmd.Run() // the exit code is checked
	if text := errs.String(); cmd.ProcessState.ExitCode() != 3 || !strings.HasSuffix(text, ": OutOfRange: division by zero: DIV\n") || strings.Contains(text, "rpc error") {
		t.Errorf("exit code %d: %s", cmd.ProcessState.ExitCode(), text)
	}
}

// TestServe_SQLMemory: the flag bounds the rows that a query sorts.
func TestServe_SQLMemory(t *testing.T) {
	t.Parallel()
	s := serve(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "off", "--sql-memory", "1")
	const query = "SELECT x FROM UNNEST(GENERATE_ARRAY(1, 100000)) AS x ORDER BY x DESC LIMIT 1 OFFSET 99999"
	out, err := exec.CommandContext(t.Context(), "tabletop", "sql", "--target", s.env["BIGTABLE_EMULATOR_HOST"], query).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "holds more than 1048576 bytes") || !strings.Contains(string(out), "--sql-memory") {
		t.Errorf("%v: %s", err, out)
	}
}

// sqlTables creates a table with rows, a table with a row key schema and a view, and returns the flag that names
// their server.
func sqlTables(t *testing.T) (target string) {
	t.Helper()
	s := serveHere(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "off")
	conn := s.dial(t)
	createTable(t, conn, "users")
	for _, row := range []string{"u#1", "u#2"} {
		if err := mutate(t.Context(), conn, "users", row); err != nil {
			t.Fatal(err)
		}
	}
	text := &btapb.Type{Kind: &btapb.Type_StringType{StringType: &btapb.Type_String{Encoding: &btapb.Type_String_Encoding{
		Encoding: &btapb.Type_String_Encoding_Utf8Bytes_{Utf8Bytes: &btapb.Type_String_Encoding_Utf8Bytes{}},
	}}}}
	_, err := btapb.NewBigtableTableAdminClient(conn).CreateTable(t.Context(), &btapb.CreateTableRequest{Parent: parent, TableId: "sales", Table: &btapb.Table{
		ColumnFamilies: map[string]*btapb.ColumnFamily{"d": {GcRule: &btapb.GcRule{Rule: &btapb.GcRule_Intersection_{Intersection: &btapb.GcRule_Intersection{Rules: []*btapb.GcRule{
			{Rule: &btapb.GcRule_MaxNumVersions{MaxNumVersions: 2}}, {Rule: &btapb.GcRule_MaxAge{MaxAge: durationpb.New(time.Hour)}},
		}}}}}},
		RowKeySchema: &btapb.Type_Struct{
			Fields: []*btapb.Type_Struct_Field{{FieldName: "customer", Type: text}, {FieldName: "day", Type: text}},
			Encoding: &btapb.Type_Struct_Encoding{Encoding: &btapb.Type_Struct_Encoding_DelimitedBytes_{
				DelimitedBytes: &btapb.Type_Struct_Encoding_DelimitedBytes{Delimiter: []byte("#")},
			}},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = btapb.NewBigtableInstanceAdminClient(conn).CreateLogicalView(t.Context(), &btapb.CreateLogicalViewRequest{
		Parent: parent, LogicalViewId: "keys", LogicalView: &btapb.LogicalView{Query: "SELECT _key AS k,\n\tf['q'] AS q FROM users"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return "--target=" + s.env["BIGTABLE_EMULATOR_HOST"]
}

// TestSQL_Pipe: the statements and commands of a pipe run in turn, without a prompt, up to the first error.
func TestSQL_Pipe(t *testing.T) {
	t.Parallel()
	target := sqlTables(t)
	for name, c := range map[string]struct {
		stdin, want, stderr string
		code                int
	}{
		"statements":      {"SELECT _key FROM users; -- all\n\nSELECT COUNT(*) AS n\nFROM users", "_key\nu#1\nu#2\n(2 rows)\nn\n2\n(1 row)\n", "", 0},
		"an error":        {"SELECT 1 AS a;\nSELECT\n  nosuch FROM users;\nSELECT 2 AS b;", "a\n1\n(1 row)\n", "tabletop: Unrecognized name: nosuch [at 2:3]\n  nosuch FROM users\n  ^\n", 2},
		"the list":        {"\\d\n", "name   kind\nsales  table\nusers  table\nkeys   logical view\n", "", 0},
		"a table":         {"\\d users", "column  type               garbage collection  qualifiers\n_key    BYTES\nf       MAP<BYTES, BYTES>  never               q\n(qualifiers of the first 100 rows)\n", "", 0},
		"trailing blanks": {"SELECT 'a ' AS a, '' AS b", "a   b\na \n(1 row)\n", "", 0},
		"a row key":       {"\\d sales;", "column    type               garbage collection                 qualifiers\ncustomer  STRING\nday       STRING\nd         MAP<BYTES, BYTES>  (maxversions=2 and maxage=1h0m0s)\n(row key: customer, day, delimited by \"#\")\n(qualifiers of the first 100 rows)\n", "", 0},
		"a view":          {"\\d `keys`", "column  type\nk       BYTES\nq       BYTES\n(logical view of: SELECT _key AS k,\n f['q'] AS q FROM users)\n", "", 0},
		"no table":        {"\\d nosuch", "", "there is no table or view \"nosuch\"; \\d lists them", 2},
		"no name":         {"\\d a/b", "", `"a/b" is not the name of a table or a view`, 2},
		"a format":        {"\\format csv\nSELECT 1 AS a;\n\\format json\nSELECT 1 AS a;", "a\n1\n{\"a\":1}\n", "", 0},
		"the format":      {"\\format\n\\timing\n\\timing\n", "table\nTiming is on.\nTiming is off.\n", "", 0},
		"the word exit":   {"SELECT 1 AS a;\nExit;\nSELECT 2 AS b;", "a\n1\n(1 row)\n", "", 0},
		"no format":       {"\\format xml", "", `\format: "xml" must be table, json or csv`, 2},
		"the end":         {"SELECT 1 AS a;\n\\q\nSELECT 2 AS b;", "a\n1\n(1 row)\n", "", 0},
		"no command":      {"\\x\n", "", `\x is not a command; \? lists the commands`, 2},
		"no statement":    {" ; -- nothing\n", "", "there is no query", 2},
		"the help":        {"\\?", strings.Join(strings.Fields("\\d list the tables and views"), " "), "", 0},
		"a long line":     {strings.Repeat("x", 2<<20), "", "a line is longer than 1048576 bytes", 2},
		"a long query":    {"SELECT\n" + strings.Repeat(strings.Repeat("x", 1<<10)+"\n", 1<<10) + ";", "", "a statement is longer than 1048576 bytes", 2},
		"a backslash not": {"SELECT r'''\n\\q\n''' AS a;", "a\n'\\x0a\\\\q\\x0a'\n(1 row)\n", "", 0},
	} {
		got, errs, code := tabletopWith(t, c.stdin, "sql", target)
		if name == "the help" {
			got = strings.Join(strings.Fields(got), " ")[:len(c.want)]
		}
		if got != c.want || !strings.Contains(errs, c.stderr) || code != c.code {
			t.Errorf("%s: exit code %d\n%s%s\nwant %d\n%s%s", name, code, got, errs, c.code, c.want, c.stderr)
		}
	}
}

// TestSQL_BrokenView: a view whose table is gone shows its statement, and the error of its columns.
func TestSQL_BrokenView(t *testing.T) {
	t.Parallel()
	s := serveHere(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "off")
	conn := s.dial(t)
	createTable(t, conn, "users")
	_, err := btapb.NewBigtableInstanceAdminClient(conn).CreateLogicalView(t.Context(), &btapb.CreateLogicalViewRequest{
		Parent: parent, LogicalViewId: "keys", LogicalView: &btapb.LogicalView{Query: "SELECT _key AS k FROM users"},
	})
	if err == nil {
		_, err = btapb.NewBigtableTableAdminClient(conn).DeleteTable(t.Context(), &btapb.DeleteTableRequest{Name: parent + "/tables/users"})
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "tabletop", "sql", "--target", s.env["BIGTABLE_EMULATOR_HOST"], `\d keys`)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, _ := cmd.Output() // the exit code is checked
	if want, wrong := "(logical view of: SELECT _key AS k FROM users)\n", "Table not found: users [at 1:23 of the view keys]"; string(out) != want || !strings.Contains(errs.String(), wrong) || cmd.ProcessState.ExitCode() == 0 {
		t.Errorf("exit code %d\n%s%s\nwant\n%s%s", cmd.ProcessState.ExitCode(), out, errs.String(), want, wrong)
	}
}
