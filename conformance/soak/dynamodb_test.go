package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

const (
	accounts = 512
	tiers    = 3 // partitions of the index
)

var (
	bankTable = aws.String("bank")
	bankIndex = aws.String("by-tier")
)

type item = map[string]types.AttributeValue

// bank is the table of the DynamoDB clients. Each has an item of its own, and one that counts
// its transfers; they share counters, each with its sum and the part of every client, and
// accounts, whose sum is zero.
type bank struct {
	*soak
	clients []*dynamoDBClient
}

// dynamoDBClient has a connection of its own and does not retry.
type dynamoDBClient struct {
	*bank
	name string
	api  *dynamodb.Client
	// own has the possible numbers of its own item: the last acknowledged one, 0 for no item,
	// and later ones without an answer.
	own []int
	// made and unknown count writes by the number that they change: those with an answer and
	// those without.
	made, unknown map[string]int
}

func newBank(s *soak, clients int) *bank {
	t := s.t
	t.Helper()
	b := &bank{soak: s}
	for i := range clients {
		transport := &http.Transport{MaxIdleConnsPerHost: 1}
		t.Cleanup(transport.CloseIdleConnections)
		b.clients = append(b.clients, &dynamoDBClient{
			bank: b, name: fmt.Sprintf("w%04d", i), own: []int{0}, made: map[string]int{}, unknown: map[string]int{},
			api: dynamodb.New(dynamodb.Options{
				Region: "us-east-1", BaseEndpoint: aws.String(s.env.DynamoDBURL()), HTTPClient: &http.Client{Transport: transport},
				Credentials: credentials.NewStaticCredentialsProvider("tabletop", "tabletop", ""), Retryer: aws.NopRetryer{},
			}),
		})
	}
	attribute := func(name string, kind types.ScalarAttributeType) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: kind}
	}
	keys := func(partition, sort string) []types.KeySchemaElement {
		return []types.KeySchemaElement{
			{AttributeName: aws.String(partition), KeyType: types.KeyTypeHash}, {AttributeName: aws.String(sort), KeyType: types.KeyTypeRange},
		}
	}
	if _, err := b.clients[0].api.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: bankTable, KeySchema: keys("kind", "id"), BillingMode: types.BillingModePayPerRequest,
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
		AttributeDefinitions: []types.AttributeDefinition{attribute("kind", "S"), attribute("id", "S"), attribute("tier", "S"), attribute("n", "N")},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName: bankIndex, KeySchema: keys("tier", "n"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}},
	}); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bank) client(i int) worker { return b.clients[i] }

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func numeral(n int) types.AttributeValue { return &types.AttributeValueMemberN{Value: strconv.Itoa(n)} }

func key(kind, id string) item { return item{"kind": text(kind), "id": text(id)} }

// number returns a numeric attribute, 0 without one.
func number(it item, name string) int {
	if v, ok := it[name].(*types.AttributeValueMemberN); ok {
		if n, err := strconv.Atoi(v.Value); err == nil {
			return n
		}
	}
	return 0
}

func tier(n int) types.AttributeValue { return text("t" + strconv.Itoa(n%tiers)) }

// call implements worker.
func (c *dynamoDBClient) call(ctx context.Context, rng *rand.Rand) time.Duration {
	began := time.Now()
	var kind, counts string // counts: the number that a write changes
	var took time.Duration
	var err error
	conflicts := false // whether another transaction may conflict
	next := 1 + rng.IntN(1_000_000)
	wrote := false
	switch rng.IntN(8) {
	case 0, 1:
		kind, wrote = "PutItem", true
		it := key("own", c.name)
		it["n"], it["tier"] = numeral(next), tier(next)
		_, err = c.api.PutItem(ctx, &dynamodb.PutItemInput{TableName: bankTable, Item: it})
		took = time.Since(began)
	case 2, 3:
		kind, counts = "UpdateItem", fmt.Sprintf("counter-%02d", rng.IntN(counters))
		_, err = c.api.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: bankTable, Key: key("counter", counts), UpdateExpression: aws.String("ADD #sum :one, " + c.name + " :one"),
			ExpressionAttributeNames: map[string]string{"#sum": "sum"}, ExpressionAttributeValues: item{":one": numeral(1)},
		})
		took = time.Since(began)
	case 4:
		kind, counts, conflicts = "TransactWriteItems", "transfers", true
		err = c.transfer(ctx, rng)
	case 5:
		kind = "GetItem"
		var resp *dynamodb.GetItemOutput
		resp, err = c.api.GetItem(ctx, &dynamodb.GetItemInput{TableName: bankTable, Key: key("own", c.name), ConsistentRead: aws.Bool(true)})
		if err == nil {
			c.checkOwn(resp.Item)
		}
	case 6:
		kind = "Query"
		_, err = c.api.Query(ctx, &dynamodb.QueryInput{
			TableName: bankTable, IndexName: bankIndex, KeyConditionExpression: aws.String("tier = :t AND n >= :n"),
			ExpressionAttributeValues: item{":t": tier(next), ":n": numeral(next)}, Limit: aws.Int32(10),
		})
	case 7:
		kind = "GetItem of a counter"
		var resp *dynamodb.GetItemOutput
		resp, err = c.api.GetItem(ctx, &dynamodb.GetItemInput{
			TableName: bankTable, Key: key("counter", fmt.Sprintf("counter-%02d", rng.IntN(counters))), ConsistentRead: aws.Bool(true),
		})
		if err == nil {
			c.checkCounter(resp.Item)
		}
	}
	c.mu.Lock()
	c.calls[kind]++
	c.mu.Unlock()
	var api smithy.APIError
	switch {
	case err == nil && wrote:
		c.own = []int{next}
	case err == nil:
		if counts != "" {
			c.made[counts]++
		}
	case !errors.As(err, &api):
		c.t.Errorf("%s: %s: %v", c.name, kind, err)
	case api.ErrorCode() == refusedOperation:
		c.saw(refusedOperation)
	case api.ErrorCode() == lostResponse, api.ErrorCode() == behindEndpoint:
		c.saw(api.ErrorCode())
		if wrote {
			c.own = append(c.own, next)
		}
		if counts != "" {
			c.unknown[counts]++
		}
	case conflicts && api.ErrorCode() == "TransactionCanceledException" && strings.Contains(api.ErrorMessage(), "TransactionConflict"):
		c.saw("TransactionConflict")
	default:
		c.t.Errorf("%s: %s: %v", c.name, kind, err)
	}
	return took
}

