package testkit_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/anishathalye/porcupine"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/testkit"
)

// A register is a number or absent; histories are of a few of them.
const (
	registers = 3
	absent    = math.MinInt
)

type registerState [registers]int

// registerOp is an operation on registers. Those that do not speak of number,
// to or value ignore it.
type registerOp struct {
	kind   string // get, write, create, swap, add, delete, move or snapshot
	at, to int
	value  int // to write, or to add
	old    int // of swap
}

// registerResult is what an operation answered.
type registerResult struct {
	unknown bool // no answer: it happens at some time, or never
	failed  bool // the condition did not hold
	values  registerState
}

// apply is what an operation does and answers.
func (op registerOp) apply(s registerState) (registerResult, registerState) {
	var out registerResult
	here := &s[op.at]
	out.values[0] = *here
	switch op.kind {
	case "get":
	case "snapshot":
		out.values = s
	case "write":
		out.values[0], *here = 0, op.value
	case "delete":
		*here = absent
	case "create":
		if out.failed, out.values[0] = *here != absent, 0; !out.failed {
			*here = op.value
		}
	case "swap":
		if out.failed, out.values[0] = *here != op.old, 0; !out.failed {
			*here = op.value
		}
	case "add":
		if *here == absent {
			*here = 0
		}
		*here += op.value
		out.values[0] = *here
	case "move":
		there := &s[op.to]
		if out.failed, out.values[0] = *here == absent || *there == absent, 0; !out.failed {
			*here--
			*there++
		}
	}
	return out, s
}

var registerModel = porcupine.Model{
	Init: func() any { return registerState{absent, absent, absent} },
	Step: func(state, input, output any) (bool, any) {
		want, next := input.(registerOp).apply(state.(registerState))
		got := output.(registerResult)
		return got.unknown || got == want, next
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
}

// history collects operations of several clients. Its time is a counter.
type history struct {
	time atomic.Int64
	mu   sync.Mutex
	ops  []porcupine.Operation
}

// record makes a call and notes it. copies says that it was delivered so many
// times; the answers of all but the last are not known. A call that surely did
// nothing is left out.
func (h *history) record(client int, op registerOp, copies int, call func() (result registerResult, none bool)) {
	start := h.time.Add(1)
	result, none := call()
	end := h.time.Add(1)
	if none {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if result.unknown {
		end = math.MaxInt64
	}
	for i := range copies {
		if i < copies-1 {
			h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: op, Call: start, Output: registerResult{unknown: true}, Return: end})
			continue
		}
		h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: op, Call: start, Output: result, Return: end})
	}
}

func (h *history) check(t *testing.T) {
	t.Helper()
	if porcupine.CheckOperations(registerModel, h.ops) {
		return
	}
	var text strings.Builder
	for _, op := range h.ops {
		fmt.Fprintf(&text, "%d: %d..%d %s\n", op.ClientId, op.Call, op.Return, registerModel.DescribeOperation(op.Input, op.Output))
	}
	t.Errorf("no order of these operations explains their answers:\n%s", &text)
}

// The checker finds what is wrong.
func TestLinearizability_Checker(t *testing.T) {
	t.Parallel()
	created := registerResult{}
	op := func(call, end int64, input registerOp, output registerResult) porcupine.Operation {
		return porcupine.Operation{Input: input, Output: output, Call: call, Return: end}
	}
	create := registerOp{kind: "create", value: 1}
	for name, c := range map[string]struct {
		ops  []porcupine.Operation
		want bool
	}{
		"one of two is created":         {[]porcupine.Operation{op(1, 3, create, created), op(2, 4, create, registerResult{failed: true})}, true},
		"both are created":              {[]porcupine.Operation{op(1, 3, create, created), op(2, 4, create, created)}, false},
		"a read before an open write":   {[]porcupine.Operation{op(1, math.MaxInt64, create, registerResult{unknown: true}), op(2, 3, registerOp{kind: "get"}, registerResult{values: registerState{absent}})}, true},
		"a read behind an acknowledged": {[]porcupine.Operation{op(1, 2, create, created), op(3, 4, registerOp{kind: "get"}, registerResult{values: registerState{absent}})}, false},
	} {
		if got := porcupine.CheckOperations(registerModel, c.ops); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

const (
	historyClients = 4
	historyOps     = 15 // of each client
	historyRounds  = 4
)

// runClients lets clients draw operations and call them.
func runClients(t *testing.T, round uint64, kinds []string, call func(client int, op registerOp)) {
	t.Helper()
	var wg sync.WaitGroup
	for client := range historyClients {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(round, uint64(client)))
			for range historyOps {
				at := r.IntN(registers)
				call(client, registerOp{
					kind: kinds[r.IntN(len(kinds))], at: at, to: (at + 1 + r.IntN(registers-1)) % registers,
					value: 1 + r.IntN(3), old: 1 + r.IntN(3),
				})
			}
		})
	}
	wg.Wait()
}

