package emu

import (
	"strings"
	"sync"
)

// Status is the support status of a feature: Served or Refused.
type Status string

// These are the states of an RPC, filter, mutation or garbage-collection rule.
const (
	Served  Status = "served"
	Refused Status = "refused" // returns Unimplemented with the name of the feature
)

// Feature is a row of the support table.
type Feature struct {
	// Group is the short name of a gRPC service. For a member of a oneof, it is RowFilter, Mutation
	// or GcRule.
	Group string
	// Name is the name of the method, or of the oneof field in the proto.
	Name   string
	Status Status
	// Note names the missing parts of a served feature, or the reason why a feature is refused. It
	// may be empty.
	Note string
}

// Support returns every RPC of the registered services and every member of the
// oneofs of RowFilter, Mutation and GcRule, in a fixed order. The caller owns
// the slice.
func Support() []Feature { return append([]Feature(nil), features...) }

// features is in the order of the protos. A test compares it with the service
// descriptors and oneofs.
var features = []Feature{
	{"Bigtable", "ReadRows", Served, ""},
	{"Bigtable", "SampleRowKeys", Served, ""},
	{"Bigtable", "MutateRow", Served, ""},
	{"Bigtable", "MutateRows", Served, "rate_limit_info, if requested, always allows more load"},
	{"Bigtable", "CheckAndMutateRow", Served, ""},
	{"Bigtable", "PingAndWarm", Served, ""},
	{"Bigtable", "ReadModifyWriteRow", Served, ""},
	{"Bigtable", "GenerateInitialChangeStreamPartitions", Served, "partitions of the initial splits; they change only by Server.SplitPartition and MergePartitions"},
	{"Bigtable", "ReadChangeStream", Served, "commit timestamps are exact and increase by at least a microsecond; partition may be absent"},
	{"Bigtable", "PrepareQuery", Served, ""},
	{"Bigtable", "ExecuteQuery", Served, ""},
	{"Bigtable", "GetClientConfiguration", Served, "the answer disables sessions"},
	{"Bigtable", "OpenTable", Served, "not over Server.Conn, which carries no streams from the client"},
	{"Bigtable", "OpenAuthorizedView", Served, "not over Server.Conn, which carries no streams from the client"},
	{"Bigtable", "OpenMaterializedView", Served, "reads alone"},

	{"BigtableTableAdmin", "CreateTable", Served, "families are in name order; tiers are stored, without effect"},
	{"BigtableTableAdmin", "CreateTableFromSnapshot", Served, "done when it returns; copies the data"},
	{"BigtableTableAdmin", "ListTables", Served, ""},
	{"BigtableTableAdmin", "GetTable", Served, ""},
	{"BigtableTableAdmin", "UpdateTable", Served, "done when it returns"},
	{"BigtableTableAdmin", "DeleteTable", Served, ""},
	{"BigtableTableAdmin", "UndeleteTable", Served, "done when it returns; in memory the latest deleted tables are kept, up to 128 MiB and 100 tables"},
	{"BigtableTableAdmin", "CreateAuthorizedView", Served, "done when it returns; its families must exist"},
	{"BigtableTableAdmin", "ListAuthorizedViews", Served, ""},
	{"BigtableTableAdmin", "GetAuthorizedView", Served, "returns all fields unless a view is requested, as the service does"},
	{"BigtableTableAdmin", "UpdateAuthorizedView", Served, "done when it returns"},
	{"BigtableTableAdmin", "DeleteAuthorizedView", Served, ""},
	{"BigtableTableAdmin", "ModifyColumnFamilies", Served, ""},
	{"BigtableTableAdmin", "DropRowRange", Served, ""},
	{"BigtableTableAdmin", "GenerateConsistencyToken", Served, ""},
	{"BigtableTableAdmin", "CheckConsistency", Served, "follows the configured lags; by default all clusters see every write at once"},
	{"BigtableTableAdmin", "SnapshotTable", Served, "done when it returns; copies the data, which counts towards backups"},
	{"BigtableTableAdmin", "GetSnapshot", Served, ""},
	{"BigtableTableAdmin", "ListSnapshots", Served, "in one page"},
	{"BigtableTableAdmin", "DeleteSnapshot", Served, ""},
	{"BigtableTableAdmin", "CreateBackup", Served, "done when it returns; copies the data; in memory at most 4 GiB of backups"},
	{"BigtableTableAdmin", "GetBackup", Served, ""},
	{"BigtableTableAdmin", "UpdateBackup", Served, ""},
	{"BigtableTableAdmin", "DeleteBackup", Served, ""},
	{"BigtableTableAdmin", "ListBackups", Served, ""},
	{"BigtableTableAdmin", "RestoreTable", Served, "done when it returns; copies the data"},
	{"BigtableTableAdmin", "CopyBackup", Served, "done when it returns; copies the data"},
	{"BigtableTableAdmin", "GetIamPolicy", Served, "stored, not enforced; tables, authorized views, schema bundles and backups"},
	{"BigtableTableAdmin", "SetIamPolicy", Served, "stored, not enforced; tables, authorized views, schema bundles and backups"},
	{"BigtableTableAdmin", "TestIamPermissions", Served, "grants everything"},
	{"BigtableTableAdmin", "CreateSchemaBundle", Served, "done when it returns; SQL reads protobufs"},
	{"BigtableTableAdmin", "UpdateSchemaBundle", Served, "done when it returns; Avro schemas are not checked for compatibility"},
	{"BigtableTableAdmin", "GetSchemaBundle", Served, ""},
	{"BigtableTableAdmin", "ListSchemaBundles", Served, "whole bundles"},
	{"BigtableTableAdmin", "DeleteSchemaBundle", Served, ""},

	{"BigtableInstanceAdmin", "CreateInstance", Served, "done when it returns; afterwards other instances of the project exist only if they hold a table"},
	{"BigtableInstanceAdmin", "GetInstance", Served, "every named instance exists, until one is created in its project"},
	{"BigtableInstanceAdmin", "ListInstances", Served, ""},
	{"BigtableInstanceAdmin", "UpdateInstance", Served, ""},
	{"BigtableInstanceAdmin", "PartialUpdateInstance", Served, "done when it returns"},
	{"BigtableInstanceAdmin", "DeleteInstance", Served, "deletes its tables permanently"},
	{"BigtableInstanceAdmin", "CreateCluster", Served, "done when it returns; one process serves all clusters"},
	{"BigtableInstanceAdmin", "GetCluster", Served, ""},
	{"BigtableInstanceAdmin", "ListClusters", Served, ""},
	{"BigtableInstanceAdmin", "UpdateCluster", Served, "done when it returns"},
	{"BigtableInstanceAdmin", "PartialUpdateCluster", Served, "done when it returns; autoscaling stays at the minimum"},
	{"BigtableInstanceAdmin", "DeleteCluster", Served, "loses its unreplicated writes: [Replication](bigtable.md#replication)"},
	{"BigtableInstanceAdmin", "UpdateMemoryLayer", Served, "done when it returns; the layer serves no reads"},
	{"BigtableInstanceAdmin", "ListMemoryLayers", Served, ""},
	{"BigtableInstanceAdmin", "GetMemoryLayer", Served, "8 GiB per node"},
	{"BigtableInstanceAdmin", "CreateAppProfile", Served, "no etag, as in the service"},
	{"BigtableInstanceAdmin", "GetAppProfile", Served, ""},
	{"BigtableInstanceAdmin", "ListAppProfiles", Served, ""},
	{"BigtableInstanceAdmin", "UpdateAppProfile", Served, "done when it returns"},
	{"BigtableInstanceAdmin", "DeleteAppProfile", Served, "needs ignore_warnings"},
	{"BigtableInstanceAdmin", "GetIamPolicy", Served, "stored, not enforced"},
	{"BigtableInstanceAdmin", "SetIamPolicy", Served, "stored, not enforced"},
	{"BigtableInstanceAdmin", "TestIamPermissions", Served, "grants everything"},
	{"BigtableInstanceAdmin", "ListHotTablets", Served, "from requests of the last 24 hours to created instances, since the process started; shares of the load instead of CPU"},
	{"BigtableInstanceAdmin", "CreateLogicalView", Served, ""},
	{"BigtableInstanceAdmin", "GetLogicalView", Served, ""},
	{"BigtableInstanceAdmin", "ListLogicalViews", Served, ""},
	{"BigtableInstanceAdmin", "UpdateLogicalView", Served, ""},
	{"BigtableInstanceAdmin", "DeleteLogicalView", Served, ""},
	{"BigtableInstanceAdmin", "CreateMaterializedView", Served, "done when it is filled"},
	{"BigtableInstanceAdmin", "GetMaterializedView", Served, ""},
	{"BigtableInstanceAdmin", "ListMaterializedViews", Served, ""},
	{"BigtableInstanceAdmin", "UpdateMaterializedView", Served, "deletion_protection alone can change"},
	{"BigtableInstanceAdmin", "DeleteMaterializedView", Served, ""},

	{"Operations", "ListOperations", Served, "the newest 10,000; no filters"},
	{"Operations", "GetOperation", Served, ""},
	{"Operations", "DeleteOperation", Served, ""},
	{"Operations", "CancelOperation", Served, "for CREATING clusters and backups, and for restores; other operations are done when their RPC returns, or cannot be canceled"},
	{"Operations", "WaitOperation", Served, "waits on the clock of the server"},

	{"Locations", "ListLocations", Served, "the zones of the project's clusters"},
	{"Locations", "GetLocation", Served, "every zone exists"},

	{"RowFilter", "chain", Served, ""},
	{"RowFilter", "interleave", Served, ""},
	{"RowFilter", "condition", Served, "predicate and branches read the same state of the row"},
	{"RowFilter", "sink", Served, ""},
	{"RowFilter", "pass_all_filter", Served, ""},
	{"RowFilter", "block_all_filter", Served, ""},
	{"RowFilter", "row_key_regex_filter", Served, ""},
	{"RowFilter", "row_sample_filter", Served, "the random sequence starts at Options.Seed"},
	{"RowFilter", "family_name_regex_filter", Served, ""},
	{"RowFilter", "column_qualifier_regex_filter", Served, ""},
	{"RowFilter", "column_range_filter", Served, ""},
	{"RowFilter", "timestamp_range_filter", Served, ""},
	{"RowFilter", "value_regex_filter", Served, ""},
	{"RowFilter", "value_range_filter", Served, ""},
	{"RowFilter", "cells_per_row_offset_filter", Served, "counts in ReadRows order"},
	{"RowFilter", "cells_per_row_limit_filter", Served, "counts in ReadRows order"},
	{"RowFilter", "cells_per_column_limit_filter", Served, ""},
	{"RowFilter", "strip_value_transformer", Served, ""},
	{"RowFilter", "apply_label_transformer", Served, ""},
	{"RowFilter", "value_bitmask_filter", Served, ""},

	{"Mutation", "set_cell", Served, ""},
	{"Mutation", "add_to_cell", Served, ""},
	{"Mutation", "merge_to_cell", Served, ""},
	{"Mutation", "delete_from_column", Served, ""},
	{"Mutation", "delete_from_family", Served, ""},
	{"Mutation", "delete_from_row", Served, ""},

	{"GcRule", "max_num_versions", Served, ""},
	{"GcRule", "max_age", Served, ""},
	{"GcRule", "intersection", Served, ""},
	{"GcRule", "union", Served, ""},
}

// servedRPCs returns the implemented RPCs, as Service/Method.
var servedRPCs = sync.OnceValue(func() map[string]bool {
	served := make(map[string]bool, len(features))
	for _, f := range features {
		if f.Status == Served {
			served[f.Group+"/"+f.Name] = true
		}
	}
	return served
})

// serves reports whether the server implements a method of a service, by its full name. Methods
// outside the table, such as those of newer protos, are not implemented.
func serves(service, method string) bool {
	return servedRPCs()[service[strings.LastIndexByte(service, '.')+1:]+"/"+method]
}
