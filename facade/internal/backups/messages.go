package backups

// The texts; the number behind one is its row in facade/testdata/messages.tsv.
const (
	msgTableNotFound      = "Table not found: %s"                                                                                                                                                                      // 211
	msgInvalidARN         = "Invalid Backup ARN"                                                                                                                                                                       // 370
	msgARNNotValid        = "Invalid Request: BackupArn is not valid"                                                                                                                                                  // 371
	msgAccessDenied       = "Access is denied"                                                                                                                                                                         // 372
	msgBackupNotFound     = "Backup not found: %s"                                                                                                                                                                     // 373
	msgSystemBackup       = "Invalid Request: User is not allowed to delete the system backup with arn %s. It will automatically expire on %s"                                                                         // 374
	msgBackupRestoring    = "Backup is being used to restore table: %s"                                                                                                                                                // 375
	msgBackupCreating     = "Backup is being created: %s"                                                                                                                                                              // ours
	msgTooManyBackups     = "Subscriber limit exceeded: There is a limit of %d backups"                                                                                                                                // ours
	msgTimeRange          = "One or more parameter values were invalid: Time range lower bound must be less than or equal to upper bound"                                                                              // 376
	msgStartOfRegion      = "Invalid Request: The supplied ExclusiveStartBackupArn does not match the region"                                                                                                          // 377
	msgBackupsUnavailable = "Backups are being enabled for the table: %s. Please retry later"                                                                                                                          // 378
	msgPeriodDisabling    = "Invalid Request: Cannot specify RecoveryPeriodInDays when disabling point-in-time recovery."                                                                                              // 379
	msgTimesBoth          = "Invalid Request: Both RestoreDateTime and UseLatestRestorableTime cannot be set for point-in-time restore request. Please specify either RestoreDateTime time or UseLatestRestorableTime" // 380
	msgTimesNone          = "Invalid Request: Either one of RestoreDateTime or UseLatestRestorableTime must be specified, but not both"                                                                                // 381
	msgSourceBoth         = "Must provide exactly one of: sourceTableArn, sourceTableName"                                                                                                                             // 382
	msgSourceNone         = "The parameter 'TableName' is required but was not present in the request"                                                                                                                 // 2
	msgSourceARN          = "One or more parameter values were invalid: sourceTableArn is not a valid ARN"                                                                                                             // 459
	msgSourceOther        = "This action is only supported by accounts that match the resource owner’s account."                                                                                                       // 292
	msgNoRecovery         = "Point in time recovery is not enabled for table '%s'"                                                                                                                                     // 384
	msgRestoreTime        = "RestoreDateTime '%s' must be within EarliestRestorableDateTime '%s' and LatestRestorableDateTime '%s'"                                                                                    // 385
	msgTargetExists       = "Table already exists: %s"                                                                                                                                                                 // 46
	msgTargetRestoring    = "Table: %s is already being restored from backup: %s"                                                                                                                                      // 387
	msgBackupElsewhere    = "Backup is being used to restore another table: %s"                                                                                                                                        // 388
	msgTooManyRestores    = "Subscriber limit exceeded: Only %d restore operations can be done simultaneously"                                                                                                         // 389
	msgUnitsUnlessMode    = "Invalid Request: Cannot override ProvisionedThroughput unless BillingMode is PROVISIONED"                                                                                                 // 440
	msgUnitsNeeded        = "Invalid Request: Must override ProvisionedThroughput if BillingMode is overridden to PROVISIONED"                                                                                         // 441
	msgUnitsOnDemand      = "Invalid Request: Cannot override ProvisionedThroughput if BillingMode is overridden to PAY_PER_REQUEST"                                                                                   // 442
	msgBoundsUnlessMode   = "Invalid Request: Cannot override MaxReadRequestUnits for OnDemandThroughput unless BillingModeOverride is PAY_PER_REQUEST"                                                                // 443
	msgBoundsRange        = "Invalid Request: Requested MaxReadRequestUnits for OnDemandThroughput is outside of valid range"                                                                                          // 444
	msgIndexUnknown       = "Invalid Request: Index %s does not match a secondary index that existed in the source table and cannot be created during the restore operation"                                           // 445
	msgVectorOverride     = "Tabletop does not support the parameter VectorIndexOverride of %s"                                                                                                                        // ours
)
