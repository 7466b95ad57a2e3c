package facade

// The texts of DynamoDB's errors. The number behind a text is its row in
// testdata/messages.tsv, which says when it comes and who has seen it; test
// cases carry the same number. Texts of attribute values (50-61, and those of
// unreadable ones) come from package attr, those of expressions (75-95, 100,
// 101, 103, 104, 123b-131) from package expr, those of the frame from package wire.

// Of no operation.
const (
	msgUnreadableRow        = "The table's mapping cannot read what is stored: %v" // ours
	msgRowsNotFound         = msgResourceNotFound + ": %v"                         // ours
	msgInternalError        = "The request processing has failed because of an unknown error, exception or failure."
	msgServiceUnavailable   = "The Bigtable behind this endpoint is unavailable: %s"
	msgOperationRefused     = "Tabletop does not support the operation %s: %s"
	msgTooManyNamespaces    = "Tabletop keeps the tables of %d pairs of access key and region apart, and has no room for another" // ours
	msgParameterUnsupported = "Tabletop does not support the parameter %s of %s"
)

// A. Member constraints.
const (
	msgValidationErrors        = "%d validation error%s detected: %s"                                                                                  // 1, 3, 5-10, 14, 15
	msgMemberClassic           = "Value %s at '%s' failed to satisfy constraint: %s"                                                                   // 1, 5-9, 15
	msgMemberCurrent           = "Value at '%s' failed to satisfy constraint: %s"                                                                      // 3, 15, 146, 148
	msgMemberNotNull           = "Member must not be null"                                                                                             // 1
	msgParameterRequired       = "The parameter '%s' is required but was not present in the request"                                                   // 2
	msgMemberMinLength         = "Member must have length greater than or equal to %d"                                                                 // 3, 151
	msgTableNameLength         = "TableName must be at least 3 characters long and at most 255 characters long"                                        // 4
	msgMemberPattern           = "Member must satisfy regular expression pattern: %s"                                                                  // 5
	msgMemberMaxLength         = "Member must have length less than or equal to %d"                                                                    // 6
	msgMemberElements          = "Member must satisfy constraint: [%s, %s]"                                                                            // as in 149
	msgMemberEnum              = "Member must satisfy enum value set: [%s]"                                                                            // 7-9, 12, 13
	msgReturnValuesEnum        = "Failed to satisfy constraint: Member must satisfy enum value set: [ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE]" // 10, sic
	msgConditionalOperatorEnum = "Failed to satisfy constraint: Member must satisfy enum value set: [ALL, OR]"                                         // sic
	msgReturnValuesOldOrNone   = "ReturnValues can only be ALL_OLD or NONE"                                                                            // 11
	msgMemberMinValue          = "Member must have value greater than or equal to %d"                                                                  // 15
	msgMemberMaxValue          = "Member must have value less than or equal to %d"
	msgInvalidParameterPrefix  = "One or more parameter values were invalid: "
)