// transfer moves one from an account to another and counts that.
func (c *dynamoDBClient) transfer(ctx context.Context, rng *rand.Rand) error {
	from := rng.IntN(accounts)
	to := (from + 1 + rng.IntN(accounts-1)) % accounts
	add := func(key item, n int) types.TransactWriteItem {
		return types.TransactWriteItem{Update: &types.Update{
			TableName: bankTable, Key: key, UpdateExpression: aws.String("ADD balance :n"), ExpressionAttributeValues: item{":n": numeral(n)},
		}}
	}
	_, err := c.api.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		add(key("account", strconv.Itoa(from)), -1), add(key("account", strconv.Itoa(to)), 1), add(key("ledger", c.name), 1),
	}})
	return err
}

func (c *dynamoDBClient) checkOwn(it item) {
	if got := number(it, "n"); !slices.Contains(c.own, got) {
		c.t.Errorf("%s: its own item is %d, want one of %d", c.name, got, c.own)
	}
}

// checkCounter checks that a counter is the sum of its parts.
func (b *bank) checkCounter(it item) {
	sum := 0
	for name := range it {
		if strings.HasPrefix(name, "w") {
			sum += number(it, name)
		}
	}
	if got := number(it, "sum"); got != sum {
		b.t.Errorf("counter %v is %d, its parts are %d", it["id"], got, sum)
	}
}

// scan returns the items of the table, or of an index.
func (b *bank) scan(index *string) []item {
	var out []item
	for p := dynamodb.NewScanPaginator(b.clients[0].api, &dynamodb.ScanInput{TableName: bankTable, IndexName: index}); p.HasMorePages(); {
		page, err := p.NextPage(b.t.Context())
		if err != nil {
			b.t.Fatal(err)
		}
		out = append(out, page.Items...)
	}
	return out
}

// check compares all items with the answers, and the index with the items.
func (b *bank) check() {
	total, indexed := 0, []string{}
	found := map[string]item{}
	for _, it := range b.scan(nil) {
		kind, id := it["kind"].(*types.AttributeValueMemberS).Value, it["id"].(*types.AttributeValueMemberS).Value
		found[kind+id] = it
		switch kind {
		case "account":
			total += number(it, "balance")
		case "counter":
			b.checkCounter(it)
		case "own":
			indexed = append(indexed, id+" "+strconv.Itoa(number(it, "n")))
		}
	}
	if total != 0 {
		b.t.Errorf("the accounts hold %d together, want 0", total)
	}
	for _, c := range b.clients {
		c.checkOwn(found["own"+c.name])
		c.checkCount("its transfers", number(found["ledger"+c.name], "balance"), "transfers")
		for i := range counters {
			counter := fmt.Sprintf("counter-%02d", i)
			c.checkCount(counter, number(found["counter"+counter], c.name), counter)
		}
	}
	var entries []string
	for _, it := range b.scan(bankIndex) {
		entries = append(entries, it["id"].(*types.AttributeValueMemberS).Value+" "+strconv.Itoa(number(it, "n")))
	}
	slices.Sort(entries)
	slices.Sort(indexed)
	if !slices.Equal(entries, indexed) {
		b.t.Errorf("the index holds %q, the items are %q", entries, indexed)
	}
}

// checkCount checks a number that only this client adds to.
func (c *dynamoDBClient) checkCount(what string, got int, to string) {
	if least := c.made[to]; got < least || got > least+c.unknown[to] {
		c.t.Errorf("%s: %s: %d, want %d and up to %d more", c.name, what, got, least, c.unknown[to])
	}
}
