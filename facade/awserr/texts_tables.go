package awserr

// Error texts for tables that are missing, already exist, or are busy.
const (
	MsgResourceNotFound   = "Requested resource not found"                                                                                 // 49
	MsgTableNotFound      = "Requested resource not found: Table: %s not found"                                                            // 48
	MsgNamedTableNotFound = "Table not found: %s"                                                                                          // 211, 410
	MsgTableExists        = "Table already exists: %s"                                                                                     // 46, 424
	MsgTooManyTables      = "Subscriber limit exceeded: There is a limit of %d tables per subscriber"                                      // 225
	MsgTableInUse         = "Attempt to change a resource which is still in use: Table is being %s: %s"                                    // 47
	MsgDeletionProtected  = "Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first." // 45
)

// Error texts for the keys and attribute definitions of a table.
const (
	MsgKeyNotDefined        = "Invalid KeySchema: Some index key attribute have no definition"                                                                                                           // 16
	MsgIndexKeyNotDefined   = MsgInvalidParameterPrefix + "Some index key attributes are not defined in AttributeDefinitions. Keys: [%s], AttributeDefinitions: [%s]"                                    // 17
	MsgHashEqualsRange      = "Both the Hash Key and the Range Key element in the KeySchema have the same name"                                                                                          // 18
	MsgFirstKeyNotHash      = "Invalid KeySchema: The first KeySchemaElement is not a HASH key type"                                                                                                     // 19
	MsgSecondKeyNotRange    = "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type"                                                                                                   // 20
	MsgHashAfterRange       = MsgInvalidParameterPrefix + "All HASH key attributes must precede RANGE key attributes in the KeySchema"                                                                   // 37
	MsgTooManyKeyAttributes = MsgInvalidParameterPrefix + "The KeySchema exceeds the maximum allowed number of %s key attributes"                                                                        // 38
	MsgKeyNameTwice         = "The KeySchema contains multiple key attributes with the same name"                                                                                                        // 224
	MsgSurplusDefinitions   = MsgInvalidParameterPrefix + "Number of attributes in KeySchema does not exactly match number of attributes defined in AttributeDefinitions"                                // 21
	MsgUnusedDefinitions    = MsgInvalidParameterPrefix + "Some AttributeDefinitions are not used. AttributeDefinitions: [%s], keys used: [%s]"                                                          // 22
	MsgDefinedTwice         = "Attribute Name is duplicated: %s"                                                                                                                                         // 202
	MsgDefinedOtherwise     = MsgInvalidParameterPrefix + "Attributes cannot be redefined. Please check that your attribute has the same type as previously defined. Existing schema: %s New schema: %s" // 203
)

// Error texts for indexes.
const (
	MsgIndexListEmpty          = MsgInvalidParameterPrefix + "List of %s is empty"                                                                                                              // 27
	MsgLocalWithoutRange       = MsgInvalidParameterPrefix + "Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex"                               // 28
	MsgLocalIndexWithoutRange  = MsgInvalidParameterPrefix + "Index KeySchema does not have a range key for index: %s"                                                                          // 29
	MsgLocalIndexOtherHash     = MsgInvalidParameterPrefix + "Index KeySchema does not have the same leading hash key as table KeySchema for index: %s. index hash key: %s, table hash key: %s" // 30
	MsgProjectionUnknown       = MsgInvalidParameterPrefix + "Unknown ProjectionType: null"                                                                                                     // 31
	MsgNonKeyNotAllowed        = MsgInvalidParameterPrefix + "ProjectionType is %s, but NonKeyAttributes is specified"                                                                          // 32
	MsgNonKeyMissing           = MsgInvalidParameterPrefix + "ProjectionType is INCLUDE, but NonKeyAttributes is not specified"                                                                 // 33
	MsgNonKeyTwice             = MsgInvalidParameterPrefix + "Duplicate element in NonKeyAttributes: %s"                                                                                        // 201
	MsgDuplicateIndex          = MsgInvalidParameterPrefix + "Duplicate index name: %s"                                                                                                         // 34
	MsgTooManyLocal            = MsgInvalidParameterPrefix + "Number of LocalSecondaryIndexes exceeds per-table limit of 5"                                                                     // 35
	MsgTooManyGlobal           = MsgInvalidParameterPrefix + "GlobalSecondaryIndex count exceeds the per-table limit of 20"                                                                     // 36
	MsgTooManyNonKey           = MsgInvalidParameterPrefix + "Number of NonKeyAttributes summed over all indexes exceeds the limit of %d"                                                       // 223
	MsgIndexExists             = "Attempting to create an index which already exists"                                                                                                           // 227
	MsgIndexNotFound           = "Requested resource not found: Index: %s of table: %s not found"                                                                                               // 228
	MsgIndexWithoutDefinitions = MsgInvalidParameterPrefix + "AttributeDefinitions is not specified for index: %s"                                                                              // 204
	MsgIndexUpdateBlocked      = "This operation cannot be performed with given input values. Please contact DynamoDB service team for more info: Action Blocked: IndexUpdate"                  // 230
	MsgOneIndexAtATime         = "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table"                                                            // 44
)

