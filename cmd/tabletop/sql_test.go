package main

import (
	"os/exec"
	"strings"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// TestSQL runs queries in each format, and says what is wrong with others.
func TestSQL(t *testing.T) {
	t.Parallel()
	s := serve(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "off")
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
		cmd := exec.CommandContext(t.Context(), "tabletop", append([]string{"sql", "--target", s.env["BIGTABLE_EMULATOR_HOST"]}, args...)...)
		var out, errs strings.Builder
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
		_ = cmd.Run() // the exit code is checked
		return out.String(), errs.String(), cmd.ProcessState.ExitCode()
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
		"an unknown type":    {[]string{"SELECT 1", "--param", "k:DATE=1"}, "expected STRING, BYTES, INT64, FLOAT64 or BOOL"},
		"a bad number":       {[]string{"SELECT 1", "--param", "k:INT64=x"}, `"x" is not of type INT64`},
		"a missing function": {[]string{"SELECT ST_ASTEXT(f) FROM users"}, "ST_ASTEXT"},
	} {
		if stdout, stderr, code := run("", c.args...); code != 2 || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit code %d\n%s%s\nwant %s", name, code, stdout, stderr, c.want)
		}
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
