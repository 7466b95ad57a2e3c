package awserr

// Error texts for bulk operations. They are our own, since no capture of the service has such
// texts. Other errors of bulk operations have the texts of older operations.
const (
	MsgBulkARN           = "Invalid Bulk Operation ARN"                                                                     // our own text
	MsgBulkNotFound      = MsgResourceNotFound + ": Bulk operation not found: %s"                                           // our own text
	MsgBulkRegion        = MsgResourceNotFound + ": Invalid bulk operation arn"                                             // our own text
	MsgBulkTokenMismatch = "The request with this ClientToken had other parameters"                                         // our own text
	MsgBulkEnded         = MsgInvalidRequestPrefix + "The bulk operation has ended: %s"                                     // our own text
	MsgBulkIndexChanging = "Attempt to change a resource which is still in use: An index of the table is being created: %s" // our own text
	MsgBulkTooMany       = "There are more than %d input objects"                                                           // our own text
	MsgBulkTooLarge      = "The input object %s has more than %d bytes"                                                     // our own text
	MsgBulkInputChanged  = "The input object %s is missing"                                                                 // our own text
	MsgBulkTableGone     = "The table was deleted: %s"                                                                      // our own text
	MsgBulkCancelled     = "The bulk operation was cancelled"                                                               // our own text
)
