package testkit

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tabletop-emu/tabletop/facade"
)

// DynamoDBFailure is an error that DynamoDB returns for reasons of its own.
// The AWS SDKs retry all of them except a conflict and a full collection. A
// throttled read or write of items says in its ThrottlingReasons which
// capacity of which table or index was exceeded.
type DynamoDBFailure uint8

// The failures.
const (
	// TransactionConflict: another transaction holds an item. It fails PutItem,
	// UpdateItem and DeleteItem with a TransactionConflictException,
	// TransactWriteItems and TransactGetItems with a TransactionCanceledException
	// whose reasons name the items that the fault is for. Other operations never
	// meet it.
	TransactionConflict DynamoDBFailure = iota
	// ProvisionedThroughputExceeded: the table's throughput is used up.
	ProvisionedThroughputExceeded
	// Throttling: there are too many requests.
	Throttling
	// RequestLimitExceeded: the account's throughput is used up.
	RequestLimitExceeded
	// InternalServerError is a response with status 500.
	InternalServerError
	// ServiceUnavailable is a response with status 503.
	ServiceUnavailable
	// ItemCollectionSizeLimitExceeded: the items with the partition key, and
	// their entries in local indexes, have reached 10 GB, a limit that is not
	// enforced otherwise. It fails PutItem, UpdateItem and BatchWriteItem with an
	// ItemCollectionSizeLimitExceededException, and TransactWriteItems as
	// TransactionConflict does. Other operations never meet it.
	ItemCollectionSizeLimitExceeded
)

// failureAnswers are the errors as they are answered.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html
var failureAnswers = map[DynamoDBFailure]dynamoDBError{
	TransactionConflict: {
		status: 400, code: "com.amazonaws.dynamodb.v20120810#TransactionConflictException", message: "Transaction is ongoing for the item",
	},
	ProvisionedThroughputExceeded: {
		status: 400, code: "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
		message: "The level of configured provisioned throughput for the table was exceeded. Consider increasing your provisioning level with the UpdateTable API.",
	},
	Throttling: {
		status: 400, code: "com.amazon.coral.availability#ThrottlingException", message: "Rate of requests exceeds the allowed throughput.",
	},
	RequestLimitExceeded: {
		status: 400, code: "com.amazonaws.dynamodb.v20120810#RequestLimitExceeded",
		message: "Throughput exceeds the current throughput limit for your account. Please contact AWS Support at https://aws.amazon.com/support request a limit increase",
	},
	InternalServerError: {
		status: 500, code: "com.amazonaws.dynamodb.v20120810#InternalServerError", message: "Internal server error",
	},
	ServiceUnavailable: {
		status: 503, code: "com.amazonaws.dynamodb.v20120810#ServiceUnavailable",
		message: "The service is currently unavailable or busy.",
	},
	ItemCollectionSizeLimitExceeded: {
		status: 400, code: "com.amazonaws.dynamodb.v20120810#ItemCollectionSizeLimitExceededException", message: "Collection size exceeded.",
	},
}