// B. CreateTable, UpdateTable, DeleteTable.
const (
	msgKeyNotDefined           = "Invalid KeySchema: Some index key attribute have no definition"                                                                            // 16
	msgIndexKeyNotDefined      = msgInvalidParameterPrefix + "Some index key attributes are not defined in AttributeDefinitions. Keys: [%s], AttributeDefinitions: [%s]"     // 17
	msgHashEqualsRange         = "Both the Hash Key and the Range Key element in the KeySchema have the same name"                                                           // 18
	msgFirstKeyNotHash         = "Invalid KeySchema: The first KeySchemaElement is not a HASH key type"                                                                      // 19
	msgSecondKeyNotRange       = "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type"                                                                    // 20
	msgSurplusDefinitions      = msgInvalidParameterPrefix + "Number of attributes in KeySchema does not exactly match number of attributes defined in AttributeDefinitions" // 21
	msgUnusedDefinitions       = msgInvalidParameterPrefix + "Some AttributeDefinitions are not used. AttributeDefinitions: [%s], keys used: [%s]"                           // 22
	msgThroughputOnDemand      = msgInvalidParameterPrefix + "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST"         // 23
	msgThroughputMissing       = msgInvalidParameterPrefix + "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED"               // 24
	msgIndexThroughputOnDemand = msgInvalidParameterPrefix + "ProvisionedThroughput should not be specified for index: %s when BillingMode is PAY_PER_REQUEST"               // 25
	msgIndexThroughputMissing  = msgInvalidParameterPrefix + "ProvisionedThroughput must be specified for index: %s"
	msgOnDemandProvisioned     = msgInvalidParameterPrefix + "OnDemandThroughput should not be specified when BillingMode is PROVISIONED"                                                       // ours
	msgUnitsOutOfBounds        = "Given value %d for %s is out of bounds"                                                                                                                       // 26
	msgIndexListEmpty          = msgInvalidParameterPrefix + "List of %s is empty"                                                                                                              // 27
	msgLocalWithoutRange       = msgInvalidParameterPrefix + "Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex"                               // 28
	msgLocalIndexWithoutRange  = msgInvalidParameterPrefix + "Index KeySchema does not have a range key for index: %s"                                                                          // 29
	msgLocalIndexOtherHash     = msgInvalidParameterPrefix + "Index KeySchema does not have the same leading hash key as table KeySchema for index: %s. index hash key: %s, table hash key: %s" // 30
	msgProjectionUnknown       = msgInvalidParameterPrefix + "Unknown ProjectionType: null"                                                                                                     // 31
	msgNonKeyNotAllowed        = msgInvalidParameterPrefix + "ProjectionType is %s, but NonKeyAttributes is specified"                                                                          // 32
	msgNonKeyMissing           = msgInvalidParameterPrefix + "ProjectionType is INCLUDE, but NonKeyAttributes is not specified"                                                                 // 33
	msgDuplicateIndex          = msgInvalidParameterPrefix + "Duplicate index name: %s"                                                                                                         // 34
	msgTooManyLocal            = msgInvalidParameterPrefix + "Number of LocalSecondaryIndexes exceeds per-table limit of 5"                                                                     // 35
	msgTooManyGlobal           = msgInvalidParameterPrefix + "GlobalSecondaryIndex count exceeds the per-table limit of 20"                                                                     // 36
	msgTooManyNonKey           = msgInvalidParameterPrefix + "Number of NonKeyAttributes summed over all indexes exceeds the limit of %d"
	msgHashAfterRange          = msgInvalidParameterPrefix + "All HASH key attributes must precede RANGE key attributes in the KeySchema" // 37
	msgTooManyKeyAttributes    = msgInvalidParameterPrefix + "The KeySchema exceeds the maximum allowed number of %s key attributes"      // 38
	msgKeyNameTwice            = "The KeySchema contains multiple key attributes with the same name"
	msgStreamViewWithoutStream = msgInvalidParameterPrefix + "Table is being created with a stream disabled, UpdateViewType should not be specified"                                                                                                                                                                                                                                                                               // 39
	msgUpdateTableNothingOld   = "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates or SSESpecification or ReplicaUpdates is required"                                                                                                                                                                                                                                          // 40
	msgGSIUpdateEmpty          = msgInvalidParameterPrefix + "One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, GlobalSecondaryIndexUpdate.Delete must not be null"                                                                                                                                                                                                                                     // 41
	msgGSIUpdateTwice          = msgInvalidParameterPrefix + "Only one global secondary index update per index is allowed simultaneously. Index: %s"                                                                                                                                                                                                                                                                               // 42
	msgThroughputUnchanged     = "The provisioned throughput for the table will not change. The requested value equals the current value. Current ReadCapacityUnits provisioned for the table: %d. Requested ReadCapacityUnits: %d. Current WriteCapacityUnits provisioned for the table: %d. Requested WriteCapacityUnits: %d. Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits." // 43
	msgOneIndexAtATime         = "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table"                                                                                                                                                                                                                                                                                               // 44
	msgDeletionProtected       = "Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first."                                                                                                                                                                                                                                                                                    // 45
	msgTableExists             = "Table already exists: %s"                                                                                                                                                                                                                                                                                                                                                                        // 46
	msgTooManyTables           = "Subscriber limit exceeded: There is a limit of %d tables per subscriber"
	msgTableInUse              = "Attempt to change a resource which is still in use: Table is being %s: %s" // 47
	msgTableNotFound           = "Requested resource not found: Table: %s not found"                         // 48
	msgResourceNotFound        = "Requested resource not found"                                              // 49
	msgPolicyNotFound          = "Resource-based policy not found for the provided ResourceArn: %s"
	msgIndexExists             = "Attempting to create an index which already exists"
	msgIndexNotFound           = "Requested resource not found: Index: %s of table: %s not found"
	msgUpdateThroughputMissing = msgInvalidParameterPrefix + "ProvisionedThroughput must be specified when BillingMode is PROVISIONED"
	msgIndexUpdateBlocked      = "This operation cannot be performed with given input values. Please contact DynamoDB service team for more info: Action Blocked: IndexUpdate"
)

