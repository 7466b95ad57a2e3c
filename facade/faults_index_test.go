package facade

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
)

// A new index omits items that do not fit, even after later writes of them, and includes an
// item once it fits.
func TestIndexes_KeysTooLargeForAnIndex(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	createPlain(t, s, "plain")
	for _, bytes := range []int{1024, 1025, 2048, 2049, 4500} {
		must(t, s, "PutItem", fmt.Sprintf(`{"TableName": "plain", "Item": {"id": {"S": "%d"}, "h": {"S": "h"}, "x": {"S": "%s"}}}`, bytes, strings.Repeat("x", bytes)))
	}
	must(t, s, "PutItem", `{"TableName": "plain", "Item": {"id": {"S": "empty"}, "h": {"S": "h"}, "x": {"S": ""}}}`)
	add := func(name, schema string) {
		t.Helper()
		must(t, s, "UpdateTable", `{"TableName": "plain", "AttributeDefinitions": [{"AttributeName": "h", "AttributeType": "S"}, {"AttributeName": "x", "AttributeType": "S"}],
			"GlobalSecondaryIndexUpdates": [{"Create": {"IndexName": "`+name+`", "KeySchema": [`+schema+`], "Projection": {"ProjectionType": "ALL"}}}]}`)
		s.store.Wait()
	}
	add("hash", `{"AttributeName": "x", "KeyType": "HASH"}`)
	add("range", `{"AttributeName": "h", "KeyType": "HASH"}, {"AttributeName": "x", "KeyType": "RANGE"}`)
	add("both", `{"AttributeName": "x", "KeyType": "HASH"}, {"AttributeName": "h", "KeyType": "HASH"}`)
	holds := func(index string, want ...string) {
		t.Helper()
		var out struct {
			Items []struct {
				ID struct{ S string } `json:"id"`
			}
		}
		if err := json.Unmarshal([]byte(must(t, s, "Scan", `{"TableName": "plain", "IndexName": "`+index+`", "ProjectionExpression": "id"}`)), &out); err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for _, item := range out.Items {
			got[item.ID.S] = true
		}
		wanted := map[string]bool{}
		for _, id := range want {
			wanted[id] = true
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("index %s (-want +got):\n%s", index, diff)
		}
	}
	all := func() {
		t.Helper()
		holds("hash", "1024", "1025", "2048")
		holds("range", "1024")
		holds("both", "1024", "1025") // the attributes of a part count together
	}
	all()
	// A write that does not change the attribute leaves the item out, at no cost.
	for _, id := range []string{"1025", "2049", "4500"} {
		got := must(t, s, "UpdateItem", `{"TableName": "plain", "Key": {"id": {"S": "`+id+`"}}, "UpdateExpression": "SET n = :n", "ExpressionAttributeValues": {":n": {"N": "1"}}, "ReturnConsumedCapacity": "INDEXES"}`)
		if strings.Contains(got, `"range"`) {
			t.Errorf("%s: %s", id, got)
		}
	}
	all()
	must(t, s, "TransactWriteItems", `{"TransactItems": [{"Update": {"TableName": "plain", "Key": {"id": {"S": "2049"}}, "UpdateExpression": "SET n = :n", "ExpressionAttributeValues": {":n": {"N": "2"}}}}]}`)
	all()
	must(t, s, "UpdateItem", `{"TableName": "plain", "Key": {"id": {"S": "4500"}}, "UpdateExpression": "SET x = :x", "ExpressionAttributeValues": {":x": {"S": "y"}}}`)
	holds("hash", "1024", "1025", "2048", "4500")
	holds("range", "1024", "4500")
	holds("both", "1024", "1025", "4500")
	must(t, s, "DeleteItem", `{"TableName": "plain", "Key": {"id": {"S": "2049"}}}`)
}