// Error texts for UpdateTable.
const (
	MsgUpdateTableNothing    = "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates, SSESpecification, ReplicaUpdates, MultiAccountReplicaReady, ReplicaTransitRoleArn, MultiRegionConsistency, DeletionProtectionEnabled, OnDemandThroughput, WarmThroughput or TableClass is required" // 40
	MsgUpdateTableNothingOld = "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates or SSESpecification or ReplicaUpdates is required"                                                                                                                                                   // 40
	MsgGSIUpdateEmpty        = MsgInvalidParameterPrefix + "One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, GlobalSecondaryIndexUpdate.Delete must not be null"                                                                                                                                              // 41
	MsgGSIUpdateTwice        = MsgInvalidParameterPrefix + "Only one global secondary index update per index is allowed simultaneously. Index: %s"                                                                                                                                                                                        // 42
	MsgUpdateAlone           = MsgInvalidParameterPrefix + "%s must be the only operation in the request"                                                                                                                                                                                                                                 // 536
	MsgBoundsBesideOthers    = MsgInvalidParameterPrefix + "OnDemandThroughput can only be combined with BillingMode in an UpdateTable request"                                                                                                                                                                                           // 537
	MsgWarmWithIndex         = MsgInvalidParameterPrefix + "Create global secondary index cannot be specified when updating WarmThroughput"                                                                                                                                                                                               // 538
	MsgIndexWithThroughput   = MsgInvalidParameterPrefix + "You cannot create or delete index while updating table IOPS"                                                                                                                                                                                                                  // 539
	MsgIndexWithStream       = MsgInvalidParameterPrefix + "You cannot create or delete index while changing stream status"                                                                                                                                                                                                               // 540
	MsgNotGlobalIndex        = "Cannot %s an index that is not a GlobalSecondaryIndex: %s"                                                                                                                                                                                                                                                // 542
	MsgIndexOnlyOnDemand     = MsgInvalidParameterPrefix + "The only Updates for index: %s when TableThroughputMode is PAY_PER_REQUEST can be to OnDemandThroughput, WarmThroughput"                                                                                                                                                      // 543
	MsgIndexUnitsOnDemand    = MsgInvalidParameterPrefix + "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified for index: %s when BillingMode is PAY_PER_REQUEST"                                                                                                                                                          // 544
	MsgTooManyGlobalAdded    = "Subscriber limit exceeded: Number of global secondary indexes exceeds per-table limit of 20"                                                                                                                                                                                                              // 545
	MsgClassChanges          = "Subscriber limit exceeded: Updates to TableClass are limited to 2 times in 30 day(s)."                                                                                                                                                                                                                    // 546
	MsgGSIUpdateSeveral      = MsgInvalidParameterPrefix + "Only one global secondary index action is allowed per GlobalSecondaryIndexUpdate object"                                                                                                                                                                                      // 205
)

// Error texts for time to live.
const (
	MsgTTLEnabled        = "TimeToLive is already enabled"                                                  // 158
	MsgTTLDisabled       = "TimeToLive is already disabled"                                                 // 239
	MsgTTLOtherAttribute = "TimeToLive is active on a different AttributeName: current AttributeName is %s" // 240
	MsgTTLTooSoon        = "Time to live has been modified multiple times within a fixed interval"          // 159
)

// Error texts for encryption.
const (
	MsgSSETypeDisabled = MsgInvalidParameterPrefix + "SSEType can not be specified if Enabled is false"                                                                    // 493
	MsgSSEKeyDisabled  = MsgInvalidParameterPrefix + "KMSMasterKeyId can not be specified if Enabled is false"                                                             // 494
	MsgSSETypeAES      = MsgInvalidParameterPrefix + "SSEType AES256 is not supported"                                                                                     // 495
	MsgSSETypeMissing  = MsgInvalidParameterPrefix + "SSEType KMS is required if KMSMasterKeyId is specified"                                                              // 496
	MsgSSEUnchanged    = MsgInvalidParameterPrefix + "Table is already encrypted by default"                                                                               // 497
	MsgSSEKeyUnchanged = MsgInvalidParameterPrefix + "Table is already encrypted with given KMSMasterKeyId. Use KMSMasterKeyId parameter if you want to change Master Key" // 498
)

// Error texts for global tables.
const (
	MsgVersion2017         = MsgInvalidParameterPrefix + "DynamoDB global tables version 2017.11.29 is not supported. We recommend using DynamoDB global tables version 2019.11.21, instead of version 2017.11.29 (Legacy)." // 296
	MsgGlobalTableNotFound = "Global table not found: " + MsgNoReplicas                                                                                                                                                      // 465
	MsgNoReplicas          = "Global table with name: '%s' does not exist."                                                                                                                                                  // 297, 466
)