// C, D. Attribute values and keys.
const (
	msgItemTooLarge          = "Item size has exceeded the maximum allowed size"                                                                                                                                                                                                    // 62
	msgUpdateTooLarge        = "Item size to update has exceeded the maximum allowed size"                                                                                                                                                                                          // 63
	msgKeyMismatch           = "The provided key element does not match the schema"                                                                                                                                                                                                 // 64
	msgKeyMissing            = msgInvalidParameterPrefix + "Missing the key %s in the item"                                                                                                                                                                                         // 65
	msgKeyType               = msgInvalidParameterPrefix + "Type mismatch for key %s expected: %s actual: %s"                                                                                                                                                                       // 66
	msgIndexKeyType          = msgInvalidParameterPrefix + "Type mismatch for Index Key %s Expected: %s Actual: %s IndexName: %s"                                                                                                                                                   // 67
	msgKeyEmpty              = "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty %s value. Key: %s"                                                                                                                       // 68
	msgIndexKeyTypeByUpdate  = "The update expression attempted to update the secondary index key to unsupported type"                                                                                                                                                              // 70b
	msgIndexKeyEmpty         = "One or more parameter values are not valid. A value specified for a secondary index key is not supported. The AttributeValue for a key attribute cannot contain an empty %s value. IndexName: %s, IndexKey: %s"                                     // 69
	msgIndexKeyEmptyByUpdate = "One or more parameter values are not valid. The update expression attempted to update a secondary index key to a value that is not supported. The AttributeValue for a key attribute cannot contain an empty %s value. IndexName: %s, IndexKey: %s" // 70
	msgHashTooLarge          = msgInvalidParameterPrefix + "Size of hashkey has exceeded the maximum size limit of2048 bytes"                                                                                                                                                       // 71, sic
	msgRangeTooLarge         = msgInvalidParameterPrefix + "Aggregated size of all range keys has exceeded the size limit of 1024 bytes"                                                                                                                                            // 72
	msgUpdateKey             = msgInvalidParameterPrefix + "Cannot update attribute %s. This attribute is part of the key"                                                                                                                                                          // 73
	msgPathIntoKey           = "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: Key: %s"                                                                                                                                                // 74
	msgPathIntoIndexKey      = "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: IndexKey: %s"                                                                                                                                           // 74b
	msgIndexKeyTooLarge      = msgInvalidParameterPrefix + "Size of secondary index key %s has exceeded the size limit of %d bytes. IndexName: %s"                                                                                                                                  // of 71, 72
)

