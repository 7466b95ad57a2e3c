package facade

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// benchTable creates a table and puts an item of 1 KB into it.
func benchTable(b *testing.B, c *dynamodb.Client) (item map[string]types.AttributeValue) {
	b.Helper()
	_, err := c.CreateTable(b.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("bench"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("PK"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("PK"), KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		b.Fatal(err)
	}
	item = map[string]types.AttributeValue{"PK": str("p"), "V": str(strings.Repeat("v", 1024)), "N": num(1)}
	if _, err := c.PutItem(b.Context(), &dynamodb.PutItemInput{TableName: aws.String("bench"), Item: item}); err != nil {
		b.Fatal(err)
	}
	return item
}

// BenchmarkCompareGet and BenchmarkComparePut measure the same request three times: from the AWS
// SDK through a port, from the AWS SDK in process, and to the handler without the SDK.
func BenchmarkCompareGet(b *testing.B) {
	compareServers(b, "GetItem", `{"TableName":"bench","Key":{"PK":{"S":"p"}}}`,
		func(b *testing.B, c *dynamodb.Client, item map[string]types.AttributeValue) {
			b.Helper()
			_, err := c.GetItem(b.Context(), &dynamodb.GetItemInput{
				TableName: aws.String("bench"), Key: map[string]types.AttributeValue{"PK": item["PK"]},
			})
			if err != nil {
				b.Fatal(err)
			}
		})
}

func BenchmarkComparePut(b *testing.B) {
	body := `{"TableName":"bench","Item":{"PK":{"S":"p"},"N":{"N":"1"},"V":{"S":"` + strings.Repeat("v", 1024) + `"}}}`
	compareServers(b, "PutItem", body, func(b *testing.B, c *dynamodb.Client, item map[string]types.AttributeValue) {
		b.Helper()
		if _, err := c.PutItem(b.Context(), &dynamodb.PutItemInput{TableName: aws.String("bench"), Item: item}); err != nil {
			b.Fatal(err)
		}
	})
}

func compareServers(b *testing.B, operation, body string, req func(*testing.B, *dynamodb.Client, map[string]types.AttributeValue)) {
	b.Helper()
	b.Run("http", func(b *testing.B) {
		s := newSharingServer(b)
		h := httptest.NewServer(s)
		b.Cleanup(h.Close)
		transport := &http.Transport{}
		b.Cleanup(transport.CloseIdleConnections)
		c := sdkClient(h.URL, transport)
		item := benchTable(b, c)
		b.ReportAllocs()
		for b.Loop() {
			req(b, c, item)
		}
	})
	b.Run("round-tripper", func(b *testing.B) {
		c := sdkClient("http://dynamodb.invalid", newSharingServer(b).RoundTripper())
		item := benchTable(b, c)
		b.ReportAllocs()
		for b.Loop() {
			req(b, c, item)
		}
	})
	b.Run("direct", func(b *testing.B) {
		s := newSharingServer(b)
		benchTable(b, sdkClient("http://dynamodb.invalid", s.RoundTripper()))
		b.ReportAllocs()
		for b.Loop() {
			r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/", bytes.NewReader([]byte(body)))
			r.Header.Set("Content-Type", "application/x-amz-json-1.0")
			r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
			w := httptest.NewRecorder()
			if s.ServeHTTP(w, r); w.Code != http.StatusOK {
				b.Fatal(w.Body)
			}
		}
	})
}
