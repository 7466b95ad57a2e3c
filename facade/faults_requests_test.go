package facade

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/internal/test/long"
)

// faultCase is a request with its answers in both wordings.
type faultCase struct {
	operation, request string
	// want is the answer, or the message of a ValidationException.
	want string
	// enveloped reports whether the newer wording has the prefix envelope before want.
	enveloped bool
	// classic is the older wording, "" if it is the same.
	classic string
}

const envelope = "1 validation error detected: "

// createFault creates a table with an index of each kind, for paths and conditions.
const createFault = `{"TableName": "fault", "BillingMode": "PAY_PER_REQUEST",
	"AttributeDefinitions": [{"AttributeName": "a", "AttributeType": "S"}, {"AttributeName": "b", "AttributeType": "S"},
		{"AttributeName": "c", "AttributeType": "S"}, {"AttributeName": "d", "AttributeType": "S"}],
	"KeySchema": [{"AttributeName": "a", "KeyType": "HASH"}, {"AttributeName": "b", "KeyType": "RANGE"}],
	"LocalSecondaryIndexes": [{"IndexName": "by-c", "Projection": {"ProjectionType": "ALL"},
		"KeySchema": [{"AttributeName": "a", "KeyType": "HASH"}, {"AttributeName": "c", "KeyType": "RANGE"}]}],
	"GlobalSecondaryIndexes": [{"IndexName": "by-d", "Projection": {"ProjectionType": "KEYS_ONLY"},
		"KeySchema": [{"AttributeName": "d", "KeyType": "HASH"}]}]}`

// faultServers returns a server for each wording, with the tables fault and plain.
func faultServers(t *testing.T) (current, classic *Server) {
	t.Helper()
	current = newTestServer(t)
	must(t, current, "CreateTable", createFault)
	createPlain(t, current, "plain")
	return current, inRegion(t, current, MessagesClassic)
}

func runFaults(t *testing.T, cases []faultCase) {
	t.Helper()
	current, classic := faultServers(t)
	checkFaults(t, current, classic, cases)
}

func checkFaults(t *testing.T, current, classic *Server, cases []faultCase) {
	t.Helper()
	for _, c := range cases {
		newer, older := c.want, c.want
		if c.enveloped {
			newer = envelope + newer
		}
		if c.classic != "" {
			older = c.classic
		}
		for _, wording := range []struct {
			name, want string
			server     *Server
		}{{"current", newer, current}, {"classic", older, classic}} {
			answer, err := wording.server.Call(t.Context(), c.operation, []byte(c.request))
			got := string(answer)
			if e, ok := awserr.As(err); ok {
				got = strings.TrimPrefix(e.Error(), "ValidationException: ")
			} else if err != nil {
				got = "unexpected: " + err.Error()
			}
			if got != wording.want {
				t.Errorf("%s, %s %.400s:\ngot  %.600s\nwant %s", wording.name, c.operation, c.request, got, wording.want)
			}
		}
	}
}

