package control_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
)

// Lines of openapi.yaml, and a parameter of a path.
var (
	pathLine      = regexp.MustCompile(`^  /(\S*):`)
	methodLine    = regexp.MustCompile(`^    (get|post|delete):`)
	parameterLine = regexp.MustCompile(`\{name: (\w+), in: query`)
	pathParameter = regexp.MustCompile(`\{\w+\}`)
)

// described returns the routes of openapi.yaml, as "GET path", with the names of their parameters.
func described(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	routes, path, route := map[string][]string{}, "", ""
	for line := range strings.Lines(string(text)) {
		if m := pathLine.FindStringSubmatch(line); m != nil {
			path = m[1]
		} else if m := methodLine.FindStringSubmatch(line); m != nil {
			route = strings.ToUpper(m[1]) + " " + path
			routes[route] = nil
		} else if m := parameterLine.FindStringSubmatch(line); m != nil {
			routes[route] = append(routes[route], m[1])
		}
	}
	return routes
}

// goNames are words that a program in another language does not know.
var goNames = regexp.MustCompile(`rpc error|json:|Go (struct|value)|strconv|struct field|base64\.|parsing time|\b(control|lab|attr|codes|http|time)\.[A-Z]|\b(u?int(64|32)?|float64|RawMessage)\b|<nil>|%!`)

// TestHostile: for any path, parameter or body, each route answers in JSON, and a refusal has
// the fault and a remedy.
func TestHostile(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.query("CreateTable", createTable)
	names := []string{"<script>alert(1)</script>", "a\x00b", "\u202egnp", "\xff\xfe", "..", ".", "a/b", "%", strings.Repeat("x", 4096), "-1", "9999999999999999999999", " "}
	bodies := []string{
		"", "null", "[]", "0", `"x"`, "{", "\xff", `{"":""}`, "{} {}", strings.Repeat("[", 20_000), `{"name":7}`, `{"name":"` + strings.Repeat("x", 4096) + `"}`,
		`{"rows":[null]}`, `{"rows":[{"key":{"base64":"!"}}]}`, `{"rows":[{"key":{"text":"k"},"cells":[{"family":"\u0000","qualifier":null}]}]}`,
		`{"items":[null,7,"x",{"k":{"S":7}}]}`, `{"operation":"\u0000","request":null}`, `{"operation":"Scan","request":[]}`,
		`{"advance":"9999999999d"}`, `{"set":"x"}`, `{"fixture":"\u0000"}`, `{"fixture":"/etc"}`,
		`{"endpoint":"bigtable","method":"*","effect":"delay","delay":"-1s"}`, `{"endpoint":"dynamodb","method":"\u0000","effect":"stale","snapshot":"<b>"}`,
		`{"endpoint":"bigtable","method":"MutateRow","effect":"cut","code":"OK","rows":-1,"times":-1,"probability":7}`,
	}
	types := []string{"", "text/html", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json; charset=utf-16"}
	asked := 0
	check := func(method, path, body, contentType string) {
		t.Helper()
		asked++
		r, err := http.NewRequestWithContext(t.Context(), method, e.url+"/api/v1/"+path, strings.NewReader(body))
		if err != nil {
			t.Fatalf("%s %q: %v", method, path, err)
		}
		r.Header["Authorization"] = []string{"Bearer " + token}
		r.Header.Set("Content-Type", contentType)
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatalf("%s %q: %v", method, path, err)
		}
		defer func() { _ = resp.Body.Close() }()
		if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") || path == "openapi.yaml" {
			return
		}
		text, err := io.ReadAll(resp.Body)
		var got failed
		switch {
		case err != nil || resp.Header.Get("Content-Type") != "application/json" || !json.Valid(text):
			t.Errorf("%s %.80q %.80q: %d, %s: %.200q, %v", method, path, body, resp.StatusCode, resp.Header.Get("Content-Type"), text, err)
		case resp.StatusCode == http.StatusOK:
		case goNames.Match(text):
			t.Errorf("%s %.80q %.80q: it speaks of Go: %.200s", method, path, body, text)
		case resp.StatusCode >= 500, json.Unmarshal(text, &got) != nil, got.Error.Code == "", got.Error.Text == "", got.Error.Remedy == "":
			t.Errorf("%s %.80q %.80q: %d %.200s", method, path, body, resp.StatusCode, text)
		}
	}
	for route, parameters := range described(t) {
		method, path, _ := strings.Cut(route, " ")
		fill := func(name string) string {
			return pathParameter.ReplaceAllLiteralString(path, url.PathEscape(name))
		}
		for _, name := range names {
			check(method, fill(name), "", "")
		}
		for _, parameter := range parameters {
			for _, value := range names {
				check(method, fill("orders")+"?"+parameter+"="+url.QueryEscape(value), "", "")
			}
		}
		if method != "POST" {
			continue
		}
		for i, body := range bodies {
			check(method, fill("orders"), body, types[i%len(types)])
		}
	}
	if asked < 1000 {
		t.Errorf("%d requests: openapi.yaml was not understood", asked)
	}
}

// TestErrors_Bigtable: an error of Bigtable keeps its own words, with the row concerned, and
// without Go's terms.
func TestErrors_Bigtable(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.createRows("t", "a")
	for _, c := range []struct{ method, path, body, code, text, remedy string }{
		{
			"POST", "tables/i/t/rows", `{"rows":[{"key":{"text":"a"},"delete":true},{"key":{"text":"b"},"cells":[{"family":"none","qualifier":{"text":"q"},"value":{"text":"v"}}]}]}`,
			"NotFound", `^row 1: writing row "b" of table t: .*none`, "families",
		},
		{"POST", "tables/i/t/rows", `{"rows":[{"key":{"text":""},"delete":true}]}`, "InvalidArgument", `^row 0: `, "change"},
		{"GET", "tables/i/t/rows?filter={\"rowKeyRegexFilter\":\"KA==\"}", "", "InvalidArgument", `\(`, "change"},
		{"POST", "tables/i/t/families", `{"modifications":[{"id":"none","drop":true}]}`, "NotFound", `none`, "families"},
		{"GET", "dump?table=none", "", "NotFound", `^dump of none: reading table none: table not found`, "lists the tables"},
	} {
		var got failed
		status := e.ask(c.method, c.path, c.body, &got)
		if status < 400 || status >= 500 || got.Error.Code != c.code || !strings.Contains(got.Error.Remedy, c.remedy) || !regexp.MustCompile(c.text).MatchString(got.Error.Text) || goNames.MatchString(got.Error.Text) {
			t.Errorf("%s %s: %d %+v, want %s %s", c.method, c.path, status, got.Error, c.code, c.text)
		}
	}
}
