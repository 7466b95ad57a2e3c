package facade

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/internal/clock"
)

// refuses calls an operation in both wordings, and checks that it is rejected with the text want.
func refuses(tb testing.TB, s *Server, operation, body, want string) {
	tb.Helper()
	classic := inRegion(tb, s, MessagesClassic)
	for _, target := range []*Server{s, classic} {
		if _, err := target.Call(tb.Context(), operation, []byte(body)); err == nil || err.Error() != want {
			tb.Errorf("%s %.200s: %v\nwant %s", operation, body, err, want)
		}
	}
}

// addIndex returns the body of an UpdateTable that adds an index on an attribute.
func addIndex(table, name, kind string) string {
	return `{"TableName": "` + table + `", "AttributeDefinitions": [{"AttributeName": "` + name + `", "AttributeType": "` + kind + `"}],
		"GlobalSecondaryIndexUpdates": [{"Create": {"IndexName": "by-` + name + `-` + kind + `", "KeySchema": [{"AttributeName": "` + name + `", "KeyType": "HASH"}], "Projection": {"ProjectionType": "ALL"}}}]}`
}

// A key attribute keeps its type. Repeated or unused definitions are accepted.
func TestUpdateTable_AttributesKeepTheirTypes(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	createPlain(t, s, "plain")
	must(t, s, "UpdateTable", addIndex("plain", "g", "S"))
	s.store.Wait()
	const redefined = "ValidationException: One or more parameter values were invalid: Attributes cannot be redefined. " +
		"Please check that your attribute has the same type as previously defined. Existing schema: Schema:[SchemaElement: key{%[1]s:S:HASH}] New schema: Schema:[SchemaElement: key{%[1]s:N:HASH}]"
	refuses(t, s, "UpdateTable", addIndex("plain", "g", "N"), fmt.Sprintf(redefined, "g"))
	refuses(t, s, "UpdateTable", addIndex("plain", "id", "N"), fmt.Sprintf(redefined, "id"))
	if d := must(t, s, "DescribeTable", `{"TableName": "plain"}`); strings.Count(d, `"IndexName"`) != 1 {
		t.Errorf("a refused index is there: %s", d)
	}
	must(t, s, "UpdateTable", strings.Replace(addIndex("plain", "id", "S"), `[{`, `[{"AttributeName": "unused", "AttributeType": "N"}, {`, 1))
	s.store.Wait()
	// Without the last index that used it, an attribute is free.
	must(t, s, "UpdateTable", `{"TableName": "plain", "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "by-g-S"}}]}`)
	must(t, s, "UpdateTable", addIndex("plain", "g", "N"))
}

// Tags follow the rules of AWS. A request changes all of its tags or none.
func TestTags(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	createPlain(t, s, "plain")
	const arn = `"ResourceArn": "arn:aws:dynamodb:us-east-1:000000000000:table/plain"`
	for given, want := range map[string]string{
		`{"Key": "k"}`:                                "The Tag Value provided is invalid, Value: null",
		`{"Value": "v"}`:                              "The Tag Key provided is invalid, Key: null",
		`{"Key": "ok", "Value": "#!%%^$$&"}`:          "The Tag Value provided is invalid, Value: #!%%^$$&",
		`{"Key": "->>;-)])", "Value": "ok"}`:          "The Tag Key provided is invalid, Key: ->>;-)])",
		`{"Key": "k", "Value": "🔑"}`:                  "The Tag Value provided is invalid, Value: 🔑",
		`{"Key": "k", "Value": "a\nb"}`:               "The Tag Value provided is invalid, Value: a\nb",
		`{"Key": "aws:k", "Value": "v"}`:              "Tag Key cannot be prefixed with aws:, Key: aws:k",
		`{"Key": "good", "Value": "again"}`:           "Duplicate Tag Keys provided as input: Duplicate Tag Key found good",
		`{"Key": "", "Value": "v"}`:                   "The Tag Key provided is invalid, Key: ",
		`{"Key": "` + strings.Repeat("k", 129) + `"}`: "The Tag Key provided is invalid, Key: " + strings.Repeat("k", 129),
	} {
		refuses(t, s, "TagResource", `{`+arn+`, "Tags": [{"Key": "good", "Value": "1"}, `+given+`]}`, "ValidationException: "+want)
	}
	refuses(t, s, "TagResource", `{`+arn+`}`, "ValidationException: 1 validation error detected: Value null at 'tags' failed to satisfy constraint: Member must not be null")
	refuses(t, s, "UntagResource", `{`+arn+`}`, "ValidationException: 1 validation error detected: Value null at 'tagKeys' failed to satisfy constraint: Member must not be null")
	refuses(t, s, "UntagResource", `{"ResourceArn": "arn:aws:dynamodb:us-east-1:000000000000:table/none", "TagKeys": ["k"]}`, "ResourceNotFoundException: Requested resource not found")
	refuses(t, s, "UntagResource", `{`+arn+`, "TagKeys": [""]}`, "ValidationException: The Tag Key provided is invalid, Key: ")
	if got := must(t, s, "ListTagsOfResource", `{`+arn+`}`); got != `{"Tags":[]}` {
		t.Errorf("after what was refused: %s", got)
	}
	must(t, s, "TagResource", `{`+arn+`, "Tags": [{"Key": " ", "Value": "9"}, {"Key": "7", "Value": " "}, {"Key": "empty", "Value": ""}, {"Key": "myaws:k", "Value": "表　ключ é+-=._:/@"}]}`)
	var many []string
	for i := range 51 {
		many = append(many, fmt.Sprintf(`{"Key": "%d", "Value": "v"}`, i))
	}
	refuses(t, s, "TagResource", `{`+arn+`, "Tags": [`+strings.Join(many, ",")+`]}`, "ValidationException: Number of Tags exceed the current limit for the provided ResourceArn")
}