// An update that creates an item can read its key attributes, as on AWS and DynamoDB Local.
func TestUpdateItem_UpdateReadsKeyOfNewItem(t *testing.T) {
	t.Parallel()
	s, _ := faultServers(t)
	for i, c := range []struct{ update, want string }{
		{"SET v = a", `"a":{"S":"A"},"b":{"S":"B"},"v":{"S":"A"}`},
		{"SET d = b, v = a", `"a":{"S":"A"},"b":{"S":"B"},"d":{"S":"B"},"v":{"S":"A"}`},
		{"SET v = if_not_exists(v, b)", `"a":{"S":"A"},"b":{"S":"B"},"v":{"S":"B"}`},
		{"SET v = if_not_exists(a, :s)", `"a":{"S":"A"},"b":{"S":"B"},"v":{"S":"A"}`},
		{"SET v = b REMOVE w", `"a":{"S":"A"},"b":{"S":"B"},"v":{"S":"B"}`},
	} {
		key := `{"a": {"S": "A` + strconv.Itoa(i) + `"}, "b": {"S": "B"}}`
		parameters := `"TableName": "fault", "Key": ` + key + `, "UpdateExpression": "` + c.update + `"`
		if strings.Contains(c.update, ":s") {
			parameters += `, "ExpressionAttributeValues": {":s": {"S": "x"}}`
		}
		want := strings.ReplaceAll(c.want, `"A"`, `"A`+strconv.Itoa(i)+`"`)
		if got := must(t, s, "UpdateItem", `{`+parameters+`, "ReturnValues": "ALL_NEW"}`); got != `{"Attributes":{`+want+`}}` {
			t.Errorf("%s: %s, want %s", c.update, got, want)
		}
		must(t, s, "DeleteItem", `{"TableName": "fault", "Key": `+key+`}`)
		must(t, s, "TransactWriteItems", `{"TransactItems": [{"Update": {`+parameters+`}}]}`)
		if got := must(t, s, "GetItem", `{"TableName": "fault", "Key": `+key+`}`); got != `{"Item":{`+want+`}}` {
			t.Errorf("%s in a transaction: %s, want %s", c.update, got, want)
		}
	}
	// Attributes outside the key are missing in a new item, and a condition sees no item at
	// all.
	key := `{"a": {"S": "none"}, "b": {"S": "B"}}`
	for _, c := range []struct{ parameters, want string }{
		{`"UpdateExpression": "SET v = w"`, "ValidationException: The provided expression refers to an attribute that does not exist in the item"},
		{`"UpdateExpression": "SET v = a", "ConditionExpression": "attribute_exists(a)"`, "ConditionalCheckFailedException: The conditional request failed"},
		{`"AttributeUpdates": {"v": {"Value": {"S": "x"}}}, "Expected": {"a": {"ComparisonOperator": "NOT_NULL"}}`, "ConditionalCheckFailedException: The conditional request failed"},
	} {
		if _, err := s.Call(t.Context(), "UpdateItem", []byte(`{"TableName": "fault", "Key": `+key+`, `+c.parameters+`}`)); fmt.Sprint(err) != c.want {
			t.Errorf("%s: %v, want %s", c.parameters, err, c.want)
		}
	}
	// An update that adds nothing creates no item, unless it is empty.
	for _, c := range []struct{ parameters, want string }{
		{`"UpdateExpression": "REMOVE v"`, `{}`},
		{`"UpdateExpression": "DELETE v :s", "ExpressionAttributeValues": {":s": {"SS": ["x"]}}`, `{}`},
		{`"AttributeUpdates": {"v": {"Action": "DELETE"}}`, `{}`},
		{`"AttributeUpdates": {"v": {"Action": "DELETE", "Value": {"SS": ["x"]}}}`, `{}`},
		{`"AttributeUpdates": {}`, `{"Attributes":{"a":{"S":"none"},"b":{"S":"B"}}}`},
	} {
		if got := must(t, s, "UpdateItem", `{"TableName": "fault", "Key": `+key+`, "ReturnValues": "ALL_NEW", `+c.parameters+`}`); got != c.want {
			t.Errorf("%s: %s, want %s", c.parameters, got, c.want)
		}
	}
}

