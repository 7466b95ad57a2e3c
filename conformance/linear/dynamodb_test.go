package linear

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/testkit"
)

// operation is the effect of a call on items.
type operation uint8

const (
	get         operation = iota // GetItem, consistent
	put                          // PutItem
	conditional                  // UpdateItem SET, if the number is from
	add                          // UpdateItem ADD
	transfer                     // TransactWriteItems: subtract from one item, if it has enough, and add to another
	getAll                       // TransactGetItems of all items
)

// itemCall is a call on items, which are numbers.
type itemCall struct {
	op          operation
	item, other int
	from, value int64
}

// items are the numbers of all items: transactions connect them.
type items [3]int64

func doItems(s items, input any) (items, any) {
	switch c := input.(itemCall); c.op {
	case get:
		return s, s[c.item]
	case put:
		s[c.item] = c.value
		return s, nil
	case conditional:
		if s[c.item] != c.from {
			return s, false
		}
		s[c.item] = c.value
		return s, true
	case add:
		s[c.item] += c.value
		return s, s[c.item]
	case transfer:
		if s[c.item] < c.value {
			return s, false
		}
		s[c.item] -= c.value
		s[c.other] += c.value
		return s, true
	case getAll:
		return s, s
	}
	return s, nil
}

func TestDynamoDB(t *testing.T) {
	t.Parallel()
	for name, concurrency := range map[string]int{"calls in turn": 0, "calls side by side": 100} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Run("without a stream", func(t *testing.T) {
				t.Parallel()
				testDynamoDB(t, concurrency, nil)
			})
			t.Run("with a stream", func(t *testing.T) {
				t.Parallel()
				testDynamoDB(t, concurrency, &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages})
			})
		})
	}
}

// testDynamoDB limits the endpoint's concurrent calls to Bigtable.
func testDynamoDB(t *testing.T, concurrency int, stream *types.StreamSpecification) {
	t.Helper()
	env := testkit.Start(t, testkit.WithSeed(*seed), testkit.WithDynamoDBOptions(facade.Options{Concurrency: concurrency}))
	c := env.DynamoDB(t)
	if _, err := c.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:            aws.String("items"),
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
		BillingMode:          types.BillingModePayPerRequest,
		StreamSpecification:  stream,
	}); err != nil {
		t.Fatal(err)
	}
	for i := range (items{}) {
		if _, err := c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("items"), Item: item(i, 0)}); err != nil {
			t.Fatal(err)
		}
	}
	var faults []*testkit.Fault
	for _, op := range []string{"PutItem", "UpdateItem", "TransactWriteItems"} {
		faults = append(
			faults,
			env.FailDynamoDB(op, testkit.Throttling, testkit.WithProbability(0.05)),
			env.FailDynamoDB(op, testkit.RequestLimitExceeded, testkit.Applied(), testkit.WithProbability(0.05)),
		)
	}
	// Behind the endpoint, calls fail at any step of an operation, before and after they take
	// effect.
	for _, method := range []string{"MutateRow", "CheckAndMutateRow"} {
		faults = append(
			faults,
			env.Fail(method, status.Error(codes.Unavailable, "refused"), testkit.BehindDynamoDB(), testkit.WithProbability(0.03)),
			env.Fail(method, status.Error(codes.Unavailable, "lost"), testkit.BehindDynamoDB(), testkit.Applied(), testkit.WithProbability(0.03)),
		)
	}
	h := New(clients)
	run(func(client int, rng *rand.Rand) {
		n := rng.IntN(len(items{}))
		call := itemCall{
			op: operation(rng.IntN(int(getAll) + 1)), item: n, other: (n + 1 + rng.IntN(len(items{})-1)) % len(items{}),
			from: rng.Int64N(4), value: 1 + rng.Int64N(4),
		}
		h.Record(client, 1, call, func() (any, Known) {
			output, err := call.make(t, c)
			return output, judge(t, env, call, err)
		})
	})
	hits := 0
	for _, f := range faults {
		hits += f.Hits()
		f.Remove()
	}
	if hits == 0 {
		t.Error("no fault hit a request")
	}
	check(t, h, Model(items{}, doItems, nil))
}

