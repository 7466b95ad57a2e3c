package facade

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// The order of checks for requests with two faults: each case has the fault that is answered
// and, after it, a later one. A suite recorded them on AWS between 2015 and 2022; recordings
// from October 2026 agree.
func TestValidation_OrderOfChecks(t *testing.T) {
	t.Parallel()
	const (
		empty      = "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"
		start      = "The provided starting key is invalid: " + empty
		noNames    = "ExpressionAttributeNames must not be empty"
		noValues   = "ExpressionAttributeValues must not be empty"
		duplicate  = "One or more parameter values were invalid: Duplicate value in attribute name: x"
		arity      = "One or more parameter values were invalid: Invalid number of argument(s) for the EQ ComparisonOperator"
		notFound   = "ResourceNotFoundException: Requested resource not found"
		shape      = "The provided starting key is invalid"
		indexable  = "Attempted conditional constraint is not an indexable operation"
		names      = `"ExpressionAttributeNames": {}, "ExpressionAttributeValues": {}`
		badKey     = `{"id": {}}`
		oneEqual   = `{"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "A"}]}`
		noOperand  = `{"ComparisonOperator": "EQ"}`
		unservable = `{"ComparisonOperator": "NULL"}`
	)
	runFaults(t, []faultCase{
		// Names and values come after the keys and items beside them.
		{operation: "GetItem", request: `{"TableName": "none", "Key": ` + badKey + `, "ProjectionExpression": "", "ExpressionAttributeNames": {}}`, want: empty},
		{operation: "PutItem", request: `{"TableName": "none", "Item": ` + badKey + `, "ConditionExpression": "", ` + names + `}`, want: empty},
		{operation: "PutItem", request: `{"TableName": "none", "Item": {"id": {"S": "A"}}, "ReturnValues": "ALL_NEW", "ConditionExpression": "", ` + names + `}`, want: "ReturnValues can only be ALL_OLD or NONE", enveloped: true},
		{operation: "UpdateItem", request: `{"TableName": "none", "Key": ` + badKey + `, "UpdateExpression": "", ` + names + `}`, want: empty},
		{operation: "DeleteItem", request: `{"TableName": "none", "Key": ` + badKey + `, "ConditionExpression": "", ` + names + `}`, want: empty},
		{operation: "BatchGetItem", request: `{"RequestItems": {"none": {"Keys": [` + badKey + `], "ProjectionExpression": "", "ExpressionAttributeNames": {}}}}`, want: empty},
		{operation: "TransactGetItems", request: `{"TransactItems": [{"Get": {"TableName": "none", "Key": ` + badKey + `, "ProjectionExpression": "", "ExpressionAttributeNames": {}}}]}`, want: empty},
		{operation: "TransactWriteItems", request: `{"TransactItems": [{"Delete": {"TableName": "none", "Key": ` + badKey + `, "ConditionExpression": "", ` + names + `}}]}`, want: empty},
		{operation: "Query", request: `{"TableName": "none", "ExclusiveStartKey": ` + badKey + `, "KeyConditionExpression": "", ` + names + `}`, want: start},
		{operation: "Query", request: `{"TableName": "none", "FilterExpression": "", ` + names + `}`, want: "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request."},
		{operation: "Scan", request: `{"TableName": "none", "ExclusiveStartKey": ` + badKey + `, "Segment": 1, "FilterExpression": "", ` + names + `}`, want: start},
		{operation: "Scan", request: `{"TableName": "none", "Segment": 1, "FilterExpression": "", ` + names + `}`, want: "The TotalSegments parameter is required but was not present in the request when Segment parameter is present"},
		// Then names, values and expressions, and the table last.
		{operation: "GetItem", request: `{"TableName": "none", "Key": {"id": {"S": "A"}}, "ProjectionExpression": "", "ExpressionAttributeNames": {}}`, want: noNames},
		{operation: "Query", request: `{"TableName": "none", "KeyConditionExpression": "", ` + names + `}`, want: noNames},
		{operation: "Query", request: `{"TableName": "none", "KeyConditionExpression": "", "ExpressionAttributeValues": {}}`, want: noValues},
		{operation: "Scan", request: `{"TableName": "none", "FilterExpression": "", ` + names + `}`, want: noNames},
		// A start key comes after the filter and the list of attributes.
		{operation: "Query", request: `{"TableName": "none", "QueryFilter": {"x": ` + noOperand + `}, "AttributesToGet": ["x", "x"], "ExclusiveStartKey": ` + badKey + `}`, want: arity},
		{operation: "Query", request: `{"TableName": "none", "AttributesToGet": ["x", "x"], "ExclusiveStartKey": ` + badKey + `}`, want: duplicate},
		{operation: "Query", request: `{"TableName": "none", "KeyConditions": {"x": ` + noOperand + `}, "ExclusiveStartKey": ` + badKey + `}`, want: start},
		{operation: "Scan", request: `{"TableName": "none", "AttributesToGet": ["x", "x"], "ScanFilter": {"x": ` + noOperand + `}, "ExclusiveStartKey": ` + badKey + `}`, want: duplicate},
		{operation: "Scan", request: `{"TableName": "none", "ScanFilter": {"x": ` + noOperand + `}, "ExclusiveStartKey": ` + badKey + `, "Segment": 1}`, want: arity},
		// Conditions of KeyConditions come after table, index, ConsistentRead and start key.
		{operation: "Query", request: `{"TableName": "none", "KeyConditions": {"z": ` + unservable + `}}`, want: notFound},
		{operation: "Query", request: `{"TableName": "none", "KeyConditions": {"z": ` + noOperand + `}}`, want: arity},
		{operation: "Query", request: `{"TableName": "fault", "IndexName": "none", "KeyConditions": {"z": ` + unservable + `}, "ExclusiveStartKey": {}}`, want: "The table does not have the specified index: none"},
		{operation: "Query", request: `{"TableName": "fault", "IndexName": "by-d", "ConsistentRead": true, "KeyConditions": {"z": ` + unservable + `}, "ExclusiveStartKey": {}}`, want: "Consistent reads are not supported on global secondary indexes"},
		{operation: "Query", request: `{"TableName": "fault", "KeyConditions": {"z": ` + unservable + `}, "ExclusiveStartKey": {}}`, want: shape},
		{operation: "Query", request: `{"TableName": "fault", "KeyConditions": {"a": ` + oneEqual + `, "c": ` + unservable + `}, "ExclusiveStartKey": {"a": {"S": "A"}, "b": {"S": "B"}}}`, want: "Query condition missed key schema element: b"},
		{operation: "Query", request: `{"TableName": "fault", "KeyConditions": {"a": ` + oneEqual + `, "b": ` + unservable + `}, "ExclusiveStartKey": {"a": {"S": "X"}, "b": {"S": "B"}}}`, want: indexable},
		{operation: "Query", request: `{"TableName": "plain", "KeyConditions": {"id": ` + unservable + `}}`, want: indexable},
		// The key condition comes before the projection of an index, and a filter.
		{operation: "Query", request: `{"TableName": "fault", "IndexName": "by-d", "Select": "ALL_ATTRIBUTES", "KeyConditions": {"a": ` + oneEqual + `}, "QueryFilter": {"d": ` + unservable + `}}`, want: "Query condition missed key schema element: d"},
		{operation: "Query", request: `{"TableName": "fault", "IndexName": "by-d", "Select": "ALL_ATTRIBUTES", "KeyConditions": {"d": ` + oneEqual + `}, "QueryFilter": {"d": ` + unservable + `}}`, want: "QueryFilter can only contain non-primary key attributes: Primary key attribute: d"},
		{operation: "Query", request: `{"TableName": "fault", "IndexName": "by-d", "Select": "ALL_ATTRIBUTES", "KeyConditionExpression": "d = :d", "FilterExpression": "a.x = :d", "ExpressionAttributeValues": {":d": {"S": "x"}}}`, want: "One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not supported for global secondary index by-d because its projection type is not ALL"},
		// Invalid key conditions are rejected without the table, and so are duplicate keys.
		{operation: "Query", request: `{"TableName": "none", "KeyConditionExpression": "a = :v OR a = :v", "ExpressionAttributeValues": {":v": {"S": "x"}}}`, want: "Invalid operator used in KeyConditionExpression: OR"},
		{operation: "Query", request: `{"TableName": "none", "KeyConditionExpression": "a = :v AND a > :v", "ExpressionAttributeValues": {":v": {"S": "x"}}}`, want: "Invalid KeyConditionExpression: KeyConditionExpressions must only contain one condition per key", classic: "KeyConditionExpressions must only contain one condition per key"},
		{operation: "Query", request: `{"TableName": "none", "KeyConditionExpression": "size(a) = :v", "ExpressionAttributeValues": {":v": {"N": "1"}}}`, want: "KeyConditionExpressions cannot contain nested operations"},
		{operation: "BatchGetItem", request: `{"RequestItems": {"none": {"Keys": [{"id": {"S": "A"}, "x": {"N": "1"}}, {"x": {"N": "1.0"}, "id": {"S": "A"}}]}}}`, want: "Provided list of item keys contains duplicates"},
		{operation: "BatchGetItem", request: `{"RequestItems": {"none": {"Keys": [{"id": {"S": "A"}}, {"id": {"S": "A"}}], "AttributesToGet": ["x", "x"]}}}`, want: duplicate},
		{operation: "BatchGetItem", request: `{"RequestItems": {"none": {"Keys": [{}]}}}`, want: notFound},
	})
}

