package testkit

import (
	"encoding/json"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tabletop-emu/tabletop/control/lab/fault"
	"github.com/tabletop-emu/tabletop/testkit/btkit"
)

// DynamoDBFailure is the code of a DynamoDB error, with or without the suffix "Exception". An
// unknown code fails the test, and so does an operation that never returns the error. The AWS SDKs
// retry throttling errors and the statuses 500 and 503. If a read or write of items is throttled,
// ThrottlingReasons names the table or index and the exceeded capacity.
type DynamoDBFailure string

// These are the DynamoDB failures that a test can simulate.
const (
	// AccessDenied: the caller lacks a permission.
	AccessDenied   DynamoDBFailure = "AccessDenied"
	BackupInUse    DynamoDBFailure = "BackupInUse"
	BackupNotFound DynamoDBFailure = "BackupNotFound"
	// ConditionalCheckFailed: the condition of a write is false. If the request sets
	// ReturnValuesOnConditionCheckFailure, the error contains the item. A transaction is canceled,
	// with this reason for the affected items.
	ConditionalCheckFailed       DynamoDBFailure = "ConditionalCheckFailed"
	ContinuousBackupsUnavailable DynamoDBFailure = "ContinuousBackupsUnavailable"
	DuplicateItem                DynamoDBFailure = "DuplicateItem"
	ExpiredIterator              DynamoDBFailure = "ExpiredIterator"
	// ExpiredToken: the temporary credentials have expired.
	ExpiredToken                DynamoDBFailure = "ExpiredToken"
	ExportConflict              DynamoDBFailure = "ExportConflict"
	ExportNotFound              DynamoDBFailure = "ExportNotFound"
	GlobalTableAlreadyExists    DynamoDBFailure = "GlobalTableAlreadyExists"
	GlobalTableNotFound         DynamoDBFailure = "GlobalTableNotFound"
	IdempotentParameterMismatch DynamoDBFailure = "IdempotentParameterMismatch"
	ImportConflict              DynamoDBFailure = "ImportConflict"
	ImportNotFound              DynamoDBFailure = "ImportNotFound"
	IncompleteSignature         DynamoDBFailure = "IncompleteSignature"
	IndexNotFound               DynamoDBFailure = "IndexNotFound"
	// InternalServerError: the response has the status 500.
	InternalServerError DynamoDBFailure = "InternalServerError"
	// InvalidEndpoint: the endpoint of a client with endpoint discovery has expired.
	InvalidEndpoint    DynamoDBFailure = "InvalidEndpoint"
	InvalidExportTime  DynamoDBFailure = "InvalidExportTime"
	InvalidRestoreTime DynamoDBFailure = "InvalidRestoreTime"
	InvalidSignature   DynamoDBFailure = "InvalidSignature"
	// ItemCollectionSizeLimitExceeded: the items with the partition key, and their entries in local
	// indexes, have reached 10 GB, a limit that is not enforced otherwise. A transaction is
	// canceled, as for TransactionConflict.
	ItemCollectionSizeLimitExceeded DynamoDBFailure = "ItemCollectionSizeLimitExceeded"
	LimitExceeded                   DynamoDBFailure = "LimitExceeded"
	MissingAuthenticationToken      DynamoDBFailure = "MissingAuthenticationToken"
	PointInTimeRecoveryUnavailable  DynamoDBFailure = "PointInTimeRecoveryUnavailable"
	PolicyNotFound                  DynamoDBFailure = "PolicyNotFound"
	// ProvisionedThroughputExceeded: the table's throughput is used up.
	ProvisionedThroughputExceeded DynamoDBFailure = "ProvisionedThroughputExceeded"
	ReplicaAlreadyExists          DynamoDBFailure = "ReplicaAlreadyExists"
	ReplicaNotFound               DynamoDBFailure = "ReplicaNotFound"
	ReplicatedWriteConflict       DynamoDBFailure = "ReplicatedWriteConflict"
	RequestEntityTooLarge         DynamoDBFailure = "RequestEntityTooLarge"
	// RequestLimitExceeded: the account's throughput is used up.
	RequestLimitExceeded DynamoDBFailure = "RequestLimitExceeded"
	ResourceInUse        DynamoDBFailure = "ResourceInUse"
	ResourceNotFound     DynamoDBFailure = "ResourceNotFound"
	Serialization        DynamoDBFailure = "Serialization"
	// ServiceUnavailable: the response has the status 503.
	ServiceUnavailable DynamoDBFailure = "ServiceUnavailable"
	TableAlreadyExists DynamoDBFailure = "TableAlreadyExists"
	TableInUse         DynamoDBFailure = "TableInUse"
	TableNotFound      DynamoDBFailure = "TableNotFound"
	// Throttling: the rate of requests is too high.
	Throttling DynamoDBFailure = "Throttling"
	// TransactionCanceled: a transaction fails for the reasons that [WithReasons] sets. By default
	// the affected items have the reason TransactionConflict.
	TransactionCanceled DynamoDBFailure = "TransactionCanceled"
	// TransactionConflict: another transaction holds an item. A transaction is canceled, with this
	// reason for the affected items.
	TransactionConflict   DynamoDBFailure = "TransactionConflict"
	TransactionInProgress DynamoDBFailure = "TransactionInProgress"
	TrimmedDataAccess     DynamoDBFailure = "TrimmedDataAccess"
	UnknownOperation      DynamoDBFailure = "UnknownOperation"
	// UnrecognizedClient: the access key is unknown.
	UnrecognizedClient DynamoDBFailure = "UnrecognizedClient"
	Validation         DynamoDBFailure = "Validation"
)

