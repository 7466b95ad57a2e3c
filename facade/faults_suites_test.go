package facade

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Two pairs of parentheses are rejected during parsing, once their content is known: before
// later errors. At the start of a condition, parentheses and calls may still become an
// operand, and errors up to the deciding token come first. A suite recorded one of these on
// AWS; DynamoDB Local answers all so.
func TestExpressions_RedundantParentheses(t *testing.T) {
	t.Parallel()
	const redundant = "The expression has redundant parentheses;"
	syntax := func(token, near string) string {
		return fmt.Sprintf("Syntax error; token: %q, near: %q", token, near)
	}
	var cases []faultCase
	for _, c := range []struct{ filter, want string }{
		{"(a)between(((b.c)).d)and(c)", redundant},
		{"(a)between((b.c).d)and(c)", syntax(".", ").d")},
		{"((a = b)) and", redundant},
		{"((a = b) and c = d", syntax("<EOF>", "d")},
		{"((a)) = b and foo(", redundant},
		{"((a = b) ) x", redundant},
		{"(((a = b))))", redundant},
		{"not ((a = b)) c", redundant},
		{"a = = b and ((c = d))", syntax("=", "= = b")},
		{"foo(a) = b and ((c = d)) and", redundant},
		{"a between ((b)) and and", redundant},
		{"a in (((b)), c", redundant},
		{"((a)", syntax("<EOF>", ")")},
		{"((a) ) .b = c", syntax(".", ") .b")},
		{"((a)) x", syntax("x", ") x")},
		{"((a.b))[0] = c", syntax("[", ")[0")},
		{"contains(((a)), b", syntax("<EOF>", "b")},
		{"contains(((a)), b) and", redundant},
		{"((contains(a, b))) x", redundant},
		{"size(((a))) > ", redundant},
	} {
		cases = append(cases, faultCase{operation: "Scan", request: fmt.Sprintf(`{"TableName": "none", "FilterExpression": %q}`, c.filter), want: "Invalid FilterExpression: " + c.want})
	}
	for _, c := range []struct{ update, want string }{
		{"SET x = ((e + e)) y", redundant},
		{"SET x = ((e)) + ", redundant},
		{"SET x = ((e", syntax("<EOF>", "e")},
		{"SET x = ((e)).b", redundant},
		{"SET x = (e.b).c", syntax(".", ").c")},
		{"SET x = list_append(((e)), e) z", redundant},
	} {
		cases = append(cases, faultCase{operation: "UpdateItem", request: fmt.Sprintf(`{"TableName": "none", "Key": {"id": {"S": "A"}}, "UpdateExpression": %q}`, c.update), want: "Invalid UpdateExpression: " + c.want, enveloped: true})
	}
	runFaults(t, cases)
}

// The text about a condition, filter or key condition that is too long shows its size in both
// wordings, and that about an update or projection in neither. This was recorded on AWS in 2023,
// 2025 and October 2026, and on DynamoDB Local.
func TestLimits_ExpressionSize(t *testing.T) {
	t.Parallel()
	const tooLong = "Expression size has exceeded the maximum allowed size;"
	long := strings.Repeat(" ", 4096) + "x"
	write := `{"TableName": "none", "Key": {"id": {"S": "A"}}, `
	runFaults(t, []faultCase{
		{operation: "DeleteItem", request: write + fmt.Sprintf(`"ConditionExpression": %q}`, long), want: "Invalid ConditionExpression: " + tooLong + " expression size: 4097", enveloped: true},
		{operation: "Scan", request: fmt.Sprintf(`{"TableName": "none", "FilterExpression": %q}`, long), want: "Invalid FilterExpression: " + tooLong + " expression size: 4097"},
		{operation: "Query", request: fmt.Sprintf(`{"TableName": "none", "KeyConditionExpression": %q}`, long), want: "Invalid KeyConditionExpression: " + tooLong + " expression size: 4097"},
		{operation: "UpdateItem", request: write + fmt.Sprintf(`"UpdateExpression": %q}`, long), want: "Invalid UpdateExpression: " + tooLong, enveloped: true},
		{operation: "GetItem", request: write + fmt.Sprintf(`"ProjectionExpression": %q}`, long), want: "Invalid ProjectionExpression: " + tooLong},
		{operation: "TransactWriteItems", request: `{"TransactItems": [{"Update": ` + write + fmt.Sprintf(`"UpdateExpression": %q}}]}`, long), want: "Invalid UpdateExpression: " + tooLong},
		{operation: "TransactWriteItems", request: `{"TransactItems": [{"Delete": ` + write + fmt.Sprintf(`"ConditionExpression": %q}}]}`, long), want: "Invalid ConditionExpression: " + tooLong + " expression size: 4097"},
	})
}

