package facade

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// scannedRequests are requests with all members that a scan accepts, with some others, and
// invalid ones.
var scannedRequests = []struct{ operation, body string }{
	{"GetItem", `{"TableName":"plain","Key":{"id":{"S":"1"}},"ConsistentRead":true,"ReturnConsumedCapacity":"TOTAL","ProjectionExpression":"#a","ExpressionAttributeNames":{"#a":"a"}}`},
	{"GetItem", ` { "TableName" : "pl\u0061in" , "Key" : { } , "ConsistentRead" : false , "ExpressionAttributeNames" : { } } `},
	{"GetItem", `{"TableName":"plain","Key":{"id":{"S":"1"}},"AttributesToGet":["id"]}`},
	{"GetItem", `{"TableName":"plain","Key":{"id":{"S":"1"}},"ConsistentRead":"true"}`},
	{"GetItem", `{}`},
	{"GetItem", `{}{}`},
	{"GetItem", `[]`},
	{"PutItem", `{"TableName":"plain","Item":{"id":{"S":"é\n"},"":{"S":"x"},"l":{"L":[{"M":{"":{"N":"1"}}},{"L":[]}]}},"ReturnValues":"ALL_OLD","ReturnConsumedCapacity":"NONE",
		"ReturnItemCollectionMetrics":"SIZE","ReturnValuesOnConditionCheckFailure":"ALL_OLD","ConditionExpression":"#a = :a AND :b = :b",
		"ExpressionAttributeNames":{"#a":"a"},"ExpressionAttributeValues":{":a":{"N":"1.0"},":b":{"M":{"":{"S":""}}}}}`},
	{"PutItem", `{"TableName":"plain","TableName":"plain","Item":{"id":{"S":"1"}}}`},
	{"PutItem", `{"TableName":"plain","Item":{"id":{"S":"1"},"id":{"S":"1"}}}`},
	{"PutItem", `{"TableName":"plain","Item":{"id":{"S":"1"}},"ExpressionAttributeNames":{"#a":"a","#a":"a"}}`},
	{"PutItem", `{"TableName":"plain","Item":{"id":{"N":"one"}}}`},
	{"PutItem", `{"TableName":null,"Item":null,"ConditionExpression":null}`},
	{"PutItem", `{"TableName":"plain","item":{"id":{"S":"1"}}}`},
	{"PutItem", `{"TableName":"plain","Item":{"id":{"S":"1"}},"Expected":{"id":{"Exists":false}},"ConditionalOperator":"AND","Unknown":[1,{"a":null}]}`},
	{"PutItem", "{\"TableName\":\"pl\xffin\"}"},
	{"PutItem", `{"TableName":"plain",}`},
	{"PutItem", `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"k":1,"l":1,"m":1,"n":1,"o":1,"p":1,"q":1}`},
	{"DeleteItem", `{"TableName":"plain","Key":{"id":{"S":"1"}},"ReturnValues":"ALL_OLD","ReturnConsumedCapacity":"INDEXES","ReturnItemCollectionMetrics":"NONE",
		"ReturnValuesOnConditionCheckFailure":"NONE","ConditionExpression":"attribute_exists(id)"}`},
	{"UpdateItem", `{"TableName":"plain","Key":{"id":{"S":"1"}},"UpdateExpression":"ADD n :n","ExpressionAttributeValues":{":n":{"N":"1"}},"ReturnValues":"ALL_NEW",
		"ReturnConsumedCapacity":"TOTAL","ReturnItemCollectionMetrics":"SIZE","ReturnValuesOnConditionCheckFailure":"ALL_OLD"}`},
	{"UpdateItem", `{"TableName":"plain","Key":{"id":{"S":"1"}},"AttributeUpdates":{"a":{"Action":"DELETE"}}}`},
	{"BatchWriteItem", `{"RequestItems":{"plain":[{"PutRequest":{"Item":{"id":{"S":"1"}}}},{"DeleteRequest":{"Key":{"id":{"S":"2"}}}},{"PutRequest":{}},{}],"other":[]},
		"ReturnConsumedCapacity":"TOTAL","ReturnItemCollectionMetrics":"SIZE"}`},
	{"BatchWriteItem", `{"RequestItems":{"plain":[{"PutRequest":{"Item":{"id":{"S":"1"}}},"PutRequest":{}}]}}`},
	{"BatchWriteItem", `{"RequestItems":{"plain":[{"PutRequest":null}],"plain":[]}}`},
	{"BatchWriteItem", `{"RequestItems":{"plain":[{"PutRequest":{"Key":{}}},]}}`},
	{"BatchWriteItem", `{"RequestItems":{}}`},
	{"TransactWriteItems", `{"ClientRequestToken":"t","ReturnConsumedCapacity":"TOTAL","ReturnItemCollectionMetrics":"SIZE","TransactItems":[
		{"Put":{"TableName":"plain","Item":{"id":{"S":"1"}},"ReturnValuesOnConditionCheckFailure":"ALL_OLD"}},
		{"Update":{"TableName":"plain","Key":{"id":{"S":"2"}},"UpdateExpression":"SET #a = :a","ExpressionAttributeNames":{"#a":"a"},"ExpressionAttributeValues":{":a":{"BOOL":true}}}},
		{"Delete":{"TableName":"plain","Key":{"id":{"S":"3"}}}},
		{"ConditionCheck":{"TableName":"plain","Key":{"id":{"S":"4"}},"ConditionExpression":"attribute_not_exists(id)"}},{}]}`},
	{"TransactWriteItems", `{"TransactItems":[]}`},
	{"Query", `{"TableName":"plain","IndexName":"i","Select":"COUNT","Limit":10,"ScanIndexForward":false,"ExclusiveStartKey":{"id":{"S":"1"}},"KeyConditionExpression":"id = :i",
		"FilterExpression":"a = :i","ExpressionAttributeValues":{":i":{"S":"1"}}}`},
	{"Query", `{"TableName":"plain","AttributesToGet":["a","b"],"KeyConditions":{"id":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"1"}]}},"QueryFilter":{}}`},
	{"Scan", `{"TableName":"plain","Limit":-0,"Segment":00,"TotalSegments":2}`},
	{"Scan", `{"TableName":"plain","Limit":2147483647,"Segment":-2147483648,"TotalSegments":0,"AttributesToGet":[]}`},
	{"Scan", `{"Limit":2147483648}`},
	{"Scan", `{"Limit":1e1}`},
	{"Scan", `{"Limit":-}`},
	{"BatchGetItem", `{"RequestItems":{"plain":{"Keys":[{"id":{"S":"1"}},{}],"ConsistentRead":true},"other":{}},"ReturnConsumedCapacity":"TOTAL"}`},
	{"TransactGetItems", `{"TransactItems":[{"Get":{"TableName":"plain","Key":{"id":{"S":"1"}}}},{}]}`},
	{"TransactWriteItems", `{"TransactItems":[{"Get":{}}]}`},
}