// A query can have KeyConditions and expressions, except a KeyConditionExpression. The text
// about other parameters beside expressions names them in the service's order.
func TestQuery_KeyConditionsBesideExpressions(t *testing.T) {
	t.Parallel()
	s, classic := faultServers(t)
	for _, b := range []string{"1", "2"} {
		must(t, s, "PutItem", `{"TableName": "fault", "Item": {"a": {"S": "A"}, "b": {"S": "`+b+`"}, "v": {"N": "`+b+`"}}}`)
	}
	const (
		query = `{"TableName": "fault", "KeyConditions": {"a": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "A"}]}}, `
		mixed = "Can not use both expression and non-expression parameters in the same request: Non-expression parameters: "
		empty = `"AttributeValueList": [{"S": "A"}]`
	)
	checkFaults(t, s, classic, []faultCase{
		{operation: "Query", request: query + `"FilterExpression": "v > :v", "ExpressionAttributeValues": {":v": {"N": "1"}}}`, want: `{"Items":[{"a":{"S":"A"},"b":{"S":"2"},"v":{"N":"2"}}],"Count":1,"ScannedCount":2}`},
		{operation: "Query", request: query + `"ProjectionExpression": "#v", "ExpressionAttributeNames": {"#v": "v"}}`, want: `{"Items":[{"v":{"N":"1"}},{"v":{"N":"2"}}],"Count":2,"ScannedCount":2}`},
		{operation: "Query", request: query + `"FilterExpression": "v > :v", "ProjectionExpression": "b", "ExpressionAttributeValues": {":v": {"N": "1"}}}`, want: `{"Items":[{"b":{"S":"2"}}],"Count":1,"ScannedCount":2}`},
		{operation: "Query", request: query + `"KeyConditionExpression": "a = :a", "ExpressionAttributeValues": {":a": {"S": "A"}}}`, want: mixed + "{KeyConditions} Expression parameters: {KeyConditionExpression}"},
		{
			operation: "Query", request: query + `"KeyConditionExpression": "", "FilterExpression": "", "ProjectionExpression": "", "AttributesToGet": ["v"], "ConditionalOperator": "OR", "QueryFilter": {"v": {"ComparisonOperator": "EQ", ` + empty + `}}}`,
			want: mixed + "{AttributesToGet, QueryFilter, ConditionalOperator, KeyConditions} Expression parameters: {ProjectionExpression, FilterExpression, KeyConditionExpression}",
		},
		{
			operation: "Query", request: query + `"FilterExpression": "", "ProjectionExpression": "", "AttributesToGet": ["v"], "ConditionalOperator": "OR", "QueryFilter": {"v": {"ComparisonOperator": "EQ", ` + empty + `}}}`,
			want: mixed + "{AttributesToGet, QueryFilter, ConditionalOperator} Expression parameters: {ProjectionExpression, FilterExpression}",
		},
		{
			operation: "Scan", request: `{"TableName": "fault", "FilterExpression": "", "ProjectionExpression": "", "AttributesToGet": ["v"], "ConditionalOperator": "OR", "ScanFilter": {"v": {"ComparisonOperator": "EQ", ` + empty + `}}}`,
			want: mixed + "{AttributesToGet, ScanFilter, ConditionalOperator} Expression parameters: {ProjectionExpression, FilterExpression}",
		},
	})
}

// TestLegacy_KeyConditionsBesideExpressions sends the requests of HashiCorp Vault's backend and
// of guregu/dynamo: KeyConditions with an operator on the sort key of the table or of an index,
// beside expressions.
func TestLegacy_KeyConditionsBesideExpressions(t *testing.T) {
	t.Parallel()
	s, classic := faultServers(t)
	for _, b := range []string{"x/1", "x/2", "y/1"} {
		must(t, s, "PutItem", `{"TableName": "fault", "Item": {"a": {"S": "A"}, "b": {"S": "`+b+`"}, "c": {"S": "C"}, "d": {"S": "D"}, "v": {"S": "`+b+`"}}}`)
	}
	checkFaults(t, s, classic, []faultCase{
		{operation: "Query", request: `{"TableName": "fault", "KeyConditions": {"a": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "A"}]}, "b": {"ComparisonOperator": "BEGINS_WITH", "AttributeValueList": [{"S": "x/"}]}},
			"ProjectionExpression": "#k", "ExpressionAttributeNames": {"#k": "b"}, "ConsistentRead": true}`, want: `{"Items":[{"b":{"S":"x/1"}},{"b":{"S":"x/2"}}],"Count":2,"ScannedCount":2}`},
		{operation: "Query", request: `{"TableName": "fault", "IndexName": "by-c", "ScanIndexForward": false, "KeyConditions": {"a": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "A"}]}, "c": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "C"}]}},
			"FilterExpression": "begins_with(#v, :y)", "ExpressionAttributeNames": {"#v": "v"}, "ExpressionAttributeValues": {":y": {"S": "y"}}, "Select": "COUNT"}`, want: `{"Count":1,"ScannedCount":3}`},
	})
}

