package facade

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/internal/test/race"
)

// statementPage is an answer of ExecuteStatement.
type statementPage struct {
	Items            []map[string]map[string]any
	NextToken        string
	ConsumedCapacity struct{ CapacityUnits float64 }
}

// execute calls ExecuteStatement with a statement; more are further members of the request.
func execute(tb testing.TB, s *Server, statement, more string) (statementPage, error) {
	tb.Helper()
	text, err := json.Marshal(statement)
	if err != nil {
		tb.Fatal(err)
	}
	answer, err := s.Call(tb.Context(), "ExecuteStatement", []byte(`{"Statement": `+string(text)+more+`}`))
	var page statementPage
	if err == nil {
		err = json.Unmarshal(answer, &page)
	}
	return page, err
}

// fillPairs puts items into the table of createPair: three partitions of eight.
func fillPairs(tb testing.TB, s *Server) {
	tb.Helper()
	must(tb, s, "CreateTable", createPair)
	for i := range 24 {
		must(tb, s, "PutItem", fmt.Sprintf(`{"TableName": "pairs", "Item": {"pk": {"S": "p%d"}, "sk": {"N": "%d"}, "v": {"S": "%s"}, "n": {"N": "%d"}, "m": {"M": {"x": {"N": "%d"}}}}}`,
			i%3, i, strings.Repeat("é", i%5), i%7, i%4))
	}
}

// Pages of any size give the same items. A token is valid after a restart of the endpoint, and
// only for the text of its statement.
func TestExecuteStatement_NextToken_Point5(t *testing.T) {
	t.Parallel()
	var opts Options
	s := newTestServer(t, func(o *Options) { opts = *o })
	fillPairs(t, s)
	for _, statement := range []string{
		"SELECT sk FROM pairs", "SELECT sk FROM pairs WHERE n > 2", "SELECT sk FROM pairs WHERE pk = 'p1'", "SELECT sk FROM pairs WHERE pk IN ['p2', 'p0']",
		"SELECT sk FROM pairs WHERE pk IN ['p2', 'p0'] ORDER BY pk DESC", "SELECT sk FROM pairs WHERE pk = 'p1' AND sk > 5 OR pk = 'p2' AND sk BETWEEN 3 AND 15",
	} {
		whole, err := execute(t, s, statement, "")
		if err != nil {
			t.Fatal(err)
		}
		for limit := 1; limit <= 25; limit += 4 {
			var items []map[string]map[string]any
			next := ""
			for {
				server, err := New(t.Context(), opts) // another process
				if err != nil {
					t.Fatal(err)
				}
				page, err := execute(t, server, statement, fmt.Sprintf(`, "Limit": %d%s`, limit, next))
				if closeErr := server.Close(); err != nil || closeErr != nil {
					t.Fatal(statement, limit, err, closeErr)
				}
				items = append(items, page.Items...)
				if page.NextToken == "" {
					break
				}
				next = `, "NextToken": "` + page.NextToken + `"`
				if _, err := execute(t, s, statement+" ", next); err == nil || !strings.Contains(err.Error(), "NextToken does not match request") {
					t.Fatalf("the token of another text: %v", err)
				}
			}
			if fmt.Sprint(items) != fmt.Sprint(whole.Items) {
				t.Errorf("%s by %d: %v, want %v", statement, limit, items, whole.Items)
			}
		}
	}
}