// WithMessage sets the message of a DynamoDB failure, or of the reasons of a canceled transaction.
// Default: the service's message.
func WithMessage(text string) FaultOption { return func(s *fault.Spec) { s.Failure.Message = text } }

// WithReasons sets the cancellation reasons of [TransactionCanceled]: one code, such as
// "ConditionalCheckFailed", for each action of the transaction in order. Actions beyond the last
// code have the reason "None".
func WithReasons(codes ...string) FaultOption {
	return func(s *fault.Spec) { s.Failure.Reasons = codes }
}

// FailDynamoDB makes calls of a DynamoDB operation, such as "PutItem", or "*" for all, fail before
// they take effect, or with [Applied] afterwards. [OnTable] selects a DynamoDB table and [OnItem]
// an item; options that select Bigtable rows are rejected.
//
//	env.FailDynamoDB("UpdateItem", testkit.Throttling, testkit.OnTable("orders"), testkit.Times(2))
func (e *Env) FailDynamoDB(operation string, failure DynamoDBFailure, opts ...FaultOption) *Fault {
	e.server.TB().Helper()
	return btkit.Arm(e.server, e.ddb, fault.Spec{Method: operation, Effect: fault.FailCall, Failure: fault.Failure{Code: string(failure)}}, opts)
}

// DynamoDBLatency makes calls of a DynamoDB operation, or "*" for all, take d longer. A client of
// [Env.DynamoDB] does not wait: the environment's clock is advanced by d, and a call whose deadline
// is less than d away fails with context.DeadlineExceeded, unserved. Through a port the response is
// delayed by d of real time, because HTTP carries no deadline. The delay precedes other faults. The
// SDK retries a late call, so limit the fault with [Times].
func (e *Env) DynamoDBLatency(operation string, d time.Duration, opts ...FaultOption) *Fault {
	e.server.TB().Helper()
	return btkit.Arm(e.server, e.ddb, fault.Spec{Method: operation, Effect: fault.DelayCall, Delay: d}, opts)
}

// Unprocessed makes BatchWriteItem and BatchGetItem return some entries as unprocessed. Each entry
// counts as a call for [Times], [Skip], [WithProbability] and [Fault.Hits]. As in the service, a
// request without processed entries fails with ProvisionedThroughputExceeded.
func (e *Env) Unprocessed(operation string, opts ...FaultOption) *Fault {
	e.server.TB().Helper()
	return btkit.Arm(e.server, e.ddb, fault.Spec{Method: operation, Effect: fault.LeaveEntries}, opts)
}

// StaleReads makes eventually consistent reads return the data of a snapshot. The operation is
// GetItem, BatchGetItem, Query or Scan, or "*" for all four. Reads with ConsistentRead, and reads
// of tables that are not in the snapshot, return the current data.
//
// To make only reads of global indexes lag, use facade.Options.IndexLag; see
// [WithDynamoDBOptions].
func (e *Env) StaleReads(operation string, as *Snapshot, opts ...FaultOption) *Fault {
	e.server.TB().Helper()
	return btkit.Arm(e.server, e.ddb, fault.Spec{Method: operation, Effect: fault.ReadOld, As: btkit.Taken(e.server, as)}, opts)
}

// OnItem limits a DynamoDB fault to requests, or entries of a batch, that name the item with the
// given key attributes. It does not match Query or Scan.
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