// For a value of two types, the content of each tag is checked first.
func TestValidation_ValuesOfTwoTypes(t *testing.T) {
	t.Parallel()
	const (
		many    = "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes"
		numeric = "The parameter cannot be converted to a numeric value"
		invalid = "One or more parameter values were invalid: "
	)
	var cases []faultCase
	for _, value := range []string{`{"S": "", "N": ""}`, `{"S": "a", "N": ""}`, `{"N": "", "B": ""}`} {
		cases = append(cases, faultCase{operation: "GetItem", request: `{"TableName": "plain", "Key": {"id": ` + value + `}}`, want: numeric + ": ", classic: numeric})
	}
	for _, c := range []struct{ value, want string }{
		{`{"S": "a", "N": "b"}`, numeric + ": b"},
		{`{"N": "b", "S": "a"}`, numeric + ": b"},
		{`{"S": "a", "NS": ["1", "b"]}`, numeric + ": b"},
		{`{"S": "a", "SS": []}`, invalid + "An string set  may not be empty"},
		{`{"S": "a", "NULL": false}`, invalid + "Null attribute value types must have the value of true"},
		{`{"S": "a", "N": "1e126"}`, "Number overflow. Attempting to store a number with magnitude larger than supported range"},
		{`{"S": "a", "L": [{"N": "x"}]}`, numeric + ": x"},
		{`{"S": "a", "N": "1"}`, many},
		{`{"S": "a", "N": "1", "B": "YQ=="}`, many},
		{`{"S": "a", "N": "1", "BOOL": true, "NS": ["x"]}`, numeric + ": x"},
		{`{"S": "a", "N": 1}`, "SerializationException: NUMBER_VALUE cannot be converted to String"},
	} {
		cases = append(cases, faultCase{operation: "GetItem", request: `{"TableName": "plain", "Key": {"id": ` + c.value + `}}`, want: c.want})
	}
	runFaults(t, cases)
}

