package facade

import (
	"fmt"
	"strings"
	"testing"
)

// Two pairs of parentheses are refused while an expression is parsed, once it is
// clear what they hold: before what is wrong behind them. Where a condition begins,
// parentheses and calls may still become an operand, and what is wrong up to where
// that shows comes first. A suite recorded on AWS has one of these, DynamoDB Local
// answers so in all.
func TestFaultD29_RedundantParentheses(t *testing.T) {
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

// Too long a condition, filter or key condition shows its size in both wordings,
// an update and a projection in none: recorded on AWS in 2023, 2025 and October
// 2026, and DynamoDB Local.
func TestFaultD30_ExpressionSize(t *testing.T) {
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
