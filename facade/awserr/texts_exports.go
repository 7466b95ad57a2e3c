package awserr

// Error texts for table names in exports and imports, and for lists of exports and imports.
const (
	MsgJobTableARN       = MsgInvalidParameterPrefix + "tableArn is not a valid ARN"           // row 400
	MsgJobTableARNEmpty  = "Invalid TableArn: Invalid Table ARN"                               // row 401
	MsgJobTableARNOfPart = MsgInvalidRequestPrefix + "Table ARN is invalid."                   // row 402
	MsgJobNextToken      = MsgInvalidRequestPrefix + "Provided nextToken is invalid: %s"       // row 422
	MsgTooManyJobs       = "Subscriber limit exceeded: There are already %d jobs of this kind" // our own text
)

// Error texts for exports.
const (
	MsgExportSpecNoType     = MsgInvalidRequestPrefix + "Export Type expected to be Incremental Export when incremental export specification is provided" // row 404
	MsgExportSpecOfFull     = MsgInvalidRequestPrefix + "When Export Type is Full Export , Incremental Export Specification should not be provided"       // row 405, sic
	MsgExportSpecMissing    = MsgInvalidRequestPrefix + "Incremental Export Specification expected when export type is set as Incremental Export"         // row 406
	MsgExportFromMissing    = MsgInvalidRequestPrefix + "ExportFromTime must be provided in IncrementalExportSpecification"                               // row 407
	MsgExportKeyWithoutKMS  = MsgInvalidRequestPrefix + "KMS Key Id is not supported for this encryption type"                                            // row 408
	MsgExportFilterEmpty    = MsgInvalidRequestPrefix + "Invalid FilterSpecification: The specification can not be empty"                                 // row 409
	MsgExportFromTooEarly   = "Incremental export period from time cannot be less than the table creation time : %s"                                      // row 411
	MsgExportToTooLate      = "Incremental export period to time cannot be greater than the current time : %s"                                            // row 412
	MsgExportPeriodTooShort = "Difference between export period from time and export period to time is less than 15 minutes"                              // row 413
	MsgExportPeriodTooLong  = "Difference between export period from time and export period to time is greater than 24 hours"                             // row 414
	MsgExportTime           = "Export Time is invalid"                                                                                                    // row 416
	MsgExportTimeLast       = "Point in Time Recovery is not available for specified export time"                                                         // row 417
	MsgExportConflict       = "Export conflict: Duplicate request detected with conflicting parameters"                                                   // row 418
	MsgExportNotFound       = "Export not found: Export not found: %s"                                                                                    // row 419, sic
	MsgExportRegion         = "Export not found: Invalid export arn"                                                                                      // row 420
	MsgExportARN            = "Invalid Export ARN"                                                                                                        // row 421
)

// Error texts for imports.
const (
	MsgImportOptions  = MsgInvalidRequestPrefix + "Unsupported InputFormatOptions for the given input format: %s." // row 423
	MsgImportConflict = "Import conflict: Duplicate request detected with conflicting parameters"                  // row 425
	MsgImportNotFound = "Import not found: Import not found: %s"                                                   // row 426
	MsgImportRegion   = "Import not found: Invalid import arn"                                                     // row 427
	MsgImportARN      = "Invalid Import ARN"                                                                       // row 428
)

// Error texts for failed jobs.
const (
	MsgNoSuchBucket  = "The specified bucket does not exist"                                                                                    // row 430
	MsgBucketOwner   = "Access Denied: the bucket has another owner"                                                                            // our own text
	MsgBucketRefused = "Access Denied: %v"                                                                                                      // our own text
	MsgImportItems   = "Some of the items failed validation checks and were not imported. Please check CloudWatch error logs for more details." // row 431
)