// The text about a list or map element that should be a structure differs from the text about
// such a member. Texts about collections have the class names of the model.
func TestValues_StructuresThatAreNone(t *testing.T) {
	t.Parallel()
	const (
		value = "SerializationException: Unexpected value type in payload"
		field = "SerializationException: Unexpected field type"
		class = "SerializationException: Unrecognized collection type class com.amazonaws.dynamodb.v20120810."
		items = "SerializationException: Unrecognized collection type java.util.Map<java.lang.String, "
		model = "com.amazonaws.dynamodb.v20120810."
	)
	var cases []faultCase
	for _, c := range []struct{ operation, request, of string }{
		{"Query", `{"KeyConditions": {"a": $}}`, "Condition"},
		{"Query", `{"QueryFilter": {"a": $}}`, "Condition"},
		{"Scan", `{"ScanFilter": {"a": $}}`, "Condition"},
		{"PutItem", `{"Expected": {"a": $}}`, "ExpectedAttributeValue"},
		{"UpdateItem", `{"AttributeUpdates": {"a": $}}`, "AttributeValueUpdate"},
		{"BatchGetItem", `{"RequestItems": {"a": $}}`, "KeysAndAttributes"},
		{"BatchWriteItem", `{"RequestItems": {"a": [$]}}`, "WriteRequest"},
		{"TransactGetItems", `{"TransactItems": [$]}`, "TransactGetItem"},
		{"TransactWriteItems", `{"TransactItems": [$]}`, "TransactWriteItem"},
		{"CreateTable", `{"KeySchema": [$]}`, "KeySchemaElement"},
		{"CreateTable", `{"GlobalSecondaryIndexes": [$]}`, "GlobalSecondaryIndex"},
		{"CreateTable", `{"LocalSecondaryIndexes": [$]}`, "LocalSecondaryIndex"},
		{"UpdateTable", `{"GlobalSecondaryIndexUpdates": [$]}`, "GlobalSecondaryIndexUpdate"},
		{"UpdateTable", `{"GlobalSecondaryIndexUpdates": [{"Create": {"KeySchema": [$]}}]}`, "KeySchemaElement"},
		{"TagResource", `{"Tags": [$]}`, "Tag"},
	} {
		for _, given := range []string{`"23"`, "true", "23", "34.56"} {
			cases = append(cases, faultCase{operation: c.operation, request: strings.ReplaceAll(c.request, "$", given), want: value})
		}
		cases = append(cases, faultCase{operation: c.operation, request: strings.ReplaceAll(c.request, "$", "[]"), want: class + c.of})
	}
	for _, c := range []struct{ operation, request, of string }{
		{"UpdateTable", `{"GlobalSecondaryIndexUpdates": [{"Create": $}]}`, "CreateGlobalSecondaryIndexAction"},
		{"UpdateTable", `{"GlobalSecondaryIndexUpdates": [{"Update": $}]}`, "UpdateGlobalSecondaryIndexAction"},
		{"UpdateTable", `{"GlobalSecondaryIndexUpdates": [{"Delete": $}]}`, "DeleteGlobalSecondaryIndexAction"},
		{"CreateTable", `{"ProvisionedThroughput": $}`, "ProvisionedThroughput"},
		{"CreateTable", `{"GlobalSecondaryIndexes": [{"Projection": $}]}`, "Projection"},
		{"CreateTable", `{"SSESpecification": $}`, "SSESpecification"},
		{"BatchWriteItem", `{"RequestItems": {"a": [{"PutRequest": $}]}}`, "PutRequest"},
		{"BatchWriteItem", `{"RequestItems": {"a": [{"DeleteRequest": $}]}}`, "DeleteRequest"},
		{"TransactWriteItems", `{"TransactItems": [{"ConditionCheck": $}]}`, "ConditionCheck"},
		{"TransactWriteItems", `{"TransactItems": [{"Put": $}]}`, "Put"},
		{"TransactGetItems", `{"TransactItems": [{"Get": $}]}`, "Get"},
	} {
		for _, given := range []string{`"23"`, "true", "23", "34.56"} {
			cases = append(cases, faultCase{operation: c.operation, request: strings.ReplaceAll(c.request, "$", given), want: field})
		}
		cases = append(cases, faultCase{operation: c.operation, request: strings.ReplaceAll(c.request, "$", "[]"), want: class + c.of})
	}
	for _, c := range []struct{ operation, request, of string }{
		{"Query", `{"KeyConditions": []}`, model + "Condition"},
		{"PutItem", `{"Expected": []}`, model + "ExpectedAttributeValue"},
		{"UpdateItem", `{"AttributeUpdates": []}`, model + "AttributeValueUpdate"},
		{"BatchGetItem", `{"RequestItems": []}`, model + "KeysAndAttributes"},
		{"BatchWriteItem", `{"RequestItems": []}`, "java.util.List<" + model + "WriteRequest>"},
		{"GetItem", `{"ExpressionAttributeNames": []}`, "java.lang.String"},
	} {
		cases = append(cases, faultCase{operation: c.operation, request: c.request, want: items + c.of + ">"})
	}
	// Attribute values are structures, too.
	for _, c := range []struct{ operation, request, want string }{
		{"PutItem", `{"Item": {"a": $}}`, value},
		{"PutItem", `{"Expected": {"a": {"Value": $}}}`, field},
		{"PutItem", `{"Expected": {"a": {"AttributeValueList": [$]}}}`, value},
		{"PutItem", `{"Expected": {"a": {"Value": {"L": [$]}}}}`, value},
		{"UpdateItem", `{"AttributeUpdates": {"a": {"Value": $}}}`, field},
		{"UpdateItem", `{"ExpressionAttributeValues": {":a": $}}`, value},
		{"Scan", `{"ScanFilter": {"a": {"AttributeValueList": [$]}}}`, value},
	} {
		for _, given := range []string{`"23"`, "true", "23", "34.56"} {
			cases = append(cases, faultCase{operation: c.operation, request: strings.ReplaceAll(c.request, "$", given), want: c.want})
		}
		cases = append(cases, faultCase{operation: c.operation, request: strings.ReplaceAll(c.request, "$", "[]"), want: class + "AttributeValue"})
	}
	runFaults(t, cases)
}

