package facade

import (
	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/tablespec"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// The texts of DynamoDB's errors. The number behind a text is its row in
// testdata/messages.tsv, which says when it comes and who has seen it; test
// cases carry the same number. "part of" stands behind what only begins or ends
// such a text, "ours" behind what the service does not have. Texts of attribute values (50-61, and those of
// unreadable ones) come from package attr, those of expressions (75-95, 100,
// 101, 103, 104, 123b-131) from package expr, those of the frame from package wire, and what frames
// failed constraints and invalid values from package wording.

// Of no operation.
const (
	msgUnreadableRow        = "The table's mapping cannot read what is stored: %v"                                                                                   // ours
	msgRowsNotFound         = msgResourceNotFound + ": %v"                                                                                                           // ours
	msgInternalError        = "The request processing has failed because of an unknown error, exception or failure."                                                 // 220
	msgBigtableLimit        = "Throughput exceeds the current throughput limit for your account: the Bigtable behind this endpoint: %s"                              // part of 354
	msgBigtableSilent       = "The request processing has failed because of an unknown error, exception or failure: the Bigtable behind this endpoint: %s"           // part of 220
	msgServiceUnavailable   = "The Bigtable behind this endpoint is unavailable: %s"                                                                                 // ours
	msgCatalogLost          = "it has lost the table %s, as one in memory has when it is started anew: start this server anew, too (%v)"                             // ours
	msgOperationRefused     = "Tabletop does not support the operation %s: %s"                                                                                       // ours
	msgBucketsMissing       = "Tabletop does not support the operation %s without buckets: start tabletop serve with --buckets DIR, whose folders stand for buckets" // ours
	msgParameterUnsupported = "Tabletop does not support the parameter %s of %s"                                                                                     // ours
)

// A. Member constraints.
const (
	msgReturnValuesOldOrNone = "ReturnValues can only be ALL_OLD or NONE" // 11
)

// B. CreateTable, UpdateTable, DeleteTable.
const (
	msgThroughputOnDemand      = wire.MsgInvalidParameterPrefix + "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST"                                                                                                                                                                                                                                                          // 23
	msgThroughputMissing       = wire.MsgInvalidParameterPrefix + "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED"                                                                                                                                                                                                                                                                // 24
	msgIndexThroughputMissing  = wire.MsgInvalidParameterPrefix + "ProvisionedThroughput must be specified for index: %s"                                                                                                                                                                                                                                                                                                          // 222
	msgStreamViewWithoutStream = wire.MsgInvalidParameterPrefix + "Table is being created with a stream disabled, UpdateViewType should not be specified"                                                                                                                                                                                                                                                                          // 39
	msgUpdateTableNothingOld   = "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates or SSESpecification or ReplicaUpdates is required"                                                                                                                                                                                                                                          // 40
	msgGSIUpdateEmpty          = wire.MsgInvalidParameterPrefix + "One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, GlobalSecondaryIndexUpdate.Delete must not be null"                                                                                                                                                                                                                                // 41
	msgGSIUpdateTwice          = wire.MsgInvalidParameterPrefix + "Only one global secondary index update per index is allowed simultaneously. Index: %s"                                                                                                                                                                                                                                                                          // 42
	msgThroughputUnchanged     = "The provisioned throughput for the table will not change. The requested value equals the current value. Current ReadCapacityUnits provisioned for the table: %d. Requested ReadCapacityUnits: %d. Current WriteCapacityUnits provisioned for the table: %d. Requested WriteCapacityUnits: %d. Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits." // 43
	msgOneIndexAtATime         = "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table"                                                                                                                                                                                                                                                                                               // 44
	msgDeletionProtected       = "Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first."                                                                                                                                                                                                                                                                                    // 45
	msgTableExists             = "Table already exists: %s"                                                                                                                                                                                                                                                                                                                                                                        // 46
	msgTooManyTables           = "Subscriber limit exceeded: There is a limit of %d tables per subscriber"                                                                                                                                                                                                                                                                                                                         // 225
	msgTableInUse              = "Attempt to change a resource which is still in use: Table is being %s: %s"                                                                                                                                                                                                                                                                                                                       // 47
	msgTableNotFound           = "Requested resource not found: Table: %s not found"                                                                                                                                                                                                                                                                                                                                               // 48
	msgResourceNotFound        = "Requested resource not found"                                                                                                                                                                                                                                                                                                                                                                    // 49
	msgPolicyOfOtherAccount    = "This action is only supported by accounts that match the resource owner’s account."                                                                                                                                                                                                                                                                                                              // 292
	msgPolicyARN               = wire.MsgInvalidParameterPrefix + "Invalid resource Arn: %s"                                                                                                                                                                                                                                                                                                                                       // 293
	msgInsightsIndexNotFound   = "Requested resource not found: Index: %s not found for table: %s"                                                                                                                                                                                                                                                                                                                                 // 294
	msgInsightsNotActive       = "Table or Index is not in a valid state to update Key Access Insights: %sStatus must be ACTIVE to enable ContributorInsights."                                                                                                                                                                                                                                                                    // 295
	msgInsightsToken           = "Invalid NextToken"                                                                                                                                                                                                                                                                                                                                                                               // ours
	msgIndexExists             = "Attempting to create an index which already exists"                                                                                                                                                                                                                                                                                                                                              // 227
	msgIndexNotFound           = "Requested resource not found: Index: %s of table: %s not found"                                                                                                                                                                                                                                                                                                                                  // 228
	msgUpdateThroughputMissing = wire.MsgInvalidParameterPrefix + "ProvisionedThroughput must be specified when BillingMode is PROVISIONED"                                                                                                                                                                                                                                                                                        // 229
	msgIndexUpdateBlocked      = "This operation cannot be performed with given input values. Please contact DynamoDB service team for more info: Action Blocked: IndexUpdate"                                                                                                                                                                                                                                                     // 230
)

// C, D. Attribute values and keys.
const (
	msgItemTooLarge  = "Item size has exceeded the maximum allowed size" // 62
	msgKeyMismatch   = tablespec.MsgKeyMismatch                          // 64
	msgIndexKeyType  = tablespec.MsgIndexKeyType                         // 67
	msgKeyEmpty      = tablespec.MsgKeyEmpty                             // 68
	msgHashTooLarge  = tablespec.MsgHashTooLarge                         // 71, sic
	msgRangeTooLarge = tablespec.MsgRangeTooLarge                        // 72
)

// E, F, G. Expressions, placeholders, legacy parameters.
const (
	msgConditionFailed  = "The conditional request failed"        // 97
	msgUpdateStoredType = "Type mismatch for attribute to update" // 96
)

// H. Query and Scan.
const (
	msgNoKeyCondition      = request.MsgNoKeyCondition                                                                                                                           // 122
	msgFilterOnKey         = "Filter Expression can only contain non-primary key attributes: Primary key attribute: %s"                                                          // 132
	msgLegacyFilterOnKey   = "QueryFilter can only contain non-primary key attributes: Primary key attribute: %s"                                                                // 132b
	msgIndexUnknown        = "The table does not have the specified index: %s"                                                                                                   // 133
	msgConsistentOnGlobal  = "Consistent reads are not supported on global secondary indexes"                                                                                    // 134
	msgAllOnPartialGlobal  = wire.MsgInvalidParameterPrefix + "Select type ALL_ATTRIBUTES is not supported for global secondary index %s because its projection type is not ALL" // 135
	msgProjectedNoIndex    = "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName"                                                                        // 136
	msgSpecificWithoutList = "Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES"                                                 // 137
	msgListWithSelect      = "Cannot specify the %s when choosing to get %s"                                                                                                     // 138
	msgOnlyTheCount        = "only the Count"                                                                                                                                    // part of 138, current
	msgNotProjected        = wire.MsgInvalidParameterPrefix + "Global secondary index %s does not project [%s]"                                                                  // 233
	msgIndexBackfilling    = "Cannot read from backfilling global secondary index: %s"                                                                                           // 234
	msgStartKeyOutside     = "The provided starting key is outside query boundaries based on provided conditions"                                                                // 140
	msgStartKeyPredicate   = "The provided starting key does not match the range key predicate"                                                                                  // 141
	msgStartKeyOfOne       = "The provided exclusive start key is invalid: ExclusiveStartKey: {%s=%s}"                                                                           // 142b
	msgStartKeySingle      = "The query can return at most one row and cannot be restarted"                                                                                      // 142
	msgNoTotalSegments     = "The TotalSegments parameter is required but was not present in the request when Segment parameter is present"                                      // 143
	msgNoSegment           = "The Segment parameter is required but was not present in the request when parameter TotalSegments is present"                                      // 144
	msgSegmentRange        = "The Segment parameter is zero-based and must be less than parameter TotalSegments: Segment: %d is not less than TotalSegments: %d"                 // 145
	msgStartKeySegment     = "The provided starting key is invalid: Invalid ExclusiveStartKey. Please use ExclusiveStartKey with correct Segment. TotalSegments: %d Segment: %d" // 235
)

// I. Batches, transactions, expiry and tags.
const (
	msgBatchGetEmpty       = "The requestItems parameter is required for BatchGetItem"                                                                                                // 146
	msgBatchWriteEmpty     = "The requestItems parameter is required for BatchWriteItem"                                                                                              // 147
	msgBatchGetTooMany     = "Too many items requested for the BatchGetItem call"                                                                                                     // 148
	msgBatchWriteTooMany   = "Map value must satisfy constraint: [Member must have length less than or equal to 25, Member must have length greater than or equal to 1]"              // part of 149
	msgBatchWriteSum       = "Too many items requested for the BatchWriteItem call"                                                                                                   // 237
	msgDuplicateKeys       = "Provided list of item keys contains duplicates"                                                                                                         // 150
	msgTransactionOngoing  = "Transaction is ongoing for the item"                                                                                                                    // 155
	msgTransactTwice       = "Transaction request cannot include multiple operations on one item"                                                                                     // 152
	msgTransactAction      = "TransactItems can only contain one of Check, Put, Update or Delete"                                                                                     // 153
	msgTransactionCanceled = "Transaction cancelled, please refer cancellation reasons for specific reasons [%s]"                                                                     //nolint:misspell // 154, sic
	msgTransactTooLarge    = "Transaction payload size cannot exceed 4MB."                                                                                                            // 152b
	msgTransactReadTooMuch = "The aggregate size of the items in the transaction exceeds 4 MB"                                                                                        // ours
	msgTokenMismatch       = "The request with this ClientRequestToken had other parameters"                                                                                          // ours
	msgTokenRunning        = "The transaction with the given request token is already in progress."                                                                                   // 238
	msgTagsEmpty           = "Atleast one Tag needs to be provided as Input."                                                                                                         // 160, sic
	msgTagsARN             = "Invalid TableArn: Invalid ResourceArn provided as input %s"                                                                                             // 161
	msgTagsNotFound        = "Requested resource not found: ResourcArn: %s not found"                                                                                                 // 242, sic
	msgAccessDenied        = "User: arn:aws:iam::%s:root is not authorized to perform: dynamodb:%s on resource: %s because no resource-based policy allows the dynamodb:%[2]s action" // 243
)

// J. Tables and tags, as recorded since 2026-10.
const (
	msgDefinedOtherwise        = wire.MsgInvalidParameterPrefix + "Attributes cannot be redefined. Please check that your attribute has the same type as previously defined. Existing schema: %s New schema: %s" // 203
	msgIndexWithoutDefinitions = wire.MsgInvalidParameterPrefix + "AttributeDefinitions is not specified for index: %s"                                                                                          // 204
	msgGSIUpdateSeveral        = wire.MsgInvalidParameterPrefix + "Only one global secondary index action is allowed per GlobalSecondaryIndexUpdate object"                                                      // 205
	msgInvalidStreamARN        = "Invalid StreamArn"                                                                                                                                                             // ours
	msgStreamNotFound          = "Requested resource not found: Stream: %s not found"                                                                                                                            // ours
	msgShardNotFound           = "Requested resource not found: Shard does not exist"                                                                                                                            // ours
	msgSequenceMissing         = wire.MsgInvalidParameterPrefix + "SequenceNumber cannot be null"                                                                                                                // ours
	msgSequenceNotTaken        = wire.MsgInvalidParameterPrefix + "SequenceNumber should not be passed for this iterator type"                                                                                   // ours
	msgSequenceOfOther         = "Invalid SequenceNumber for the shard"                                                                                                                                          // ours
	msgTrimmedData             = "The data you are trying to access has been trimmed"                                                                                                                            // ours
	msgInvalidIterator         = "Invalid ShardIterator"                                                                                                                                                         // ours
	msgExpiredIterator         = "Iterator expired"                                                                                                                                                              // ours

	msgStreamEnabled         = "Table already has an enabled stream: TableName: %s"                                                                                                                                                                                                                                                       // 206
	msgStreamDisabled        = "Table has no stream to disable: TableName: %s"                                                                                                                                                                                                                                                            // 207
	msgStreamChanging        = "Attempt to change a resource which is still in use: A stream status change is currently in progress. Table: %s Stream: %s Operation: %s"                                                                                                                                                                  // 390
	msgStreamHoldsTable      = "Attempt to change a resource which is still in use: Cannot delete table while stream is being %s."                                                                                                                                                                                                        // 391
	msgStreamWithThroughput  = wire.MsgInvalidParameterPrefix + "You cannot modify stream status while updating table IOPS"                                                                                                                                                                                                               // 392
	msgStreamWithoutView     = wire.MsgInvalidParameterPrefix + "Table is being created with a stream enabled, UpdateViewType is required"                                                                                                                                                                                                // 208
	msgStreamViewNotEnabled  = wire.MsgInvalidParameterPrefix + "If stream is being enabled then UpdateViewType is required"                                                                                                                                                                                                              // 208
	msgStreamViewNotDisabled = wire.MsgInvalidParameterPrefix + "If stream is being disabled, then UpdateViewType must not be specified"                                                                                                                                                                                                  // 209
	msgARNPrefix             = wire.MsgInvalidParameterPrefix + "ARNs must start with 'arn:': %s"                                                                                                                                                                                                                                         // 217
	msgARNOfNothing          = wire.MsgInvalidParameterPrefix + "Provided Arn is not a DynamoDB resource arn: %s"                                                                                                                                                                                                                         // 218
	msgARNOfIndex            = wire.MsgInvalidParameterPrefix + "Invalid resource arn provided, only table or stream is accepted. Provided resource arn: %s"                                                                                                                                                                              // 219
	msgUpdateTableNothing    = "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates, SSESpecification, ReplicaUpdates, MultiAccountReplicaReady, ReplicaTransitRoleArn, MultiRegionConsistency, DeletionProtectionEnabled, OnDemandThroughput, WarmThroughput or TableClass is required" // 40
)

// K. PartiQL. What is wrong with a statement by itself comes from package partiql.
const (
	msgBatchReadsAndWrites    = "Read and write requests together in the same batch is not supported."                                          // 156
	msgBatchSelectKey         = "Select statements within BatchExecuteStatement must specify the primary key in the where clause."              // 157
	msgDuplicateItem          = "Duplicate primary key exists in table"                                                                         // 270
	msgExistsOutside          = "EXISTS can only be used in ExecuteTransaction write requests."                                                 // 271
	msgStatementIndex         = "This operation is not supported on an index"                                                                   // 272
	msgStatementMultiKey      = "PartiQL statements cannot be executed on tables with multi-attribute HASH keys or multi-attribute RANGE keys." // 273
	msgTokenOfWrite           = "NextToken is only valid on a SELECT statement"                                                                 // 274
	msgNextToken              = "Invalid NextToken"                                                                                             // 275
	msgTransactStatement      = "Validation failed in TransactStatements[%d]: %s"                                                               // 276
	msgTransactReturning      = "RETURNING clause is not supported in ExecuteTransaction."                                                      // part of 276
	msgTransactIndex          = "Reads on indices are not supported within transactions."                                                       // part of 276
	msgTransactSelectKey      = "Select statements within ExecuteTransaction must specify the primary key in the where clause."                 // part of 276
	msgExistsAlone            = "EXISTS() must contain a single item read with additional condition"                                            // part of 276
	msgStatementNoIndex       = "The table does not have the specified index"                                                                   // 278
	msgStatementConsistent    = "Strongly consistent read is not supported on Global Secondary Indexes"                                         // 279
	msgTransactReadsAndWrites = "ExecuteTransaction API does not support both read and write operations in the same request."                   // 277
)