// Reads, writes, conditional mutations and increments of rows have an order,
// also where requests or answers are lost, or all are delivered twice.
func TestLinearizability_Bigtable(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string]func(*testkit.Env) (copies int){
		"no faults": func(*testkit.Env) int { return 1 },
		"lost": func(env *testkit.Env) int {
			env.Fail("*", unavailable, testkit.OnTable("t"), testkit.WithProbability(0.05))
			env.Fail("*", unavailable, testkit.OnTable("t"), testkit.WithProbability(0.05), testkit.Applied())
			return 1
		},
		"twice": func(env *testkit.Env) int {
			env.Duplicate("*", testkit.OnTable("t"))
			return 2
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for round := range uint64(historyRounds) {
				env := testkit.Start(t, testkit.WithSeed(round))
				createTable(t, env, "t", 1, "f")
				copies := faults(env)
				var h history
				runClients(t, round, []string{"get", "write", "swap", "swap", "add", "delete"}, func(client int, op registerOp) {
					h.record(client, op, copies, func() (registerResult, bool) {
						result, err := callBigtable(t.Context(), env, op)
						if status.Code(err) == codes.Unavailable {
							return registerResult{unknown: true}, false
						}
						if err != nil {
							t.Error(err)
						}
						return result, false
					})
				})
				h.check(t)
			}
		})
	}
}

// callBigtable makes an operation of the register in column f:n of a row.
func callBigtable(ctx context.Context, env *testkit.Env, op registerOp) (registerResult, error) {
	client, table := rawClient(env)
	row := []byte(strconv.Itoa(op.at))
	number := func(v int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(v)) }
	remove := &btpb.Mutation{Mutation: &btpb.Mutation_DeleteFromColumn_{DeleteFromColumn: &btpb.Mutation_DeleteFromColumn{FamilyName: "f", ColumnQualifier: []byte("n")}}}
	put := []*btpb.Mutation{remove, {Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{
		FamilyName: "f", ColumnQualifier: []byte("n"), TimestampMicros: 1000, Value: number(op.value),
	}}}}
	var out registerResult
	switch op.kind {
	case "get":
		stream, err := client.ReadRows(ctx, &btpb.ReadRowsRequest{
			TableName: table, Rows: &btpb.RowSet{RowKeys: [][]byte{row}},
			Filter: &btpb.RowFilter{Filter: &btpb.RowFilter_CellsPerColumnLimitFilter{CellsPerColumnLimitFilter: 1}},
		})
		if err != nil {
			return out, err
		}
		out.values[0] = absent
		for {
			resp, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return out, nil
			}
			if err != nil {
				return out, err
			}
			for _, c := range resp.GetChunks() {
				out.values[0] = int(int64(binary.BigEndian.Uint64(c.GetValue())))
			}
		}
	case "write":
		_, err := client.MutateRow(ctx, &btpb.MutateRowRequest{TableName: table, RowKey: row, Mutations: put})
		return out, err
	case "add":
		resp, err := client.ReadModifyWriteRow(ctx, &btpb.ReadModifyWriteRowRequest{TableName: table, RowKey: row, Rules: []*btpb.ReadModifyWriteRule{{
			FamilyName: "f", ColumnQualifier: []byte("n"), Rule: &btpb.ReadModifyWriteRule_IncrementAmount{IncrementAmount: int64(op.value)},
		}}})
		if err != nil {
			return out, err
		}
		cell := resp.GetRow().GetFamilies()[0].GetColumns()[0].GetCells()[0]
		out.values[0] = int(int64(binary.BigEndian.Uint64(cell.GetValue())))
		return out, nil
	}
	newest := &btpb.RowFilter{Filter: &btpb.RowFilter_CellsPerColumnLimitFilter{CellsPerColumnLimitFilter: 1}}
	req := &btpb.CheckAndMutateRowRequest{TableName: table, RowKey: row, TrueMutations: put}
	if op.kind == "delete" { // its answer does not say what was there
		_, err := client.MutateRow(ctx, &btpb.MutateRowRequest{TableName: table, RowKey: row, Mutations: []*btpb.Mutation{remove}})
		return registerResult{unknown: err == nil}, err
	}
	req.PredicateFilter = &btpb.RowFilter{Filter: &btpb.RowFilter_Chain_{Chain: &btpb.RowFilter_Chain{Filters: []*btpb.RowFilter{
		newest, {Filter: &btpb.RowFilter_ValueRangeFilter{ValueRangeFilter: &btpb.ValueRange{
			StartValue: &btpb.ValueRange_StartValueClosed{StartValueClosed: number(op.old)},
			EndValue:   &btpb.ValueRange_EndValueClosed{EndValueClosed: number(op.old)},
		}}},
	}}}}
	resp, err := client.CheckAndMutateRow(ctx, req)
	out.failed = !resp.GetPredicateMatched()
	return out, err
}

