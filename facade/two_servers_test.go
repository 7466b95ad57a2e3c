package facade

import (
	"strings"
	"testing"
)

// Two facades over one Bigtable, on a clock that stands still: what one does
// to tables the other sees at once.
func TestServer_TwoOfThem(t *testing.T) {
	t.Parallel()
	var shared Options
	a := newTestServer(t, func(o *Options) { shared = *o })
	b, err := New(t.Context(), shared)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	item := func(g string) string {
		return `{"TableName": "pairs", "Item": {"pk": {"S": "a"}, "sk": {"N": "1"}, "g": {"S": "` + g + `"}}}`
	}
	const key = `{"TableName": "pairs", "Key": {"pk": {"S": "a"}, "sk": {"N": "1"}}}`
	refused := func(operation, request, want string) {
		t.Helper()
		if got, err := b.Call(t.Context(), operation, []byte(request)); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: answered %s, %v, want %s", operation, got, err, want)
		}
	}
	holds := func(operation, request, want string) {
		t.Helper()
		if got := must(t, b, operation, request); !strings.Contains(got, want) {
			t.Errorf("%s answers %s, want %s", operation, got, want)
		}
	}

	must(t, a, "CreateTable", createPair)
	must(t, b, "PutItem", item("x"))

	must(t, a, "UpdateTable", `{"TableName": "pairs", "AttributeDefinitions": [{"AttributeName": "g", "AttributeType": "S"}],
		"GlobalSecondaryIndexUpdates": [{"Create": {"IndexName": "by-g", "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}], "Projection": {"ProjectionType": "KEYS_ONLY"}}}]}`)
	a.store.background.Wait()
	holds("DescribeTable", `{"TableName": "pairs"}`, "by-g")
	holds("Query", `{"TableName": "pairs", "IndexName": "by-g", "KeyConditionExpression": "g = :g", "ExpressionAttributeValues": {":g": {"S": "x"}}}`, `"Count":1`)

	must(t, a, "UpdateTable", `{"TableName": "pairs", "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "by-g"}}]}`)
	a.store.background.Wait()
	must(t, b, "PutItem", item("y")) // leaves one entry and makes another
	holds("GetItem", key, `"g":{"S":"y"}`)
	refused("Query", `{"TableName": "pairs", "IndexName": "by-g", "KeyConditionExpression": "g = :g", "ExpressionAttributeValues": {":g": {"S": "x"}}}`,
		"The table does not have the specified index: by-g")

	must(t, a, "TagResource", `{"ResourceArn": "arn:aws:dynamodb:us-east-1:000000000000:table/pairs", "Tags": [{"Key": "k", "Value": "v"}]}`)
	holds("ListTagsOfResource", `{"ResourceArn": "arn:aws:dynamodb:us-east-1:000000000000:table/pairs"}`, `"Key":"k"`)

	must(t, a, "DeleteTable", `{"TableName": "pairs"}`)
	refused("GetItem", key, codeResourceNotFound+": "+msgResourceNotFound)
	must(t, a, "CreateTable", createPair)
	holds("GetItem", key, `{}`)

	for _, request := range []struct{ operation, body, want string }{
		{"PutItem", item("z"), `{}`},
		{"UpdateItem", `{"TableName": "pairs", "Key": {"pk": {"S": "a"}, "sk": {"N": "1"}}, "UpdateExpression": "ADD n :one", "ExpressionAttributeValues": {":one": {"N": "1"}}, "ReturnValues": "UPDATED_NEW"}`, `"n":{"N":"1"}`},
		{"BatchWriteItem", `{"RequestItems": {"pairs": [{"PutRequest": {"Item": {"pk": {"S": "a"}, "sk": {"N": "1"}}}}]}}`, `"UnprocessedItems":{}`},
		{"TransactWriteItems", `{"TransactItems": [{"Put": {"TableName": "pairs", "Item": {"pk": {"S": "a"}, "sk": {"N": "1"}}}}, {"Put": {"TableName": "pairs", "Item": {"pk": {"S": "a"}, "sk": {"N": "2"}}}}]}`, `{}`},
		{"TransactGetItems", `{"TransactItems": [{"Get": ` + key + `}]}`, `{"Responses":[{}]}`},
		{"Scan", `{"TableName": "pairs"}`, `"Count":0`},
		{"Query", `{"TableName": "pairs", "KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": {"S": "a"}}}`, `"Count":0`},
	} {
		must(t, a, "DeleteTable", `{"TableName": "pairs"}`)
		must(t, a, "CreateTable", createPair)
		holds(request.operation, request.body, request.want)
	}
}
