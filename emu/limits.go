package emu

import "time"

// The limits of Bigtable, enforced unless Options.Limits is NoLimits. Sources:
// the comments of google/bigtable/v2/{bigtable,data}.proto and
// google/bigtable/admin/v2/{table,bigtable_table_admin}.proto, and the page
// https://cloud.google.com/bigtable/quotas#limits.
const (
	maxRowKeyBytes    = 4 << 10   // Row.key
	maxQualifierBytes = 16 << 10  // Column.qualifier
	maxValueBytes     = 100 << 20 // Cell.value
	maxRowBytes       = 256 << 20 // Row: a larger row cannot be read whole
	maxMutations      = 100_000   // MutateRowRequest.mutations, and the sum over a MutateRowsRequest

	// Idempotency. It holds without limits too: a token is one or is none.
	minTokenBytes     = 8
	idempotencyWindow = 15 * time.Minute

	maxFilterBytes = 20_480 // RowFilter, serialized
	maxFilterDepth = 20     // RowFilter: chains, interleaves and conditions around a filter

	maxFamilyNameBytes   = 64      // Family.name
	maxFamilies          = 100     // quotas page: of a table; the code of the refusal is a belief
	maxResourceIDBytes   = 50      // of tables, backups and snapshots: their requests; of views: Terraform's documentation; of bundles (belief)
	maxViewParameters    = 100     // quotas page; how it counts is a belief
	maxSchemaBundles     = 10      // a table (belief)
	maxSchemaBundleBytes = 4 << 20 // SchemaBundle, serialized (belief)
	maxTablesPerInstance = 1_000   // quotas page

	maxGCRuleBytes = 500   // ColumnFamily.gc_rule, serialized
	maxPageSize    = 1_000 // ours: the page size of lists when none is asked for

	maxStandardBackups = 150 // quotas page: of a table in a cluster
	maxHotBackups      = 10

	minInstanceIDBytes   = 6 // the pages of the limits below too; only with ProductionLimits
	minClusterIDBytes    = 6
	maxClusterIDBytes    = 30
	minDisplayNameRunes  = 4
	maxDisplayNameRunes  = 30
	maxDescriptionRunes  = 140    // AppProfile.description: Terraform's documentation
	maxInstanceIDBytes   = 33     // https://cloud.google.com/bigtable/docs/creating-instance
	maxAppProfileIDBytes = 50     // https://cloud.google.com/bigtable/docs/configuring-app-profiles
	maxPolicyPrincipals  = 1_500  // google.iam.v1.Policy
	maxOperations        = 10_000 // ours: the number of operations that are kept
)

// consistencyTokenLifetime holds whatever Options.Limits says:
// GenerateConsistencyToken.
const consistencyTokenLifetime = 90 * 24 * time.Hour

// What the server itself keeps to.
const (
	// maxReceiveBytes is the largest request. A MutateRows request may carry
	// several values of maxValueBytes; official clients send up to 256 MiB.
	maxReceiveBytes = 320 << 20
	// streamWorkers is the default of Options.StreamWorkers.
	streamWorkers = 64
	// streamWindowBytes and connWindowBytes are how much of a request, and of
	// all requests of a connection, may be under way before the server has read
	// it. They are fixed: to find out better ones, gRPC has every request
	// answered by a ping and waits for its answer, which on a loopback takes as
	// long as a small call.
	streamWindowBytes = 1 << 20
	connWindowBytes   = 4 << 20
	// defaultHeartbeat is that of ReadChangeStreamRequest.heartbeat_duration.
	defaultHeartbeat = 5 * time.Second
	// maxSilence is how long, by the wall clock, a change stream says nothing.
	maxSilence = 20 * time.Second
	// scannedPerMessage is how many rows and cells ReadRows reads without
	// returning any before it sends last_scanned_row_key.
	scannedPerMessage = 10_000
	// maxEntriesPerMessage bounds a response of MutateRows.
	maxEntriesPerMessage = 10_000
)