// A token is bound to the values of the parameters; zeros with different fraction digits are
// different values.
func TestExecuteStatement_NextToken_Parameters(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	fillPairs(t, s)
	for _, c := range []struct {
		first, next string
		same        bool
	}{
		{`{"N": "0"}`, `{"N": "0"}`, true},
		{`{"N": "0"}`, `{"N": "-00"}`, true},
		{`{"N": "0"}`, `{"N": "0.0"}`, false},
		{`{"N": "0.0"}`, `{"N": "0"}`, false},
		{`{"N": "0.0"}`, `{"N": "0.00"}`, false},
		{`{"N": "0.00"}`, `{"N": "0e-2"}`, true},
		{`{"N": "0"}`, `{"N": "\u0030.0"}`, false},
		{`{"N": "1E2"}`, `{"N": "1e+2"}`, true},
		{`{"N": "1.0"}`, `{"N": "1"}`, true},
		{`{"NS": ["0", "1"]}`, `{"NS": ["1.0", "0"]}`, true},
		{`{"NS": ["0", "1"]}`, `{"NS": ["1", "0.0"]}`, false},
		{`{"S": "0"}`, `{"S": "0.0"}`, false},
	} {
		parameters := func(p string) string { return `, "Limit": 1, "Parameters": [{"S": "p1"}, ` + p + "]" }
		const statement = "SELECT sk FROM pairs WHERE pk = ? AND n <> ?"
		page, err := execute(t, s, statement, parameters(c.first))
		if err != nil || page.NextToken == "" {
			t.Fatalf("%s: %v, %v", c.first, page, err)
		}
		_, err = execute(t, s, statement, parameters(c.next)+`, "NextToken": "`+page.NextToken+`"`)
		if (err == nil) != c.same || err != nil && !strings.Contains(err.Error(), "NextToken does not match request") {
			t.Errorf("%s after %s: %v", c.next, c.first, err)
		}
	}
}

// notBefore matches a negated test whose NOT can stand before its operator.
var notBefore = regexp.MustCompile(`NOT ([a-z.]+) (BETWEEN|IN)\b`)

// A WHERE clause selects the same items as an equal FilterExpression.
func TestExecuteStatement_Filter_Point3(t *testing.T) {
	race.OneAfterTheOther(t)
	t.Parallel()
	statements := 500
	if long.Enabled() {
		statements = 10_000
	}
	s := newTestServer(t)
	fillPairs(t, s)
	rng := rand.New(rand.NewPCG(3, 3))
	pick := func(list ...string) string { return list[rng.IntN(len(list))] }
	values := map[string]string{":one": "1", ":two": "2", ":five": "5", ":text": "'é'", ":map": "{'x': 1}"}
	var where func(depth int) string
	where = func(depth int) string {
		if depth > 0 {
			switch rng.IntN(4) {
			case 0:
				return "(" + where(depth-1) + " AND " + where(depth-1) + ")"
			case 1:
				return "(" + where(depth-1) + " OR " + where(depth-1) + ")"
			case 2:
				return "NOT " + where(0)
			}
		}
		path := pick("n", "sk", "m.x", "zzz", "m.zzz")
		switch rng.IntN(6) {
		case 0:
			return path + " BETWEEN :one AND :five"
		case 1:
			return path + " IN (:one, :text, :five)"
		case 2:
			return pick("attribute_exists", "attribute_not_exists") + "(" + path + ")"
		case 3:
			return "begins_with(v, :text)"
		case 4:
			return pick("m = :map", "m <> :map", "size(v) > :two", "contains(v, :text)")
		}
		return path + " " + pick("=", "<>", "<", "<=", ">", ">=") + " " + pick(":one", ":two", ":five")
	}
	for range statements {
		text := where(3)
		used, statement := []string{}, text
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if strings.Contains(text, name) {
				value := map[string]string{":text": `{"S": "é"}`, ":map": `{"M": {"x": {"N": "1"}}}`}[name]
				if value == "" {
					value = `{"N": "` + values[name] + `"}`
				}
				used = append(used, `"`+name+`": `+value)
				statement = strings.ReplaceAll(statement, name, values[name])
			}
		}
		if rng.IntN(2) == 0 { // which a filter cannot have
			statement = notBefore.ReplaceAllString(statement, "$1 NOT $2")
		}
		req := `{"TableName": "pairs", "ProjectionExpression": "sk", "FilterExpression": "` + text + `"`
		if len(used) > 0 {
			req += `, "ExpressionAttributeValues": {` + strings.Join(used, ", ") + `}`
		}
		scan, scanErr := s.Call(t.Context(), "Scan", []byte(req+"}"))
		page, err := execute(t, s, "SELECT sk FROM pairs WHERE "+statement, "")
		if (err == nil) != (scanErr == nil) {
			if err == nil && strings.Contains(scanErr.Error(), "redundant parentheses") {
				continue
			}
			t.Fatalf("%s: %v, as a filter %v", statement, err, scanErr)
		}
		if err != nil {
			continue
		}
		var want, got []string
		for _, item := range decodePage(t, string(scan)).Items {
			want = append(want, item["sk"]["N"])
		}
		for _, item := range page.Items {
			got = append(got, fmt.Sprint(item["sk"]["N"]))
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(want, got) {
			t.Fatalf("%s: %v, as a filter %v", statement, got, want)
		}
	}
}