// The texts about conditions that keys do not support come from three sources. The newest
// recording of the service has other texts for three conditions on a key of two attributes.
func TestLimits_KeyConditions(t *testing.T) {
	t.Parallel()
	const (
		unsupported = "Query key condition not supported"
		equal       = `{"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "x"}]}`
		value       = `"ExpressionAttributeValues": {":v": {"S": "x"}}`
	)
	runFaults(t, []faultCase{
		{operation: "Query", request: `{"TableName": "plain", "KeyConditionExpression": "id = :v AND x = :v", ` + value + `}`, want: unsupported},
		{operation: "Query", request: `{"TableName": "plain", "KeyConditionExpression": "y = :v AND z = :v", ` + value + `}`, want: unsupported},
		{operation: "Query", request: `{"TableName": "plain", "KeyConditions": {"id": ` + equal + `, "x": ` + equal + `}}`, want: unsupported},
		{operation: "Query", request: `{"TableName": "fault", "IndexName": "by-d", "KeyConditionExpression": "d = :v AND a = :v", ` + value + `}`, want: unsupported},
		{operation: "Query", request: `{"TableName": "plain", "KeyConditionExpression": "id > :v", ` + value + `}`, want: unsupported},
		{
			operation: "Query", request: `{"TableName": "fault", "KeyConditionExpression": "a = :v AND b = :v AND c = :v", ` + value + `}`,
			want: "The number of query conditions (3) exceeds the number of key attributes defined in the schema (2)", classic: "Conditions can be of length 1 or 2 only",
		},
		{operation: "Query", request: `{"TableName": "fault", "KeyConditions": {"a": ` + equal + `}, "QueryFilter": {"b": ` + equal + `}}`, want: "QueryFilter can only contain non-primary key attributes: Primary key attribute: b"},
		{operation: "Query", request: `{"TableName": "fault", "IndexName": "by-d", "KeyConditions": {"d": ` + equal + `}, "QueryFilter": {"x": ` + equal + `, "d": ` + equal + `}}`, want: "QueryFilter can only contain non-primary key attributes: Primary key attribute: d"},
		{operation: "Query", request: `{"TableName": "fault", "KeyConditionExpression": "a = :v", "FilterExpression": "b = :v", ` + value + `}`, want: "Filter Expression can only contain non-primary key attributes: Primary key attribute: b"},
	})
}

