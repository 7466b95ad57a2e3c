package awserr

// Error texts that are not specific to an operation.
const (
	MsgUnreadableRow        = "The table's mapping cannot read what is stored: %v"                                                                                   // our own text
	MsgRowsNotFound         = MsgResourceNotFound + ": %v"                                                                                                           // our own text
	MsgInternalError        = "The request processing has failed because of an unknown error, exception or failure."                                                 // row 220
	MsgBigtableLimit        = "Throughput exceeds the current throughput limit for your account: the Bigtable behind this endpoint: %s"                              // part of row 354
	MsgBigtableSilent       = "The request processing has failed because of an unknown error, exception or failure: the Bigtable behind this endpoint: %s"           // part of row 220
	MsgServiceUnavailable   = "The Bigtable behind this endpoint is unavailable: %s"                                                                                 // our own text
	MsgCatalogLost          = "it has lost the table %s, as a Bigtable in memory does at a restart: restart this server, too (%v)"                                   // our own text
	MsgOperationUnknown     = "unknown operation %q"                                                                                                                 // our own text
	MsgTargetUnknown        = "no operation has the target %.200q"                                                                                                   // our own text
	MsgBucketsMissing       = "Tabletop does not support the operation %s without buckets: start tabletop serve with --buckets DIR, whose folders stand for buckets" // our own text
	MsgParameterUnsupported = "Tabletop does not support the parameter %s of %s"                                                                                     // our own text
	MsgTooManyNamespaces    = "Tabletop keeps the tables of %d pairs of access key and region apart, and has no room for another"                                    // our own text
)
