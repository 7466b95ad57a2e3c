package bucketjobs

import "github.com/tabletop-emu/tabletop/facade/internal/wire"

// The texts; the number behind one is its row in facade/testdata/messages.tsv.
const (
	prefixRequest     = "Invalid Request: "                                                                                                      // part of 402
	msgARN            = wire.MsgInvalidParameterPrefix + "tableArn is not a valid ARN"                                                           // 400
	msgARNEmpty       = "Invalid TableArn: Invalid Table ARN"                                                                                    // 401
	msgARNOfPart      = prefixRequest + "Table ARN is invalid."                                                                                  // 402
	msgAccessDenied   = "Access is denied"                                                                                                       // 403
	msgSpecNoType     = prefixRequest + "Export Type expected to be Incremental Export when incremental export specification is provided"        // 404
	msgSpecOfFull     = prefixRequest + "When Export Type is Full Export , Incremental Export Specification should not be provided"              // 405, sic
	msgSpecMissing    = prefixRequest + "Incremental Export Specification expected when export type is set as Incremental Export"                // 406
	msgFromMissing    = prefixRequest + "ExportFromTime must be provided in IncrementalExportSpecification"                                      // 407
	msgKeyWithoutKMS  = prefixRequest + "KMS Key Id is not supported for this encryption type"                                                   // 408
	msgFilterEmpty    = prefixRequest + "Invalid FilterSpecification: The specification can not be empty"                                        // 409
	msgFilterOnKey    = "Filter Expression can only contain non-primary key attributes: Primary key attribute: %s"                               // 132
	msgTableNotFound  = "Table not found: %s"                                                                                                    // 410
	msgFromTooEarly   = "Incremental export period from time cannot be less than the table creation time : %s"                                   // 411
	msgToTooLate      = "Incremental export period to time cannot be greater than the current time : %s"                                         // 412
	msgPeriodTooShort = "Difference between export period from time and export period to time is less than 15 minutes"                           // 413
	msgPeriodTooLong  = "Difference between export period from time and export period to time is greater than 24 hours"                          // 414
	msgNoRecovery     = "Point in time recovery is not enabled for table '%s'"                                                                   // 415
	msgExportTime     = "Export Time is invalid"                                                                                                 // 416
	msgExportTimeLast = "Point in Time Recovery is not available for specified export time"                                                      // 417
	msgExportConflict = "Export conflict: Duplicate request detected with conflicting parameters"                                                // 418
	msgExportNotFound = "Export not found: Export not found: %s"                                                                                 // 419, sic
	msgExportRegion   = "Export not found: Invalid export arn"                                                                                   // 420
	msgExportARN      = "Invalid Export ARN"                                                                                                     // 421
	msgNextToken      = prefixRequest + "Provided nextToken is invalid: %s"                                                                      // 422
	msgImportOptions  = prefixRequest + "Unsupported InputFormatOptions for the given input format: %s."                                         // 423
	msgTableExists    = "Table already exists: %s"                                                                                               // 424
	msgImportConflict = "Import conflict: Duplicate request detected with conflicting parameters"                                                // 425
	msgImportNotFound = "Import not found: Import not found: %s"                                                                                 // 426
	msgImportRegion   = "Import not found: Invalid import arn"                                                                                   // 427
	msgImportARN      = "Invalid Import ARN"                                                                                                     // 428
	msgTooMany        = "Subscriber limit exceeded: There are already %d jobs of this kind"                                                      // ours
	msgNoSuchBucket   = "The specified bucket does not exist"                                                                                    // 430
	msgBucketOwner    = "Access Denied: the bucket has another owner"                                                                            // ours
	msgBucketRefused  = "Access Denied: %v"                                                                                                      // ours
	msgItems          = "Some of the items failed validation checks and were not imported. Please check CloudWatch error logs for more details." // 431
)
