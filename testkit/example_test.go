package testkit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/bigtable"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/testkit"
)

// The Bigtable door: official clients on a private server.
func ExampleEnv_Bigtable() {
	t := newExampleTB() // in a test: its *testing.T
	defer t.end()
	ctx := t.Context()
	env := testkit.Start(t)

	admin := env.BigtableAdmin(t)
	must(admin.CreateTable(ctx, "orders"))
	must(admin.CreateColumnFamily(ctx, "orders", "o"))

	orders := env.Bigtable(t).Open("orders")
	set := bigtable.NewMutation()
	set.Set("o", "total", 1000, []byte("42"))
	must(orders.Apply(ctx, "customer7#0001", set))

	must(orders.ReadRows(ctx, bigtable.PrefixRange("customer7#"), func(r bigtable.Row) bool {
		fmt.Printf("%s %s\n", r.Key(), r["o"][0].Value)
		return true
	}))
	// Output: customer7#0001 42
}

// The DynamoDB door: the AWS client, without a port.
func ExampleEnv_DynamoDB() {
	t := newExampleTB() // in a test: its *testing.T
	defer t.end()
	ctx := t.Context()
	env := testkit.Start(t)

	ddb := env.DynamoDB(t)
	_, err := ddb.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            aws.String("orders"),
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		BillingMode:          types.BillingModePayPerRequest,
	})
	must(err)
	key := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "0001"}}
	for range 3 {
		_, err := ddb.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: aws.String("orders"), Key: key,
			UpdateExpression:          aws.String("ADD visits :one"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":one": &types.AttributeValueMemberN{Value: "1"}},
		})
		must(err)
	}
	got, err := ddb.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String("orders"), Key: key})
	must(err)
	fmt.Println(got.Item["visits"].(*types.AttributeValueMemberN).Value)
	// Output: 3
}

// Throttled twice: the SDK tries again, and nobody waits.
func ExampleEnv_FailDynamoDB() {
	t := newExampleTB() // in a test: its *testing.T
	defer t.end()
	ctx := t.Context()
	env := testkit.Start(t)
	ddb := env.DynamoDB(t)
	must(createColors(ctx, ddb, "orders"))

	throttled := env.FailDynamoDB("PutItem", testkit.ProvisionedThroughputExceeded, testkit.OnTable("orders"), testkit.Times(2))
	fmt.Println(putColor(ctx, ddb, "orders", "0001"), throttled.Hits())

	env.FailDynamoDB("PutItem", testkit.TransactionConflict, testkit.OnItem(map[string]types.AttributeValue{
		"id": &types.AttributeValueMemberS{Value: "0002"},
	}))
	err := putColor(ctx, ddb, "orders", "0002")
	var conflict *types.TransactionConflictException
	fmt.Println(errors.As(err, &conflict)) // the SDK leaves this to the caller
	// Output:
	// <nil> 2
	// true
}

// A batch that is done in parts.
func ExampleEnv_Unprocessed() {
	t := newExampleTB() // in a test: its *testing.T
	defer t.end()
	ctx := t.Context()
	env := testkit.Start(t)
	ddb := env.DynamoDB(t)
	must(createColors(ctx, ddb, "orders"))

	env.Unprocessed("BatchWriteItem", testkit.WithProbability(0.5), testkit.Times(4))
	var writes []types.WriteRequest
	for _, id := range []string{"0001", "0002", "0003", "0004"} {
		writes = append(writes, types.WriteRequest{PutRequest: &types.PutRequest{
			Item: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}},
		}})
	}
	for left := map[string][]types.WriteRequest{"orders": writes}; len(left) > 0; {
		out, err := ddb.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: left})
		must(err)
		left = out.UnprocessedItems
	}
	out, err := ddb.Scan(ctx, &dynamodb.ScanInput{TableName: aws.String("orders")})
	must(err)
	fmt.Println(out.Count)
	// Output: 4
}

// A read that is not consistent finds what was there before.
func ExampleEnv_StaleReads() {
	t := newExampleTB() // in a test: its *testing.T
	defer t.end()
	ctx := t.Context()
	env := testkit.Start(t)
	ddb := env.DynamoDB(t)
	must(createColors(ctx, ddb, "orders"))

	env.StaleReads("GetItem", env.Snapshot(), testkit.OnTable("orders"))
	must(putColor(ctx, ddb, "orders", "0001"))
	for _, consistent := range []bool{false, true} {
		got, err := ddb.GetItem(ctx, &dynamodb.GetItemInput{
			TableName: aws.String("orders"), ConsistentRead: aws.Bool(consistent),
			Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "0001"}},
		})
		must(err)
		fmt.Println(consistent, got.Item != nil)
	}
	// Output:
	// false false
	// true true
}

// A write whose answer is lost: who sends it again adds twice.
func ExampleEnv_Fail() {
	t := newExampleTB() // in a test: its *testing.T
	defer t.end()
	ctx := t.Context()
	env := testkit.Start(t)
	admin := env.BigtableAdmin(t)
	must(admin.CreateTable(ctx, "orders"))
	must(admin.CreateColumnFamily(ctx, "orders", "o"))
	orders := env.Bigtable(t).Open("orders")

	fault := env.Fail("ReadModifyWriteRow", status.Error(codes.Unavailable, "the connection broke"),
		testkit.OnRow("customer7"), testkit.Times(1), testkit.Applied())
	visit := bigtable.NewReadModifyWrite()
	visit.Increment("o", "visits", 1)
	_, err := orders.ApplyReadModifyWrite(ctx, "customer7", visit)
	fmt.Println(err)
	env.Advance(time.Second)
	_, err = orders.ApplyReadModifyWrite(ctx, "customer7", visit) // as a caller might
	fmt.Println(err, fault.Hits())
	env.CheckRow(t, "orders", "customer7", "o:visits = 0000000000000002", "o:visits = 0000000000000001")
	// Output:
	// rpc error: code = Unavailable desc = the connection broke
	// <nil> 1
}

