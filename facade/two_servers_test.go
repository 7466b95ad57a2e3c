package facade

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/clock"
)

// newTwoTestServers returns two servers over one Bigtable.
func newTwoTestServers(t *testing.T, change ...func(*Options)) (a, b *Server) {
	t.Helper()
	var shared Options
	a = newTestServer(t, append(change, func(o *Options) {
		o.Concurrency = 100 // as over a network
		shared = *o
	})...)
	b, err := New(t.Context(), shared)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return a, b
}

// A new index or time to live of one facade includes the writes of another one that does not know
// of it yet.
func TestServer_TwoOfThemAndANewIndex(t *testing.T) {
	t.Parallel()
	now := clock.NewFrozen(testTime)
	a, b := newTwoTestServers(t, func(o *Options) { o.Now = now.Now })
	put := func(s *Server, pk, more string) {
		t.Helper()
		must(t, s, "PutItem", `{"TableName": "pairs", "Item": {"pk": {"S": "`+pk+`"}, "sk": {"N": "1"}`+more+`}}`)
	}
	must(t, a, "CreateTable", createPair)
	for _, pk := range []string{"stays", "goes", "moves"} {
		put(b, pk, `, "g": {"S": "x"}`)
	}
	must(t, a, "UpdateTable", `{"TableName": "pairs", "AttributeDefinitions": [{"AttributeName": "g", "AttributeType": "S"}],
		"GlobalSecondaryIndexUpdates": [{"Create": {"IndexName": "by-g", "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}], "Projection": {"ProjectionType": "KEYS_ONLY"}}}]}`)
	a.store.Wait()
	must(t, a, "UpdateTimeToLive", `{"TableName": "pairs", "TimeToLiveSpecification": {"AttributeName": "until", "Enabled": true}}`)
	a.store.Wait()
	put(b, "comes", `, "g": {"S": "x"}, "until": {"N": "`+strconv.FormatInt(testTime.Unix()+60, 10)+`"}`)
	put(b, "moves", `, "g": {"S": "y"}`)
	must(t, b, "DeleteItem", `{"TableName": "pairs", "Key": {"pk": {"S": "goes"}, "sk": {"N": "1"}}}`)

	now.Advance(2 * time.Second) // then no facade uses an older definition
	must(t, a, "GetItem", `{"TableName": "pairs", "Key": {"pk": {"S": "stays"}, "sk": {"N": "1"}}}`)
	a.store.Wait()
	holds := func(g string, want ...string) {
		t.Helper()
		for _, s := range []*Server{a, b} {
			got := must(t, s, "Query", `{"TableName": "pairs", "IndexName": "by-g", "KeyConditionExpression": "g = :g", "ExpressionAttributeValues": {":g": {"S": "`+g+`"}}}`)
			if !strings.Contains(got, `"Count":`+strconv.Itoa(len(want))) {
				t.Errorf("%s: %s, want %v", g, got, want)
			}
			for _, pk := range want {
				if !strings.Contains(got, `"`+pk+`"`) {
					t.Errorf("%s: %s, want %v", g, got, want)
				}
			}
		}
	}
	holds("x", "comes", "stays")
	holds("y", "moves")
	def, err := a.store.TableNow(t.Context(), "pairs")
	if err != nil || !def.TTLFillAgain.IsZero() || slices.ContainsFunc(def.Indexes, func(ix tabledef.Index) bool { return !ix.FillAgain.IsZero() }) {
		t.Errorf("to be filled again: %+v, %v", def, err)
	}

	now.Advance(time.Minute)
	if n, err := a.ReapExpired(t.Context()); n != 1 || err != nil {
		t.Errorf("%d items expired, %v, want 1", n, err)
	}
	holds("x", "stays")
}

