package facade

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// sdkClient returns a client of the AWS SDK, whose credentials are arbitrary.
func sdkClient(url string, transport http.RoundTripper) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(url),
		Region:       "eu-west-1",
		Credentials:  credentials.NewStaticCredentialsProvider("key", "secret", ""),
		HTTPClient:   &http.Client{Transport: transport},
	})
}

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func num(n int) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.Itoa(n)}
}

// TestSDK calls the operations with the AWS SDK, in this process and through a port.
func TestSDK(t *testing.T) {
	t.Parallel()
	requireSignature := func(o *Options) { o.NoAuth = false }
	t.Run("RoundTripper", func(t *testing.T) {
		t.Parallel()
		s := newTestServer(t, requireSignature)
		driveSDK(t, sdkClient("http://dynamodb.invalid", s.RoundTripper()))
	})
	t.Run("port", func(t *testing.T) {
		t.Parallel()
		s := newTestServer(t, requireSignature)
		h := httptest.NewServer(s)
		t.Cleanup(h.Close)
		transport := &http.Transport{}
		t.Cleanup(transport.CloseIdleConnections)
		driveSDK(t, sdkClient(h.URL, transport))
	})
}

func driveSDK(t *testing.T, c *dynamodb.Client) {
	t.Helper()
	ctx := t.Context()
	table := aws.String("music")
	check := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	_, err := c.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: table, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("artist"), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String("song"), AttributeType: types.ScalarAttributeTypeN},
			{AttributeName: aws.String("label"), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("artist"), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String("song"), KeyType: types.KeyTypeRange},
		},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName:  aws.String("by-label"),
			KeySchema:  []types.KeySchemaElement{{AttributeName: aws.String("label"), KeyType: types.KeyTypeHash}},
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}},
	})
	check("CreateTable", err)
	waiter := dynamodb.NewTableExistsWaiter(c)
	check("waiting for the table", waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: table}, 1e9))
	tables, err := c.ListTables(ctx, &dynamodb.ListTablesInput{})
	check("ListTables", err)
	if len(tables.TableNames) != 1 || tables.TableNames[0] != "music" {
		t.Errorf("ListTables: %v", tables.TableNames)
	}

	item := func(song int) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{
			"artist": str("a"), "song": num(song), "label": str("l" + strconv.Itoa(song%2)),
			"tags": &types.AttributeValueMemberSS{Value: []string{"x", "y"}},
		}
	}
	_, err = c.PutItem(ctx, &dynamodb.PutItemInput{TableName: table, Item: item(0)})
	check("PutItem", err)
	_, err = c.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: table, Item: item(0), ConditionExpression: aws.String("attribute_not_exists(artist)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	var failed *types.ConditionalCheckFailedException
	if !errors.As(err, &failed) || failed.Item["label"].(*types.AttributeValueMemberS).Value != "l0" {
		t.Errorf("conditional PutItem: %v, %v", err, failed)
	}
	var batch []types.WriteRequest
	for song := 1; song < 10; song++ {
		batch = append(batch, types.WriteRequest{PutRequest: &types.PutRequest{Item: item(song)}})
	}
	_, err = c.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{"music": batch}})
	check("BatchWriteItem", err)

	key := map[string]types.AttributeValue{"artist": str("a"), "song": num(3)}
	updated, err := c.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: table, Key: key, UpdateExpression: aws.String("ADD plays :n"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":n": num(5)}, ReturnValues: types.ReturnValueUpdatedNew,
		ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes,
	})
	check("UpdateItem", err)
	if got := updated.Attributes["plays"].(*types.AttributeValueMemberN).Value; got != "5" {
		t.Errorf("plays is %s", got)
	}
	got, err := c.GetItem(ctx, &dynamodb.GetItemInput{TableName: table, Key: key})
	check("GetItem", err)
	if len(got.Item) != 5 {
		t.Errorf("GetItem: %v", got.Item)
	}

	var songs []string
	pages := dynamodb.NewQueryPaginator(c, &dynamodb.QueryInput{
		TableName: table, KeyConditionExpression: aws.String("artist = :a"), Limit: aws.Int32(4), ScanIndexForward: aws.Bool(false),
		ExpressionAttributeValues: map[string]types.AttributeValue{":a": str("a")},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		check("Query", err)
		for _, item := range page.Items {
			songs = append(songs, item["song"].(*types.AttributeValueMemberN).Value)
		}
	}
	if fmt.Sprint(songs) != "[9 8 7 6 5 4 3 2 1 0]" {
		t.Errorf("Query by pages: %v", songs)
	}
	labeled, err := c.Query(ctx, &dynamodb.QueryInput{
		TableName: table, IndexName: aws.String("by-label"), KeyConditionExpression: aws.String("label = :l"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":l": str("l1")},
	})
	check("Query of the index", err)
	if labeled.Count != 5 {
		t.Errorf("the index has %d items", labeled.Count)
	}

	count := 0
	for segment := range int32(3) {
		pages := dynamodb.NewScanPaginator(c, &dynamodb.ScanInput{
			TableName: table, Segment: aws.Int32(segment), TotalSegments: aws.Int32(3), Limit: aws.Int32(2),
		})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			check("Scan", err)
			count += len(page.Items)
		}
	}
	if count != 10 {
		t.Errorf("the segments hold %d items", count)
	}
	fetched, err := c.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
		"music": {Keys: []map[string]types.AttributeValue{key, {"artist": str("a"), "song": num(99)}}},
	}})
	check("BatchGetItem", err)
	if len(fetched.Responses["music"]) != 1 || len(fetched.UnprocessedKeys) != 0 {
		t.Errorf("BatchGetItem: %v", fetched.Responses)
	}
	removed, err := c.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: table, Key: key, ReturnValues: types.ReturnValueAllOld})
	check("DeleteItem", err)
	if len(removed.Attributes) != 5 {
		t.Errorf("DeleteItem: %v", removed.Attributes)
	}
	_, err = c.UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: table, GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{
		{Delete: &types.DeleteGlobalSecondaryIndexAction{IndexName: aws.String("by-label")}},
	}})
	check("UpdateTable", err)
	_, err = c.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: table})
	check("DeleteTable", err)
	_, err = c.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: table})
	var notFound *types.ResourceNotFoundException
	if !errors.As(err, &notFound) {
		t.Errorf("DescribeTable after DeleteTable: %v", err)
	}
}

