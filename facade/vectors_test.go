package facade

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/internal/test/memory"
	"github.com/tabletop-emu/tabletop/internal/test/race"
)

// createVectors creates a table with vectors of three dimensions, and two vector indexes.
const createVectors = `{"TableName": "vectors", "BillingMode": "PAY_PER_REQUEST",
	"AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}], "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
	"VectorIndexes": [
		{"IndexName": "near", "VectorAttribute": {"AttributeName": "v"}, "Dimensions": 3, "DistanceFunction": "EUCLIDEAN", "Projection": {"ProjectionType": "ALL"}},
		{"IndexName": "keys", "VectorAttribute": {"AttributeName": "v"}, "Dimensions": 3, "DistanceFunction": "COSINE", "Projection": {"ProjectionType": "KEYS_ONLY"}}]}`

func searchIDs(t *testing.T, s *Server, request string) (ids []string) {
	t.Helper()
	for _, r := range answerOf[struct {
		SearchResults []struct {
			Item struct {
				ID struct{ S string } `json:"id"`
			}
		}
	}](t, s, "SearchVectors", request).SearchResults {
		ids = append(ids, r.Item.ID.S)
	}
	return ids
}

// TestSDK_Vectors calls vector search and bulk operations with the AWS SDK.
func TestSDK_Vectors(t *testing.T) {
	t.Parallel()
	buckets := openBuckets(t, t.TempDir())
	s := newTestServer(t, func(o *Options) { o.NoAuth, o.Buckets = false, buckets })
	c, ctx := sdkClient("http://dynamodb.invalid", s.RoundTripper()), t.Context()
	table := aws.String("music")
	check := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	_, err := c.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: table, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	})
	check("CreateTable", err)
	updated, err := c.UpdateTable(ctx, &dynamodb.UpdateTableInput{
		TableName:            table,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("genre"), AttributeType: types.ScalarAttributeTypeS}},
		VectorIndexUpdates: []types.VectorIndexUpdate{{Create: &types.CreateVectorIndexAction{
			IndexName: aws.String("sound"), VectorAttribute: &types.VectorAttributeDefinition{AttributeName: aws.String("v")},
			Dimensions: aws.Int64(2), DistanceFunction: types.VectorDistanceFunctionCosine, Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
			SearchSchema: []types.SearchSchemaElement{{AttributeName: aws.String("genre"), SearchSchemaElementType: types.SearchSchemaElementTypeInlineFilter}},
		}}},
	})
	check("UpdateTable", err)
	if got := updated.TableDescription.VectorIndexes; len(got) != 1 || *got[0].IndexName != "sound" || *got[0].Dimensions != 2 || got[0].IndexStatus != types.IndexStatusActive {
		t.Errorf("the vector indexes are %+v", got)
	}

	writeObject(t, buckets, "bucket/1.json", `{"Item": {"id": {"S": "a"}, "genre": {"S": "x"}, "v": {"L": [{"N": "1"}, {"N": "0"}]}}}
{"Item": {"id": {"S": "b"}, "genre": {"S": "x"}, "v": {"L": [{"N": "0"}, {"N": "1"}]}}}
{"Item": {"id": {"S": "c"}, "genre": {"S": "y"}, "v": {"L": [{"N": "1"}, {"N": "0"}]}}}
{"Item": {"id": {"S": "d"}, "genre": {"S": "y"}, "v": {"L": []}}}
`)
	started, err := c.StartBulkPutItems(ctx, &dynamodb.StartBulkPutItemsInput{
		TableName:             table,
		InputS3Configuration:  &types.InputS3Configuration{S3Bucket: aws.String("bucket"), InputFormat: types.BulkOperationInputFormatDynamodbJson},
		OutputS3Configuration: &types.OutputS3Configuration{S3Bucket: aws.String("bucket"), OutputType: []types.OutputTypeEnum{types.OutputTypeEnumError}},
	})
	check("StartBulkPutItems", err)
	waitForJobs(t, s)
	arn := started.BulkOperationDescription.BulkOperationArn
	described, err := c.DescribeBulkOperation(ctx, &dynamodb.DescribeBulkOperationInput{BulkOperationArn: arn})
	check("DescribeBulkOperation", err)
	d := described.BulkOperationDescription
	if d.BulkOperationStatus != types.BulkOperationStatusCompletedWithErrors || d.ProcessedItemCount != 4 || d.FailedItemCount != 1 || d.EndTime == nil ||
		*d.BulkOperationUsage[0].VectorIndexes["sound"].BulkPutVectorBytes != 3*(8+1+3+6) {
		t.Errorf("the operation is %+v, %+v", d, d.BulkOperationUsage)
	}
	listed, err := c.ListBulkOperations(ctx, &dynamodb.ListBulkOperationsInput{})
	check("ListBulkOperations", err)
	if len(listed.BulkOperationsSummaryList) != 1 || *listed.BulkOperationsSummaryList[0].BulkOperationArn != *arn {
		t.Errorf("the operations are %+v", listed.BulkOperationsSummaryList)
	}
	if _, err := c.CancelBulkOperation(ctx, &dynamodb.CancelBulkOperationInput{BulkOperationArn: arn}); err == nil {
		t.Error("an operation that has ended was cancelled")
	}

	found, err := c.SearchVectors(ctx, &dynamodb.SearchVectorsInput{
		TableName: table, IndexName: aws.String("sound"), TopK: aws.Int32(2), SearchVector: []types.AttributeValue{num(1), num(0)},
		SearchConditionExpression: aws.String("genre = :g"), ExpressionAttributeValues: map[string]types.AttributeValue{":g": str("x")},
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
	check("SearchVectors", err)
	if r := found.SearchResults; len(r) != 2 || r[0].Item["id"].(*types.AttributeValueMemberS).Value != "a" || r[0].Score != 0 || r[1].Score != 1 || *found.ConsumedCapacity.VectorSearchRequestBytes != 1024 {
		t.Errorf("found %+v, %+v", r, found.ConsumedCapacity)
	}
	put, err := c.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: table, ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes,
		Item: map[string]types.AttributeValue{"id": str("e"), "v": &types.AttributeValueMemberL{Value: []types.AttributeValue{num(1), num(1)}}},
	})
	check("PutItem", err)
	if got := put.ConsumedCapacity.VectorIndexes["sound"].VectorWriteRequestBytes; got == nil || *got != 1024 {
		t.Errorf("the write consumed %+v", put.ConsumedCapacity)
	}
}