func TestCreateTable_DuplicateNonKeyAttributes(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	const index = `{"IndexName": "index", "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}%s], "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["a", "a"]}}`
	const want = "ValidationException: One or more parameter values were invalid: Duplicate element in NonKeyAttributes: a"
	refuses(t, s, "CreateTable", `{"TableName": "plain", "BillingMode": "PAY_PER_REQUEST", "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
		"KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}], "GlobalSecondaryIndexes": [`+fmt.Sprintf(index, "")+`]}`, want)
	refuses(t, s, "CreateTable", `{"TableName": "plain", "BillingMode": "PAY_PER_REQUEST", "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}, {"AttributeName": "b", "AttributeType": "S"}],
		"KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}, {"AttributeName": "b", "KeyType": "RANGE"}],
		"LocalSecondaryIndexes": [`+fmt.Sprintf(index, `, {"AttributeName": "b", "KeyType": "RANGE"}`)+`]}`, want)
	createPlain(t, s, "plain")
	refuses(t, s, "UpdateTable", `{"TableName": "plain", "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
		"GlobalSecondaryIndexUpdates": [{"Create": `+fmt.Sprintf(index, "")+`}]}`, want)
}

// The description of a deleted table has fewer members than that of an existing one.
func TestTables_DeletedTable(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	must(t, s, "CreateTable", strings.Replace(createCounted, `"TableName"`, `"TableClass": "STANDARD", "StreamSpecification": {"StreamEnabled": true, "StreamViewType": "KEYS_ONLY"}, "SSESpecification": {"Enabled": true},
		"OnDemandThroughput": {"MaxReadRequestUnits": 1}, "WarmThroughput": {"ReadUnitsPerSecond": 12000}, "TableName"`, 1))
	var out struct{ TableDescription map[string]jsonText }
	if err := json.Unmarshal([]byte(must(t, s, "DeleteTable", `{"TableName": "counted"}`)), &out); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for name, value := range out.TableDescription {
		got[name] = string(value)
	}
	if id := got["TableId"]; len(id) != len(`"00000000-0000-0000-0000-000000000000"`) {
		t.Errorf("TableId is %s", id)
	}
	delete(got, "TableId")
	want := map[string]string{
		"BillingModeSummary":        `{"BillingMode":"PAY_PER_REQUEST","LastUpdateToPayPerRequestDateTime":1795176000}`,
		"DeletionProtectionEnabled": "false", "ItemCount": "0",
		"ProvisionedThroughput": `{"NumberOfDecreasesToday":0,"ReadCapacityUnits":0,"WriteCapacityUnits":0}`,
		"TableArn":              `"arn:aws:dynamodb:us-east-1:000000000000:table/counted"`,
		"TableName":             `"counted"`, "TableSizeBytes": "0", "TableStatus": `"DELETING"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The operations on continuous backups have their own exception for a missing table; the
// related ones do not.
func TestTables_TableNotFoundException(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	refuses(t, s, "DescribeContinuousBackups", `{"TableName": "none"}`, "TableNotFoundException: Table not found: none")
	if got := post(s, "DescribeContinuousBackups", `{"TableName": "none"}`).Body.String(); got != `{"__type":"com.amazonaws.dynamodb.v20120810#TableNotFoundException","message":"Table not found: none"}` {
		t.Errorf("%s", got)
	}
	for _, operation := range []string{"DescribeTable", "DescribeTimeToLive", "DescribeContributorInsights", "DescribeKinesisStreamingDestination", "DeleteTable"} {
		refuses(t, s, operation, `{"TableName": "none"}`, "ResourceNotFoundException: Requested resource not found: Table: none not found")
	}
}

// A description has the times of the last increase and decrease of throughput, and the number of
// decreases on the current day.
func TestUpdateTable_ThroughputHistory(t *testing.T) {
	t.Parallel()
	now := clock.NewFrozen(testTime)
	s := newTestServer(t, func(o *Options) { o.Now = now.Now })
	must(t, s, "CreateTable", `{"TableName": "plain", "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}], "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
		"ProvisionedThroughput": {"ReadCapacityUnits": 4, "WriteCapacityUnits": 4}, "GlobalSecondaryIndexes": [{"IndexName": "index", "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
		"Projection": {"ProjectionType": "ALL"}, "ProvisionedThroughput": {"ReadCapacityUnits": 4, "WriteCapacityUnits": 4}}]}`)
	type units struct {
		LastIncreaseDateTime, LastDecreaseDateTime float64
		NumberOfDecreasesToday                     int
		ReadCapacityUnits, WriteCapacityUnits      int
	}
	check := func(step string, table, index units) {
		t.Helper()
		var out struct {
			Table struct {
				ProvisionedThroughput  units
				GlobalSecondaryIndexes []struct{ ProvisionedThroughput units }
			}
		}
		if err := json.Unmarshal([]byte(must(t, s, "DescribeTable", `{"TableName": "plain"}`)), &out); err != nil {
			t.Fatal(err)
		}
		if got := out.Table.ProvisionedThroughput; got != table {
			t.Errorf("%s: table %+v, want %+v", step, got, table)
		}
		if got := out.Table.GlobalSecondaryIndexes[0].ProvisionedThroughput; got != index {
			t.Errorf("%s: index %+v, want %+v", step, got, index)
		}
	}
	update := func(after time.Duration, change string) float64 {
		t.Helper()
		now.Advance(after)
		must(t, s, "UpdateTable", `{"TableName": "plain", `+change+`}`)
		return float64(now.Now().Unix())
	}
	set := func(read, write int) string {
		return fmt.Sprintf(`"ProvisionedThroughput": {"ReadCapacityUnits": %d, "WriteCapacityUnits": %d}`, read, write)
	}
	unchanged := units{0, 0, 0, 4, 4}
	check("made", unchanged, unchanged)
	more := update(time.Minute, set(5, 4))
	check("more", units{more, 0, 0, 5, 4}, unchanged)
	less := update(time.Minute, set(5, 3))
	check("less", units{more, less, 1, 5, 3}, unchanged)
	mixed := update(time.Minute, set(6, 2))
	check("more and less", units{mixed, mixed, 2, 6, 2}, unchanged)
	index := update(time.Minute, `"GlobalSecondaryIndexUpdates": [{"Update": {"IndexName": "index", `+set(1, 1)+`}}]`)
	check("the index", units{mixed, mixed, 2, 6, 2}, units{0, index, 1, 1, 1})
	now.Advance(24 * time.Hour)
	check("the next day", units{mixed, mixed, 0, 6, 2}, units{0, index, 0, 1, 1})
	demand := update(time.Minute, `"BillingMode": "PAY_PER_REQUEST"`)
	check("on demand", units{mixed, demand, 1, 0, 0}, units{0, demand, 1, 0, 0})
}

// While a change of throughput shows as UPDATING, the table has its old units and the old
// count of decreases; the times are first that of the request, then that of the end.
func TestUpdateTable_ThroughputWhileUpdating(t *testing.T) {
	t.Parallel()
	const delay = 10 * time.Second
	now := clock.NewFrozen(testTime)
	s := newTestServer(t, func(o *Options) { o.Now, o.StatusDelays.Update = now.Now, delay })
	const four = `"ProvisionedThroughput": {"ReadCapacityUnits": 4, "WriteCapacityUnits": 4}`
	must(t, s, "CreateTable", `{"TableName": "plain", "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}], "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}], `+four+`,
		"GlobalSecondaryIndexes": [{"IndexName": "index", "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}], "Projection": {"ProjectionType": "ALL"}, `+four+`}]}`)
	type units struct {
		LastIncreaseDateTime, LastDecreaseDateTime float64
		NumberOfDecreasesToday                     int
		ReadCapacityUnits, WriteCapacityUnits      int
	}
	type description struct {
		TableStatus            string
		ProvisionedThroughput  units
		GlobalSecondaryIndexes []struct {
			IndexStatus           string
			Backfilling           *bool
			ProvisionedThroughput units
		}
	}
	check := func(step, answer, status, indexStatus string, table, index units) {
		t.Helper()
		var out struct{ Table, TableDescription *description }
		if err := json.Unmarshal([]byte(answer), &out); err != nil {
			t.Fatal(err)
		}
		d := out.Table
		if d == nil {
			d = out.TableDescription
		}
		ix := d.GlobalSecondaryIndexes[0]
		if d.TableStatus != status || ix.IndexStatus != indexStatus || ix.Backfilling != nil {
			t.Errorf("%s: the table is %s, the index %s (Backfilling %v), want %s, %s", step, d.TableStatus, ix.IndexStatus, ix.Backfilling, status, indexStatus)
		}
		if d.ProvisionedThroughput != table {
			t.Errorf("%s: table %+v, want %+v", step, d.ProvisionedThroughput, table)
		}
		if ix.ProvisionedThroughput != index {
			t.Errorf("%s: index %+v, want %+v", step, ix.ProvisionedThroughput, index)
		}
	}
	// change checks the answer, a description during the change, and one at the end.
	change := func(step, change, indexStatus string, want func(at, done float64) (table, index, tableDone, indexDone units)) {
		t.Helper()
		at := float64(now.Now().Unix())
		table, index, tableDone, indexDone := want(at, at+delay.Seconds())
		check(step, must(t, s, "UpdateTable", `{"TableName": "plain", `+change+`}`), "UPDATING", indexStatus, table, index)
		now.Advance(delay - time.Millisecond)
		check(step+", meanwhile", must(t, s, "DescribeTable", `{"TableName": "plain"}`), "UPDATING", indexStatus, table, index)
		now.Advance(time.Millisecond)
		check(step+", done", must(t, s, "DescribeTable", `{"TableName": "plain"}`), "ACTIVE", "ACTIVE", tableDone, indexDone)
	}
	set := func(read, write int) string {
		return fmt.Sprintf(`"ProvisionedThroughput": {"ReadCapacityUnits": %d, "WriteCapacityUnits": %d}`, read, write)
	}
	unchanged := units{0, 0, 0, 4, 4}
	var more, less, index float64
	change("more", set(12, 12), "ACTIVE", func(at, done float64) (_, _, _, _ units) {
		more = done
		return units{at, 0, 0, 4, 4}, unchanged, units{done, 0, 0, 12, 12}, unchanged
	})
	change("less", set(4, 4), "ACTIVE", func(at, done float64) (_, _, _, _ units) {
		less = done
		return units{more, at, 0, 12, 12}, unchanged, units{more, done, 1, 4, 4}, unchanged
	})
	change("the index", `"GlobalSecondaryIndexUpdates": [{"Update": {"IndexName": "index", `+set(2, 2)+`}}]`, "UPDATING", func(at, done float64) (_, _, _, _ units) {
		index = done
		table := units{more, less, 1, 4, 4}
		return table, units{0, at, 0, 4, 4}, table, units{0, done, 1, 2, 2}
	})
	change("another setting", `"TableClass": "STANDARD"`, "ACTIVE", func(_, _ float64) (_, _, _, _ units) {
		table, index := units{more, less, 1, 4, 4}, units{0, index, 1, 2, 2}
		return table, index, table, index
	})
	// A billing mode changes the units at once.
	change("on demand", `"BillingMode": "PAY_PER_REQUEST"`, "UPDATING", func(at, done float64) (_, _, _, _ units) {
		before := index
		less, index = done, done
		return units{more, at, 1, 0, 0}, units{0, before, 1, 0, 0}, units{more, done, 2, 0, 0}, units{0, done, 2, 0, 0}
	})
	change("provisioned", `"BillingMode": "PROVISIONED", `+set(3, 3)+`, "GlobalSecondaryIndexUpdates": [{"Update": {"IndexName": "index", `+set(1, 1)+`}}]`, "UPDATING", func(at, done float64) (_, _, _, _ units) {
		return units{at, less, 2, 3, 3}, units{at, index, 2, 1, 1}, units{done, less, 2, 3, 3}, units{done, index, 2, 1, 1}
	})
}

// The error for a duplicate definition names the attribute if an index uses it.
func TestCreateTable_DuplicateDefinitions(t *testing.T) {
	t.Parallel()
	refuses(t, newTestServer(t), "CreateTable", `{"TableName": "other", "BillingMode": "PAY_PER_REQUEST", "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
		"AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}, {"AttributeName": "ik", "AttributeType": "S"}, {"AttributeName": "ik", "AttributeType": "N"}],
		"GlobalSecondaryIndexes": [{"IndexName": "by-ik", "KeySchema": [{"AttributeName": "ik", "KeyType": "HASH"}], "Projection": {"ProjectionType": "ALL"}}]}`, "ValidationException: Attribute Name is duplicated: ik")
}

// The texts about limits of tables are those of AWS.
func TestLimits_Tables(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	createPlain(t, s, "plain")
	const (
		invalid = "ValidationException: One or more parameter values were invalid: "
		head    = `{"TableName": "other", "BillingMode": "PAY_PER_REQUEST", "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}], `
		index   = `{"IndexName": "by-ik", "KeySchema": [{"AttributeName": "ik", "KeyType": "HASH"}], "Projection": {"ProjectionType": "ALL"}}`
		twice   = `"AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}, {"AttributeName": "ik", "AttributeType": "S"}, {"AttributeName": "ik", "AttributeType": "N"}]`
	)
	refuses(t, s, "CreateTable", head+`"AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}, {"AttributeName": "id", "AttributeType": "N"}]}`, "ValidationException: Attribute Name is duplicated: id")
	refuses(t, s, "UpdateTable", `{"TableName": "plain", `+twice+`, "GlobalSecondaryIndexUpdates": [{"Create": `+index+`}]}`, "ValidationException: Attribute Name is duplicated: ik")
	refuses(t, s, "UpdateTable", `{"TableName": "plain", "GlobalSecondaryIndexUpdates": [{"Create": `+index+`}]}`, invalid+"AttributeDefinitions is not specified for index: by-ik")
	refuses(t, s, "UpdateTable", `{"TableName": "plain", "AttributeDefinitions": [{"AttributeName": "ik", "AttributeType": "S"}], "GlobalSecondaryIndexUpdates": [{"Create": `+index+`, "Delete": {"IndexName": "xyz"}}]}`,
		invalid+"Only one global secondary index action is allowed per GlobalSecondaryIndexUpdate object")
	refuses(t, s, "UpdateTable", `{"TableName": "plain", "StreamSpecification": {"StreamEnabled": false}}`, "ValidationException: Table has no stream to disable: TableName: plain")
	for _, operation := range []string{"TagResource", "UntagResource", "ListTagsOfResource", "GetResourcePolicy"} {
		const rest = `, "Tags": [{"Key": "7", "Value": "8"}], "TagKeys": ["7"]}`
		refuses(t, s, operation, `{"ResourceArn": "I_do_not_exist"`+rest, invalid+"ARNs must start with 'arn:': I_do_not_exist")
		refuses(t, s, operation, `{"ResourceArn": "arn:not/a/good/format"`+rest, invalid+"Provided Arn is not a DynamoDB resource arn: arn:not/a/good/format")
	}
	const null, least, three = "Value null at '%s' failed to satisfy constraint: Member must not be null", "Value '%s' at '%s' failed to satisfy constraint: Member must have length greater than or equal to %d", "ValidationException: 3 validation errors detected: "
	refuses(t, s, "CreateTable", `{"TableName": "ab"}`, three+fmt.Sprintf(null, "attributeDefinitions")+"; "+fmt.Sprintf(least, "ab", "tableName", 3)+"; "+fmt.Sprintf(null, "keySchema"))
	refuses(t, s, "CreateTable", `{"TableName": "", "AttributeDefinitions": [{"AttributeType": "S"}], "KeySchema": [{"AttributeName": "", "KeyType": "HASH"}]}`,
		three+fmt.Sprintf(null, "attributeDefinitions.1.member.attributeName")+"; "+fmt.Sprintf(least, "", "tableName", 1)+"; "+fmt.Sprintf(least, "", "keySchema.1.member.attributeName", 1))
	refuses(t, s, "UpdateTable", `{"TableName": "plain", "AttributeDefinitions": [{"AttributeName": ""}], "GlobalSecondaryIndexUpdates": [{"Delete": {}}]}`,
		three+fmt.Sprintf(least, "", "attributeDefinitions.1.member.attributeName", 1)+"; "+fmt.Sprintf(null, "attributeDefinitions.1.member.attributeType")+"; "+fmt.Sprintf(null, "globalSecondaryIndexUpdates.1.member.delete.indexName"))
	const pattern = "Value '' at '%s' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+; "
	for operation, member := range map[string]string{"ListTables": "exclusiveStartTableName", "Query": "indexName", "Scan": "indexName"} {
		body := `{"TableName": "plain", "IndexName": "", "ExclusiveStartTableName": ""}`
		refuses(t, s, operation, body, "ValidationException: 2 validation errors detected: "+fmt.Sprintf(pattern, member)+fmt.Sprintf(least, "", member, 3))
	}
}