// A statement consumes as much capacity as the request without PartiQL that does the same.
func TestExecuteStatement_Capacity_Point6(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ statement, more, operation, request string }{
		{"SELECT v FROM pairs WHERE pk = 'p1' AND sk = 1", "", "GetItem", `"Key": {"pk": {"S": "p1"}, "sk": {"N": "1"}}`},
		{"SELECT v FROM pairs WHERE pk = 'p1' AND sk = 1", `, "ConsistentRead": true`, "GetItem", `"ConsistentRead": true, "Key": {"pk": {"S": "p1"}, "sk": {"N": "1"}}`},
		{"SELECT * FROM pairs WHERE pk = 'p1' AND sk = 99", "", "GetItem", `"Key": {"pk": {"S": "p1"}, "sk": {"N": "99"}}`},
		{"SELECT * FROM pairs WHERE pk = 'p1'", "", "Query", `"KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": {"S": "p1"}}`},
		{"SELECT * FROM pairs WHERE v = 'x'", `, "ConsistentRead": true`, "Scan", `"ConsistentRead": true`},
		{"INSERT INTO pairs VALUE {'pk': 'new', 'sk': 1, 'v': '" + strings.Repeat("v", 3000) + "'}", "", "PutItem", `"Item": {"pk": {"S": "new"}, "sk": {"N": "1"}, "v": {"S": "` + strings.Repeat("v", 3000) + `"}}`},
		{"UPDATE pairs SET v = '" + strings.Repeat("v", 3000) + "' WHERE pk = 'p1' AND sk = 1", "", "UpdateItem", `"Key": {"pk": {"S": "p1"}, "sk": {"N": "1"}}, "UpdateExpression": "SET v = :v", "ExpressionAttributeValues": {":v": {"S": "` + strings.Repeat("v", 3000) + `"}}`},
		{"DELETE FROM pairs WHERE pk = 'p1' AND sk = 1", "", "DeleteItem", `"Key": {"pk": {"S": "p1"}, "sk": {"N": "1"}}`},
	} {
		const mode = `, "ReturnConsumedCapacity": "TOTAL"`
		one, other := newTestServer(t), newTestServer(t)
		fillPairs(t, one)
		fillPairs(t, other)
		got, err := execute(t, one, c.statement, c.more+mode)
		if err != nil {
			t.Fatal(err)
		}
		var plain statementPage
		if err := json.Unmarshal([]byte(must(t, other, c.operation, `{"TableName": "pairs", `+c.request+mode+`}`)), &plain); err != nil {
			t.Fatal(err)
		}
		want := plain.ConsumedCapacity.CapacityUnits
		if got.ConsumedCapacity.CapacityUnits != want {
			t.Errorf("%.80s: %v units, %s %v", c.statement, got.ConsumedCapacity.CapacityUnits, c.operation, want)
		}
	}
}

// Each operation of PartiQL accepts statements with unused parameters. The server logs the first
// one.
func TestStatements_SpareParameters(t *testing.T) {
	t.Parallel()
	const statement = `"Statement": "SELECT * FROM \"pairs\" WHERE pk = ? AND sk = 1", "Parameters": [{"S": "a"}, {"S": "b"}, {"N": "3"}]`
	for operation, body := range map[string]string{
		"ExecuteStatement":      `{` + statement + `}`,
		"BatchExecuteStatement": `{"Statements": [{` + statement + `}]}`,
		"ExecuteTransaction":    `{"TransactStatements": [{` + statement + `}]}`,
	} {
		var log bytes.Buffer
		s := newTestServer(t, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		must(t, s, "CreateTable", createPair)
		must(t, s, operation, body)
		must(t, s, operation, body)
		if n := strings.Count(log.String(), "fewer ? than parameters"); n != 1 || !strings.Contains(log.String(), "ignored=2") {
			t.Errorf("%s logs %d times: %s", operation, n, log.String())
		}
	}
}