// Where captures of the service differ, or do not exist, clients must accept each possible answer.
// The server gives one of them.
func TestVectors_Unconfirmed(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	must(t, s, "CreateTable", createVectors)
	const (
		provisioned = `"BillingMode": "PROVISIONED", "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}`
		search      = `{"TableName": "vectors", "IndexName": "near", "SearchVector": [{"N": "1"}, {"N": "1"}, {"N": "1"}], `
	)
	for i := range 3 {
		must(t, s, "UpdateTable", fmt.Sprintf(`{"TableName": "vectors", "VectorIndexUpdates": [{"Create": {"IndexName": "more%d", "VectorAttribute": {"AttributeName": "v"},
			"Dimensions": 3, "DistanceFunction": "COSINE", "Projection": {"ProjectionType": "ALL"}}}]}`, i))
	}
	for _, c := range []struct {
		operation, body string
		want            []string
	}{
		{"SearchVectors", search + `"TopK": 0}`, []string{
			"ValidationException: 1 validation error detected: Value at 'TopK' failed to satisfy constraint: Member must have value greater than or equal to 1",
			"ValidationException: 1 validation error detected: Value '0' at 'topK' failed to satisfy constraint: Member must have value greater than or equal to 1",
			"ValidationException: Provided TopK value '0' is out of valid range. The value must be between 1 and 100 inclusive",
		}},
		{"UpdateTable", `{"TableName": "vectors", ` + provisioned + `}`, []string{
			"ValidationException: One or more parameter values were invalid: Tables with vector indexes must be in PAY_PER_REQUEST mode",
			"ValidationException: One or more parameter values were invalid: Vector indexes are only supported for PAY_PER_REQUEST tables",
		}},
		{"UpdateTable", `{"TableName": "vectors", "VectorIndexUpdates": [{"Create": {"IndexName": "sixth", "VectorAttribute": {"AttributeName": "v"},
			"Dimensions": 3, "DistanceFunction": "COSINE", "Projection": {"ProjectionType": "ALL"}}}]}`, []string{
			"LimitExceededException: Subscriber limit exceeded: Number of vector secondary indexes exceeds per-table limit of 5",
			"ValidationException: One or more parameter values were invalid: VectorIndex count exceeds the per-table limit of 5",
		}},
		{"PutItem", `{"TableName": "vectors", "Item": {"id": {"S": "a"}, "v": {"L": []}}}`, []string{
			"ValidationException: One or more parameter values were invalid. Invalid size for parameter v, Expected: 3, Actual: 0 IndexName: keys",
			"ValidationException: One or more parameter values were invalid. Invalid size for parameter v, Expected: 3, Actual: 0. IndexName: keys",
			"ValidationException: One or more parameter values were invalid. Invalid size for parameter v, Expected: 3, Actual: 0 IndexName: near",
		}},
	} {
		if _, err := s.Call(t.Context(), c.operation, []byte(c.body)); !slices.Contains(c.want, fmt.Sprint(err)) {
			t.Errorf("%s: %v, want one of %q", c.operation, err, c.want)
		}
	}
}