// TestUpdateItem_Concurrent: if 64 writers increment an attribute of an item, neither the item nor
// its index entry loses an increment.
func TestUpdateItem_Concurrent(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	must(t, s, "CreateTable", `{"TableName": "counters", "BillingMode": "PAY_PER_REQUEST",
		"AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}, {"AttributeName": "n", "AttributeType": "N"}],
		"KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
		"GlobalSecondaryIndexes": [{"IndexName": "by-n", "KeySchema": [{"AttributeName": "n", "KeyType": "HASH"}], "Projection": {"ProjectionType": "ALL"}}]}`)
	const writers, each = 64, 5
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for range each {
				for _, id := range []string{"hot", "own" + strconv.Itoa(w)} {
					if _, err := s.Call(context.WithoutCancel(t.Context()), "UpdateItem", []byte(`{"TableName": "counters", "Key": {"id": {"S": "`+id+`"}},
						"UpdateExpression": "ADD n :one", "ExpressionAttributeValues": {":one": {"N": "1"}}}`)); err != nil {
						t.Errorf("writer %d: %v", w, err)
					}
				}
			}
		})
	}
	wg.Wait()
	want := `{"Items":[{"id":{"S":"hot"},"n":{"N":"` + strconv.Itoa(writers*each) + `"}}],"Count":1,"ScannedCount":1}`
	got := must(t, s, "Query", `{"TableName": "counters", "IndexName": "by-n", "KeyConditionExpression": "n = :n", "ExpressionAttributeValues": {":n": {"N": "`+strconv.Itoa(writers*each)+`"}}}`)
	if got != want {
		t.Errorf("the hot counter is %s, want %s", got, want)
	}
	if got := must(t, s, "Scan", `{"TableName": "counters", "IndexName": "by-n", "Select": "COUNT"}`); got != `{"Count":65,"ScannedCount":65}` {
		t.Errorf("the index holds stale entries: %s", got)
	}
}
