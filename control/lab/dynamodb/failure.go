package dynamodb

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/control/lab/fault"
	"github.com/tabletop-emu/tabletop/facade/awserr"
)

// failureAnswers are the error answers of failures.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html
var failureAnswers = map[fault.Failure]errorAnswer{
	fault.TransactionConflict: {
		status: 400, code: "com.amazonaws.dynamodb.v20120810#TransactionConflictException", message: "Transaction is ongoing for the item",
	},
	fault.ProvisionedThroughputExceeded: {
		status: 400, code: "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
		message: "The level of configured provisioned throughput for the table was exceeded. Consider increasing your provisioning level with the UpdateTable API.",
	},
	fault.Throttling: {
		status: 400, code: "com.amazon.coral.availability#ThrottlingException", message: "Rate of requests exceeds the allowed throughput.",
	},
	fault.RequestLimitExceeded: {
		status: 400, code: "com.amazonaws.dynamodb.v20120810#RequestLimitExceeded",
		message: "Throughput exceeds the current throughput limit for your account. Please contact AWS Support at https://aws.amazon.com/support request a limit increase",
	},
	fault.InternalServerError: {
		status: 500, code: "com.amazonaws.dynamodb.v20120810#InternalServerError", message: "Internal server error",
	},
	fault.ServiceUnavailable: {
		status: 503, code: "com.amazonaws.dynamodb.v20120810#ServiceUnavailable",
		message: "The service is currently unavailable or busy.",
	},
	fault.ItemCollectionSizeLimitExceeded: {
		status: 400, code: "com.amazonaws.dynamodb.v20120810#ItemCollectionSizeLimitExceededException", message: "Collection size exceeded.",
	},
}

// met has the operations that can meet a failure; all operations can meet a failure without an
// entry.
var met = map[fault.Failure][]string{
	fault.TransactionConflict:             {"PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "TransactGetItems"},
	fault.ItemCollectionSizeLimitExceeded: {"PutItem", "UpdateItem", "BatchWriteItem", "TransactWriteItems"},
}

// meets reports whether an operation can meet a failure.
func meets(operation string, failure fault.Failure) bool {
	operations, some := met[failure]
	return !some || slices.Contains(operations, operation)
}

// cancellations are the codes in the reasons of a canceled transaction.
var cancellations = map[fault.Failure]string{
	fault.TransactionConflict:             awserr.ReasonConflict,
	fault.ItemCollectionSizeLimitExceeded: "ItemCollectionSizeLimitExceeded",
}

// throttled has the members with the reasons of a throttled request.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ThrottlingReason.html
var throttled = map[fault.Failure]struct{ member, limit string }{
	fault.ProvisionedThroughputExceeded: {"ThrottlingReasons", "ProvisionedThroughputExceeded"},
	fault.Throttling:                    {"throttlingReasons", "KeyRangeThroughputExceeded"},
	fault.RequestLimitExceeded:          {"ThrottlingReasons", "AccountLimitExceeded"},
}

// uses has the operations on items, by their use of a table.
var uses = map[string]string{
	"GetItem": "Read", "BatchGetItem": "Read", "Query": "Read", "Scan": "Read", "TransactGetItems": "Read", "SearchVectors": "Read",
	"PutItem": "Write", "UpdateItem": "Write", "DeleteItem": "Write", "BatchWriteItem": "Write", "TransactWriteItems": "Write",
}

// stale are the operations that can read old data.
var stale = []string{"GetItem", "BatchGetItem", "Query", "Scan"}

// errorAnswer is an error answer.
type errorAnswer struct {
	status        int
	code, message string
	// reasons belong to a canceled transaction, throttling to a throttled request, in the
	// member with that name.
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

func (e errorAnswer) body() ([]byte, error) {
	members := map[string]any{"__type": e.code, "message": e.message}
	switch {
	case e.reasons != nil:
		members = map[string]any{"__type": e.code, "Message": e.message, "CancellationReasons": e.reasons}
	case e.throttling != nil:
		members[e.throttlingMember] = e.throttling
	}
	return json.Marshal(members)
}

// canceled returns the error of a transaction in which the elements with the given indexes
// meet a failure.
func canceled(failure fault.Failure, elements int, failed []int) errorAnswer {
	e := errorAnswer{status: 400, code: "com.amazonaws.dynamodb.v20120810#TransactionCanceledException"}
	codes := make([]string, elements)
	for i := range elements {
		reason := cancellation{Code: awserr.ReasonNone}
		if slices.Contains(failed, i) {
			reason = cancellation{cancellations[failure], failureAnswers[failure].message}
		}
		e.reasons, codes[i] = append(e.reasons, reason), reason.Code
	}
	e.message = fmt.Sprintf(awserr.MsgTransactionCanceled, strings.Join(codes, ", "))
	return e
}