// A new index has the items of its table, except for those that the table would no longer accept.
// An update can change the other attributes of such items.
func TestVectors_ItemsBefore(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	createPlain(t, s, "vectors")
	for id, v := range map[string]string{
		"fits": `{"L": [{"N": "1"}, {"N": "2"}, {"N": "3"}]}`, "short": `{"L": [{"N": "1"}, {"N": "2"}]}`, "text": `{"S": "x"}`,
		"element": `{"L": [{"N": "1"}, {"S": "x"}, {"N": "3"}]}`, "large": `{"L": [{"N": "1E39"}, {"N": "0"}, {"N": "0"}]}`,
	} {
		must(t, s, "PutItem", `{"TableName": "vectors", "Item": {"id": {"S": "`+id+`"}, "v": `+v+`}}`)
	}
	must(t, s, "UpdateTable", `{"TableName": "vectors", "VectorIndexUpdates": [{"Create": {"IndexName": "near", "VectorAttribute": {"AttributeName": "v"},
		"Dimensions": 3, "DistanceFunction": "COSINE", "Projection": {"ProjectionType": "ALL"}}}]}`)
	const search = `{"TableName": "vectors", "IndexName": "near", "SearchVector": [{"N": "1"}, {"N": "2"}, {"N": "3"}], "TopK": 10}`
	if got := searchIDs(t, s, search); !slices.Equal(got, []string{"fits"}) {
		t.Errorf("the index holds %v", got)
	}
	must(t, s, "UpdateItem", `{"TableName": "vectors", "Key": {"id": {"S": "short"}}, "UpdateExpression": "SET note = :n", "ExpressionAttributeValues": {":n": {"S": "x"}}}`)
	if _, err := s.Call(t.Context(), "UpdateItem", []byte(`{"TableName": "vectors", "Key": {"id": {"S": "short"}}, "UpdateExpression": "SET v[1] = :n", "ExpressionAttributeValues": {":n": {"N": "5"}}}`)); err == nil {
		t.Error("a vector that does not fit was changed to another that does not")
	}
	must(t, s, "UpdateItem", `{"TableName": "vectors", "Key": {"id": {"S": "short"}}, "UpdateExpression": "SET v[2] = :n", "ExpressionAttributeValues": {":n": {"N": "3"}}}`)
	if got := searchIDs(t, s, search); !slices.Equal(slices.Sorted(slices.Values(got)), []string{"fits", "short"}) {
		t.Errorf("the index holds %v", got)
	}
}

// The catalog stores the definitions of vector indexes, so that another process with the same
// Bigtable can search the data of this one.
func TestVectors_TwoProcesses(t *testing.T) {
	t.Parallel()
	var o Options
	s := newTestServer(t, func(given *Options) { o = *given })
	other := newTestServer(t, func(given *Options) { given.Conn = o.Conn })
	createPlain(t, s, "vectors")
	must(t, other, "PutItem", `{"TableName": "vectors", "Item": {"id": {"S": "a"}, "v": {"L": [{"N": "1"}]}}}`)
	must(t, s, "UpdateTable", `{"TableName": "vectors", "VectorIndexUpdates": [{"Create": {"IndexName": "near", "VectorAttribute": {"AttributeName": "v"},
		"Dimensions": 1, "DistanceFunction": "EUCLIDEAN", "Projection": {"ProjectionType": "KEYS_ONLY"}}}]}`)
	got := must(t, other, "SearchVectors", `{"TableName": "vectors", "IndexName": "near", "SearchVector": [{"N": "3"}], "TopK": 1}`)
	if diff := gocmp.Diff(`{"SearchResults":[{"Item":{"id":{"S":"a"}},"Score":2.0}]}`, got); diff != "" {
		t.Errorf("the other process (-want +got):\n%s", diff)
	}
}

// The memory of a search does not depend on the size of the table.
func TestSearchVectors_Memory(t *testing.T) { //nolint:paralleltest // Alone makes it parallel
	if race.Enabled {
		t.Skip("the race detector counts in memory of its own")
	}
	size := smallMemory
	if long.Enabled() {
		size = fullMemory
	}
	memory.Alone(t, func(t *testing.T) {
		s := newTestServer(t, size.options(t))
		must(t, s, "CreateTable", createVectors)
		body := strings.Repeat("a", size.itemBytes)
		for i := range 2 * size.items {
			must(t, s, "PutItem", fmt.Sprintf(`{"TableName": "vectors", "Item": {"id": {"S": "%d"}, "v": {"L": [{"N": "%d"}, {"N": "0"}, {"N": "0"}]}, "text": {"S": "%s"}}}`, i, i, body))
		}
		const most = 3
		size.check(t, "a search", func() {
			got := searchIDs(t, s, fmt.Sprintf(`{"TableName": "vectors", "IndexName": "near", "SearchVector": [{"N": "0"}, {"N": "0"}, {"N": "0"}], "TopK": %d}`, most))
			if !slices.Equal(got, []string{"0", "1", "2"}) {
				t.Errorf("found %v", got)
			}
		})
		size.check(t, "a search for keys", func() {
			const all = 100
			if got := searchIDs(t, s, fmt.Sprintf(`{"TableName": "vectors", "IndexName": "keys", "SearchVector": [{"N": "1"}, {"N": "0"}, {"N": "0"}], "TopK": %d}`, all)); len(got) != all {
				t.Errorf("found %d", len(got))
			}
		})
	})
}
