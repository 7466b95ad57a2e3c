package awserr

// Error texts for stream settings.
const (
	MsgStreamEnabled           = "Table already has an enabled stream: TableName: %s"                                                                                      // row 206
	MsgStreamDisabled          = "Table has no stream to disable: TableName: %s"                                                                                           // row 207
	MsgStreamChanging          = "Attempt to change a resource which is still in use: A stream status change is currently in progress. Table: %s Stream: %s Operation: %s" // row 390
	MsgStreamHoldsTable        = "Attempt to change a resource which is still in use: Cannot delete table while stream is being %s."                                       // row 391
	MsgStreamWithThroughput    = MsgInvalidParameterPrefix + "You cannot modify stream status while updating table IOPS"                                                   // row 392
	MsgStreamWithoutView       = MsgInvalidParameterPrefix + "Table is being created with a stream enabled, UpdateViewType is required"                                    // row 208
	MsgStreamViewWithoutStream = MsgInvalidParameterPrefix + "Table is being created with a stream disabled, UpdateViewType should not be specified"                       // row 39
	MsgStreamViewNotEnabled    = MsgInvalidParameterPrefix + "If stream is being enabled then UpdateViewType is required"                                                  // row 208
	MsgStreamViewNotDisabled   = MsgInvalidParameterPrefix + "If stream is being disabled, then UpdateViewType must not be specified"                                      // row 209
)

// Error texts for DynamoDB Streams.
const (
	MsgInvalidStreamARN = "Invalid StreamArn"                                                                      // our own text
	MsgStreamNotFound   = "Requested resource not found: Stream: %s not found"                                     // our own text
	MsgShardNotFound    = "Requested resource not found: Shard does not exist"                                     // our own text
	MsgSequenceMissing  = MsgInvalidParameterPrefix + "SequenceNumber cannot be null"                              // our own text
	MsgSequenceNotTaken = MsgInvalidParameterPrefix + "SequenceNumber should not be passed for this iterator type" // our own text
	MsgSequenceOfOther  = "Invalid SequenceNumber for the shard"                                                   // our own text
	MsgTrimmedData      = "The data you are trying to access has been trimmed"                                     // our own text
	MsgInvalidIterator  = "Invalid ShardIterator"                                                                  // our own text
	MsgExpiredIterator  = "Iterator expired"                                                                       // our own text
)

// Error texts for Kinesis streaming destinations.
const (
	MsgKinesisNotEnabled    = "Table is not in a valid state to enable Kinesis Streaming Destination: EnableKinesisStreamingDestination must be DISABLED or ENABLE_FAILED to perform ENABLE operation."              // row 360
	MsgKinesisNotDisabled   = "Table is not in a valid state to enable Kinesis Streaming Destination: KinesisStreamingDestination must be ACTIVE to perform DISABLE operation."                                      // row 361
	MsgKinesisNotActive     = "Table is not in a valid state to enable Kinesis Streaming Destination: Kinesis streaming is not in ACTIVE state. Updates are only allowed in ACTIVE state. TableName: %s, kdsArn: %s" // row 362
	MsgKinesisUnknown       = "Table is not in a valid state to enable Kinesis Streaming Destination: No streaming destination with streamArn: %s found for table with tableName: %s"                                // row 363
	MsgKinesisDisableWith   = "Stream cannot be disabled using EnableKinesisStreamingConfiguration parameters"                                                                                                       // row 364
	MsgKinesisUpdateWithout = "Streaming destination cannot be updated with given parameters: UpdateKinesisStreamingConfiguration cannot be null or contain only null values"                                        // row 365
	MsgKinesisSamePrecision = "Invalid Request: Precision is already set to the desired value of %s for tableId: %s, kdsArn: %s"                                                                                     // row 366
	MsgKinesisNoPermission  = "User does not have a permission to use kinesis stream"                                                                                                                                // row 367
)
