package fault

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Failure is an error that DynamoDB returns for reasons of its own.
// The AWS SDKs retry all of them except a conflict and a full collection. The
// ThrottlingReasons of a throttled read or write of items name the table or index
// and its exceeded capacity.
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

// failureNames are the failures by name.
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