// Conditional writes, increments and transactions have an order, also where the
// Bigtable behind loses requests or answers, or gets requests twice.
func TestLinearizability_DynamoDB(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string]func(*testkit.Env){
		"no faults": func(*testkit.Env) {},
		"lost": func(env *testkit.Env) {
			for _, method := range []string{"CheckAndMutateRow", "MutateRow", "ReadRows"} {
				env.Fail(method, unavailable, testkit.BehindDynamoDB(), testkit.WithProbability(0.05))
				if method != "ReadRows" {
					env.Fail(method, unavailable, testkit.BehindDynamoDB(), testkit.WithProbability(0.05), testkit.Applied())
				}
			}
		},
		"twice": func(env *testkit.Env) {
			env.Duplicate("CheckAndMutateRow", testkit.BehindDynamoDB(), testkit.WithProbability(0.3))
			env.Duplicate("MutateRow", testkit.BehindDynamoDB(), testkit.WithProbability(0.3))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for round := range uint64(historyRounds) {
				env := testkit.Start(t, testkit.WithSeed(round))
				if err := createColors(t.Context(), env.DynamoDB(t), "registers"); err != nil {
					t.Fatal(err)
				}
				db := env.DynamoDB(t)
				faults(env)
				var h history
				kinds := []string{"get", "create", "swap", "swap", "add", "move", "move", "snapshot"}
				if name != "twice" {
					// A deleted item leaves nothing by which the second delivery
					// could know the first: it answers that there was no item.
					kinds = append(kinds, "delete")
				}
				runClients(t, round, kinds, func(client int, op registerOp) {
					h.record(client, op, 1, func() (registerResult, bool) {
						result, err := callDynamoDB(t.Context(), db, op)
						switch code := errorCode(err); {
						case err == nil:
							return result, false
						case code == "ConditionalCheckFailedException":
							return registerResult{failed: true}, false
						case code == "TransactionConflictException":
							return result, true
						case code == "TransactionCanceledException":
							conflict := strings.Contains(err.Error(), "TransactionConflict")
							return registerResult{failed: true}, conflict
						case code != "InternalServerError" && code != "ServiceUnavailable":
							t.Errorf("%+v: %v", op, err)
						}
						return registerResult{unknown: true}, false
					})
				})
				h.check(t)
			}
		})
	}
}

// callDynamoDB makes an operation of the register in attribute n of an item,
// once.
func callDynamoDB(ctx context.Context, db *dynamodb.Client, op registerOp) (registerResult, error) {
	once := func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }
	table := aws.String("registers")
	key := func(at int) item { return item{"id": text(strconv.Itoa(at))} }
	number := func(v int) types.AttributeValue { return &types.AttributeValueMemberN{Value: strconv.Itoa(v)} }
	value := func(it item) int {
		v, ok := it["n"].(*types.AttributeValueMemberN)
		if !ok {
			return absent
		}
		n, err := strconv.Atoi(v.Value)
		if err != nil {
			panic(err)
		}
		return n
	}
	var out registerResult
	switch op.kind {
	case "get":
		got, err := db.GetItem(ctx, &dynamodb.GetItemInput{TableName: table, Key: key(op.at), ConsistentRead: aws.Bool(true)}, once)
		if err == nil {
			out.values[0] = value(got.Item)
		}
		return out, err
	case "create":
		it := key(op.at)
		it["n"] = number(op.value)
		_, err := db.PutItem(ctx, &dynamodb.PutItemInput{TableName: table, Item: it, ConditionExpression: aws.String("attribute_not_exists(id)")}, once)
		return out, err
	case "swap":
		_, err := db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: table, Key: key(op.at), ConditionExpression: aws.String("n = :old"), UpdateExpression: aws.String("SET n = :new"),
			ExpressionAttributeValues: item{":old": number(op.old), ":new": number(op.value)},
		}, once)
		return out, err
	case "add":
		got, err := db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: table, Key: key(op.at), UpdateExpression: aws.String("ADD n :by"),
			ExpressionAttributeValues: item{":by": number(op.value)}, ReturnValues: types.ReturnValueAllNew,
		}, once)
		if err == nil {
			out.values[0] = value(got.Attributes)
		}
		return out, err
	case "delete":
		got, err := db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: table, Key: key(op.at), ReturnValues: types.ReturnValueAllOld}, once)
		if err == nil {
			out.values[0] = value(got.Attributes)
		}
		return out, err
	case "move":
		add := func(at, by int) types.TransactWriteItem {
			return types.TransactWriteItem{Update: &types.Update{
				TableName: table, Key: key(at), ConditionExpression: aws.String("attribute_exists(id)"),
				UpdateExpression: aws.String("ADD n :by"), ExpressionAttributeValues: item{":by": number(by)},
			}}
		}
		_, err := db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{add(op.at, -1), add(op.to, 1)}}, once)
		return out, err
	}
	in := &dynamodb.TransactGetItemsInput{}
	for at := range registers {
		in.TransactItems = append(in.TransactItems, types.TransactGetItem{Get: &types.Get{TableName: table, Key: key(at)}})
	}
	got, err := db.TransactGetItems(ctx, in, once)
	if err == nil {
		for at, r := range got.Responses {
			out.values[at] = value(r.Item)
		}
	}
	return out, err
}