// Two facades over one Bigtable, on a clock that does not move: each sees the other's changes
// of tables at once.
func TestServer_TwoOfThem(t *testing.T) {
	t.Parallel()
	a, b := newTwoTestServers(t)
	item := func(g string) string {
		return `{"TableName": "pairs", "Item": {"pk": {"S": "a"}, "sk": {"N": "1"}, "g": {"S": "` + g + `"}}}`
	}
	const key = `{"TableName": "pairs", "Key": {"pk": {"S": "a"}, "sk": {"N": "1"}}}`
	refused := func(operation, req, want string) {
		t.Helper()
		if got, err := b.Call(t.Context(), operation, []byte(req)); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: answered %s, %v, want %s", operation, got, err, want)
		}
	}
	holds := func(operation, req, want string) {
		t.Helper()
		if got := must(t, b, operation, req); !strings.Contains(got, want) {
			t.Errorf("%s answers %s, want %s", operation, got, want)
		}
	}

	must(t, a, "CreateTable", createPair)
	must(t, b, "PutItem", item("x"))

	must(t, a, "UpdateTable", `{"TableName": "pairs", "AttributeDefinitions": [{"AttributeName": "g", "AttributeType": "S"}],
		"GlobalSecondaryIndexUpdates": [{"Create": {"IndexName": "by-g", "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}], "Projection": {"ProjectionType": "KEYS_ONLY"}}}]}`)
	a.store.Wait()
	holds("DescribeTable", `{"TableName": "pairs"}`, "by-g")
	holds("Query", `{"TableName": "pairs", "IndexName": "by-g", "KeyConditionExpression": "g = :g", "ExpressionAttributeValues": {":g": {"S": "x"}}}`, `"Count":1`)

	must(t, a, "UpdateTable", `{"TableName": "pairs", "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "by-g"}}]}`)
	a.store.Wait()
	must(t, b, "PutItem", item("y")) // leaves one entry and creates another
	holds("GetItem", key, `"g":{"S":"y"}`)
	refused("Query", `{"TableName": "pairs", "IndexName": "by-g", "KeyConditionExpression": "g = :g", "ExpressionAttributeValues": {":g": {"S": "x"}}}`,
		"The table does not have the specified index: by-g")

	must(t, a, "TagResource", `{"ResourceArn": "arn:aws:dynamodb:us-east-1:000000000000:table/pairs", "Tags": [{"Key": "k", "Value": "v"}]}`)
	holds("ListTagsOfResource", `{"ResourceArn": "arn:aws:dynamodb:us-east-1:000000000000:table/pairs"}`, `"Key":"k"`)

	must(t, a, "DeleteTable", `{"TableName": "pairs"}`)
	refused("GetItem", key, awserr.CodeResourceNotFound+": "+awserr.MsgResourceNotFound)
	must(t, a, "CreateTable", createPair)
	holds("GetItem", key, `{}`)

	for _, req := range []struct{ operation, body, want string }{
		{"PutItem", item("z"), `{}`},
		{"UpdateItem", `{"TableName": "pairs", "Key": {"pk": {"S": "a"}, "sk": {"N": "1"}}, "UpdateExpression": "ADD n :one", "ExpressionAttributeValues": {":one": {"N": "1"}}, "ReturnValues": "UPDATED_NEW"}`, `"n":{"N":"1"}`},
		{"BatchWriteItem", `{"RequestItems": {"pairs": [{"PutRequest": {"Item": {"pk": {"S": "a"}, "sk": {"N": "1"}}}}]}}`, `"UnprocessedItems":{}`},
		{"TransactWriteItems", `{"TransactItems": [{"Put": {"TableName": "pairs", "Item": {"pk": {"S": "a"}, "sk": {"N": "1"}}}}, {"Put": {"TableName": "pairs", "Item": {"pk": {"S": "a"}, "sk": {"N": "2"}}}}]}`, `{}`},
		{"TransactGetItems", `{"TransactItems": [{"Get": ` + key + `}]}`, `{"Responses":[{}]}`},
		{"Scan", `{"TableName": "pairs"}`, `"Count":0`},
		{"Query", `{"TableName": "pairs", "KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": {"S": "a"}}}`, `"Count":0`},
	} {
		must(t, a, "DeleteTable", `{"TableName": "pairs"}`)
		must(t, a, "CreateTable", createPair)
		holds(req.operation, req.body, req.want)
	}
}
