package control_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/control"
	"github.com/tabletop-emu/tabletop/internal/test/labserver"
)

// TestTables_Create: a table is created with its families, and listed with the name of an
// aggregate; a faulty request creates nothing.
func TestTables_Create(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for _, wrong := range []string{`{"families":{"f":{"gcRul":{}}}}`, `{"families":{"a b":{}}}`} {
		var bad failed
		if code := e.ask("POST", "tables/i/t", wrong, &bad); code != http.StatusBadRequest || bad.Error.Text == "" {
			t.Errorf("%s: %d %+v", wrong, code, bad)
		}
	}
	var got struct {
		Name     string
		Families []struct{ Name, GC, Aggregate string }
	}
	if code := e.ask("GET", "tables/i/t", "", nil); code != http.StatusNotFound {
		t.Errorf("after faulty requests the table is there: %d", code)
	}
	e.must("POST", "tables/i/t", `{"families":{"f":{"gcRule":{"maxNumVersions":2}},"n":{"valueType":{"aggregateType":{"inputType":{"int64Type":{"encoding":{"bigEndianBytes":{}}}},"sum":{}}}}}}`, &got)
	slices.SortFunc(got.Families, func(a, b struct{ Name, GC, Aggregate string }) int { return strings.Compare(a.Name, b.Name) })
	if text := fmt.Sprint(got); text != "{projects/p/instances/i/tables/t [{f maxversions=2 } {n never sum}]}" {
		t.Errorf("the table is %s", text)
	}
	var bad failed
	if code := e.ask("POST", "tables/i/t", `{"families":{}}`, &bad); code != http.StatusBadRequest || !strings.Contains(bad.Error.Code, "AlreadyExists") {
		t.Errorf("the same table again: %d %+v", code, bad)
	}
}

// TestTables_Describe: the list has keys, item counts, indexes and streams on request only.
func TestTables_Describe(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	if err := e.ddb.Open(); err != nil {
		t.Fatal(err)
	}
	e.must("POST", "query", `{"operation":"CreateTable","request":{"TableName":"pairs","BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"b","KeyType":"HASH"},{"AttributeName":"a","KeyType":"RANGE"}],
		"AttributeDefinitions":[{"AttributeName":"a","AttributeType":"N"},{"AttributeName":"b","AttributeType":"S"}],"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"KEYS_ONLY"},
		"GlobalSecondaryIndexes":[{"IndexName":"by-a","KeySchema":[{"AttributeName":"a","KeyType":"HASH"}],"Projection":{"ProjectionType":"ALL"}}]}}`, nil)
	e.must("POST", "items/pairs", `{"items":[{"b":{"S":"x"},"a":{"N":"1"}},{"b":{"S":"x"},"a":{"N":"2"}}]}`, nil)
	var got struct{ Described map[string]json.RawMessage }
	e.must("GET", "tables", "", &got)
	if len(got.Described) > 0 {
		t.Errorf("unasked: %s", got.Described)
	}
	e.must("GET", "tables?describe=true", "", &got)
	if text, want := string(got.Described["pairs"]), `{"key":[{"name":"b","type":"S"},{"name":"a","type":"N"}],"items":2,"indexes":["by-a"],"stream":true}`; text != want {
		t.Errorf("the table is %s, want %s", text, want)
	}
}

// TestDemo: the shipped fixtures are loaded into a server without tables, with their mappings,
// even after a reset.
func TestDemo(t *testing.T) {
	t.Parallel()
	e := newEnvOf(t, labserver.Options{Control: control.Options{Demo: true}})
	for range 2 {
		var loaded struct{ Tables, Items int }
		e.must("POST", "demo", "", &loaded)
		if loaded.Tables != len(subjects(t)) || loaded.Items == 0 {
			t.Errorf("loaded are %+v", loaded)
		}
		var bad failed
		if code := e.ask("POST", "demo", "", &bad); code != http.StatusConflict || bad.Error.Code != "not_empty" {
			t.Errorf("a second time: %d %+v", code, bad)
		}
		var got struct {
			DynamoDB  []string
			Described map[string]struct{ Items int }
		}
		e.must("GET", "tables?describe=true", "", &got)
		sum := 0
		for _, d := range got.Described {
			sum += d.Items
		}
		const deleted = 1 // by the access patterns that the demo plays
		if len(got.DynamoDB) != loaded.Tables || sum != loaded.Items-deleted {
			t.Errorf("%d tables with %d items are there, want %+v less %d", len(got.DynamoDB), sum, loaded, deleted)
		}
		var page struct {
			Rows []struct{ Parts []json.RawMessage }
		}
		e.must("GET", "tables/i/orders/rows", "", &page)
		if len(page.Rows) == 0 || len(page.Rows[0].Parts) == 0 {
			t.Errorf("the keys are not cut by the mapping: %v", page.Rows)
		}
		e.played()
		e.must("POST", "reset", "", nil)
	}
	var bad failed
	if code := newEnv(t).ask("POST", "demo", "", &bad); code != http.StatusConflict || bad.Error.Code != "no_demo" {
		t.Errorf("a server without the demo: %d %+v", code, bad)
	}
}

// played fails the test unless the demo has requests of a client, a hot row, and records of both
// streams about the same write.
func (e *env) played() {
	e.t.Helper()
	operations := map[string]int{}
	for _, r := range e.requests("?endpoint=dynamodb&test=demo&limit=1000") {
		operations[r.Operation]++
		if r.Status != "OK" || r.Own {
			e.t.Errorf("a request of the demo is %+v", r)
		}
	}
	for _, name := range []string{"Query", "GetItem", "BatchGetItem", "PutItem", "UpdateItem"} {
		if operations[name] == 0 {
			e.t.Errorf("no request of the demo is a %s: %v", name, operations)
		}
	}
	var heat heatMap
	e.must("GET", "heat/i/events", "", &heat)
	hottest, sum := 0, 0
	for i, k := range heat.Keys {
		if sum += k.Writes; k.Writes > heat.Keys[hottest].Writes {
			hottest = i
		}
	}
	if k := heat.Keys[hottest]; string(decoded(e.t, k.First)) != string(decoded(e.t, k.Last)) || 2*k.Writes < sum {
		e.t.Errorf("the hottest keys of Events are %+v, with %d writes in all", k, sum)
	}
	var records struct {
		Records []struct{ EventName, DynamoDB json.RawMessage }
	}
	var changes struct{ Changes []changeRecord }
	e.must("GET", "streams/Videos/records", "", &records)
	e.must("GET", "tables/i/videos/changes", "", &changes)
	if len(records.Records) == 0 || len(changes.Changes) == 0 || changes.Changes[0].Record == "" {
		e.t.Errorf("the streams of Videos have %+v and %+v", records, changes)
	}
}
