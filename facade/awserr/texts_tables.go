package awserr

// Error texts for tables that are missing, already exist, or are busy.
const (
	MsgResourceNotFound   = "Requested resource not found"                                                                                 // row 49
	MsgTableNotFound      = "Requested resource not found: Table: %s not found"                                                            // row 48
	MsgNamedTableNotFound = "Table not found: %s"                                                                                          // rows 211, 410
	MsgTableExists        = "Table already exists: %s"                                                                                     // rows 46, 424
	MsgTooManyTables      = "Subscriber limit exceeded: There is a limit of %d tables per subscriber"                                      // row 225
	MsgTableInUse         = "Attempt to change a resource which is still in use: Table is being %s: %s"                                    // row 47
	MsgDeletionProtected  = "Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first." // row 45
)

// Error texts for the keys and attribute definitions of a table.
const (
	MsgKeyNotDefined        = "Invalid KeySchema: Some index key attribute have no definition"                                                                                                           // row 16
	MsgIndexKeyNotDefined   = MsgInvalidParameterPrefix + "Some index key attributes are not defined in AttributeDefinitions. Keys: [%s], AttributeDefinitions: [%s]"                                    // row 17
	MsgHashEqualsRange      = "Both the Hash Key and the Range Key element in the KeySchema have the same name"                                                                                          // row 18
	MsgFirstKeyNotHash      = "Invalid KeySchema: The first KeySchemaElement is not a HASH key type"                                                                                                     // row 19
	MsgSecondKeyNotRange    = "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type"                                                                                                   // row 20
	MsgHashAfterRange       = MsgInvalidParameterPrefix + "All HASH key attributes must precede RANGE key attributes in the KeySchema"                                                                   // row 37
	MsgTooManyKeyAttributes = MsgInvalidParameterPrefix + "The KeySchema exceeds the maximum allowed number of %s key attributes"                                                                        // row 38
	MsgKeyNameTwice         = "The KeySchema contains multiple key attributes with the same name"                                                                                                        // row 224
	MsgSurplusDefinitions   = MsgInvalidParameterPrefix + "Number of attributes in KeySchema does not exactly match number of attributes defined in AttributeDefinitions"                                // row 21
	MsgUnusedDefinitions    = MsgInvalidParameterPrefix + "Some AttributeDefinitions are not used. AttributeDefinitions: [%s], keys used: [%s]"                                                          // row 22
	MsgDefinedTwice         = "Attribute Name is duplicated: %s"                                                                                                                                         // row 202
	MsgDefinedOtherwise     = MsgInvalidParameterPrefix + "Attributes cannot be redefined. Please check that your attribute has the same type as previously defined. Existing schema: %s New schema: %s" // row 203
)

// Error texts for indexes.
const (
	MsgIndexListEmpty          = MsgInvalidParameterPrefix + "List of %s is empty"                                                                                                              // row 27
	MsgLocalWithoutRange       = MsgInvalidParameterPrefix + "Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex"                               // row 28
	MsgLocalIndexWithoutRange  = MsgInvalidParameterPrefix + "Index KeySchema does not have a range key for index: %s"                                                                          // row 29
	MsgLocalIndexOtherHash     = MsgInvalidParameterPrefix + "Index KeySchema does not have the same leading hash key as table KeySchema for index: %s. index hash key: %s, table hash key: %s" // row 30
	MsgProjectionUnknown       = MsgInvalidParameterPrefix + "Unknown ProjectionType: null"                                                                                                     // row 31
	MsgNonKeyNotAllowed        = MsgInvalidParameterPrefix + "ProjectionType is %s, but NonKeyAttributes is specified"                                                                          // row 32
	MsgNonKeyMissing           = MsgInvalidParameterPrefix + "ProjectionType is INCLUDE, but NonKeyAttributes is not specified"                                                                 // row 33
	MsgNonKeyTwice             = MsgInvalidParameterPrefix + "Duplicate element in NonKeyAttributes: %s"                                                                                        // row 201
	MsgDuplicateIndex          = MsgInvalidParameterPrefix + "Duplicate index name: %s"                                                                                                         // row 34
	MsgTooManyLocal            = MsgInvalidParameterPrefix + "Number of LocalSecondaryIndexes exceeds per-table limit of 5"                                                                     // row 35
	MsgTooManyGlobal           = MsgInvalidParameterPrefix + "GlobalSecondaryIndex count exceeds the per-table limit of 20"                                                                     // row 36
	MsgTooManyNonKey           = MsgInvalidParameterPrefix + "Number of NonKeyAttributes summed over all indexes exceeds the limit of %d"                                                       // row 223
	MsgIndexExists             = "Attempting to create an index which already exists"                                                                                                           // row 227
	MsgIndexNotFound           = "Requested resource not found: Index: %s of table: %s not found"                                                                                               // row 228
	MsgIndexWithoutDefinitions = MsgInvalidParameterPrefix + "AttributeDefinitions is not specified for index: %s"                                                                              // row 204
	MsgIndexUpdateBlocked      = "This operation cannot be performed with given input values. Please contact DynamoDB service team for more info: Action Blocked: IndexUpdate"                  // row 230
	MsgOneIndexAtATime         = "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table"                                                            // row 44
)

