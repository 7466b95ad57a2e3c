package awserr

// Error texts for bulk operations. No capture of the service has them; other errors of bulk
// operations have the texts of older operations.
const (
	MsgBulkARN           = "Invalid Bulk Operation ARN"                                                                     // ours
	MsgBulkNotFound      = MsgResourceNotFound + ": Bulk operation not found: %s"                                           // ours
	MsgBulkRegion        = MsgResourceNotFound + ": Invalid bulk operation arn"                                             // ours
	MsgBulkTokenMismatch = "The request with this ClientToken had other parameters"                                         // ours
	MsgBulkEnded         = MsgInvalidRequestPrefix + "The bulk operation has ended: %s"                                     // ours
	MsgBulkIndexChanging = "Attempt to change a resource which is still in use: An index of the table is being created: %s" // ours
	MsgBulkTooMany       = "There are more than %d input objects"                                                           // ours
	MsgBulkTooLarge      = "The input object %s has more than %d bytes"                                                     // ours
	MsgBulkInputChanged  = "The input object %s is missing"                                                                 // ours
	MsgBulkTableGone     = "The table was deleted: %s"                                                                      // ours
	MsgBulkCancelled     = "The bulk operation was cancelled"                                                               // ours
)