// met are the operations that can meet a failure; one that is not here any
// operation can.
var met = map[DynamoDBFailure][]string{
	TransactionConflict:             {"PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "TransactGetItems"},
	ItemCollectionSizeLimitExceeded: {"PutItem", "UpdateItem", "BatchWriteItem", "TransactWriteItems"},
}

// meets tells whether an operation can meet a failure.
func (failure DynamoDBFailure) meets(operation string) bool {
	operations, some := met[failure]
	return !some || slices.Contains(operations, operation)
}

// cancellations are the codes in the reasons of a canceled transaction.
var cancellations = map[DynamoDBFailure]string{
	TransactionConflict:             "TransactionConflict",
	ItemCollectionSizeLimitExceeded: "ItemCollectionSizeLimitExceeded",
}

// throttled say how failures give the reasons of a throttled request.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ThrottlingReason.html
var throttled = map[DynamoDBFailure]struct{ member, limit string }{
	ProvisionedThroughputExceeded: {"ThrottlingReasons", "ProvisionedThroughputExceeded"},
	Throttling:                    {"throttlingReasons", "KeyRangeThroughputExceeded"},
	RequestLimitExceeded:          {"ThrottlingReasons", "AccountLimitExceeded"},
}

// uses are the operations on items, by what they use of a table.
var uses = map[string]string{
	"GetItem": "Read", "BatchGetItem": "Read", "Query": "Read", "Scan": "Read", "TransactGetItems": "Read",
	"PutItem": "Write", "UpdateItem": "Write", "DeleteItem": "Write", "BatchWriteItem": "Write", "TransactWriteItems": "Write",
}

// FailDynamoDB makes calls of a DynamoDB operation, such as "PutItem", or "*"
// for all, fail before they do anything, or with [Applied] after they have
// done it. Options about Bigtable's rows cannot be combined with it; [OnTable]
// names a DynamoDB table, and [OnItem] an item of one.
//
//	env.FailDynamoDB("UpdateItem", testkit.Throttling, testkit.OnTable("orders"), testkit.Times(2))
func (e *Env) FailDynamoDB(operation string, failure DynamoDBFailure, opts ...FaultOption) *Fault {
	e.tb.Helper()
	if failureAnswers[failure].code == "" {
		e.tb.Fatalf("testkit: FailDynamoDB(%q): no failure has the number %d", operation, failure)
	}
	return e.addDynamoDBFault(&Fault{method: operation, effect: failCall, failure: failure}, opts)
}

// Unprocessed makes a BatchWriteItem or BatchGetItem return entries that were
// not processed. Each entry counts as a call for [Times], [Skip],
// [WithProbability] and [Fault.Hits]. If no entry of a request is processed,
// it fails with ProvisionedThroughputExceeded, as in the service.
func (e *Env) Unprocessed(operation string, opts ...FaultOption) *Fault {
	e.tb.Helper()
	if operation != "BatchWriteItem" && operation != "BatchGetItem" {
		e.tb.Fatalf("testkit: Unprocessed: %q is neither BatchWriteItem nor BatchGetItem", operation)
	}
	f := e.addDynamoDBFault(&Fault{method: operation, effect: leaveEntries}, opts)
	if f.applied {
		e.tb.Fatalf("testkit: Applied is an option of Fail")
	}
	return f
}

// StaleReads makes reads that do not ask for consistency see what the
// environment held when the snapshot was taken: GetItem, BatchGetItem, Query or
// Scan, or "*" for all four. Reads with ConsistentRead see the current data,
// and so do reads of tables that the snapshot does not have.
//
// To make only reads of global indexes lag, use facade.Options.IndexLag; see
// [WithDynamoDBOptions].
func (e *Env) StaleReads(operation string, as *Snapshot, opts ...FaultOption) *Fault {
	e.tb.Helper()
	if as == nil {
		e.tb.Fatalf("testkit: StaleReads(%q): the snapshot is nil", operation)
	}
	if operation != "*" && !slices.Contains(stale, operation) {
		e.tb.Fatalf("testkit: StaleReads: %q is none of %s", operation, strings.Join(stale, ", "))
	}
	f := e.addDynamoDBFault(&Fault{method: operation, effect: readOld, old: as}, opts)
	if f.applied {
		e.tb.Fatalf("testkit: Applied is an option of Fail")
	}
	return f
}

// stale are the operations that can read what is not the newest.
var stale = []string{"GetItem", "BatchGetItem", "Query", "Scan"}

// OnItem limits a fault to requests, or entries of a batch, that name the
// item: by its Key, or by an Item with these attributes. A Query or Scan names
// none. It is an option for faults of DynamoDB.
func OnItem(key map[string]types.AttributeValue) FaultOption {
	return func(f *Fault) { f.item = wireItem(key) }
}

func (e *Env) addDynamoDBFault(f *Fault, opts []FaultOption) *Fault {
	e.tb.Helper()
	f.set = e.dynamo.faults
	e.apply(opts, f)
	if f.method != "*" && !slices.ContainsFunc(facade.Operations(), func(op facade.OperationInfo) bool { return op.Name == f.method }) {
		e.tb.Fatalf("testkit: no DynamoDB operation is named %q", f.method)
	}
	if f.effect == failCall && f.method != "*" && !f.failure.meets(f.method) {
		e.tb.Fatalf("testkit: FailDynamoDB: %s never meets a %s", f.method, failureAnswers[f.failure].code)
	}
	if f.row != nil || f.behind {
		e.tb.Fatalf("testkit: OnRow and BehindDynamoDB are no options of faults of DynamoDB")
	}
	f.set.add(f)
	return f
}

// dynamoDBError is an error answer.
type dynamoDBError struct {
	status        int
	code, message string
	// reasons are those of a canceled transaction, throttling those of a
	// throttled request in the member with that name.
	reasons          []cancellation
	throttling       []throttlingReason
	throttlingMember string
}

type throttlingReason struct {
	Reason   string `json:"reason"`
	Resource string `json:"resource"` // its ARN
}

type cancellation struct {
	Code    string
	Message string `json:",omitempty"`
}

func (e dynamoDBError) body() ([]byte, error) {
	members := map[string]any{"__type": e.code, "message": e.message}
	switch {
	case e.reasons != nil:
		members = map[string]any{"__type": e.code, "Message": e.message, "CancellationReasons": e.reasons}
	case e.throttling != nil:
		members[e.throttlingMember] = e.throttling
	}
	return json.Marshal(members)
}

// canceled is the error of a transaction of which some elements, by their
// place, meet a failure.
func (failure DynamoDBFailure) canceled(elements int, struck []int) dynamoDBError {
	e := dynamoDBError{status: 400, code: "com.amazonaws.dynamodb.v20120810#TransactionCanceledException"}
	codes := make([]string, elements)
	for i := range elements {
		reason := cancellation{Code: "None"}
		if slices.Contains(struck, i) {
			reason = cancellation{cancellations[failure], failureAnswers[failure].message}
		}
		e.reasons, codes[i] = append(e.reasons, reason), reason.Code
	}
	e.message = fmt.Sprintf("Transaction cancelled, please refer cancellation reasons for specific reasons [%s]", strings.Join(codes, ", ")) //nolint:misspell // sic
	return e
}

// wireItem returns the attributes of an item as they are in requests, for
// comparison. Keys are of type S, N or B.
func wireItem(item map[string]types.AttributeValue) map[string]string {
	out := map[string]string{}
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
			panic(err) // a map of strings and bytes
		}
		out[name] = string(text)
	}
	return out
}
