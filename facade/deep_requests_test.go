package facade

import (
	"fmt"
	"strings"
	"testing"
)

// The older layer checks a write of one item with a value nested 63 levels or more, and it checks
// enums before the nesting; with 40 levels, the layer of the region checks the write.
// TransactWriteItems reports the first fault in the order of its actions. Recorded on the service
// on 2026-10-09 (deepRequests.test.ts).
func TestRequests_Deep(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	const (
		nested      = "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit"
		olderXOR    = "1 validation error detected: Value 'XOR' at 'conditionalOperator' failed to satisfy constraint: Member must satisfy enum value set: [OR, AND]"
		newerXOR    = "1 validation error detected: Failed to satisfy constraint: Member must satisfy enum value set: [ALL, OR]"
		olderReturn = "1 validation error detected: Value 'BOGUS' at 'returnValues' failed to satisfy constraint: Member must satisfy enum value set: [ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]"
		newerReturn = "1 validation error detected: Failed to satisfy constraint: Member must satisfy enum value set: [ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE]"
		syntax      = `Invalid ConditionExpression: Syntax error; token: "=", near: "= = b"`
		emptyName   = "Empty attribute name"
		unused      = "Value provided in ExpressionAttributeValues unused in expressions: keys: {:u}"
		key         = `"Key": {"pk": {"S": "a"}, "sk": {"S": "1"}}`
		named       = `{"TableName": "none", "Item": {"pk": {"S": "a"}, "sk": {"S": "1"}, "": {"S": "x"}}}`
	)
	deep := func(levels int) string {
		return strings.Repeat(`{"M": {"n": `, levels) + `{"S": "leaf"}` + strings.Repeat("}}", levels)
	}
	expected := func(levels int) string {
		return `"Expected": {"a": {"Value": ` + deep(levels) + `}, "b": {"Exists": false}}`
	}
	condition := func(levels int) string {
		return `"ConditionExpression": "d = :deep", "ExpressionAttributeValues": {":deep": ` + deep(levels) + `}`
	}
	deepKey := func(levels int) string { return `"Key": {"pk": ` + deep(levels) + `, "sk": {"S": "1"}}` }
	put := func(members string) string {
		return `{"Put": {"TableName": "none", "Item": {"pk": {"S": "a"}, "sk": {"S": "1"}` + members + `}}}`
	}
	var sums []string
	for i := range 500 {
		sums = append(sums, fmt.Sprintf("a%d = :v", i))
	}
	for _, c := range []struct{ name, operation, members, want string }{
		{"an expected value of 100 levels", "PutItem", `"Item": {"pk": {"S": "a"}}, "ConditionalOperator": "XOR", ` + expected(100), olderXOR},
		{"an expected value of 40 levels", "PutItem", `"Item": {"pk": {"S": "a"}}, "ConditionalOperator": "XOR", ` + expected(40), newerXOR},
		{"an item of 63 levels", "PutItem", `"Item": {"pk": {"S": "a"}, "d": ` + deep(63) + `}, "ReturnValues": "BOGUS"`, olderReturn},
		{"an item of 62 levels", "PutItem", `"Item": {"pk": {"S": "a"}, "d": ` + deep(62) + `}, "ReturnValues": "BOGUS"`, newerReturn},
		{"a list of an item", "PutItem", `"Item": {"pk": {"S": "a"}, "d": {"L": [` + deep(62) + `]}}, "ReturnValues": "BOGUS"`, olderReturn},
		{"an expected value of 100 levels", "UpdateItem", key + `, "AttributeUpdates": {"x": {"Action": "PUT", "Value": {"S": "1"}}}, "ConditionalOperator": "XOR", ` + expected(100), olderXOR},
		{"an update of 63 levels", "UpdateItem", key + `, "AttributeUpdates": {"x": {"Action": "PUT", "Value": ` + deep(63) + `}}, "ReturnValues": "BOGUS"`, olderReturn},
		{"a condition value of 63 levels", "DeleteItem", key + `, "ReturnValues": "BOGUS", ` + condition(63), olderReturn},
		{"a condition value of 40 levels", "DeleteItem", key + `, "ReturnValues": "BOGUS", ` + condition(40), newerReturn},
		{"an expected value of 63 levels", "DeleteItem", key + `, "ReturnValues": "BOGUS", "Expected": {"d": {"Value": ` + deep(63) + `}}`, olderReturn},
		{"a list of expected values", "DeleteItem", key + `, "ReturnValues": "BOGUS", "Expected": {"d": {"ComparisonOperator": "EQ", "AttributeValueList": [` + deep(63) + `]}}`, olderReturn},
		{"a key of 100 levels", "DeleteItem", deepKey(100) + `, "ReturnValues": "BOGUS"`, olderReturn},
		{"another enum of ReturnValues", "DeleteItem", key + `, "ReturnValues": "UPDATED_NEW", ` + condition(100), "ReturnValues can only be ALL_OLD or NONE"},

		{"an item before a name", "TransactWriteItems", put(`, "d": `+deep(40)) + `, {"Put": ` + named + `}`, nested},
		{"a name before an item", "TransactWriteItems", `{"Put": ` + named + `}, ` + put(`, "d": `+deep(100)), emptyName},
		{"a name before a value of its item", "TransactWriteItems", put(`, "": {"S": "x"}, "d": ` + deep(100)), emptyName},
		{"a name behind a value of its item", "TransactWriteItems", put(`, "d": ` + deep(100) + `, "": {"S": "x"}`), emptyName},
		{"a value before a name of a map", "TransactWriteItems", put(`, "m": {"M": {"": {"S": "x"}}}, "d": ` + deep(40)), nested},
		{"a name before a condition", "TransactWriteItems", `{"Put": ` + named + `}, {"ConditionCheck": {"TableName": "none", ` + key + `, ` + condition(100) + `}}`, emptyName},
		{"a deleted key before a condition", "TransactWriteItems", `{"Delete": {"TableName": "none", ` + deepKey(40) + `}}, {"Put": {"TableName": "none", "Item": {"pk": {"S": "a"}}, "ConditionExpression": "a = = b"}}`, nested},
		{"a checked key before an unused value", "TransactWriteItems", `{"ConditionCheck": {"TableName": "none", ` + deepKey(40) + `, "ConditionExpression": "attribute_exists(a)"}},
			{"Update": {"TableName": "none", ` + key + `, "UpdateExpression": "SET a = :v", "ExpressionAttributeValues": {":v": {"S": "x"}, ":u": {"S": "y"}}}}`, nested},
		{"a condition before a deleted key", "TransactWriteItems", `{"Put": {"TableName": "none", "Item": {"pk": {"S": "a"}}, "ConditionExpression": "a = = b"}}, {"Delete": {"TableName": "none", ` + deepKey(100) + `}}`, syntax},
		{"a condition before its key", "TransactWriteItems", `{"Delete": {"TableName": "none", ` + deepKey(100) + `, "ConditionExpression": "a = = b"}}`, syntax},
		{
			"a long condition before its key", "TransactWriteItems",
			`{"Delete": {"TableName": "none", ` + deepKey(100) + `, "ConditionExpression": "a = :v` + strings.Repeat(" AND a = :v", 373) + `", "ExpressionAttributeValues": {":v": {"S": "x"}}}}`,
			"Invalid ConditionExpression: Expression size has exceeded the maximum allowed size; expression size: 4109",
		},
		{
			"a long update before a checked key", "TransactWriteItems",
			`{"Update": {"TableName": "none", ` + key + `, "UpdateExpression": "SET ` + strings.Join(sums, ", ") + `", "ExpressionAttributeValues": {":v": {"S": "x"}}}},
			{"ConditionCheck": {"TableName": "none", ` + deepKey(100) + `, "ConditionExpression": "attribute_exists(a)"}}`,
			"Invalid UpdateExpression: Expression size has exceeded the maximum allowed size;",
		},
		{"an unused value before a checked key", "TransactWriteItems", `{"Update": {"TableName": "none", ` + key + `, "UpdateExpression": "SET a = :v", "ExpressionAttributeValues": {":v": {"S": "x"}, ":u": {"S": "y"}}}},
			{"ConditionCheck": {"TableName": "none", ` + deepKey(100) + `, "ConditionExpression": "attribute_exists(a)"}}`, unused},
	} {
		for _, region := range []MessageProfile{"eu-west-2", "us-east-1"} {
			request := `{"TableName": "none", ` + c.members + `}`
			if c.operation == "TransactWriteItems" {
				request = `{"TransactItems": [` + c.members + `]}`
			}
			_, err := inRegion(t, s, region).Call(t.Context(), c.operation, []byte(request))
			if want := "ValidationException: " + c.want; err == nil || !strings.HasPrefix(err.Error(), want) || err.Error() != want && !strings.HasSuffix(want, ";") {
				t.Errorf("%s, %s in %s: %.300v\nwant %s", c.operation, c.name, region, err, want)
			}
		}
	}
}
