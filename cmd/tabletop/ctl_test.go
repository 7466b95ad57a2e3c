package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestCtl_API: each verb is a route of the API, and its arguments set parameters of the route.
func TestCtl_API(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../control/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	takes, path, route := map[string][]string{}, "", ""
	for line := range strings.Lines(string(text)) {
		if m := regexp.MustCompile(`^  /(\S*):`).FindStringSubmatch(line); m != nil {
			path = regexp.MustCompile(`\{(instance\}/\{table|endpoint\}/\{id|\w+)\}`).ReplaceAllString(m[1], "{}")
		} else if m := regexp.MustCompile(`^    (get|post|delete):`).FindStringSubmatch(line); m != nil {
			route = strings.ToUpper(m[1]) + " " + path
			takes[route] = nil
		} else if m := regexp.MustCompile(`\{name: (\w+), in: query`).FindStringSubmatch(line); m != nil {
			takes[route] = append(takes[route], m[1])
		}
	}
	for _, v := range ctlVerbs {
		path, query, _ := strings.Cut(v.path, "?")
		for _, one := range []string{"plan", "verify", "lint"} {
			path = strings.Replace(path, "migrate/"+one, "migrate/{}", 1)
		}
		want, ok := takes[v.method+" "+path]
		if !ok {
			t.Errorf("%s: the API has no %s %s", v.name, v.method, path)
		}
		params := strings.Fields(v.params)
		if !slices.Equal(params, want) {
			t.Errorf("%s sets %q, the API takes %q", v.name, params, want)
		}
		if name, _, ok := strings.Cut(query, "="); ok && !slices.Contains(want, name) {
			t.Errorf("%s fills %q, the API takes %q", v.name, name, want)
		}
	}
}

