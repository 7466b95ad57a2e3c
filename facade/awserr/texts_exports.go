package awserr

// Error texts for table names in exports and imports, and for lists of these.
const (
	MsgJobTableARN       = MsgInvalidParameterPrefix + "tableArn is not a valid ARN"           // 400
	MsgJobTableARNEmpty  = "Invalid TableArn: Invalid Table ARN"                               // 401
	MsgJobTableARNOfPart = MsgInvalidRequestPrefix + "Table ARN is invalid."                   // 402
	MsgJobNextToken      = MsgInvalidRequestPrefix + "Provided nextToken is invalid: %s"       // 422
	MsgTooManyJobs       = "Subscriber limit exceeded: There are already %d jobs of this kind" // ours
)

// Error texts for exports.
const (
	MsgExportSpecNoType     = MsgInvalidRequestPrefix + "Export Type expected to be Incremental Export when incremental export specification is provided" // 404
	MsgExportSpecOfFull     = MsgInvalidRequestPrefix + "When Export Type is Full Export , Incremental Export Specification should not be provided"       // 405, sic
	MsgExportSpecMissing    = MsgInvalidRequestPrefix + "Incremental Export Specification expected when export type is set as Incremental Export"         // 406
	MsgExportFromMissing    = MsgInvalidRequestPrefix + "ExportFromTime must be provided in IncrementalExportSpecification"                               // 407
	MsgExportKeyWithoutKMS  = MsgInvalidRequestPrefix + "KMS Key Id is not supported for this encryption type"                                            // 408
	MsgExportFilterEmpty    = MsgInvalidRequestPrefix + "Invalid FilterSpecification: The specification can not be empty"                                 // 409
	MsgExportFromTooEarly   = "Incremental export period from time cannot be less than the table creation time : %s"                                      // 411
	MsgExportToTooLate      = "Incremental export period to time cannot be greater than the current time : %s"                                            // 412
	MsgExportPeriodTooShort = "Difference between export period from time and export period to time is less than 15 minutes"                              // 413
	MsgExportPeriodTooLong  = "Difference between export period from time and export period to time is greater than 24 hours"                             // 414
	MsgExportTime           = "Export Time is invalid"                                                                                                    // 416
	MsgExportTimeLast       = "Point in Time Recovery is not available for specified export time"                                                         // 417
	MsgExportConflict       = "Export conflict: Duplicate request detected with conflicting parameters"                                                   // 418
	MsgExportNotFound       = "Export not found: Export not found: %s"                                                                                    // 419, sic
	MsgExportRegion         = "Export not found: Invalid export arn"                                                                                      // 420
	MsgExportARN            = "Invalid Export ARN"                                                                                                        // 421
)

// Error texts for imports.
const (
	MsgImportOptions  = MsgInvalidRequestPrefix + "Unsupported InputFormatOptions for the given input format: %s." // 423
	MsgImportConflict = "Import conflict: Duplicate request detected with conflicting parameters"                  // 425
	MsgImportNotFound = "Import not found: Import not found: %s"                                                   // 426
	MsgImportRegion   = "Import not found: Invalid import arn"                                                     // 427
	MsgImportARN      = "Invalid Import ARN"                                                                       // 428
)

// Error texts for failed jobs.
const (
	MsgNoSuchBucket  = "The specified bucket does not exist"                                                                                    // 430
	MsgBucketOwner   = "Access Denied: the bucket has another owner"                                                                            // ours
	MsgBucketRefused = "Access Denied: %v"                                                                                                      // ours
	MsgImportItems   = "Some of the items failed validation checks and were not imported. Please check CloudWatch error logs for more details." // 431
)