// checkScanned checks that a scan gives the decoder's result. It reports whether the body is
// scanned.
func checkScanned(tb testing.TB, op *operation, body []byte) bool {
	tb.Helper()
	if op.scan == nil {
		return false
	}
	scanned := op.scan(body)
	if scanned == nil {
		return false
	}
	if err := wire.CheckJSON(body); err != nil {
		tb.Errorf("%s %s is scanned: %v", op.name, body, err)
	}
	decoded := reflect.New(reflect.TypeOf(scanned).Elem()).Interface()
	if err := wire.Decode(body, decoded); err != nil || !reflect.DeepEqual(scanned, decoded) {
		tb.Errorf("%s %s is scanned as %+v, decoded as %+v, %v", op.name, body, scanned, decoded, err)
	}
	return true
}

func TestScannedRequests(t *testing.T) {
	t.Parallel()
	for _, r := range scannedRequests {
		op := operationsByTarget[targetDynamoDB+r.operation]
		checkScanned(t, op, []byte(r.body))
		// A body that is cut off, or lacks a byte, must give a different result or none.
		for i := range r.body {
			checkScanned(t, op, []byte(r.body[:i]))
			checkScanned(t, op, []byte(r.body[:i]+r.body[i+1:]))
		}
	}
}

// TestScannedRequests_OfCases checks the requests of all cases.
func TestScannedRequests_OfCases(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "operations", "*", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	scanned := map[string]int{}
	directive := regexp.MustCompile(`(?m)^([A-Z][A-Za-z]+)[^\n]*\n((?:.+\n)*?)----\n`)
	for _, file := range files {
		cases, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range directive.FindAllStringSubmatch(string(cases), -1) {
			if op := operationsByTarget[targetDynamoDB+c[1]]; op != nil && checkScanned(t, op, []byte(strings.TrimSpace(c[2]))) {
				scanned[c[1]]++
			}
		}
	}
	for _, r := range scannedRequests {
		if scanned[r.operation] == 0 {
			t.Errorf("no request of %s is scanned", r.operation)
		}
	}
}

// TestScannedRequests_Usual: the usual requests of clients are scanned.
func TestScannedRequests_Usual(t *testing.T) {
	t.Parallel()
	for _, r := range costRequests {
		if !checkScanned(t, operationsByTarget[targetDynamoDB+r.operation], []byte(r.body(1))) {
			t.Errorf("%s is not scanned", r.name)
		}
	}
}

func FuzzScanRequest(f *testing.F) {
	indexOf := map[string]uint8{}
	for i, op := range operations {
		indexOf[op.name] = uint8(i)
	}
	for _, r := range scannedRequests {
		f.Add(indexOf[r.operation], []byte(r.body))
	}
	f.Fuzz(func(t *testing.T, op uint8, body []byte) {
		checkScanned(t, operations[int(op)%len(operations)], body)
	})
}

// BenchmarkReadRequest compares scanning a body with checking and decoding it.
func BenchmarkReadRequest(b *testing.B) {
	for _, r := range costRequests {
		op, body := operationsByTarget[targetDynamoDB+r.operation], []byte(r.body(1))
		scanned := op.scan(body)
		if scanned == nil {
			continue
		}
		b.Run(r.name+"/scan", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				op.scan(body)
			}
		})
		b.Run(r.name+"/decode", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				in := reflect.New(reflect.TypeOf(scanned).Elem()).Interface()
				if err := errors.Join(wire.CheckJSON(body), wire.Decode(body, in)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