// A sum with too many digits is an overflow.
func TestLimits_SumsOfTooManyDigits(t *testing.T) {
	t.Parallel()
	const overflow = "Number overflow. Attempting to store a number with magnitude larger than supported range"
	s, classic := faultServers(t)
	must(t, s, "PutItem", `{"TableName": "plain", "Item": {"id": {"S": "A"}, "n": {"N": "1e50"}}}`)
	var cases []faultCase
	for _, update := range []string{"SET x = n + :one", "SET x = n - :one", "SET x = :one - n", "ADD n :one"} {
		cases = append(cases, faultCase{
			operation: "UpdateItem", request: `{"TableName": "plain", "Key": {"id": {"S": "A"}}, "UpdateExpression": "` + update + `", "ExpressionAttributeValues": {":one": {"N": "1"}}}`, want: overflow,
		})
	}
	checkFaults(t, s, classic, append(cases,
		faultCase{operation: "UpdateItem", request: `{"TableName": "plain", "Key": {"id": {"S": "A"}}, "AttributeUpdates": {"n": {"Action": "ADD", "Value": {"N": "1"}}}}`, want: overflow},
		// The text about a number in the request differs.
		faultCase{operation: "PutItem", request: `{"TableName": "plain", "Item": {"id": {"S": "A"}, "n": {"N": "` + strings.Repeat("1", 39) + `"}}}`, want: "Attempting to store more than 38 significant digits in a Number", enveloped: true}))
}

func TestLimits_TransactionPayload(t *testing.T) {
	t.Parallel()
	puts := make([]string, 11)
	for i := range puts {
		puts[i] = `{"Put": {"TableName": "plain", "Item": {"id": {"S": "` + strconv.Itoa(i) + `"}, "x": {"S": "` + strings.Repeat("x", 390_000) + `"}}}}`
	}
	runFaults(t, []faultCase{
		{operation: "TransactWriteItems", request: `{"TransactItems": [` + strings.Join(puts, ",") + `]}`, want: "Transaction payload size cannot exceed 4MB."},
	})
}

// The texts about a wrong Select have the newer prefix, as captured on the service on 2026-09-28.
// The text about COUNT is the same in both layers, as verified on the service on 2026-06-23.
func TestRequests_SelectOfScan(t *testing.T) {
	t.Parallel()
	var cases []faultCase
	for _, c := range []struct{ members, want string }{
		{`"Select": "ALL_PROJECTED_ATTRIBUTES"`, "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName"},
		{`"Select": "SPECIFIC_ATTRIBUTES"`, "Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES"},
		{`"Select": "COUNT", "ProjectionExpression": "x"`, "Cannot specify the ProjectionExpression when choosing to get only the Count"},
		{`"Select": "COUNT", "AttributesToGet": ["x"]`, "Cannot specify the AttributesToGet when choosing to get only the Count"},
		{`"Select": "ALL_ATTRIBUTES", "ProjectionExpression": "x"`, "Cannot specify the ProjectionExpression when choosing to get ALL_ATTRIBUTES"},
	} {
		cases = append(cases,
			faultCase{operation: "Scan", request: `{"TableName": "plain", ` + c.members + `}`, want: c.want, enveloped: true},
			faultCase{operation: "Query", request: `{"TableName": "plain", "KeyConditions": {"id": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "A"}]}}, ` + c.members + `}`, want: c.want, enveloped: true})
	}
	runFaults(t, cases)
}