// Conditions from before expressions are exempt from the limits of expressions: 400
// conditions and 1,000 values on DynamoDB Local, 27,500 values on AWS.
func TestLegacyConditionsHaveNoLimits(t *testing.T) {
	t.Parallel()
	s, _ := faultServers(t)
	item := func(name string) string { return `{"a": {"S": "A"}, "b": {"S": "B"}, "v": {"S": "` + name + `"}}` }
	must(t, s, "PutItem", `{"TableName": "fault", "Item": `+item("x")+`}`)
	conditions := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = `"n` + strconv.Itoa(i) + `": {"ComparisonOperator": "NULL"}`
		}
		return strings.Join(list, ", ")
	}
	values := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = `{"S": "` + strconv.Itoa(i) + strings.Repeat("-", 100) + `"}`
		}
		return `"v": {"ComparisonOperator": "IN", "AttributeValueList": [` + strings.Join(list, ", ") + `, {"S": "x"}]}`
	}
	const found = `{"Count":1,"ScannedCount":1}`
	// Far more conditions than any client sends: they must not take disproportionate stack or
	// time.
	most := 4_000
	if long.Enabled() {
		most = 40_000
	}
	for _, filter := range []string{conditions(150), conditions(400), conditions(most), values(100), values(1000), values(most * 11 / 16)} {
		for _, c := range []struct{ operation, request, want string }{
			{"Scan", `{"TableName": "fault", "Select": "COUNT", "ScanFilter": {` + filter + `}}`, found},
			{"Query", `{"TableName": "fault", "Select": "COUNT", "KeyConditions": {"a": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "A"}]}}, "QueryFilter": {` + filter + `}}`, found},
			{"PutItem", `{"TableName": "fault", "Item": ` + item("x") + `, "Expected": {` + filter + `}}`, "{}"},
			{"UpdateItem", `{"TableName": "fault", "Key": {"a": {"S": "A"}, "b": {"S": "B"}}, "AttributeUpdates": {"w": {"Value": {"S": "w"}}}, "Expected": {` + filter + `}}`, "{}"},
		} {
			if got, err := s.Call(t.Context(), c.operation, []byte(c.request)); err != nil || string(got) != c.want {
				t.Errorf("%s of %.100s…: %s %.300v, want %s", c.operation, filter, got, err, c.want)
			}
		}
	}
}

