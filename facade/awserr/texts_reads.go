package awserr

// Error texts for Query and Scan.
const (
	MsgFilterOnKey         = "Filter Expression can only contain non-primary key attributes: Primary key attribute: %s"                                                     // row 132
	MsgLegacyFilterOnKey   = "QueryFilter can only contain non-primary key attributes: Primary key attribute: %s"                                                           // row 132b
	MsgIndexUnknown        = "The table does not have the specified index: %s"                                                                                              // row 133
	MsgConsistentOnGlobal  = "Consistent reads are not supported on global secondary indexes"                                                                               // row 134
	MsgAllOnPartialGlobal  = MsgInvalidParameterPrefix + "Select type ALL_ATTRIBUTES is not supported for global secondary index %s because its projection type is not ALL" // row 135
	MsgProjectedNoIndex    = "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName"                                                                   // row 136
	MsgSpecificWithoutList = "Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES"                                            // row 137
	MsgListWithSelect      = "Cannot specify the %s when choosing to get %s"                                                                                                // row 138
	MsgOnlyTheCount        = "only the Count"                                                                                                                               // part of row 138
	MsgNotProjected        = MsgInvalidParameterPrefix + "Global secondary index %s does not project [%s]"                                                                  // row 233
	// MsgFilterNotProjected is only for PartiQL. It covers both local and global indexes.
	MsgFilterNotProjected = MsgInvalidParameterPrefix + "Secondary index %s does not project one or more filter attributes: [%s]"                                               // row 471
	MsgIndexBackfilling   = "Cannot read from backfilling global secondary index: %s"                                                                                           // row 234
	MsgStartKeyInvalid    = "The provided starting key is invalid: %s"                                                                                                          // row 139
	MsgStartKeyShape      = "The provided starting key is invalid"                                                                                                              // row 139b
	MsgStartKeyOutside    = "The provided starting key is outside query boundaries based on provided conditions"                                                                // row 140
	MsgStartKeyPredicate  = "The provided starting key does not match the range key predicate"                                                                                  // row 141
	MsgStartKeyOfOne      = "The provided exclusive start key is invalid: ExclusiveStartKey: {%s=%s}"                                                                           // row 142b
	MsgStartKeySingle     = "The query can return at most one row and cannot be restarted"                                                                                      // row 142
	MsgStartKeySegment    = "The provided starting key is invalid: Invalid ExclusiveStartKey. Please use ExclusiveStartKey with correct Segment. TotalSegments: %d Segment: %d" // row 235
	MsgNoTotalSegments    = "The TotalSegments parameter is required but was not present in the request when Segment parameter is present"                                      // row 143
	MsgNoSegment          = "The Segment parameter is required but was not present in the request when parameter TotalSegments is present"                                      // row 144
	MsgSegmentRange       = "The Segment parameter is zero-based and must be less than parameter TotalSegments"                                                                 // row 145
	MsgSegmentRangeOld    = "The Segment parameter is zero-based and must be less than parameter TotalSegments: Segment: %d is not less than TotalSegments: %d"                 // row 145
)
