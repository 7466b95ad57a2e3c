package dynamodb

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/control/lab/fault"
	"github.com/tabletop-emu/tabletop/facade/awserr"
)

// failure is an error that a fault can return.
type failure struct {
	code string
	// text is the message; %s in it is the resource that the request names.
	text string
	// operations can meet the error; nil: all can. They are those of the API model, and the
	// operations whose cancellation reasons have the error.
	operations []string
}

// The texts of errors that only faults return. textExpiredToken is quoted from the service, the
// others are those of its documentation; that of textEndpoint is ours.
const (
	textCollection   = "Collection size exceeded."
	textEndpoint     = "The endpoint of the request is not valid."
	textExpiredToken = "The security token included in the request is expired"
	textGlobalExists = "The specified global table already exists."
	textReplica      = "The specified replica is already part of the global table."
	textNoReplica    = "The specified replica is no longer part of the global table."
	textReplicated   = "One or more items in this request are being modified by a request in another Region."
	textTime         = "1970-01-01T00:00:00Z" // a fault has no window of recovery
	textUnavailable  = "The service is currently unavailable or busy."
)

// failures are the errors that a fault can return, by their codes without "Exception".
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html
var failures = byName([]failure{
	{awserr.CodeAccessDenied, awserr.MsgNotAuthorized, nil},
	{awserr.CodeBackupInUse, awserr.MsgBackupRestoring, words("CreateBackup DeleteBackup RestoreTableFromBackup")},
	{awserr.CodeBackupNotFound, awserr.MsgBackupNotFound, words("DeleteBackup DescribeBackup RestoreTableFromBackup")},
	{awserr.CodeConditionalCheckFailed, awserr.MsgConditionFailed, words("DeleteItem ExecuteStatement PutItem UpdateItem TransactWriteItems ExecuteTransaction")},
	{awserr.CodeContinuousBackupsUnavailable, awserr.MsgBackupsUnavailable, words("CreateBackup UpdateContinuousBackups")},
	{awserr.CodeDuplicateItem, awserr.MsgDuplicateItem, words("ExecuteStatement ExecuteTransaction")},
	{awserr.CodeExpiredIterator, awserr.MsgExpiredIterator, words("GetRecords")},
	{awserr.CodeExpiredToken, textExpiredToken, nil},
	{awserr.CodeExportConflict, awserr.MsgExportConflict, words("ExportTableToPointInTime")},
	{awserr.CodeExportNotFound, awserr.MsgExportNotFound, words("DescribeExport")},
	{awserr.CodeGlobalTableExists, textGlobalExists, words("CreateGlobalTable")},
	{awserr.CodeGlobalTableNotFound, awserr.MsgGlobalTableNotFound, words("DescribeGlobalTable DescribeGlobalTableSettings UpdateGlobalTable UpdateGlobalTableSettings")},
	{awserr.CodeIdempotentMismatch, awserr.MsgTokenMismatch, words("ExecuteTransaction StartBulkPutItems TransactWriteItems")},
	{awserr.CodeImportConflict, awserr.MsgImportConflict, words("ImportTable")},
	{awserr.CodeImportNotFound, awserr.MsgImportNotFound, words("DescribeImport")},
	{awserr.CodeIncompleteSignature, fmt.Sprintf(awserr.MsgAuthHeaderParameter, "Signature"), nil},
	{awserr.CodeIndexNotFound, awserr.MsgStatementNoIndex, words("UpdateGlobalTableSettings")},
	{awserr.CodeInternalServerError, awserr.MsgInternalError, nil},
	{awserr.CodeInvalidEndpoint, textEndpoint, words("BatchGetItem BatchWriteItem CancelBulkOperation CreateBackup CreateGlobalTable CreateTable DeleteBackup " +
		"DeleteItem DeleteResourcePolicy DeleteTable DescribeBackup DescribeBulkOperation DescribeContinuousBackups DescribeGlobalTable " +
		"DescribeGlobalTableSettings DescribeKinesisStreamingDestination DescribeLimits DescribeTable DescribeTimeToLive " +
		"DisableKinesisStreamingDestination EnableKinesisStreamingDestination GetItem GetResourcePolicy ListBackups ListBulkOperations " +
		"ListGlobalTables ListTables ListTagsOfResource PutItem PutResourcePolicy Query RestoreTableFromBackup RestoreTableToPointInTime Scan " +
		"StartBulkPutItems TagResource TransactGetItems TransactWriteItems UntagResource UpdateContinuousBackups UpdateGlobalTable " +
		"UpdateGlobalTableSettings UpdateItem UpdateKinesisStreamingDestination UpdateTable UpdateTimeToLive")},
	{awserr.CodeInvalidExportTime, awserr.MsgExportTime, words("ExportTableToPointInTime")},
	{awserr.CodeInvalidRestoreTime, fmt.Sprintf(awserr.MsgRestoreTime, textTime, textTime, textTime), words("RestoreTableToPointInTime")},
	{awserr.CodeInvalidSignature, awserr.MsgAuthMismatch, nil},
	{awserr.CodeItemCollectionTooLarge, textCollection, words("BatchWriteItem DeleteItem ExecuteStatement PutItem UpdateItem TransactWriteItems ExecuteTransaction")},
	{awserr.CodeLimitExceeded, fmt.Sprintf(awserr.MsgTooManyTables, 2500), words("CreateBackup CreateGlobalTable CreateTable DeleteBackup DeleteResourcePolicy DeleteTable " +
		"DescribeExport DisableKinesisStreamingDestination EnableKinesisStreamingDestination ExportTableToPointInTime GetRecords ImportTable ListExports ListImports " +
		"PutResourcePolicy RestoreTableFromBackup RestoreTableToPointInTime StartBulkPutItems TagResource UntagResource UpdateGlobalTableSettings " +
		"UpdateKinesisStreamingDestination UpdateTable UpdateTableReplicaAutoScaling UpdateTimeToLive")},
	{awserr.CodeMissingAuthentication, awserr.MsgAuthMissing, nil},
	{awserr.CodePointInTimeRecoveryUnavailable, awserr.MsgNoRecovery, words("ExportTableToPointInTime RestoreTableToPointInTime")},
	{awserr.CodePolicyNotFound, awserr.MsgPolicyNotFound, words("DeleteResourcePolicy GetResourcePolicy PutResourcePolicy")},
	{awserr.CodeProvisionedThroughput, awserr.MsgThrottledTable, nil},
	{awserr.CodeReplicaExists, textReplica, words("UpdateGlobalTable")},
	{awserr.CodeReplicaNotFound, textNoReplica, words("UpdateGlobalTable UpdateGlobalTableSettings")},
	{awserr.CodeReplicatedWriteConflict, textReplicated, words("BatchWriteItem DeleteItem PutItem UpdateItem")},
	{awserr.CodeRequestLimit, awserr.MsgThrottledAccount, nil},
	{awserr.CodeRequestTooLarge, fmt.Sprintf(awserr.MsgRequestTooLarge, maxRequestBytes+1, maxRequestBytes), nil},
	{awserr.CodeResourceInUse, fmt.Sprintf(awserr.MsgTableInUse, "used", "%s"), words("CreateTable DeleteResourcePolicy DeleteTable DisableKinesisStreamingDestination " +
		"EnableKinesisStreamingDestination ImportTable PutResourcePolicy StartBulkPutItems TagResource UntagResource UpdateGlobalTableSettings " +
		"UpdateKinesisStreamingDestination UpdateTable UpdateTableReplicaAutoScaling UpdateTimeToLive")},
	{awserr.CodeResourceNotFound, awserr.MsgResourceNotFound, words("BatchGetItem BatchWriteItem CancelBulkOperation DeleteItem DeleteResourcePolicy DeleteTable " +
		"DescribeBulkOperation DescribeContributorInsights DescribeKinesisStreamingDestination DescribeStream DescribeTable DescribeTableReplicaAutoScaling " +
		"DescribeTimeToLive DisableKinesisStreamingDestination EnableKinesisStreamingDestination ExecuteStatement ExecuteTransaction GetItem GetRecords " +
		"GetResourcePolicy GetShardIterator ListContributorInsights ListStreams ListTagsOfResource PutItem PutResourcePolicy Query Scan SearchVectors " +
		"StartBulkPutItems TagResource TransactGetItems TransactWriteItems UntagResource UpdateContributorInsights UpdateItem " +
		"UpdateKinesisStreamingDestination UpdateTable UpdateTableReplicaAutoScaling UpdateTimeToLive")},
	{awserr.CodeSerialization, awserr.MsgUnexpectedToken, nil},
	{awserr.CodeServiceUnavailable, textUnavailable, nil},
	{awserr.CodeTableAlreadyExists, awserr.MsgTableExists, words("RestoreTableFromBackup RestoreTableToPointInTime")},
	{awserr.CodeTableInUse, fmt.Sprintf(awserr.MsgTableInUse, "used", "%s"), words("CreateBackup RestoreTableFromBackup RestoreTableToPointInTime")},
	{awserr.CodeTableNotFound, awserr.MsgNamedTableNotFound, words("CreateBackup CreateGlobalTable DescribeContinuousBackups ExportTableToPointInTime " +
		"RestoreTableToPointInTime UpdateContinuousBackups UpdateGlobalTable")},
	{awserr.CodeThrottling, awserr.MsgThrottledOnDemand, nil},
	{awserr.CodeTransactionCanceled, "", words("ExecuteTransaction TransactGetItems TransactWriteItems")},
	{awserr.CodeTransactionConflict, awserr.MsgTransactionOngoing, words("DeleteItem ExecuteStatement PutItem UpdateItem ExecuteTransaction TransactGetItems TransactWriteItems")},
	{awserr.CodeTransactionInProgress, awserr.MsgTokenRunning, words("ExecuteTransaction TransactWriteItems")},
	{awserr.CodeTrimmedData, awserr.MsgTrimmedData, words("GetRecords GetShardIterator")},
	{awserr.CodeUnknownOperation, "", nil},
	{awserr.CodeUnrecognizedClient, awserr.MsgAuthUnknownKey, nil},
	{awserr.CodeValidation, awserr.MsgKeyMismatch, nil},
})