// TestCtl_Pages: ctl reports that there is more, and prints everything on request.
func TestCtl_Pages(t *testing.T) {
	t.Parallel()
	s := serveHere(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "127.0.0.1:0", "--console", "127.0.0.1:0")
	ctl(t, s, exitEqual, "query", "CreateTable", `{"TableName":"orders","BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}]}`)
	const items = 1100
	var body strings.Builder
	for i := range items {
		fmt.Fprintf(&body, `%s{"id":{"S":"k%04d"}}`, strings.Repeat(",", min(i, 1)), i)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.env["TABLETOP_CONSOLE_URL"]+"/api/v1/items/orders", strings.NewReader(`{"items":[`+body.String()+`]}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.env["TABLETOP_CONSOLE_TOKEN"])
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	count := func(out string) int { return len(regexp.MustCompile(`"S": "k\d{4}"`).FindAllString(out, -1)) }
	out := ctl(t, s, exitEqual, "items", "orders")
	m := regexp.MustCompile(`there are more results: add (cursor=\S+) to continue, or --all\n$`).FindStringSubmatch(out)
	if m == nil || count(out) != 100 || strings.Index(out, `"cursor"`) < strings.Index(out, `"items"`) {
		t.Fatalf("%d items:\n%.300s\n…%s", count(out), out, out[max(0, len(out)-300):])
	}
	for args, want := range map[string]int{
		"items orders " + m[1]:                                     100,
		"items orders limit=7":                                     7,
		"items orders --all":                                       items,
		"items orders --all limit=999":                             items,
		"items orders " + strings.TrimPrefix(m[1], "cursor="):      100,
		"items orders --all " + m[1]:                               items - 100,
		"requests --all operation=PutItem endpoint=bigtable":       0,
		"requests --all operation=CreateTable failed=false":        0,
		"requests operation=CreateTable endpoint=dynamodb limit=1": 0,
		"requests --all status=OK internal=true operation=None":    0,
	} {
		if out := ctl(t, s, exitEqual, strings.Fields(args)...); count(out) != want || strings.Contains(out, "more") != (strings.HasPrefix(args, "items") && want < items-100) {
			t.Errorf("%s: %d items:\n%.300s", args, count(out), out)
		}
	}
	if out := ctl(t, s, exitEqual, "requests", "operation=CreateTable", "endpoint=dynamodb"); strings.Count(out, `"id":`) != 1 {
		t.Error(out)
	}
	if out := ctl(t, s, exitEqual, "requests", "endpoint=bigtable", "limit=1"); !regexp.MustCompile(`there are more results: add before=\d+ to continue, or --all\n$`).MatchString(out) {
		t.Error(out)
	}
}

// TestCtl_Words: errors are in terms of the shell, with advice.
func TestCtl_Words(t *testing.T) {
	t.Parallel()
	s := serveHere(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "127.0.0.1:0", "--console")
	createTable(t, s.dial(t), "t")
	ctl(t, s, exitEqual, "query", "CreateTable", `{"TableName":"orders","BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}]}`)
	item := writeFile(t, t.TempDir(), "item.json", `{"id":{"S":"a"}}`)
	for _, args := range [][]string{
		{"put", "orders", "@" + item},
		{"rows", "t"},
		{"rows", "t", "a"},
		{"rows", "t", "prefix=a", "limit=3", "reverse=true"},
		{"rows", "tabletop/t"},
		{"changes", "t", "--console-token", s.env["TABLETOP_CONSOLE_TOKEN"]}, // refused: see below
		{"snapshot", "a/b c"},
		{"restore", "a/b c"},
		{"diff", "a/b c"},
		{"forget", "a/b c"},
		{"help"},
		{"help", "fault"},
		{"faults"},
	} {
		want := exitEqual
		if args[0] == "changes" {
			want = exitBadInput
		}
		ctl(t, s, want, args...)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, `no verb given; "tabletop ctl help" lists the verbs`},
		{[]string{"snapsot", "x"}, `"snapsot" is not a verb of ctl, nearest to snapshot; "tabletop ctl help" lists the verbs`},
		{[]string{"fault", "nojson"}, "FAULT is not JSON: byte 2: invalid character 'o' in literal null (expecting 'u')\n"},
		{[]string{"put", "orders", "{'id'"}, "ITEM is not JSON: byte 2: "},
		{[]string{"put", "orders", "@" + item + "x"}, "no such file"},
		{[]string{"put", "orders", "-"}, "the standard input is not JSON: byte 0: unexpected end of JSON input"},
		{[]string{"query", "GetItem", "{"}, "REQUEST is not JSON"},
		{[]string{"advance", "-1h"}, `advance is "-1h", want a duration such as 90s, 25h or 3d: time moves only forward: see "tabletop ctl help advance"`},
		{[]string{"unfault", "orders"}, `unfault takes [ENDPOINT/ID], such as dynamodb/1: "tabletop ctl faults" lists them`},
		{[]string{"unfault", "dynamodb/7"}, `there is no fault "dynamodb/7": "tabletop ctl faults" lists them`},
		{[]string{"rows", "orders"}, `the rows of DynamoDB table orders are in Bigtable table tabletop/ddb.orders-`},
		{[]string{"dump", "none"}, `"tabletop ctl tables" lists the tables of both endpoints`},
		{[]string{"rows", "t", "filter={}", "filter={}"}, `filter is given 2 times`},
		{[]string{"requests", "endpoint=ddb"}, `endpoint is "ddb", want bigtable or dynamodb: see "tabletop ctl help requests"`},
		{[]string{"requests", "kind=x"}, `requests takes [NAME=VALUE...] (1 argument given); NAME=VALUE sets endpoint, operation,`},
		{[]string{"fault", `{"endpoint":"bigtable","method":"ReadRow","effect":"fail","code":"UNAVAILABLE"}`}, `nearest to ReadRows: see "tabletop ctl help fault"`},
		{[]string{"fault", `{"endpoint":"dynamodb","method":"*","effect":"fail","code":"ResourceNotFund"}`}, `nearest to ResourceNotFound: see "tabletop ctl help fault"`},
		{[]string{"info", "--console-token", "wrong"}, "pass the token that the server printed, or that its --token-file holds, with --console-token"},
		{[]string{"info", "--nothing", "x"}, "unknown flag --nothing"},
		{[]string{"advance", "--", "-1h"}, `advance is "-1h"`},
		{[]string{"info", "--all"}, "info does not take --all"},
		{[]string{"info", "--console-url", "127.0.0.1:8088"}, `"127.0.0.1:8088" is not the address of a server; expected one such as http://127.0.0.1:8088`},
		{[]string{"restore", ""}, "restore takes NAME (got an empty argument)"},
		{[]string{"resume"}, "no test is paused"},
		{[]string{"help", "nothing"}, `"nothing" is not a verb of ctl`},
	} {
		if out := ctl(t, s, exitBadInput, c.args...); !strings.Contains(out, c.want) || strings.Contains(out, "/api/v1") || strings.Contains(out, "MarshalJSON") {
			t.Errorf("ctl %q: %s, want %s", c.args, out, c.want)
		}
	}
	if out := ctl(t, s, exitEqual, "help", "fault"); !strings.Contains(out, "behindDynamoDB") || !strings.Contains(out, `"times":2}'`) || !strings.Contains(out, "@FILE") {
		t.Error(out)
	}
	if out := ctl(t, s, exitEnvironment, "info", "--console-url", s.env["AWS_ENDPOINT_URL_DYNAMODB"]); !strings.Contains(out, "so it is not a control API") {
		t.Error(out)
	}
	cmd := exec.CommandContext(t.Context(), "tabletop", "ctl", "put", "orders", "-")
	cmd.Stdin = strings.NewReader(`{"id":{"S":"b"}}`)
	cmd.Env = append(os.Environ(), "TABLETOP_CONSOLE_URL="+s.env["TABLETOP_CONSOLE_URL"], "TABLETOP_CONSOLE_TOKEN="+s.env["TABLETOP_CONSOLE_TOKEN"])
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if out := ctl(t, s, exitEqual, "items", "orders"); strings.Count(out, `"id"`) != 2 {
		t.Error(out)
	}
}

// TestCtl_PortFile: ctl waits for the port file of a server that is starting, and reports a
// server that has ended.
func TestCtl_PortFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ports.json")
	waiting := exec.CommandContext(t.Context(), "tabletop", "ctl", "--port-file", file, "--wait", "24h", "info")
	var out strings.Builder
	waiting.Stdout, waiting.Stderr = &out, &out
	if err := waiting.Start(); err != nil {
		t.Fatal(err)
	}
	s := serve(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "off", "--console", "127.0.0.1:0", "--port-file", file)
	if err := waiting.Wait(); err != nil || !strings.Contains(out.String(), `"instance"`) {
		t.Errorf("%v: %s", err, out.String())
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if code := s.end(t, syscall.SIGTERM); code != exitEqual {
		t.Errorf("the server ends with %d", code)
	}
	if out, code := tabletop(t, "ctl", "--port-file", file, "--wait", "0s", "info"); code != exitEnvironment || !strings.Contains(out, "is the server running, and was it started with this file?") {
		t.Errorf("it exits %d: %s", code, out)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := tabletop(t, "ctl", "--port-file", file, "info"); code != exitEnvironment || !strings.Contains(out, "no server responds at "+s.env["TABLETOP_CONSOLE_URL"]) {
		t.Errorf("it exits %d: %s", code, out)
	}
}

// TestCtl_Rows: rows, families and tables of Bigtable are written and deleted, and the used
// keys are reported.
func TestCtl_Rows(t *testing.T) {
	t.Parallel()
	s := serveHere(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "127.0.0.1:0", "--console")
	createTable(t, s.dial(t), "t")
	ctl(t, s, exitEqual, "families", "t", `[{"id":"cf","create":{"gcRule":{"maxNumVersions":1}}}]`)
	for _, key := range []string{"a1", "a2", "b"} {
		ctl(t, s, exitEqual, "write", "tabletop/t", `{"key":{"text":"`+key+`"},"cells":[{"family":"cf","qualifier":{"text":"q"},"value":{"text":"v"}}]}`)
	}
	for _, c := range []struct {
		args []string
		keys string
	}{
		{nil, "a1 a2 b"},
		{[]string{"write", "t", `{"key":{"text":"a2"},"delete":true}`}, "a1 b"},
		{[]string{"drop", "t", "a"}, "b"},
		{[]string{"empty", "t"}, ""},
	} {
		if c.args != nil {
			ctl(t, s, exitEqual, c.args...)
		}
		var got struct {
			Rows []struct{ Key struct{ Text string } }
		}
		if err := json.Unmarshal([]byte(ctl(t, s, exitEqual, "rows", "t")), &got); err != nil {
			t.Fatal(err)
		}
		keys := make([]string, len(got.Rows))
		for i, r := range got.Rows {
			keys[i] = r.Key.Text
		}
		if found := strings.Join(keys, " "); found != c.keys {
			t.Errorf("%q leaves %q, want %q", c.args, found, c.keys)
		}
	}
	ctl(t, s, exitEqual, "query", "ListTables", `{}`)
	for _, args := range [][]string{{"heat"}, {"heat", "t", "last=1h", "step=1m", "limit=9"}} {
		if out := ctl(t, s, exitEqual, args...); !strings.Contains(out, `"places"`) && !strings.Contains(out, `"columns"`) {
			t.Errorf("%q: %s", args, out)
		}
	}
	ctl(t, s, exitEqual, "delete", "t")
	if out := ctl(t, s, exitBadInput, "rows", "t"); !strings.Contains(out, `there is no table`) {
		t.Error(out)
	}
}
