package awserr

// Error texts for batches.
const (
	MsgBatchGetEmpty     = "The requestItems parameter is required for BatchGetItem"                                                                                   // row 146
	MsgBatchWriteEmpty   = "The requestItems parameter is required for BatchWriteItem"                                                                                 // row 147
	MsgBatchGetTooMany   = "Too many items requested for the BatchGetItem call"                                                                                        // row 148
	MsgBatchWriteTooMany = "Map value must satisfy constraint: [Member must have length less than or equal to 25, Member must have length greater than or equal to 1]" // part of row 149
	MsgBatchWriteSum     = "Too many items requested for the BatchWriteItem call"                                                                                      // row 237
	MsgDuplicateKeys     = "Provided list of item keys contains duplicates"                                                                                            // row 150
)

// Error texts for transactions.
const (
	MsgTransactionOngoing  = "Transaction is ongoing for the item"                                                  // row 155
	MsgTransactTwice       = "Transaction request cannot include multiple operations on one item"                   // row 152
	MsgTransactAction      = "TransactItems can only contain one of Check, Put, Update or Delete"                   // row 153
	MsgTransactNoAction    = "Invalid Request: TransactWriteRequest should contain Delete or Put or Update request" // row 480
	MsgTransactionCanceled = "Transaction cancelled, please refer cancellation reasons for specific reasons [%s]"   // row 154
	MsgTransactTooLarge    = "Transaction payload size cannot exceed 4MB."                                          // row 152b
	MsgTransactReadTooMuch = "The aggregate size of the items in the transaction exceeds 4 MB"                      // our own text
	MsgTokenMismatch       = "The request with this ClientRequestToken had other parameters"                        // our own text
	MsgTokenRunning        = "The transaction with the given request token is already in progress."                 // row 238
)

// MsgTransactNoActionNewer is the text that replaces MsgTransactNoAction in the newer
// layer.
const MsgTransactNoActionNewer = "Value '' at 'transactItems' failed to satisfy constraint: TransactWriteRequest should contain Delete or Put or Update or ConditionCheck" // row 480
