package awserr

// The codes of errors.
const (
	CodeAccessDenied                   = "AccessDeniedException"
	CodeBackupInUse                    = "BackupInUseException"
	CodeBackupNotFound                 = "BackupNotFoundException"
	CodeConditionalCheckFailed         = "ConditionalCheckFailedException"
	CodeContinuousBackupsUnavailable   = "ContinuousBackupsUnavailableException"
	CodeDuplicateItem                  = "DuplicateItemException"
	CodeExpiredIterator                = "ExpiredIteratorException"
	CodeExportConflict                 = "ExportConflictException"
	CodeExportNotFound                 = "ExportNotFoundException"
	CodeGlobalTableNotFound            = "GlobalTableNotFoundException"
	CodeIdempotentMismatch             = "IdempotentParameterMismatchException"
	CodeImportConflict                 = "ImportConflictException"
	CodeImportNotFound                 = "ImportNotFoundException"
	CodeIncompleteSignature            = "IncompleteSignatureException"
	CodeInternalServerError            = "InternalServerError"
	CodeInvalidExportTime              = "InvalidExportTimeException"
	CodeInvalidRestoreTime             = "InvalidRestoreTimeException"
	CodeInvalidSignature               = "InvalidSignatureException"
	CodeLimitExceeded                  = "LimitExceededException"
	CodeMissingAuthentication          = "MissingAuthenticationTokenException"
	CodePointInTimeRecoveryUnavailable = "PointInTimeRecoveryUnavailableException"
	CodePolicyNotFound                 = "PolicyNotFoundException"
	CodeProvisionedThroughput          = "ProvisionedThroughputExceededException"
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

// The codes of cancellation reasons. An action without a fault has ReasonNone.
const (
	ReasonNone             = "None"
	ReasonConditionFailed  = "ConditionalCheckFailed"
	ReasonConflict         = "TransactionConflict"
	ReasonDuplicate        = "DuplicateItem"
	ReasonProvisioned      = "ProvisionedThroughputExceeded"
	ReasonResourceNotFound = "ResourceNotFound"
	ReasonThrottling       = "ThrottlingError"
	ReasonValidation       = "ValidationError"
)

// The failure codes of exports and imports.
const (
	FailureAccessDenied  = "S3AccessDenied"
	FailureCancelled     = "OperationCancelled" // belief
	FailureItems         = "ItemValidationError"
	FailureNoSuchBucket  = "S3NoSuchBucket"
	FailureTableExists   = "TableAlreadyExists"
	FailureTableNotFound = "TableNotFound"
)
