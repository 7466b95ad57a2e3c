package awserr

// Codes of errors, in the form that SDKs show. The JSON of a response adds a namespace.
const (
	CodeAccessDenied                   = "AccessDeniedException"
	CodeBackupInUse                    = "BackupInUseException"
	CodeBackupNotFound                 = "BackupNotFoundException"
	CodeConditionalCheckFailed         = "ConditionalCheckFailedException"
	CodeContinuousBackupsUnavailable   = "ContinuousBackupsUnavailableException"
	CodeDuplicateItem                  = "DuplicateItemException"
	CodeExpiredIterator                = "ExpiredIteratorException"
	CodeExpiredToken                   = "ExpiredTokenException"
	CodeExportConflict                 = "ExportConflictException"
	CodeExportNotFound                 = "ExportNotFoundException"
	CodeGlobalTableExists              = "GlobalTableAlreadyExistsException"
	CodeGlobalTableNotFound            = "GlobalTableNotFoundException"
	CodeIdempotentMismatch             = "IdempotentParameterMismatchException"
	CodeImportConflict                 = "ImportConflictException"
	CodeImportNotFound                 = "ImportNotFoundException"
	CodeIncompleteSignature            = "IncompleteSignatureException"
	CodeIndexNotFound                  = "IndexNotFoundException"
	CodeInternalServerError            = "InternalServerError"
	CodeInvalidEndpoint                = "InvalidEndpointException"
	CodeInvalidExportTime              = "InvalidExportTimeException"
	CodeInvalidRestoreTime             = "InvalidRestoreTimeException"
	CodeInvalidSignature               = "InvalidSignatureException"
	CodeItemCollectionTooLarge         = "ItemCollectionSizeLimitExceededException"
	CodeLimitExceeded                  = "LimitExceededException"
	CodeMissingAuthentication          = "MissingAuthenticationTokenException"
	CodePointInTimeRecoveryUnavailable = "PointInTimeRecoveryUnavailableException"
	CodePolicyNotFound                 = "PolicyNotFoundException"
	CodeProvisionedThroughput          = "ProvisionedThroughputExceededException"
	CodeReplicaExists                  = "ReplicaAlreadyExistsException"
	CodeReplicaNotFound                = "ReplicaNotFoundException"
	CodeReplicatedWriteConflict        = "ReplicatedWriteConflictException"
	CodeRequestLimit                   = "RequestLimitExceeded"
	CodeRequestTooLarge                = "RequestEntityTooLargeException"
	CodeResourceInUse                  = "ResourceInUseException"
	CodeResourceNotFound               = "ResourceNotFoundException"
	CodeSerialization                  = "SerializationException"
	CodeServiceUnavailable             = "ServiceUnavailable"
	CodeTableAlreadyExists             = "TableAlreadyExistsException"
	CodeTableInUse                     = "TableInUseException"
	CodeTableNotFound                  = "TableNotFoundException"
	CodeThrottling                     = "ThrottlingException"
	CodeTransactionCanceled            = "TransactionCanceledException"
	CodeTransactionConflict            = "TransactionConflictException"
	CodeTransactionInProgress          = "TransactionInProgressException"
	CodeTrimmedData                    = "TrimmedDataAccessException"
	CodeUnknownOperation               = "UnknownOperationException"
	CodeUnrecognizedClient             = "UnrecognizedClientException"
	CodeValidation                     = "ValidationException"
)

// Codes of cancellation reasons. An action that did not cause the cancellation has
// ReasonNone.
const (
	ReasonNone               = "None"
	ReasonConditionFailed    = "ConditionalCheckFailed"
	ReasonConflict           = "TransactionConflict"
	ReasonDuplicate          = "DuplicateItem"
	ReasonCollectionTooLarge = "ItemCollectionSizeLimitExceeded"
	ReasonProvisioned        = "ProvisionedThroughputExceeded"
	ReasonResourceNotFound   = "ResourceNotFound"
	ReasonThrottling         = "ThrottlingError"
	ReasonValidation         = "ValidationError"
)

// Failure codes in the descriptions of exports, imports and bulk operations.
const (
	FailureAccessDenied  = "S3AccessDenied"
	FailureCancelled     = "OperationCancelled" // assumed, not observed
	FailureItems         = "ItemValidationError"
	FailureNoSuchBucket  = "S3NoSuchBucket"
	FailureTableExists   = "TableAlreadyExists"
	FailureTableNotFound = "TableNotFound"
)
