package facade

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkPut_Log compares a put that is recorded with one that is not, in process.
func BenchmarkPut_Log(b *testing.B) {
	for _, view := range []string{"", "KEYS_ONLY", "NEW_AND_OLD_IMAGES"} {
		b.Run("view="+view, func(b *testing.B) {
			s := newTestServer(b)
			create := fmt.Sprintf(streamedTable, view)
			if view == "" {
				create = strings.Replace(create, `, "StreamSpecification": {"StreamEnabled": true, "StreamViewType": ""}`, "", 1)
			}
			must(b, s, "CreateTable", create)
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				must(b, s, "PutItem", put(fmt.Sprint(n%1000), fmt.Sprintf(`, "n": {"N": "%d"}, "text": {"S": "%s"}`, n, strings.Repeat("x", 1000))))
				n++
			}
		})
	}
}

// BenchmarkGetRecords compares 1,000 records of 1 KB with a query of as many bytes.
func BenchmarkGetRecords(b *testing.B) {
	s := newTestServer(b)
	must(b, s, "CreateTable", `{"TableName": "streamed", "BillingMode": "PAY_PER_REQUEST", "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}, {"AttributeName": "n", "KeyType": "RANGE"}],
		"AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}, {"AttributeName": "n", "AttributeType": "N"}], "StreamSpecification": {"StreamEnabled": true, "StreamViewType": "NEW_IMAGE"}}`)
	for n := range 1000 {
		must(b, s, "PutItem", put("a", fmt.Sprintf(`, "n": {"N": "%d"}, "text": {"S": "%s"}`, n, strings.Repeat("x", 1000))))
	}
	arn := answerOf[struct {
		Table struct{ LatestStreamArn string }
	}](b, s, "DescribeTable", `{"TableName": "streamed"}`).Table.LatestStreamArn
	shard := answerOf[struct {
		StreamDescription struct {
			Shards []struct {
				ShardID string `json:"ShardId"`
			}
		}
	}](b, s, "DescribeStream", `{"StreamArn": "`+arn+`"}`).StreamDescription.Shards[0].ShardID
	iterator := answerOf[struct{ ShardIterator string }](b, s, "GetShardIterator", `{"StreamArn": "`+arn+`", "ShardId": "`+shard+`", "ShardIteratorType": "TRIM_HORIZON"}`).ShardIterator
	b.Run("GetRecords", func(b *testing.B) {
		for b.Loop() {
			b.SetBytes(int64(len(must(b, s, "GetRecords", `{"ShardIterator": "`+iterator+`"}`))))
		}
	})
	b.Run("Query", func(b *testing.B) {
		for b.Loop() {
			b.SetBytes(int64(len(must(b, s, "Query", `{"TableName": "streamed", "KeyConditionExpression": "id = :a", "ExpressionAttributeValues": {":a": {"S": "a"}}}`))))
		}
	})
}