// Time passes on the environment's clock: nobody waits.
func ExampleEnv_Latency() {
	t := newExampleTB() // in a test: its *testing.T
	defer t.end()
	env := testkit.Start(t, testkit.WithFrozenClock(time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC)))
	env.Latency("CreateTable", 90*time.Second)

	must(env.BigtableAdmin(t).CreateTable(t.Context(), "orders"))
	fmt.Println(env.Now().Format(time.TimeOnly))

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := env.BigtableAdmin(t).CreateTable(ctx, "invoices")
	fmt.Println(status.Code(err))
	// Output:
	// 09:01:30
	// DeadlineExceeded
}

// A stream that breaks off: the official client goes on where it was.
func ExampleEnv_CutReadRows() {
	t := newExampleTB() // in a test: its *testing.T
	defer t.end()
	ctx := t.Context()
	env := testkit.Start(t)
	admin := env.BigtableAdmin(t)
	must(admin.CreateTable(ctx, "orders"))
	must(admin.CreateColumnFamily(ctx, "orders", "o"))
	orders := env.Bigtable(t).Open("orders")
	for _, key := range []string{"a", "b", "c"} {
		set := bigtable.NewMutation()
		set.Set("o", "total", 1000, []byte("42"))
		must(orders.Apply(ctx, key, set))
	}

	cut := env.CutReadRows(2, status.Error(codes.Unavailable, "the connection broke"), testkit.Times(1))
	must(orders.ReadRows(ctx, bigtable.InfiniteRange(""), func(r bigtable.Row) bool {
		fmt.Print(r.Key(), " ")
		return true
	}))
	fmt.Println("cut", cut.Hits())
	// Output: a b c cut 1
}

// A request that arrives twice.
func ExampleEnv_Duplicate() {
	t := newExampleTB() // in a test: its *testing.T
	defer t.end()
	ctx := t.Context()
	env := testkit.Start(t)
	admin := env.BigtableAdmin(t)
	must(admin.CreateTable(ctx, "orders"))
	must(admin.CreateColumnFamily(ctx, "orders", "o"))

	env.Duplicate("MutateRow", testkit.OnTable("orders"))
	set := bigtable.NewMutation()
	set.Set("o", "total", 1000, []byte("42")) // a time of its own: twice is once
	must(env.Bigtable(t).Open("orders").Apply(ctx, "a", set))
	fmt.Print(env.Dump("orders"))
	// Output:
	// a [61]
	//   o:total @1000 = "42"
}

// One start, many cases: each begins with the same tables and rows.
func ExampleEnv_Restore() {
	t := newExampleTB() // in a test: its *testing.T
	defer t.end()
	ctx := t.Context()
	env := testkit.Start(t)
	admin := env.BigtableAdmin(t)
	must(admin.CreateTable(ctx, "orders"))
	must(admin.CreateColumnFamily(ctx, "orders", "o"))
	base := env.Snapshot()

	for _, key := range []string{"a", "b"} {
		env.Restore(base)
		set := bigtable.NewMutation()
		set.Set("o", "total", 1000, []byte("42"))
		must(env.Bigtable(t).Open("orders").Apply(ctx, key, set))
		fmt.Print(env.DumpAll())
	}
	// Output:
	// table orders
	// # family o, gc never
	// a [61]
	//   o:total @1000 = "42"
	// table orders
	// # family o, gc never
	// b [62]
	//   o:total @1000 = "42"
}

// A check that fails shows a diff.
func ExampleEnv_CheckRow() {
	t := newExampleTB() // in a test: its *testing.T
	defer t.end()
	ctx := t.Context()
	env := testkit.Start(t)
	admin := env.BigtableAdmin(t)
	must(admin.CreateTable(ctx, "orders"))
	must(admin.CreateColumnFamily(ctx, "orders", "o"))
	set := bigtable.NewMutation()
	set.Set("o", "state", 1000, []byte("paid"))
	set.Set("o", "total", 1000, []byte("42"))
	must(env.Bigtable(t).Open("orders").Apply(ctx, "a", set))

	env.CheckRow(t, "orders", "a",
		`o:state = "paid"`,
		`o:total @1000 = "43"`)
	// Output:
	// failed: testkit: row "a" of table orders differs (- want, + got):
	//     o:state = "paid"
	//   - o:total @1000 = "43"
	//   + o:total @1000 = "42"
}

// Expired cells are gone a minute later, as in the service.
func ExampleWithGC() {
	t := newExampleTB() // in a test: its *testing.T
	defer t.end()
	ctx := t.Context()
	env := testkit.Start(t, testkit.WithGC(testkit.GCBackground))
	admin := env.BigtableAdmin(t)
	must(admin.CreateTable(ctx, "orders"))
	must(admin.CreateColumnFamilyWithConfig(ctx, "orders", "o", bigtable.Family{GCPolicy: bigtable.MaxVersionsGCPolicy(1)}))
	set := bigtable.NewMutation()
	set.Set("o", "total", 1000, []byte("42"))
	set.Set("o", "total", 2000, []byte("43"))
	must(env.Bigtable(t).Open("orders").Apply(ctx, "a", set))

	fmt.Println(strings.Count(env.Dump("orders"), "o:total"))
	env.Advance(time.Minute)
	fmt.Println(strings.Count(env.Dump("orders"), "o:total"))
	// Output:
	// 2
	// 1
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
