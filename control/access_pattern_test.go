package control_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tabletop-emu/tabletop/control/internal/access"
	"github.com/tabletop-emu/tabletop/fixtures"
)

func rawJSON(s string) json.RawMessage { return json.RawMessage(s) }

// TestAccessPattern: a written pattern is read back as the request and its answer.
func TestAccessPattern(t *testing.T) {
	t.Parallel()
	const item = `{"id":{"S":"a: <b> \u2028 # \"q\""}}`
	read := func(rows string, n int) []access.Call {
		return []access.Call{{Operation: "CheckAndMutateRow", Request: rawJSON(`{}`)}, {Operation: "ReadRows", Request: rawJSON(`{"tableName":"projects/p/instances/i/tables/t","rows":` + rows + `}`), Rows: n}}
	}
	for _, c := range []struct {
		name    string
		request access.Request
		ranges  int // of the native read; 0: without one
	}{
		{"a row", access.Request{Operation: "GetItem", Request: rawJSON(`{"Key":` + item + `,"ConsistentRead":true}`), Response: rawJSON(`{"Item":` + item + `}`), Calls: read(`{"rowKeys":["YQ=="]}`, 1)}, 1},
		{"a range", access.Request{Operation: "Query", Request: rawJSON(`{"TableName":"t: x","IndexName":"i"}`), Response: rawJSON(`{"Items":[` + item + `]}`), Calls: read(`{"rowRanges":[{"startKeyOpen":"YQ==","endKeyClosed":"Yg=="}]}`, 1)}, 1},
		{"a view", access.Request{Operation: "Query", Request: rawJSON(`{"IndexName":"i"}`), Response: rawJSON(`{"Items":[` + item + `]}`), Calls: []access.Call{{Operation: "ReadRows", Request: rawJSON(`{"materializedViewName":"projects/p/instances/i/materializedViews/t__i","rows":{"rowRanges":[{"startKeyClosed":"YQ=="}]}}`), Rows: 1}}}, 1},
		{"nothing", access.Request{Operation: "Query", Request: rawJSON(`{}`), Response: rawJSON(`{"Items":[]}`), Calls: read(`{"rowKeys":["YQ==","Yg=="]}`, 0)}, 2},
		{"several tables", access.Request{Operation: "BatchGetItem", Request: rawJSON(`{"RequestItems":{}}`), Response: rawJSON(`{"Responses":{"t":[` + item + `],"u":[` + item + `]}}`)}, 0},
		{"a transaction", access.Request{Operation: "TransactGetItems", Request: rawJSON(`{}`), Response: rawJSON(`{"Responses":[{},{"Item":` + item + `}]}`), Calls: read(`{"rowKeys":["YQ=="]}`, 1)}, 0},
		{"rows that are left out", access.Request{Operation: "Query", Request: rawJSON(`{}`), Response: rawJSON(`{"Items":[]}`), Calls: read(`{"rowKeys":["YQ=="]}`, 1)}, 0},
		{"a filter", access.Request{Operation: "Scan", Request: rawJSON(`{"FilterExpression":"a = b"}`), Response: rawJSON(`{"Items":[]}`), Calls: read(`{"rowKeys":["YQ=="]}`, 0)}, 0},
		{"a page that was asked for", access.Request{Operation: "Scan", Request: rawJSON(`{"Limit":1}`), Response: rawJSON(`{"Items":[` + item + `],"LastEvaluatedKey":` + item + `}`)}, 0},
		{"all rows", access.Request{Operation: "Scan", Request: rawJSON(`{}`), Response: rawJSON(`{"Items":[` + item + `]}`), Calls: read(`{"rowRanges":[{}]}`, 1)}, 0},
	} {
		c.request.ID = "r1"
		text, err := access.Pattern(c.request)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		f, err := fixtures.Open(fstest.MapFS{
			"fixture.yaml": {Data: []byte("title: t\nname: n\n")}, "access/r1.yaml": {Data: []byte(text)},
			"source/items.jsonl": {Data: []byte(item)},
		})
		if err != nil {
			t.Errorf("%s: %v\n%s", c.name, err, text)
			continue
		}
		p := f.Patterns[0]
		if want := strings.Count(string(c.request.Response), `{"S"`) - strings.Count(string(c.request.Response), "Last"); len(p.Expect.Items) != want || *p.Expect.Count != want {
			t.Errorf("%s: %d items are expected, want %d\n%s", c.name, len(p.Expect.Items), want, text)
		}
		for _, got := range p.Expect.Items {
			if value, err := json.Marshal(got); err != nil || !strings.Contains(string(value), `\"q\"`) {
				t.Errorf("%s: the item is %s, %v", c.name, value, err)
			}
		}
		if (p.Bigtable != nil) != (c.ranges > 0) || p.Bigtable != nil && p.Bigtable.MaxRanges != c.ranges {
			t.Errorf("%s: the native read is %+v, want %d ranges", c.name, p.Bigtable, c.ranges)
		}
		if c.name == "a view" && p.Bigtable.Read.Table != "t__i" {
			t.Errorf("the native read is of table %q", p.Bigtable.Read.Table)
		}
		if c.name == "a range" {
			if _, spans, err := p.Bigtable.Read.Spans(); err != nil || string(spans[0].Start) != "a\x00" || string(spans[0].End) != "b\x00" {
				t.Errorf("the range is %q, %v", spans, err)
			}
		}
	}
	for want, r := range map[string]access.Request{
		"does not read":    {Operation: "PutItem", Request: rawJSON(`{}`), Response: rawJSON(`{}`)},
		"too long":         {Operation: "Scan", Request: rawJSON(`{}`)},
		"several pages":    {Operation: "Scan", Request: rawJSON(`{}`), Response: rawJSON(`{"Items":[],"LastEvaluatedKey":{"id":{"S":"a"}}}`)},
		"cannot unmarshal": {Operation: "Scan", Request: rawJSON(`[]`), Response: rawJSON(`{}`)},
	} {
		if text, err := access.Pattern(r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v", want, text, err)
		}
	}
}