// An element of BatchWriteItem with neither or both of its members is reported as a value of
// two types; elements are checked in sequence, before tables: recorded on AWS and DynamoDB
// Local.
func TestBatchWriteItem_BatchWriteElements(t *testing.T) {
	t.Parallel()
	const (
		many = "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes"
		put  = `"PutRequest": {"Item": {"id": {"S": "A"}}}`
	)
	runFaults(t, []faultCase{
		{operation: "BatchWriteItem", request: `{"RequestItems": {"none": [{}]}}`, want: many},
		{operation: "BatchWriteItem", request: `{"RequestItems": {"none": [{"PutRequest": null}]}}`, want: many},
		{operation: "BatchWriteItem", request: `{"RequestItems": {"none": [{` + put + `, "DeleteRequest": {"Key": {"id": {"S": "A"}}}}]}}`, want: many},
		{operation: "BatchWriteItem", request: `{"RequestItems": {"none": [{` + put + `}, {}]}}`, want: many},
		{operation: "BatchWriteItem", request: `{"RequestItems": {"none": [{"PutRequest": {"Item": {"id": {"N": "x"}}}}, {}]}}`, want: "The parameter cannot be converted to a numeric value: x"},
	})
}

// A value has the wrong type for a key attribute of an index. If the type is clear from the
// expression, the error comes before the condition is checked, and before paths below keys; if
// the value comes from the item, the text differs. A suite recorded both on AWS, and AWS's
// reference also lists the second text.
func TestIndexes_TypesOfIndexKeys(t *testing.T) {
	t.Parallel()
	const (
		mismatch = "One or more parameter values were invalid: Type mismatch for Index Key c Expected: S Actual: %s IndexName: by-c"
		byItem   = "The update expression attempted to update the secondary index key to unsupported type"
		n        = `, "ExpressionAttributeValues": {":v": {"N": "1"}}}`
		cancel   = "TransactionCanceledException: Transaction cancelled, please refer cancellation reasons for specific reasons [ValidationError]"
	)
	current, classic := faultServers(t)
	for _, s := range []*Server{current, classic} {
		if _, err := s.Call(t.Context(), "PutItem", []byte(`{"TableName": "fault", "Item": {"a": {"S": "A"}, "b": {"S": "B"}, "n": {"N": "1"}, "l": {"L": []}, "s": {"S": "x"}}}`)); err != nil {
			t.Fatal(err)
		}
	}
	update := func(expression, values, want string) faultCase {
		return faultCase{operation: "UpdateItem", request: fmt.Sprintf(`{"TableName": "fault", "Key": {"a": {"S": "A"}, "b": {"S": "B"}}, "UpdateExpression": %q%s`, expression, values), want: want}
	}
	checkFaults(t, current, classic, []faultCase{
		update("SET c = n", "}", byItem),
		update("SET d = l", "}", byItem),
		update("SET c = if_not_exists(l, n)", "}", byItem),
		update("SET c = :v", n, fmt.Sprintf(mismatch, "N")),
		update("SET c = s + :v", n, fmt.Sprintf(mismatch, "N")),
		update("SET c = if_not_exists(s, :v)", n, fmt.Sprintf(mismatch, "N")),
		update("SET c = list_append(s, s)", "}", fmt.Sprintf(mismatch, "L")),
		update("ADD c :v", n, fmt.Sprintf(mismatch, "N")),
		update("SET e = c[1], c = a + :v", n, fmt.Sprintf(mismatch, "N")),
		update("SET d.a = a ADD c :v", n, fmt.Sprintf(mismatch, "N")),
		update("SET b = :v, c = :v", n, "One or more parameter values were invalid: Cannot update attribute b. This attribute is part of the key"),
		update("SET c = :v", `, "ConditionExpression": "attribute_exists(nothing)"`+n, fmt.Sprintf(mismatch, "N")),
		update("SET c = n", `, "ConditionExpression": "attribute_exists(nothing)"}`, "ConditionalCheckFailedException: The conditional request failed"),
		{operation: "UpdateItem", request: `{"TableName": "fault", "Key": {"a": {"S": "A"}, "b": {"S": "B"}}, "AttributeUpdates": {"c": {"Value": {"N": "1"}}}}`, want: fmt.Sprintf(mismatch, "N")},
		{operation: "TransactWriteItems", request: `{"TransactItems": [{"Update": {"TableName": "fault", "Key": {"a": {"S": "A"}, "b": {"S": "B"}}, "UpdateExpression": "SET c = n"}}]}`, want: cancel},
		update("SET c = s", "}", "{}"),
		update("REMOVE c", "}", "{}"),
	})
}

// A query of a table without sort key rejects a start key, since there is at most one item. The
// newer wording shows the key, as recorded on AWS in November 2025.
func TestQuery_StartKeyOfOneItem(t *testing.T) {
	t.Parallel()
	const single = "The query can return at most one row and cannot be restarted"
	runFaults(t, []faultCase{
		{
			operation: "Query", request: `{"TableName": "plain", "KeyConditions": {"id": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "x"}]}}, "ExclusiveStartKey": {"id": {"S": "x"}}}`,
			want: "The provided exclusive start key is invalid: ExclusiveStartKey: {id=AttributeValue: {S:x}}", classic: single,
		},
		{
			operation: "Query", request: `{"TableName": "plain", "KeyConditionExpression": "id = :v", "ExpressionAttributeValues": {":v": {"S": "x"}}, "ExclusiveStartKey": {"id": {"S": "y"}}}`,
			want: "The provided starting key is outside query boundaries based on provided conditions",
		},
	})
}

// AWS names its server in every answer.
func TestHTTP_ServerHeader(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPost, http.MethodOptions} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(method, "/", nil))
		if got := w.Header().Get("Server"); got != "Server" {
			t.Errorf("%s: Server is %q", method, got)
		}
	}
}
