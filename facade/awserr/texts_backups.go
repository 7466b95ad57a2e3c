package awserr

// Error texts for backups.
const (
	MsgBackupARN           = "Invalid Backup ARN"                                                                                               // row 370
	MsgBackupARNOfPart     = "Invalid Request: BackupArn is not valid"                                                                          // row 371
	MsgBackupNotFound      = "Backup not found: %s"                                                                                             // row 373
	MsgSystemBackup        = "Invalid Request: User is not allowed to delete the system backup with arn %s. It will automatically expire on %s" // row 374
	MsgBackupRestoring     = "Backup is being used to restore table: %s"                                                                        // row 375
	MsgBackupCreating      = "Backup is being created: %s"                                                                                      // our own text
	MsgTooManyBackups      = "Subscriber limit exceeded: There is a limit of %d backups"                                                        // our own text
	MsgBackupTimeRange     = "One or more parameter values were invalid: Time range lower bound must be less than or equal to upper bound"      // row 376
	MsgBackupStartOfRegion = "Invalid Request: The supplied ExclusiveStartBackupArn does not match the region"                                  // row 377
	MsgBackupsUnavailable  = "Backups are being enabled for the table: %s. Please retry later"                                                  // row 378
)

// Error texts for point-in-time recovery. Exports use them too.
const (
	MsgRecoveryPeriodDisabling = "Invalid Request: Cannot specify RecoveryPeriodInDays when disabling point-in-time recovery." // row 379
	MsgNoRecovery              = "Point in time recovery is not enabled for table '%s'"                                        // rows 384, 415
)

// Error texts for restores.
const (
	MsgRestoreTimesBoth          = "Invalid Request: Both RestoreDateTime and UseLatestRestorableTime cannot be set for point-in-time restore request. Please specify either RestoreDateTime time or UseLatestRestorableTime" // row 380
	MsgRestoreTimesNone          = "Invalid Request: Either one of RestoreDateTime or UseLatestRestorableTime must be specified, but not both"                                                                                // row 381
	MsgRestoreSourceBoth         = "Must provide exactly one of: sourceTableArn, sourceTableName"                                                                                                                             // row 382
	MsgRestoreSourceARN          = "One or more parameter values were invalid: sourceTableArn is not a valid ARN"                                                                                                             // row 459
	MsgRestoreTime               = "RestoreDateTime '%s' must be within EarliestRestorableDateTime '%s' and LatestRestorableDateTime '%s'"                                                                                    // row 385
	MsgRestoreTargetRestoring    = "Table: %s is already being restored from backup: %s"                                                                                                                                      // row 387
	MsgRestoreElsewhere          = "Backup is being used to restore another table: %s"                                                                                                                                        // row 388
	MsgTooManyRestores           = "Subscriber limit exceeded: Only %d restore operations can be done simultaneously"                                                                                                         // row 389
	MsgRestoreUnitsUnlessMode    = "Invalid Request: Cannot override ProvisionedThroughput unless BillingMode is PROVISIONED"                                                                                                 // row 440
	MsgRestoreUnitsNeeded        = "Invalid Request: Must override ProvisionedThroughput if BillingMode is overridden to PROVISIONED"                                                                                         // row 441
	MsgRestoreUnitsOnDemand      = "Invalid Request: Cannot override ProvisionedThroughput if BillingMode is overridden to PAY_PER_REQUEST"                                                                                   // row 442
	MsgRestoreBoundsUnlessMode   = "Invalid Request: Cannot override MaxReadRequestUnits for OnDemandThroughput unless BillingModeOverride is PAY_PER_REQUEST"                                                                // row 443
	MsgRestoreBoundsRange        = "Invalid Request: Requested MaxReadRequestUnits for OnDemandThroughput is outside of valid range"                                                                                          // row 444
	MsgRestoreIndexUnknown       = "Invalid Request: Index %s does not match a secondary index that existed in the source table and cannot be created during the restore operation"                                           // row 445
	MsgRestoreIndexUnitsNeeded   = MsgInvalidParameterPrefix + "GlobalSecondaryIndexOverride must be specified for index: %s when BillingModeOverride is PROVISIONED"                                                         // row 490
	MsgRestoreIndexUnitsMissing  = "Invalid Request: Must specify provisioned throughput for index %s"                                                                                                                        // row 491
	MsgRestoreIndexUnitsOnDemand = MsgRestoreUnitsOnDemand + " for index %s"                                                                                                                                                  // row 492
)
