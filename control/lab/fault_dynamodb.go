package lab

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/awserr"
)

// Failure is an error that DynamoDB returns for reasons of its own.
// The AWS SDKs retry all of them except a conflict and a full collection. A
// throttled read or write of items says in its ThrottlingReasons which
// capacity of which table or index was exceeded.
type Failure uint8

// The failures.
const (
	// TransactionConflict: another transaction holds an item. It fails PutItem,
	// UpdateItem and DeleteItem with a TransactionConflictException,
	// TransactWriteItems and TransactGetItems with a TransactionCanceledException
	// whose reasons name the items that the fault is for. Other operations never
	// meet it.
	TransactionConflict Failure = iota
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
var failureAnswers = map[Failure]dynamoDBError{
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

// failureNames are the failures as they are written.
var failureNames = map[string]Failure{
	"TransactionConflict": TransactionConflict, "ProvisionedThroughputExceeded": ProvisionedThroughputExceeded,
	"Throttling": Throttling, "RequestLimitExceeded": RequestLimitExceeded, "InternalServerError": InternalServerError,
	"ServiceUnavailable": ServiceUnavailable, "ItemCollectionSizeLimitExceeded": ItemCollectionSizeLimitExceeded,
}

// FailureNames returns the names of all failures, sorted.
func FailureNames() []string { return slices.Sorted(maps.Keys(failureNames)) }

// ParseFailure returns the failure with a name: its own, or that of the exception of the SDKs, as in "ThrottlingException".
func ParseFailure(name string) (Failure, bool) {
	f, ok := failureNames[strings.TrimSuffix(name, "Exception")]
	return f, ok
}

// String returns the name of a failure.
func (failure Failure) String() string {
	for name, f := range failureNames {
		if f == failure {
			return name
		}
	}
	return fmt.Sprintf("Failure(%d)", uint8(failure))
}

// met are the operations that can meet a failure; one that is not here any
// operation can.
var met = map[Failure][]string{
	TransactionConflict:             {"PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "TransactGetItems"},
	ItemCollectionSizeLimitExceeded: {"PutItem", "UpdateItem", "BatchWriteItem", "TransactWriteItems"},
}

// meets tells whether an operation can meet a failure.
func (failure Failure) meets(operation string) bool {
	operations, some := met[failure]
	return !some || slices.Contains(operations, operation)
}

// cancellations are the codes in the reasons of a canceled transaction.
var cancellations = map[Failure]string{
	TransactionConflict:             awserr.ReasonConflict,
	ItemCollectionSizeLimitExceeded: "ItemCollectionSizeLimitExceeded",
}

// throttled say how failures give the reasons of a throttled request.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ThrottlingReason.html
var throttled = map[Failure]struct{ member, limit string }{
	ProvisionedThroughputExceeded: {"ThrottlingReasons", "ProvisionedThroughputExceeded"},
	Throttling:                    {"throttlingReasons", "KeyRangeThroughputExceeded"},
	RequestLimitExceeded:          {"ThrottlingReasons", "AccountLimitExceeded"},
}

// uses are the operations on items, by what they use of a table.
var uses = map[string]string{
	"GetItem": "Read", "BatchGetItem": "Read", "Query": "Read", "Scan": "Read", "TransactGetItems": "Read",
	"PutItem": "Write", "UpdateItem": "Write", "DeleteItem": "Write", "BatchWriteItem": "Write", "TransactWriteItems": "Write",
}

// stale are the operations that can read what is not the newest.
var stale = []string{"GetItem", "BatchGetItem", "Query", "Scan"}

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
func (failure Failure) canceled(elements int, struck []int) dynamoDBError {
	e := dynamoDBError{status: 400, code: "com.amazonaws.dynamodb.v20120810#TransactionCanceledException"}
	codes := make([]string, elements)
	for i := range elements {
		reason := cancellation{Code: awserr.ReasonNone}
		if slices.Contains(struck, i) {
			reason = cancellation{cancellations[failure], failureAnswers[failure].message}
		}
		e.reasons, codes[i] = append(e.reasons, reason), reason.Code
	}
	e.message = fmt.Sprintf(awserr.MsgTransactionCanceled, strings.Join(codes, ", "))
	return e
}