// The text about an empty set among the values of an update is that about any other invalid
// value, without the placeholder, as verified on the service on 2026-08-22. The text with the
// placeholder is the older wording, without prefix.
func TestValues_EmptySetInExpressionValues(t *testing.T) {
	t.Parallel()
	var cases []faultCase
	for _, c := range []struct{ value, want string }{
		{`{"NS": []}`, "One or more parameter values were invalid: An number set  may not be empty"},
		{`{"SS": []}`, "One or more parameter values were invalid: An string set  may not be empty"},
	} {
		older := "ExpressionAttributeValues contains invalid value: " + c.want + " for key :one"
		values := `"ExpressionAttributeValues": {":one": ` + c.value + `}`
		cases = append(cases,
			faultCase{operation: "UpdateItem", request: `{"TableName": "plain", "Key": {"id": {"S": "A"}}, "UpdateExpression": "ADD x :one", ` + values + `}`, want: c.want, enveloped: true, classic: older},
			// We know no recording of these; their texts are those of the layer of UpdateItem.
			faultCase{operation: "DeleteItem", request: `{"TableName": "plain", "Key": {"id": {"S": "A"}}, "ConditionExpression": "x = :one", ` + values + `}`, want: c.want, enveloped: true, classic: older})
	}
	runFaults(t, cases)
}

// The texts about values in AttributeUpdates have the same prefix as those about other values of
// an UpdateItem, as recorded on the service on 2026-10-09.
func TestValuesOfAttributeUpdates(t *testing.T) {
	t.Parallel()
	var cases []faultCase
	for _, c := range []struct{ value, want string }{
		{`{"N": "abc"}`, "The parameter cannot be converted to a numeric value: abc"},
		{`{"N": "1e126"}`, "Number overflow. Attempting to store a number with magnitude larger than supported range"},
		{`{"NS": []}`, "One or more parameter values were invalid: An number set  may not be empty"},
	} {
		cases = append(cases, faultCase{operation: "UpdateItem", request: `{"TableName": "plain", "Key": {"id": {"S": "A"}}, "AttributeUpdates": {"x": {"Value": ` + c.value + `}}}`, want: c.want, enveloped: true})
	}
	runFaults(t, cases)
}

// The form of all placeholders is checked before the value of any.
func TestValidation_FormOfPlaceholders(t *testing.T) {
	t.Parallel()
	runFaults(t, []faultCase{
		{
			operation: "UpdateItem", request: `{"TableName": "none", "Key": {"id": {"S": "A"}}, "UpdateExpression": "", "ExpressionAttributeValues": {":b": {"N": "x"}, "b": {"S": "x"}}}`,
			want: `ExpressionAttributeValues contains invalid key: Syntax error; key: "b"`, enveloped: true,
		},
		{
			operation: "Scan", request: `{"TableName": "none", "FilterExpression": "", "ExpressionAttributeNames": {"a": "a"}, "ExpressionAttributeValues": {":b": {"N": "x"}}}`,
			want: `ExpressionAttributeNames contains invalid key: Syntax error; key: "a"`,
		},
	})
}

// Incomplete start keys: a query and a scan of an index distinguish a wrong set of attributes, a
// wrong type and a wrong key of the table; recorded on AWS by a suite, and in reports of 2014 to
// 2024. The newer layer checks a scan of the table the same way. For another partition a query
// with a condition on the sort key has a different text.
func TestValidation_StartKeys(t *testing.T) {
	t.Parallel()
	const (
		shape     = "The provided starting key is invalid"
		mismatch  = "The provided key element does not match the schema"
		both      = shape + ": " + mismatch
		outside   = "The provided starting key is outside query boundaries based on provided conditions"
		predicate = "The provided starting key does not match the range key predicate"
		single    = "The query can return at most one row and cannot be restarted"
		table     = `{"TableName": "fault", "ExclusiveStartKey": `
		byC       = `{"TableName": "fault", "IndexName": "by-c", "ExclusiveStartKey": `
		byD       = `{"TableName": "fault", "IndexName": "by-d", "ExclusiveStartKey": `
		values    = `"ExpressionAttributeValues": {":v": {"S": "x"}}`
		ofA       = `, "KeyConditionExpression": "a = :v", ` + values + `}`
		ofAB      = `, "KeyConditionExpression": "a = :v AND b > :v", ` + values + `}`
		ofAC      = `, "KeyConditionExpression": "a = :v AND c = :v", ` + values + `}`
		ofD       = `, "KeyConditionExpression": "d = :v", ` + values + `}`
	)
	runFaults(t, []faultCase{
		{operation: "Query", request: table + `{}` + ofA, want: shape},
		{operation: "Query", request: table + `{"a": {"S": "x"}, "z": {"S": "x"}}` + ofA, want: shape},
		{operation: "Query", request: table + `{"a": {"S": "x"}, "b": {"N": "1"}}` + ofA, want: mismatch},
		{operation: "Query", request: byC + `{"a": {"S": "x"}, "b": {"S": "x"}}` + ofA, want: shape},
		{operation: "Query", request: byC + `{"a": {"S": "x"}, "b": {"N": "1"}, "c": {"S": "x"}}` + ofA, want: both},
		{operation: "Query", request: byD + `{"a": {"S": "x"}, "b": {"S": "x"}, "d": {"N": "1"}}` + ofD, want: mismatch},
		{operation: "Query", request: table + `{"a": {"S": "y"}, "b": {"S": "x"}}` + ofA, want: outside},
		{operation: "Query", request: table + `{"a": {"S": "y"}, "b": {"S": "a"}}` + ofAB, want: predicate},
		{operation: "Query", request: table + `{"a": {"S": "y"}, "b": {"S": "z"}}` + ofAB, want: single},
		{operation: "Query", request: byC + `{"a": {"S": "y"}, "b": {"S": "x"}, "c": {"S": "x"}}` + ofAC, want: single},
		{operation: "Query", request: `{"TableName": "plain", "ExclusiveStartKey": {"id": {"S": "y"}}, "KeyConditionExpression": "id = :v", ` + values + `}`, want: outside},
		{operation: "Query", request: `{"TableName": "plain", "ExclusiveStartKey": {"id": {"S": "x"}}, "KeyConditionExpression": "id = :v", ` + values + `}`, want: "The provided exclusive start key is invalid: ExclusiveStartKey: {id=AttributeValue: {S:x}}", classic: single},
		{operation: "Scan", request: table + `{}}`, want: shape, classic: both},
		{operation: "Scan", request: table + `{"a": {"S": "x"}, "b": {"N": "1"}}}`, want: mismatch, classic: both},
		{operation: "Scan", request: byC + `{"a": {"S": "x"}, "b": {"S": "x"}}}`, want: shape},
		{operation: "Scan", request: byD + `{"a": {"S": "x"}, "b": {"S": "x"}, "d": {"N": "1"}}}`, want: mismatch},
		{operation: "Scan", request: byD + `{"a": {"S": "x"}, "b": {"N": "1"}, "d": {"S": "x"}}}`, want: both},
	})
}

