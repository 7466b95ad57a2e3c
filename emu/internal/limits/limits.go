// Package limits implements the documented limits of Bigtable.
package limits

// Mode selects which limits are enforced.
type Mode uint8

// These are the modes; emu.Limits describes them.
const (
	Strict Mode = iota
	Off
	Production
)

// These are Bigtable's limits, which are enforced unless the Mode is Off. Sources: the comments of
// google/bigtable/v2/{bigtable,data}.proto and
// google/bigtable/admin/v2/{table,bigtable_table_admin}.proto, and the page
// https://cloud.google.com/bigtable/quotas#limits.
const (
	MaxRowKeyBytes    = 4 << 10   // Row.key
	MaxQualifierBytes = 16 << 10  // Column.qualifier
	MaxValueBytes     = 100 << 20 // Cell.value
	MaxRowBytes       = 256 << 20 // Row: larger rows cannot be read whole
	MaxMutations      = 100_000   // MutateRowRequest.mutations, and the sum over a MutateRowsRequest

	MaxFilterBytes = 20_480 // RowFilter, serialized
	MaxFilterDepth = 20     // RowFilter: chains, interleaves and conditions around a filter

	MaxFamilyNameBytes   = 64      // Family.name
	MaxFamilies          = 100     // quotas page: per table; the status code is an assumption
	MaxResourceIDBytes   = 50      // tables, backups, snapshots: request documentation; views: Terraform's documentation; bundles: assumption
	MaxViewParameters    = 100     // quotas page; the way of counting is an assumption
	MaxSchemaBundles     = 10      // per table (assumption)
	MaxSchemaBundleBytes = 4 << 20 // SchemaBundle, serialized (assumption)
	MaxTablesPerInstance = 1_000   // quotas page

	MaxGCRuleBytes = 500 // ColumnFamily.gc_rule, serialized

	MaxStandardBackups = 150 // quotas page: per table and cluster
	MaxHotBackups      = 10

	MinInstanceIDBytes   = 6 // this and the next five limits apply only in the Mode Production
	MinClusterIDBytes    = 6
	MaxClusterIDBytes    = 30
	MinDisplayNameRunes  = 4
	MaxDisplayNameRunes  = 30
	MaxDescriptionRunes  = 140   // AppProfile.description: Terraform's documentation
	MaxInstanceIDBytes   = 33    // https://cloud.google.com/bigtable/docs/creating-instance
	MaxAppProfileIDBytes = 50    // https://cloud.google.com/bigtable/docs/configuring-app-profiles
	MaxViewIDBytes       = 128   // of logical and materialized views
	MaxViewsPerTable     = 5     // materialized views
	MaxPolicyPrincipals  = 1_500 // google.iam.v1.Policy
)