// Texts about parameters from before expressions never name a placeholder. Each case has an
// invalid name in another place.
func TestLegacyTextsNameNoPlaceholders(t *testing.T) {
	t.Parallel()
	const (
		key     = `"TableName": "fault", "Key": {"a": {"S": "A"}, "b": {"S": "B"}}`
		long    = "One or more parameter values were invalid: Attribute name must be between 1 and 65535 bytes long"
		byA     = `"KeyConditions": {"a": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "A"}]}`
		isNull  = `{"ComparisonOperator": "NULL"}`
		isEqual = `{"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "x"}]}`
	)
	var cases []faultCase
	for _, c := range []struct{ name, want string }{{"", "Empty attribute name"}, {strings.Repeat("x", 65_536), long}} {
		cases = append(cases, []faultCase{
			{operation: "UpdateItem", request: `{` + key + `, "AttributeUpdates": {"` + c.name + `": {"Value": {"S": "x"}}}}`, want: c.want, enveloped: true},
			{operation: "UpdateItem", request: `{` + key + `, "AttributeUpdates": {"` + c.name + `": {"Action": "DELETE"}}}`, want: c.want, enveloped: true},
			{operation: "UpdateItem", request: `{` + key + `, "Expected": {"` + c.name + `": {"Exists": false}}}`, want: c.want, enveloped: true},
			{operation: "DeleteItem", request: `{` + key + `, "Expected": {"` + c.name + `": ` + isNull + `}}`, want: c.want, enveloped: true},
			{operation: "PutItem", request: `{"TableName": "fault", "Item": {"a": {"S": "A"}, "b": {"S": "B"}}, "Expected": {"` + c.name + `": {"Value": {"S": "x"}}}}`, want: c.want, enveloped: true},
			{operation: "Scan", request: `{"TableName": "fault", "ScanFilter": {"` + c.name + `": ` + isNull + `}}`, want: c.want},
			{operation: "Query", request: `{"TableName": "fault", ` + byA + `}, "QueryFilter": {"` + c.name + `": ` + isNull + `}}`, want: c.want},
			{operation: "Query", request: `{"TableName": "fault", ` + byA + `, "` + c.name + `": ` + isEqual + `}}`, want: c.want},
		}...)
	}
	runFaults(t, cases)
}

// Names in parameters from before expressions are always attribute names: never paths,
// placeholders or reserved words.
func TestLegacyNamesAreNoPaths(t *testing.T) {
	t.Parallel()
	s, _ := faultServers(t)
	for _, name := range []string{"v.w", "v[0]", "#n0", ":v0", "_x", "status", "1", "é ( )", "AND"} {
		key := `"TableName": "fault", "Key": {"a": {"S": "A"}, "b": {"S": "` + name + `"}}`
		must(t, s, "UpdateItem", `{`+key+`, "AttributeUpdates": {"`+name+`": {"Value": {"S": "x"}}, "v": {"Value": {"M": {"w": {"S": "y"}}}}}}`)
		must(t, s, "UpdateItem", `{`+key+`, "AttributeUpdates": {"w": {"Value": {"S": "x"}}}, "Expected": {"`+name+`": {"Value": {"S": "x"}}}}`)
		got := must(t, s, "Scan", `{"TableName": "fault", "ScanFilter": {"`+name+`": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "x"}]}}, "AttributesToGet": ["`+name+`"]}`)
		if want := `{"Items":[{"` + name + `":{"S":"x"}}],"Count":1,"ScannedCount":1}`; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		must(t, s, "DeleteItem", `{`+key+`, "Expected": {"`+name+`": {"ComparisonOperator": "NOT_NULL"}, "v": {"ComparisonOperator": "NOT_NULL"}}}`)
	}
}

// An invalid path in a missing item is rejected: DynamoDB Local does so; one recording of the
// service for REMOVE does not. We follow the former.
func TestUpdateItem_RemoveInMissingItem(t *testing.T) {
	t.Parallel()
	const path = "The document path provided in the update expression is invalid for update"
	runFaults(t, []faultCase{
		{operation: "UpdateItem", request: `{"TableName": "plain", "Key": {"id": {"S": "none"}}, "UpdateExpression": "REMOVE x.y"}`, want: path},
		{operation: "UpdateItem", request: `{"TableName": "plain", "Key": {"id": {"S": "none"}}, "UpdateExpression": "REMOVE x[0]"}`, want: path},
	})
}