// E, F, G. Expressions, placeholders, legacy parameters.
const (
	msgConditionFailed         = "The conditional request failed"                                                                                                             // 97
	msgNamesWithoutExpr        = "ExpressionAttributeNames can only be specified when using expressions"                                                                      // 98
	msgValuesWithoutExpr       = "ExpressionAttributeValues can only be specified when using expressions"                                                                     // 99
	msgValuesWithoutExprNull   = "ExpressionAttributeValues can only be specified when using expressions: %s %s null"                                                         // 99, classic
	msgValueInvalid            = "ExpressionAttributeValues contains invalid value: %s for key %s"                                                                            // 102
	msgMixedStyles             = "Can not use both expression and non-expression parameters in the same request: Non-expression parameters: {%s} Expression parameters: {%s}" // 105
	msgExpectedValueAndList    = msgInvalidParameterPrefix + "Value and AttributeValueList cannot be used together for Attribute: %s"                                         // 106
	msgExpectedOperatorUnknown = msgInvalidParameterPrefix + "Invalid comparison operator"
	msgExpectedExistsOperator  = msgInvalidParameterPrefix + "Exists and ComparisonOperator cannot be used together for Attribute: %s"                // 107
	msgExpectedOperatorAlone   = msgInvalidParameterPrefix + "Value or AttributeValueList must be used with ComparisonOperator: %s for Attribute: %s" // 108
	msgExpectedListAlone       = msgInvalidParameterPrefix + "AttributeValueList can only be used with a ComparisonOperator for Attribute: %s"        // 109
	msgExpectedValueMissing    = msgInvalidParameterPrefix + "Value must be provided when Exists is %s for Attribute: %s"                             // 110
	msgExpectedValueSurplus    = msgInvalidParameterPrefix + "Value cannot be used when Exists is false for Attribute: %s"                            // 111
	msgLegacyArity             = msgInvalidParameterPrefix + "Invalid number of argument(s) for the %s ComparisonOperator"                            // 112
	msgLegacyMixedTypes        = msgInvalidParameterPrefix + "AttributeValues inside AttributeValueList must be of same type"                         // 113
	msgLegacyOperatorType      = msgInvalidParameterPrefix + "ComparisonOperator %s is not valid for %s AttributeValue type"                          // 114
	msgLegacyBetweenOrder      = "The BETWEEN condition was provided a range where the lower bound is greater than the upper bound"                   // 115
	msgUpdateValueMissing      = msgInvalidParameterPrefix + "Only DELETE action is allowed when no attribute value is specified"                     // 116
	msgUpdateDeleteType        = msgInvalidParameterPrefix + "DELETE action with value is not supported for the type %s"                              // 117
	msgUpdateStoredType        = "Type mismatch for attribute to update"                                                                              // 96
	msgUpdateAddType           = msgInvalidParameterPrefix + "ADD action is not supported for the type %s"                                            // 118
	msgLegacyOperatorAlone     = "ConditionalOperator cannot be used without Filter or Expected"                                                      // 119
	msgLegacyOperatorOne       = "ConditionalOperator can only be used when Filter or Expected has two or more elements"                              // 120
	msgKeyConditionCount       = "Conditions can be of length 1 or 2 only"                                                                            // 123
	msgDuplicateAttribute      = msgInvalidParameterPrefix + "Duplicate value in attribute name: %s"                                                  // 121
	msgNameEmpty               = "Empty attribute name"                                                                                               // 121b
)