func words(list string) []string { return strings.Fields(list) }

func byName(list []failure) map[string]failure {
	out := make(map[string]failure, len(list))
	for _, f := range list {
		out[FailureName(f.code)] = f
	}
	return out
}

// FailureName returns the name that faults use for an error: its code without "Exception".
func FailureName(code string) string { return strings.TrimSuffix(code, "Exception") }

// FailureInfo describes an error that a fault can return.
type FailureInfo struct {
	Name       string   `json:"name"`                 // as FailureName returns it
	Operations []string `json:"operations,omitempty"` // operations that can return it; nil for all
}

// Failures returns the errors that a fault can return, by name.
func Failures() []FailureInfo {
	out := make([]FailureInfo, 0, len(failures))
	for name, f := range failures {
		out = append(out, FailureInfo{name, f.operations})
	}
	slices.SortFunc(out, func(a, b FailureInfo) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Reasons returns the cancellation reason codes that a fault can return, sorted.
func Reasons() []string {
	out := []string{awserr.ReasonNone}
	for code := range reasonTexts {
		out = append(out, code)
	}
	slices.Sort(out)
	return out
}

// checkFailure rejects an error that the method cannot return, and cancellation reasons that are
// invalid or do not belong to the error.
func checkFailure(method string, given fault.Failure) error {
	name := FailureName(given.Code)
	f, ok := failures[name]
	switch {
	case !ok:
		var names, codes []string
		for _, info := range Failures() {
			names, codes = append(names, info.Name), append(codes, info.Name, failures[info.Name].code)
		}
		return fmt.Errorf("cannot fail %s: unknown DynamoDB error %q%s", method, given.Code, cmp.Or(fault.Near(given.Code, codes), ", want one of "+strings.Join(names, ", ")))
	case method != "*" && !f.meets(method):
		return fmt.Errorf("%s never returns %s; these operations do: %s", method, f.code, strings.Join(f.operations, ", "))
	case given.Reasons != nil && f.code != awserr.CodeTransactionCanceled:
		return fmt.Errorf("%s does not have cancellation reasons; only %s does", f.code, awserr.CodeTransactionCanceled)
	case given.Reasons != nil && !slices.ContainsFunc(given.Reasons, func(code string) bool { return code != awserr.ReasonNone }):
		return fmt.Errorf("the cancellation reasons are all %s; at least one must differ", awserr.ReasonNone)
	}
	for _, code := range given.Reasons {
		if !slices.Contains(Reasons(), code) {
			return fmt.Errorf("unknown cancellation reason %q%s", code, fault.Near(code, Reasons()))
		}
	}
	return nil
}

// meets reports whether an operation can meet the error.
func (f failure) meets(operation string) bool {
	return f.operations == nil || slices.Contains(f.operations, operation)
}

// reasonTexts are the texts of cancellation reasons, by their codes.
var reasonTexts = map[string]string{
	awserr.ReasonCollectionTooLarge: textCollection,
	awserr.ReasonConditionFailed:    awserr.MsgConditionFailed,
	awserr.ReasonConflict:           awserr.MsgTransactionOngoing,
	awserr.ReasonDuplicate:          awserr.MsgDuplicateItem,
	awserr.ReasonProvisioned:        awserr.MsgThrottledTable,
	awserr.ReasonThrottling:         awserr.MsgThrottledOnDemand,
	awserr.ReasonValidation:         awserr.MsgUpdatedItemTooLarge,
}

// cancellations are the cancellation reasons of a transaction that meets an error.
var cancellations = map[string]string{
	awserr.CodeConditionalCheckFailed: awserr.ReasonConditionFailed,
	awserr.CodeDuplicateItem:          awserr.ReasonDuplicate,
	awserr.CodeItemCollectionTooLarge: awserr.ReasonCollectionTooLarge,
	awserr.CodeTransactionCanceled:    awserr.ReasonConflict,
	awserr.CodeTransactionConflict:    awserr.ReasonConflict,
}

// throttled has the limits in the reasons of a throttled request.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ThrottlingReason.html
var throttled = map[string]string{
	awserr.CodeProvisionedThroughput: "ProvisionedThroughputExceeded",
	awserr.CodeThrottling:            "KeyRangeThroughputExceeded",
	awserr.CodeRequestLimit:          "AccountLimitExceeded",
}

// uses maps each operation on items to its use of a table.
var uses = map[string]string{
	"GetItem": "Read", "BatchGetItem": "Read", "Query": "Read", "Scan": "Read", "TransactGetItems": "Read", "SearchVectors": "Read",
	"PutItem": "Write", "UpdateItem": "Write", "DeleteItem": "Write", "BatchWriteItem": "Write", "TransactWriteItems": "Write",
}

// stale holds the operations that can read old data.
var stale = []string{"GetItem", "BatchGetItem", "Query", "Scan"}