// Scan checks values as before 2026, unlike Query: captured on the service on 2026-10-09.
func TestRequests_ValuesOfScan(t *testing.T) {
	t.Parallel()
	const wrapped = "ExpressionAttributeValues contains invalid value: %s for key :v"
	var cases []faultCase
	for _, c := range []struct{ value, want string }{
		{`{"N": "abc"}`, "The parameter cannot be converted to a numeric value: abc"},
		{`{"N": ""}`, "The parameter cannot be converted to a numeric value"},
		{`{"SS": ["b", "a", "b"]}`, "One or more parameter values were invalid: Input collection [b, a, b] contains duplicates."},
		{`{"NS": ["2", "1", "2"]}`, "Input collection contains duplicates"},
	} {
		cases = append(cases,
			faultCase{operation: "Scan", request: `{"TableName": "plain", "FilterExpression": "x = :v", "ExpressionAttributeValues": {":v": ` + c.value + `}}`, want: fmt.Sprintf(wrapped, c.want)},
			faultCase{operation: "Scan", request: `{"TableName": "plain", "ScanFilter": {"x": {"ComparisonOperator": "EQ", "AttributeValueList": [` + c.value + `]}}}`, want: c.want})
	}
	runFaults(t, append(cases, faultCase{
		operation: "Query", request: `{"TableName": "plain", "KeyConditionExpression": "id = :v", "ExpressionAttributeValues": {":v": {"NS": ["2", "1", "2"]}}}`,
		want: "One or more parameter values were invalid: Input collection contains duplicates.", classic: fmt.Sprintf(wrapped, "Input collection contains duplicates"),
	}))
}

// Query checks keys attribute by attribute, in ExclusiveStartKey before the condition on it:
// a fault of the partition key precedes the type of the sort key in ExclusiveStartKey.
// Recorded on AWS by a suite.
func TestValidation_StartKeyByAttribute(t *testing.T) {
	t.Parallel()
	const (
		missed = "Query condition missed key schema element: a"
		shape  = "The provided starting key is invalid"
		schema = "The provided key element does not match the schema"
	)
	var cases []faultCase
	for _, c := range []struct{ start, condition, want string }{
		{`{"a": {"S": "A"}, "b": {"N": "1"}}`, "z = :s", missed},
		{`{"a": {"S": "A"}, "c": {"N": "1"}}`, "z = :s", missed},
		{`{"a": {"S": "A"}, "z": {"S": "1"}}`, "z = :s", missed},
		{`{"a": {"N": "1"}, "z": {"S": "1"}}`, "z = :s", schema},
		{`{"b": {"S": "A"}, "z": {"S": "1"}}`, "z = :s", shape},
		{`{"a": {"S": "A"}}`, "z = :s", shape},
		{`{"a": {"S": "A"}, "b": {"N": "1"}}`, "a > :s", "Query key condition not supported"},
		{`{"a": {"S": "A"}, "b": {"N": "1"}}`, "a = :s and z = :s", schema},
		{`{"a": {"S": "A"}, "b": {"S": "1"}}`, "a = :s and z = :s", "Query condition missed key schema element: b"},
	} {
		cases = append(cases, faultCase{
			operation: "Query", want: c.want,
			request: fmt.Sprintf(`{"TableName": "fault", "KeyConditionExpression": %q, "ExpressionAttributeValues": {":s": {"S": "A"}}, "ExclusiveStartKey": %s}`, c.condition, c.start),
		})
	}
	runFaults(t, cases)
}