// In all languages, a name that begins with an underscore needs a placeholder.
func TestExpressions_NamesThatBeginWithUnderscore(t *testing.T) {
	t.Parallel()
	const key = `"TableName": "plain", "Key": {"id": {"S": "A"}}, "ExpressionAttributeValues": {":v": {"S": "x"}}`
	syntax := func(kind, near string) string {
		return "Invalid " + kind + `: Syntax error; token: "_", near: "` + near + `"`
	}
	var cases []faultCase
	for _, c := range []struct{ text, near string }{
		{"SET _abc = :v", "SET _abc"},
		{"SET _ = :v", "SET _ ="},
		{"SET __a = :v", "SET __"},
		{"SET m._y = :v", "._y"},
		{"SET a = _f(:v)", "= _f"},
		{"SET a = :v REMOVE _b", "REMOVE _b"},
	} {
		cases = append(cases, faultCase{operation: "UpdateItem", request: `{` + key + `, "UpdateExpression": "` + c.text + `"}`, want: syntax("UpdateExpression", c.near), enveloped: true})
	}
	for _, c := range []struct{ text, near string }{
		{"_a = :v", "_a"},
		{"a = :v AND _b = :v", "AND _b"},
		{"m._y = :v", "._y"},
		{"_f(a)", "_f"},
		{"size(_a) = :v", "(_a"},
		{"NOT _a = :v", "NOT _a"},
		{"a IN (:v, _b)", ", _b"},
		{"a BETWEEN _b AND :v", "BETWEEN _b"},
	} {
		cases = append(cases,
			faultCase{operation: "DeleteItem", request: `{` + key + `, "ConditionExpression": "` + c.text + `"}`, want: syntax("ConditionExpression", c.near), enveloped: true},
			faultCase{operation: "Scan", request: `{"TableName": "plain", "ExpressionAttributeValues": {":v": {"S": "x"}}, "FilterExpression": "` + c.text + `"}`, want: syntax("FilterExpression", c.near)},
			faultCase{operation: "Query", request: `{"TableName": "plain", "ExpressionAttributeValues": {":v": {"S": "x"}}, "KeyConditionExpression": "` + c.text + `"}`, want: syntax("KeyConditionExpression", c.near)})
	}
	for _, c := range []struct{ text, near string }{{"_a", "_a"}, {"a, _b", ", _b"}, {"m._y", "._y"}, {"a[0]._b", "._b"}} {
		cases = append(cases, faultCase{operation: "GetItem", request: `{"TableName": "plain", "Key": {"id": {"S": "A"}}, "ProjectionExpression": "` + c.text + `"}`, want: syntax("ProjectionExpression", c.near)})
	}
	cases = append(cases, faultCase{
		operation: "UpdateItem", want: `{"Attributes":{"_a":{"S":"x"},"a_":{"S":"x"},"id":{"S":"A"}}}`,
		request: `{"TableName": "plain", "Key": {"id": {"S": "A"}}, "UpdateExpression": "SET #_a = :_v, a_ = :_", "ExpressionAttributeNames": {"#_a": "_a"}, "ExpressionAttributeValues": {":_v": {"S": "x"}, ":_": {"S": "x"}}, "ReturnValues": "ALL_NEW"}`,
	})
	runFaults(t, cases)
}

// list_append must be the whole value of a clause, not an operand; if_not_exists may be an
// operand.
func TestExpressions_ListAppendIsNoOperand(t *testing.T) {
	t.Parallel()
	const misused = "Invalid UpdateExpression: The function is not allowed to be used this way in an expression; function: list_append"
	req := func(update string) string {
		values := `":a": {"L": [{"S": "a"}]}`
		if strings.Contains(update, ":n") {
			values += `, ":n": {"N": "1"}`
		}
		return `{"TableName": "plain", "Key": {"id": {"S": "A"}}, "UpdateExpression": "` + update + `", "ExpressionAttributeValues": {` + values + `}, "ReturnValues": "UPDATED_NEW"}`
	}
	var cases []faultCase
	for _, update := range []string{
		"SET x = list_append(list_append(:a, :a), :a)", "SET x = list_append(:a, list_append(:a, :a))",
		"SET x = if_not_exists(x, list_append(:a, :a))", "SET x = list_append(:a, (list_append(:a, :a)))",
		"SET x = if_not_exists(x, if_not_exists(y, list_append(:a, :a)))",
		"SET x = list_append(:a, :a) + :n", "SET x = :n - list_append(:a, :a)",
	} {
		cases = append(cases, faultCase{operation: "UpdateItem", request: req(update), want: misused, enveloped: true})
	}
	runFaults(t, append(cases,
		faultCase{operation: "UpdateItem", request: req("SET x = list_append(if_not_exists(q, :a), if_not_exists(q, :a))"), want: `{"Attributes":{"x":{"L":[{"S":"a"},{"S":"a"}]}}}`},
		faultCase{operation: "UpdateItem", request: req("SET y = (list_append((:a), :a))"), want: `{"Attributes":{"y":{"L":[{"S":"a"},{"S":"a"}]}}}`},
		faultCase{operation: "UpdateItem", request: req("SET z = if_not_exists(q, if_not_exists(r, :a))"), want: `{"Attributes":{"z":{"L":[{"S":"a"}]}}}`}))
}

