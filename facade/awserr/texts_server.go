package awserr

// Error texts that are not specific to an operation.
const (
	MsgUnreadableRow        = "The table's mapping cannot read what is stored: %v"                                                                                   // ours
	MsgRowsNotFound         = MsgResourceNotFound + ": %v"                                                                                                           // ours
	MsgInternalError        = "The request processing has failed because of an unknown error, exception or failure."                                                 // 220
	MsgBigtableLimit        = "Throughput exceeds the current throughput limit for your account: the Bigtable behind this endpoint: %s"                              // part of 354
	MsgBigtableSilent       = "The request processing has failed because of an unknown error, exception or failure: the Bigtable behind this endpoint: %s"           // part of 220
	MsgServiceUnavailable   = "The Bigtable behind this endpoint is unavailable: %s"                                                                                 // ours
	MsgCatalogLost          = "it has lost the table %s, as a Bigtable in memory does at a restart: restart this server, too (%v)"                                   // ours
	MsgOperationUnknown     = "no operation %q"                                                                                                                      // ours
	MsgTargetUnknown        = "no operation has the target %.200q"                                                                                                   // ours
	MsgBucketsMissing       = "Tabletop does not support the operation %s without buckets: start tabletop serve with --buckets DIR, whose folders stand for buckets" // ours
	MsgParameterUnsupported = "Tabletop does not support the parameter %s of %s"                                                                                     // ours
	MsgTooManyNamespaces    = "Tabletop keeps the tables of %d pairs of access key and region apart, and has no room for another"                                    // ours
)
