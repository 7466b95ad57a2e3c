package kinesis

// The texts; the number behind one is its row in facade/testdata/messages.tsv.
const (
	msgNotEnabled    = "Table is not in a valid state to enable Kinesis Streaming Destination: EnableKinesisStreamingDestination must be DISABLED or ENABLE_FAILED to perform ENABLE operation."              // 360
	msgNotDisabled   = "Table is not in a valid state to enable Kinesis Streaming Destination: KinesisStreamingDestination must be ACTIVE to perform DISABLE operation."                                      // 361
	msgNotActive     = "Table is not in a valid state to enable Kinesis Streaming Destination: Kinesis streaming is not in ACTIVE state. Updates are only allowed in ACTIVE state. TableName: %s, kdsArn: %s" // 362
	msgUnknown       = "Table is not in a valid state to enable Kinesis Streaming Destination: No streaming destination with streamArn: %s found for table with tableName: %s"                                // 363
	msgDisableWith   = "Stream cannot be disabled using EnableKinesisStreamingConfiguration parameters"                                                                                                       // 364
	msgUpdateWithout = "Streaming destination cannot be updated with given parameters: UpdateKinesisStreamingConfiguration cannot be null or contain only null values"                                        // 365
	msgSamePrecision = "Invalid Request: Precision is already set to the desired value of %s for tableId: %s, kdsArn: %s"                                                                                     // 366
	msgNoPermission  = "User does not have a permission to use kinesis stream"                                                                                                                                // 367
)