// No path may lead into a key of the table or an index, whatever the request reads; an update
// below a key is an update of the key.
func TestUpdateItem_PathsBelowKeys(t *testing.T) {
	t.Parallel()
	const (
		scalars   = "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: "
		ofTheKey  = "One or more parameter values were invalid: Cannot update attribute %s. This attribute is part of the key"
		item      = `"a": {"S": "A"}, "b": {"S": "B"}`
		canceled  = "TransactionCanceledException: Transaction cancelled, please refer cancellation reasons for specific reasons [ValidationError]"
		keyOfA    = `"KeyConditionExpression": "a = :a", "ExpressionAttributeValues": {":a": {"S": "A"}`
		filterKey = "Filter Expression can only contain non-primary key attributes: Primary key attribute: "
	)
	var cases []faultCase
	for _, c := range []struct{ path, want string }{
		{"a.x.y", "Key: a"},
		{"a[0]", "Key: a"},
		{"b.x", "Key: b"},
		{"c.x", "IndexKey: c"},
		{"c[1]", "IndexKey: c"},
		{"d.x.y", "IndexKey: d"},
		{"d[0]", "IndexKey: d"},
	} {
		want, attribute := scalars+c.want, c.path[:1]
		cases = append(cases,
			faultCase{operation: "GetItem", request: `{"TableName": "fault", "Key": {` + item + `}, "ProjectionExpression": "v, ` + c.path + `"}`, want: want},
			faultCase{operation: "BatchGetItem", request: `{"RequestItems": {"fault": {"Keys": [{` + item + `}], "ProjectionExpression": "` + c.path + `"}}}`, want: want},
			faultCase{operation: "TransactGetItems", request: `{"TransactItems": [{"Get": {"TableName": "fault", "Key": {` + item + `}, "ProjectionExpression": "` + c.path + `"}}]}`, want: canceled},
			faultCase{operation: "Scan", request: `{"TableName": "fault", "ProjectionExpression": "` + c.path + `"}`, want: want},
			faultCase{operation: "Scan", request: `{"TableName": "fault", "IndexName": "by-c", "FilterExpression": "attribute_exists(` + c.path + `)"}`, want: want},
			faultCase{operation: "Query", request: `{"TableName": "fault", ` + keyOfA + `}, "ProjectionExpression": "` + c.path + `"}`, want: want},
			faultCase{operation: "PutItem", request: `{"TableName": "fault", "Item": {` + item + `}, "ConditionExpression": "attribute_exists(` + c.path + `)"}`, want: want},
			faultCase{operation: "DeleteItem", request: `{"TableName": "fault", "Key": {` + item + `}, "ConditionExpression": "attribute_exists(` + c.path + `)"}`, want: want},
			faultCase{operation: "UpdateItem", request: `{"TableName": "fault", "Key": {` + item + `}, "UpdateExpression": "SET v = ` + c.path + `"}`, want: want},
			faultCase{operation: "TransactWriteItems", request: `{"TransactItems": [{"ConditionCheck": {"TableName": "fault", "Key": {` + item + `}, "ConditionExpression": "attribute_exists(` + c.path + `)"}}]}`, want: canceled})
		filter, update := want, want
		if attribute == "a" || attribute == "b" {
			filter, update = filterKey+attribute, fmt.Sprintf(ofTheKey, attribute)
		}
		cases = append(cases,
			faultCase{operation: "Query", request: `{"TableName": "fault", ` + keyOfA + `}, "FilterExpression": "attribute_exists(` + c.path + `)"}`, want: filter},
			faultCase{operation: "UpdateItem", request: `{"TableName": "fault", "Key": {` + item + `}, "UpdateExpression": "REMOVE ` + c.path + `"}`, want: update})
	}
	runFaults(t, append(cases,
		// Of two invalid paths, the error is about the one that the update changes.
		faultCase{operation: "UpdateItem", request: `{"TableName": "fault", "Key": {` + item + `}, "UpdateExpression": "SET a = a.b + a[1]"}`, want: fmt.Sprintf(ofTheKey, "a")}))
}

