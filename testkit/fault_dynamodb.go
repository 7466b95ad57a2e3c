package testkit

import (
	"encoding/json"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tabletop-emu/tabletop/control/lab/fault"
	"github.com/tabletop-emu/tabletop/testkit/btkit"
)

// DynamoDBFailure is an error that DynamoDB returns for reasons of its own.
// The AWS SDKs retry all of them except a conflict and a full collection. The
// ThrottlingReasons of a throttled read or write of items name the table or index
// and its exceeded capacity.
type DynamoDBFailure uint8

// The failures.
const (
	// TransactionConflict: another transaction holds an item. It fails PutItem,
	// UpdateItem and DeleteItem with a TransactionConflictException,
	// TransactWriteItems and TransactGetItems with a TransactionCanceledException
	// whose reasons name the items that the fault is for. Other operations never
	// meet it.
	TransactionConflict = DynamoDBFailure(fault.TransactionConflict)
	// ProvisionedThroughputExceeded: the table's throughput is used up.
	ProvisionedThroughputExceeded = DynamoDBFailure(fault.ProvisionedThroughputExceeded)
	// Throttling: there are too many requests.
	Throttling = DynamoDBFailure(fault.Throttling)
	// RequestLimitExceeded: the account's throughput is used up.
	RequestLimitExceeded = DynamoDBFailure(fault.RequestLimitExceeded)
	// InternalServerError is a response with status 500.
	InternalServerError = DynamoDBFailure(fault.InternalServerError)
	// ServiceUnavailable is a response with status 503.
	ServiceUnavailable = DynamoDBFailure(fault.ServiceUnavailable)
	// ItemCollectionSizeLimitExceeded: the items with the partition key, and
	// their entries in local indexes, have reached 10 GB, a limit that is not
	// enforced otherwise. It fails PutItem, UpdateItem and BatchWriteItem with an
	// ItemCollectionSizeLimitExceededException, and TransactWriteItems as
	// TransactionConflict does. Other operations never meet it.
	ItemCollectionSizeLimitExceeded = DynamoDBFailure(fault.ItemCollectionSizeLimitExceeded)
)

// FailDynamoDB makes calls of a DynamoDB operation, such as "PutItem", or "*" for all, fail
// before they take effect, or with [Applied] afterwards. Options about Bigtable's rows cannot
// be combined with it; [OnTable] names a DynamoDB table, and [OnItem] an item of one.
//
//	env.FailDynamoDB("UpdateItem", testkit.Throttling, testkit.OnTable("orders"), testkit.Times(2))
func (e *Env) FailDynamoDB(operation string, failure DynamoDBFailure, opts ...FaultOption) *Fault {
	e.server.TB().Helper()
	return btkit.Arm(e.server, e.ddb, fault.Spec{Method: operation, Effect: fault.FailCall, Failure: fault.Failure(failure)}, opts)
}

// Unprocessed makes a BatchWriteItem or BatchGetItem return unprocessed entries. Each entry
// counts as a call for [Times], [Skip], [WithProbability] and [Fault.Hits]. If no entry of a
// request is processed, it fails with ProvisionedThroughputExceeded, as in the service.
func (e *Env) Unprocessed(operation string, opts ...FaultOption) *Fault {
	e.server.TB().Helper()
	return btkit.Arm(e.server, e.ddb, fault.Spec{Method: operation, Effect: fault.LeaveEntries}, opts)
}

// StaleReads makes eventually consistent reads return the data of a snapshot. The
// operation is GetItem, BatchGetItem, Query or Scan, or "*" for all four. Reads with
// ConsistentRead return the current data, and so do reads of tables that the snapshot
// does not have.
//
// To make only reads of global indexes lag, use facade.Options.IndexLag; see
// [WithDynamoDBOptions].
func (e *Env) StaleReads(operation string, as *Snapshot, opts ...FaultOption) *Fault {
	e.server.TB().Helper()
	return btkit.Arm(e.server, e.ddb, fault.Spec{Method: operation, Effect: fault.ReadOld, As: btkit.Taken(e.server, as)}, opts)
}

// OnItem limits a fault to requests, or entries of a batch, that name the item: by its Key, or
// by an Item with these attributes. A Query or Scan names none. It is an option for faults of
// DynamoDB.
func OnItem(key map[string]types.AttributeValue) FaultOption {
	return func(s *fault.Spec) { s.Item = wireItem(key) }
}

// wireItem returns the attributes of an item in the form of requests. Keys are of type S, N or
// B.
func wireItem(item map[string]types.AttributeValue) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for name, v := range item {
		var content any
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			content = map[string]any{"S": v.Value}
		case *types.AttributeValueMemberN:
			content = map[string]any{"N": v.Value}
		case *types.AttributeValueMemberB:
			content = map[string]any{"B": v.Value}
		}
		text, err := json.Marshal(content)
		if err != nil {
			panic(err) // a map of strings and bytes never fails
		}
		out[name] = text
	}
	return out
}