// Error texts for UpdateTable.
const (
	MsgUpdateTableNothing    = "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates, SSESpecification, ReplicaUpdates, MultiAccountReplicaReady, ReplicaTransitRoleArn, MultiRegionConsistency, DeletionProtectionEnabled, OnDemandThroughput, WarmThroughput or TableClass is required" // row 40
	MsgUpdateTableNothingOld = "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates or SSESpecification or ReplicaUpdates is required"                                                                                                                                                   // row 40
	MsgGSIUpdateEmpty        = MsgInvalidParameterPrefix + "One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, GlobalSecondaryIndexUpdate.Delete must not be null"                                                                                                                                              // row 41
	MsgGSIUpdateTwice        = MsgInvalidParameterPrefix + "Only one global secondary index update per index is allowed simultaneously. Index: %s"                                                                                                                                                                                        // row 42
	MsgUpdateAlone           = MsgInvalidParameterPrefix + "%s must be the only operation in the request"                                                                                                                                                                                                                                 // row 536
	MsgBoundsBesideOthers    = MsgInvalidParameterPrefix + "OnDemandThroughput can only be combined with BillingMode in an UpdateTable request"                                                                                                                                                                                           // row 537
	MsgWarmWithIndex         = MsgInvalidParameterPrefix + "Create global secondary index cannot be specified when updating WarmThroughput"                                                                                                                                                                                               // row 538
	MsgIndexWithThroughput   = MsgInvalidParameterPrefix + "You cannot create or delete index while updating table IOPS"                                                                                                                                                                                                                  // row 539
	MsgIndexWithStream       = MsgInvalidParameterPrefix + "You cannot create or delete index while changing stream status"                                                                                                                                                                                                               // row 540
	MsgNotGlobalIndex        = "Cannot %s an index that is not a GlobalSecondaryIndex: %s"                                                                                                                                                                                                                                                // row 542
	MsgIndexOnlyOnDemand     = MsgInvalidParameterPrefix + "The only Updates for index: %s when TableThroughputMode is PAY_PER_REQUEST can be to OnDemandThroughput, WarmThroughput"                                                                                                                                                      // row 543
	MsgIndexUnitsOnDemand    = MsgInvalidParameterPrefix + "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified for index: %s when BillingMode is PAY_PER_REQUEST"                                                                                                                                                          // row 544
	MsgTooManyGlobalAdded    = "Subscriber limit exceeded: Number of global secondary indexes exceeds per-table limit of 20"                                                                                                                                                                                                              // row 545
	MsgClassChanges          = "Subscriber limit exceeded: Updates to TableClass are limited to 2 times in 30 day(s)."                                                                                                                                                                                                                    // row 546
	MsgGSIUpdateSeveral      = MsgInvalidParameterPrefix + "Only one global secondary index action is allowed per GlobalSecondaryIndexUpdate object"                                                                                                                                                                                      // row 205
)

// Error texts for time to live.
const (
	MsgTTLEnabled        = "TimeToLive is already enabled"                                                  // row 158
	MsgTTLDisabled       = "TimeToLive is already disabled"                                                 // row 239
	MsgTTLOtherAttribute = "TimeToLive is active on a different AttributeName: current AttributeName is %s" // row 240
	MsgTTLTooSoon        = "Time to live has been modified multiple times within a fixed interval"          // row 159
)

// Error texts for encryption.
const (
	MsgSSETypeDisabled = MsgInvalidParameterPrefix + "SSEType can not be specified if Enabled is false"                                                                    // row 493
	MsgSSEKeyDisabled  = MsgInvalidParameterPrefix + "KMSMasterKeyId can not be specified if Enabled is false"                                                             // row 494
	MsgSSETypeAES      = MsgInvalidParameterPrefix + "SSEType AES256 is not supported"                                                                                     // row 495
	MsgSSETypeMissing  = MsgInvalidParameterPrefix + "SSEType KMS is required if KMSMasterKeyId is specified"                                                              // row 496
	MsgSSEUnchanged    = MsgInvalidParameterPrefix + "Table is already encrypted by default"                                                                               // row 497
	MsgSSEKeyUnchanged = MsgInvalidParameterPrefix + "Table is already encrypted with given KMSMasterKeyId. Use KMSMasterKeyId parameter if you want to change Master Key" // row 498
)

// Error texts for global tables.
const (
	MsgVersion2017         = MsgInvalidParameterPrefix + "DynamoDB global tables version 2017.11.29 is not supported. We recommend using DynamoDB global tables version 2019.11.21, instead of version 2017.11.29 (Legacy)." // row 296
	MsgGlobalTableNotFound = "Global table not found: " + MsgNoReplicas                                                                                                                                                      // row 465
	MsgNoReplicas          = "Global table with name: '%s' does not exist."                                                                                                                                                  // rows 297, 466
)