// Steps after a parenthesis do not belong to a path.
func TestExpressions_StepsAfterParentheses(t *testing.T) {
	t.Parallel()
	var cases []faultCase
	for _, c := range []struct{ text, token, near string }{
		{"(m.c).d = :v", ".", ").d"},
		{"(m)[0] = :v", "[", ")[0"},
		{":v = (m).d", ".", ").d"},
		{"size((m).d) = :v", ".", ").d"},
		{"x IN ((m).d)", ".", ").d"},
		{"((m).d) = :v", ".", ").d"},
	} {
		cases = append(cases, faultCase{
			operation: "Scan", request: `{"TableName": "plain", "FilterExpression": "` + c.text + `", "ExpressionAttributeValues": {":v": {"S": "x"}}}`,
			want: `Invalid FilterExpression: Syntax error; token: "` + c.token + `", near: "` + c.near + `"`,
		})
	}
	for _, update := range []string{"SET v = (m).d", "SET v = (m).d + :v", "SET v = list_append((m).d, :v)", "SET v = :v + (m).d"} {
		cases = append(cases, faultCase{
			operation: "UpdateItem", request: `{"TableName": "plain", "Key": {"id": {"S": "A"}}, "UpdateExpression": "` + update + `", "ExpressionAttributeValues": {":v": {"S": "x"}}}`,
			want: `Invalid UpdateExpression: Syntax error; token: ".", near: ").d"`, enveloped: true,
		})
	}
	runFaults(t, cases)
}

// AttributesToGet accepts all attribute names.
func TestLegacy_AttributesToGet(t *testing.T) {
	t.Parallel()
	const key = `{"id": {"S": "A"}}`
	var cases []faultCase
	for _, c := range []struct{ list, want string }{
		{`[""]`, "Empty attribute name"},
		{`["a", ""]`, "Empty attribute name"},
		{`["` + strings.Repeat("x", 65_536) + `"]`, "One or more parameter values were invalid: Attribute name must be between 1 and 65535 bytes long"},
	} {
		cases = append(cases,
			faultCase{operation: "GetItem", request: `{"TableName": "plain", "Key": ` + key + `, "AttributesToGet": ` + c.list + `}`, want: c.want},
			faultCase{operation: "BatchGetItem", request: `{"RequestItems": {"plain": {"Keys": [` + key + `], "AttributesToGet": ` + c.list + `}}}`, want: c.want},
			faultCase{operation: "Scan", request: `{"TableName": "plain", "AttributesToGet": ` + c.list + `}`, want: c.want},
			faultCase{operation: "Query", request: `{"TableName": "plain", "KeyConditions": {"id": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "A"}]}}, "AttributesToGet": ` + c.list + `}`, want: c.want})
	}
	runFaults(t, append(cases, faultCase{
		operation: "GetItem", request: `{"TableName": "plain", "Key": ` + key + `, "AttributesToGet": ["` + strings.Repeat("x", 65_535) + `"]}`, want: "{}",
	}))
}