// H. Query and Scan.
const (
	msgNoKeyCondition      = "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request."                                               // 122
	msgFilterOnKey         = "Filter Expression can only contain non-primary key attributes: Primary key attribute: %s"                                                     // 132
	msgLegacyFilterOnKey   = "QueryFilter can only contain non-primary key attributes: Primary key attribute: %s"                                                           // 132b
	msgIndexUnknown        = "The table does not have the specified index: %s"                                                                                              // 133
	msgConsistentOnGlobal  = "Consistent reads are not supported on global secondary indexes"                                                                               // 134
	msgAllOnPartialGlobal  = msgInvalidParameterPrefix + "Select type ALL_ATTRIBUTES is not supported for global secondary index %s because its projection type is not ALL" // 135
	msgProjectedNoIndex    = "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName"                                                                   // 136
	msgSpecificWithoutList = "Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES"                                            // 137
	msgListWithSelect      = "Cannot specify the %s when choosing to get %s"                                                                                                // 138
	msgOnlyTheCount        = "only the Count"                                                                                                                               // of 138, current
	msgNotProjected        = msgInvalidParameterPrefix + "Global secondary index %s does not project [%s]"
	msgIndexBackfilling    = "Cannot read from backfilling global secondary index: %s"
	msgStartKeyInvalid     = "The provided starting key is invalid: %s"                                                                                          // 139
	msgStartKeyShape       = "The provided starting key is invalid"                                                                                              // 139b
	msgStartKeyOutside     = "The provided starting key is outside query boundaries based on provided conditions"                                                // 140
	msgStartKeyPredicate   = "The provided starting key does not match the range key predicate"                                                                  // 141
	msgStartKeyOfOne       = "The provided exclusive start key is invalid: ExclusiveStartKey: {%s=%s}"                                                           // 142b
	msgStartKeySingle      = "The query can return at most one row and cannot be restarted"                                                                      // 142
	msgNoTotalSegments     = "The TotalSegments parameter is required but was not present in the request when Segment parameter is present"                      // 143
	msgNoSegment           = "The Segment parameter is required but was not present in the request when parameter TotalSegments is present"                      // 144
	msgSegmentRange        = "The Segment parameter is zero-based and must be less than parameter TotalSegments: Segment: %d is not less than TotalSegments: %d" // 145
	msgStartKeySegment     = "The provided starting key is invalid: Invalid ExclusiveStartKey. Please use ExclusiveStartKey with correct Segment. TotalSegments: %d Segment: %d"
)

// I. Batches, transactions, expiry and tags.
const (
	msgBatchGetEmpty       = "The requestItems parameter is required for BatchGetItem"   // 146
	msgBatchWriteEmpty     = "The requestItems parameter is required for BatchWriteItem" // 147
	msgBatchGetTooMany     = "Too many items requested for the BatchGetItem call"        // 148
	msgMapKeys             = "Map keys must satisfy constraint: [Member must have length less than or equal to 255, Member must have length greater than or equal to 3, Member must satisfy regular expression pattern: " + namePatternText + "]"
	msgBatchWriteTooMany   = "Map value must satisfy constraint: [Member must have length less than or equal to 25, Member must have length greater than or equal to 1]" // 149
	msgBatchWriteSum       = "Too many items requested for the BatchWriteItem call"
	msgDuplicateKeys       = "Provided list of item keys contains duplicates"                                     // 150
	msgTransactionOngoing  = "Transaction is ongoing for the item"                                                // 155
	msgTransactTwice       = "Transaction request cannot include multiple operations on one item"                 // 152
	msgTransactAction      = "TransactItems can only contain one of Check, Put, Update or Delete"                 // 153
	msgTransactionCanceled = "Transaction cancelled, please refer cancellation reasons for specific reasons [%s]" //nolint:misspell // 154, sic
	msgTransactTooLarge    = "Transaction payload size cannot exceed 4MB."                                        // 152b
	msgTransactReadTooMuch = "The aggregate size of the items in the transaction exceeds 4 MB"                    // ours
	msgTokenMismatch       = "The request with this ClientRequestToken had other parameters"
	msgTokenRunning        = "The transaction with the given request token is already in progress."
	msgTTLEnabled          = "TimeToLive is already enabled" // 158
	msgTTLDisabled         = "TimeToLive is already disabled"
	msgTTLOtherAttribute   = "TimeToLive is active on a different AttributeName: current AttributeName is %s"
	msgTTLTooSoon          = "Time to live has been modified multiple times within a fixed interval" // 159
	msgTagsEmpty           = "Atleast one Tag needs to be provided as Input."                        // 160, sic
	msgTagKeysEmpty        = "Atleast one Tag Key needs to be provided as Input."                    // 160, sic
	msgTagsARN             = "Invalid TableArn: Invalid ResourceArn provided as input %s"            // 161
	msgTagsNotFound        = "Requested resource not found: ResourcArn: %s not found"                // sic
	msgAccessDenied        = "User: arn:aws:iam::%s:root is not authorized to perform: dynamodb:%s on resource: %s because no resource-based policy allows the dynamodb:%[2]s action"
)