// The error for a start key of another segment comes before that for paths below keys, as a
// suite recorded on AWS.
func TestValidation_SegmentBeforePaths(t *testing.T) {
	t.Parallel()
	const key = `{"a": {"S": "A"}, "b": {"S": "B"}}`
	current, classic := faultServers(t)
	owner := -1
	for _, s := range []*Server{current, classic} {
		must(t, s, "PutItem", `{"TableName": "fault", "Item": `+key+`}`)
	}
	for segment := range 2 {
		if strings.Contains(must(t, current, "Scan", fmt.Sprintf(`{"TableName": "fault", "Segment": %d, "TotalSegments": 2}`, segment)), `"Count":1`) {
			owner = segment
		}
	}
	if owner < 0 {
		t.Fatal("no segment has the item")
	}
	req := func(segment int) string {
		return fmt.Sprintf(`{"TableName": "fault", "Segment": %d, "TotalSegments": 2, "FilterExpression": "attribute_exists(a.b)", "ExclusiveStartKey": %s}`, segment, key)
	}
	checkFaults(t, current, classic, []faultCase{
		{operation: "Scan", request: req(1 - owner), want: fmt.Sprintf("The provided starting key is invalid: Invalid ExclusiveStartKey. Please use ExclusiveStartKey with correct Segment. TotalSegments: 2 Segment: %d", 1-owner)},
		{operation: "Scan", request: req(owner), want: "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: Key: a"},
	})
}

// An answer lists ten failed constraints at most: Query first omits those of KeyConditions,
// and Scan those of AttributesToGet. Recorded on AWS by a suite, in the wording of its time;
// a later recording reports Limit of a Query separately.
func TestValidation_TenConstraints(t *testing.T) {
	t.Parallel()
	_, classic := faultServers(t)
	const shared = `"TableName": "abc;", "ReturnConsumedCapacity": "hi", "AttributesToGet": [], "IndexName": "abc;", "Select": "hi", "Limit": -1, "ConditionalOperator": "AN", `
	for _, c := range []struct{ operation, members, listed, omitted string }{
		{"Query", `"KeyConditions": {"a": {}, "b": {"ComparisonOperator": ""}}, "QueryFilter": {"a": {}, "b": {"ComparisonOperator": ""}, "c": {}}`, "queryFilter.c", "keyConditions.b"},
		{"Scan", `"Segment": -1, "TotalSegments": -1, "ScanFilter": {"a": {}, "b": {"ComparisonOperator": ""}}`, "'totalSegments'", "'attributesToGet'"},
	} {
		_, err := classic.Call(t.Context(), c.operation, []byte(`{`+shared+c.members+`}`))
		if err == nil {
			t.Errorf("%s is accepted", c.operation)
			continue
		}
		got := err.Error()
		if !strings.Contains(got, "10 validation errors detected") || !strings.Contains(got, c.listed) || strings.Contains(got, c.omitted) {
			t.Errorf("%s: %s, want ten with %s and without %s", c.operation, got, c.listed, c.omitted)
		}
	}
}

// Since November 2025 the key of a global index can have several HASH attributes. So a second
// one is accepted, and the order of the key is checked before the projection, as for any key. In
// a local index a second HASH attribute is rejected, before the projection is checked.
func TestValidation_SecondKeyBeforeProjection(t *testing.T) {
	t.Parallel()
	create := func(member string) string {
		return `{"TableName": "new", "BillingMode": "PAY_PER_REQUEST",
			"AttributeDefinitions": [{"AttributeName": "a", "AttributeType": "S"}, {"AttributeName": "b", "AttributeType": "S"}],
			"KeySchema": [{"AttributeName": "a", "KeyType": "HASH"}, {"AttributeName": "b", "KeyType": "RANGE"}], "` + member + `": [{"IndexName": "abc",
			"KeySchema": [{"AttributeName": "a", "KeyType": "HASH"}, {"AttributeName": "b", "KeyType": "HASH"}], "Projection": {}}]}`
	}
	runFaults(t, []faultCase{
		{operation: "CreateTable", request: create("GlobalSecondaryIndexes"), want: "One or more parameter values were invalid: Unknown ProjectionType: null"},
		{operation: "CreateTable", request: create("LocalSecondaryIndexes"), want: "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type"},
	})
}
