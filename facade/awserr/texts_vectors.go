package awserr

// Error texts for the definitions of vector indexes.
const (
	MsgVectorsProvisioned    = MsgInvalidParameterPrefix + "Vector indexes are only supported for PAY_PER_REQUEST tables"                                                                                 // row 500
	MsgVectorsHoldBilling    = MsgInvalidParameterPrefix + "Tables with vector indexes must be in PAY_PER_REQUEST mode"                                                                                   // row 501
	MsgTooManyVectors        = MsgInvalidParameterPrefix + "VectorIndex count exceeds the per-table limit of 5"                                                                                           // row 502
	MsgTooManyVectorsAdded   = "Subscriber limit exceeded: Number of vector secondary indexes exceeds per-table limit of 5"                                                                               // row 503
	MsgDimensions            = MsgInvalidParameterPrefix + "Number of dimensions must be between 1 and 4096 inclusive."                                                                                   // row 504
	MsgDimensionsDiffer      = MsgInvalidParameterPrefix + "Conflicting attribute definition for '%s'. All VectorIndexes on the same vector attribute must use the same dimensions."                      // row 505
	MsgVectorDefined         = MsgInvalidParameterPrefix + "Conflicting attribute definition for '%s'. An attribute cannot be defined in AttributeDefinitions when used as a VectorAttribute."            // row 506
	MsgSearchSchemaUndefined = MsgInvalidParameterPrefix + "One element in SearchSchema is not defined in attribute definitions"                                                                          // row 507
	MsgSearchSchemaCount     = MsgInvalidParameterPrefix + "Value '%d' at 'SearchSchema' failed to satisfy constraint: Member must have %s count less than or equal to %d"                                // row 508
	MsgSearchSchemaTwice     = MsgInvalidParameterPrefix + "SearchSchema contains a duplicate AttributeName"                                                                                              // row 509
	MsgVectorUpdateSeveral   = MsgInvalidParameterPrefix + "Only one vector index action is allowed per VectorIndexUpdate object"                                                                         // row 510
	MsgVectorUpdateEmpty     = MsgInvalidParameterPrefix + "One of VectorIndexUpdate.Create, VectorIndexUpdate.Delete must not be null"                                                                   // row 511
	MsgVectorIndexNotFound   = "Requested resource not found: Index %s for table %s"                                                                                                                      // row 512
	MsgVectorIndexAllocated  = "Attempt to change a resource which is still in use: Index creation is in resource allocation phase. Retry deletion during backfilling phase or when the index is active." // row 513
	MsgIndexesHoldTable      = "Attempt to change a resource which is still in use: Cannot delete table while indexes are being created, updated, or deleted."                                            // row 514
	MsgQueryOfVectorIndex    = "Query operation not supported on this index type."                                                                                                                        // row 515
	MsgScanOfVectorIndex     = "Scan operation not supported on this index type"                                                                                                                          // row 516
)

// Error texts for items with vectors.
const (
	MsgVectorNoList     = "One or more parameter values were invalid. Invalid type for parameter %s, Expected: 32-bit floating point number list IndexName: %s"                          // row 517
	MsgVectorSize       = "One or more parameter values were invalid. Invalid size for parameter %s, Expected: %d, Actual: %d IndexName: %s"                                             // row 518
	MsgVectorElement    = "One or more parameter values were invalid. Invalid type for parameter %s[%d], Expected: 32-bit floating point number, Actual: %s. IndexName: %s"              // row 519
	MsgVectorRange      = "One or more parameter values were invalid. Invalid value for parameter %s[%d], Value: %s is outside valid range [-3.4028235E38, 3.4028235E38]. IndexName: %s" // row 520
	MsgSearchSchemaType = "One or more parameter values were invalid. Attribute '%s' type mismatch. Expected: %s, Actual: %s. IndexName: %s"                                             // row 521
)

// Error texts for SearchVectors.
const (
	MsgSearchMissing       = "missing field `%s` at line %d column %d"                                                                                 // row 522
	MsgSearchType          = "invalid %s, expected %s at line %d column %d"                                                                            // row 523
	MsgSearchTopK          = "Provided TopK value '%d' is out of valid range. The value must be between 1 and 100 inclusive"                           // row 524
	MsgSearchElements      = "Search vector contains invalid values. All values in the search vector must be a 32-bit floating-point number attribute" // row 525
	MsgSearchDimensions    = "Input search vector dimension %d does not match vector index dimension %d"                                               // row 526
	MsgSearchBackfilling   = "Cannot search backfilling vector index: %s"                                                                              // row 527
	MsgSearchHashMissing   = "SearchConditionExpression must be provided when SearchSchema has a HASH key"                                             // row 528
	MsgSearchOutsideSchema = "SearchConditionExpression must not contain any attributes that is not in SearchSchema. Invalid attribute: %s"            // row 529
	MsgSearchHashType      = "Type of '%s' attribute in SearchConditionExpression (%s) does not match type in search schema (%s)"                      // row 530
	MsgSearchTooLarge      = "Tabletop's answer to SearchVectors would exceed 16 MB: ask for fewer attributes or a smaller TopK"                       // our own text
)