// judge returns the knowledge about a call from its error.
func judge(t *testing.T, env *testkit.Env, call itemCall, err error) Known {
	t.Helper()
	var api smithy.APIError
	switch {
	case err == nil:
		return Answered
	case !errors.As(err, &api):
		t.Errorf("%+v: %v", call, err)
	case api.ErrorCode() == "ThrottlingException",
		api.ErrorCode() == "TransactionConflictException", api.ErrorCode() == "TransactionCanceledException":
		return Refused // a failed condition is an answer, see make
	case api.ErrorCode() == "ServiceUnavailable", api.ErrorCode() == "RequestLimitExceeded", api.ErrorCode() == "InternalServerError":
		// The lost answer may have been a failure itself. Its remains may be completed or
		// undone later.
		env.Advance(time.Minute)
	default:
		t.Errorf("%+v: %v", call, err)
	}
	return Unknown
}

// make makes the call, once.
func (c itemCall) make(t *testing.T, client *dynamodb.Client) (any, error) {
	t.Helper()
	once := func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }
	table, ctx := aws.String("items"), t.Context()
	names := map[string]string{"#n": "n"}
	values := func(v int64) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{":v": numeral(v)}
	}
	switch c.op {
	case get:
		resp, err := client.GetItem(ctx, &dynamodb.GetItemInput{TableName: table, Key: key(c.item), ConsistentRead: aws.Bool(true)}, once)
		if err != nil {
			return nil, err
		}
		return value(resp.Item), nil
	case put:
		_, err := client.PutItem(ctx, &dynamodb.PutItemInput{TableName: table, Item: item(c.item, c.value)}, once)
		return nil, err
	case conditional:
		v := values(c.value)
		v[":from"] = numeral(c.from)
		_, err := client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: table, Key: key(c.item), UpdateExpression: aws.String("SET #n = :v"), ConditionExpression: aws.String("#n = :from"),
			ExpressionAttributeNames: names, ExpressionAttributeValues: v,
		}, once)
		if failed := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &failed) {
			return false, nil
		}
		return true, err
	case add:
		resp, err := client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: table, Key: key(c.item), UpdateExpression: aws.String("ADD #n :v"), ReturnValues: types.ReturnValueAllNew,
			ExpressionAttributeNames: names, ExpressionAttributeValues: values(c.value),
		}, once)
		if err != nil {
			return nil, err
		}
		return value(resp.Attributes), nil
	case transfer:
		_, err := client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
			{Update: &types.Update{
				TableName: table, Key: key(c.item), UpdateExpression: aws.String("SET #n = #n - :v"), ConditionExpression: aws.String("#n >= :v"),
				ExpressionAttributeNames: names, ExpressionAttributeValues: values(c.value),
			}},
			{Update: &types.Update{
				TableName: table, Key: key(c.other), UpdateExpression: aws.String("ADD #n :v"),
				ExpressionAttributeNames: names, ExpressionAttributeValues: values(c.value),
			}},
		}}, once)
		if canceled := (*types.TransactionCanceledException)(nil); errors.As(err, &canceled) {
			for _, r := range canceled.CancellationReasons {
				if aws.ToString(r.Code) == "ConditionalCheckFailed" {
					return false, nil
				}
			}
		}
		return true, err
	case getAll:
		var gets []types.TransactGetItem
		for i := range (items{}) {
			gets = append(gets, types.TransactGetItem{Get: &types.Get{TableName: table, Key: key(i)}})
		}
		resp, err := client.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{TransactItems: gets}, once)
		if err != nil {
			return nil, err
		}
		var s items
		for i, r := range resp.Responses {
			s[i] = value(r.Item)
		}
		return s, nil
	}
	return nil, errors.New("no call")
}

func key(i int) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: strconv.Itoa(i)}}
}

func item(i int, n int64) map[string]types.AttributeValue {
	out := key(i)
	out["n"] = numeral(n)
	return out
}

func numeral(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// value returns the number of an item; -1 means no item, which is never a value.
func value(item map[string]types.AttributeValue) int64 {
	if n, ok := item["n"].(*types.AttributeValueMemberN); ok {
		if v, err := strconv.ParseInt(n.Value, 10, 64); err == nil {
			return v
		}
	}
	return -1
}