// J. Tables and tags, as recorded since 2026-10.
const (
	msgNonKeyTwice             = msgInvalidParameterPrefix + "Duplicate element in NonKeyAttributes: %s"                                                                                                    // 201
	msgDefinedTwice            = "Attribute Name is duplicated: %s"                                                                                                                                         // 202
	msgDefinedOtherwise        = msgInvalidParameterPrefix + "Attributes cannot be redefined. Please check that your attribute has the same type as previously defined. Existing schema: %s New schema: %s" // 203
	msgIndexWithoutDefinitions = msgInvalidParameterPrefix + "AttributeDefinitions is not specified for index: %s"                                                                                          // 204
	msgGSIUpdateSeveral        = msgInvalidParameterPrefix + "Only one global secondary index action is allowed per GlobalSecondaryIndexUpdate object"                                                      // 205
	msgStreamEnabled           = "Table already has an enabled stream: TableName: %s"                                                                                                                       // 206
	msgStreamDisabled          = "Table has no stream to disable: TableName: %s"                                                                                                                            // 207
	msgStreamWithoutView       = msgInvalidParameterPrefix + "Table is being created with a stream enabled, UpdateViewType is required"                                                                     // 208
	msgStreamViewNotEnabled    = msgInvalidParameterPrefix + "If stream is being enabled then UpdateViewType is required"                                                                                   // 208
	msgStreamViewNotDisabled   = msgInvalidParameterPrefix + "If stream is being disabled, then UpdateViewType must not be specified"                                                                       // 209
	msgIndexThroughputNone     = msgInvalidParameterPrefix + "ProvisionedThroughput is not specified for index: %s"                                                                                         // 210
	msgBackupsTableNotFound    = "Table not found: %s"                                                                                                                                                      // 211
	msgTagKey                  = "The Tag Key provided is invalid, Key: %s"                                                                                                                                 // 212
	msgTagValue                = "The Tag Value provided is invalid, Value: %s"                                                                                                                             // 213
	msgTagReserved             = "Tag Key cannot be prefixed with aws:, Key: %s"                                                                                                                            // 214
	msgTagTwice                = "Duplicate Tag Keys provided as input: Duplicate Tag Key found %s"                                                                                                         // 215
	msgTagsTooMany             = "Number of Tags exceed the current limit for the provided ResourceArn"                                                                                                     // 216
	msgARNPrefix               = msgInvalidParameterPrefix + "ARNs must start with 'arn:': %s"                                                                                                              // 217
	msgARNOfNothing            = msgInvalidParameterPrefix + "Provided Arn is not a DynamoDB resource arn: %s"                                                                                              // 218
	msgARNOfIndex              = msgInvalidParameterPrefix + "Invalid resource arn provided, only table or stream is accepted. Provided resource arn: %s"                                                   // 219
	// As in 40.
	msgUpdateTableNothing = "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates, SSESpecification, ReplicaUpdates, MultiAccountReplicaReady, ReplicaTransitRoleArn, MultiRegionConsistency, DeletionProtectionEnabled, OnDemandThroughput, WarmThroughput or TableClass is required"
)
