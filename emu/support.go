package emu

import "fmt"

// Status says whether the server has a thing.
type Status string

// The states of an RPC, filter, mutation or rule.
const (
	Served  Status = "served"
	Refused Status = "refused" // answers Unimplemented by name
)

// Feature is one row of the support table.
type Feature struct {
	// Group is the short name of the gRPC service, or RowFilter, Mutation or
	// GcRule for a member of that oneof.
	Group string
	// Name is the method's, or the oneof field's in the proto.
	Name   string
	Status Status
	// Note says what a served feature leaves out, or why one is refused. May
	// be "".
	Note string
}

// Support returns every RPC of the registered services and every member of the
// oneofs of RowFilter, Mutation and GcRule, in a fixed order. The slice is the
// caller's.
func Support() []Feature {
	return append([]Feature(nil), features...)
}

// features is in the order of the protos. A test compares it with the service
// descriptors and oneofs.
var features = []Feature{
	{"Bigtable", "ReadRows", Served, ""},
	{"Bigtable", "SampleRowKeys", Served, ""},
	{"Bigtable", "MutateRow", Served, ""},
	{"Bigtable", "MutateRows", Served, "no rate_limit_info"},
	{"Bigtable", "CheckAndMutateRow", Served, ""},
	{"Bigtable", "PingAndWarm", Served, ""},
	{"Bigtable", "ReadModifyWriteRow", Served, ""},
	{"Bigtable", "GenerateInitialChangeStreamPartitions", Refused, "change streams"},
	{"Bigtable", "ReadChangeStream", Refused, "change streams"},
	{"Bigtable", "PrepareQuery", Refused, "SQL"},
	{"Bigtable", "ExecuteQuery", Refused, "SQL"},
	{"Bigtable", "GetClientConfiguration", Served, "clients are told to open no sessions"},
	{"Bigtable", "OpenTable", Served, "not over Server.Conn, which carries no streams from the client"},
	{"Bigtable", "OpenAuthorizedView", Refused, "authorized views"},
	{"Bigtable", "OpenMaterializedView", Refused, "materialized views"},

	{"BigtableTableAdmin", "CreateTable", Served, "families come in name order; change streams, backup policies, row key schemas and tiered storage are refused"},
	{"BigtableTableAdmin", "CreateTableFromSnapshot", Refused, "snapshots"},
	{"BigtableTableAdmin", "ListTables", Served, ""},
	{"BigtableTableAdmin", "GetTable", Served, "one cluster, always ready"},
	{"BigtableTableAdmin", "UpdateTable", Refused, "long-running operations"},
	{"BigtableTableAdmin", "DeleteTable", Served, ""},
	{"BigtableTableAdmin", "UndeleteTable", Refused, "long-running operations"},
	{"BigtableTableAdmin", "CreateAuthorizedView", Refused, "authorized views"},
	{"BigtableTableAdmin", "ListAuthorizedViews", Refused, "authorized views"},
	{"BigtableTableAdmin", "GetAuthorizedView", Refused, "authorized views"},
	{"BigtableTableAdmin", "UpdateAuthorizedView", Refused, "authorized views"},
	{"BigtableTableAdmin", "DeleteAuthorizedView", Refused, "authorized views"},
	{"BigtableTableAdmin", "ModifyColumnFamilies", Served, ""},
	{"BigtableTableAdmin", "DropRowRange", Served, ""},
	{"BigtableTableAdmin", "GenerateConsistencyToken", Refused, "replication"},
	{"BigtableTableAdmin", "CheckConsistency", Refused, "replication"},
	{"BigtableTableAdmin", "SnapshotTable", Refused, "snapshots"},
	{"BigtableTableAdmin", "GetSnapshot", Refused, "snapshots"},
	{"BigtableTableAdmin", "ListSnapshots", Refused, "snapshots"},
	{"BigtableTableAdmin", "DeleteSnapshot", Refused, "snapshots"},
	{"BigtableTableAdmin", "CreateBackup", Refused, "backups"},
	{"BigtableTableAdmin", "GetBackup", Refused, "backups"},
	{"BigtableTableAdmin", "UpdateBackup", Refused, "backups"},
	{"BigtableTableAdmin", "DeleteBackup", Refused, "backups"},
	{"BigtableTableAdmin", "ListBackups", Refused, "backups"},
	{"BigtableTableAdmin", "RestoreTable", Refused, "backups"},
	{"BigtableTableAdmin", "CopyBackup", Refused, "backups"},
	{"BigtableTableAdmin", "GetIamPolicy", Refused, "access control"},
	{"BigtableTableAdmin", "SetIamPolicy", Refused, "access control"},
	{"BigtableTableAdmin", "TestIamPermissions", Refused, "access control"},
	{"BigtableTableAdmin", "CreateSchemaBundle", Refused, "schema bundles"},
	{"BigtableTableAdmin", "UpdateSchemaBundle", Refused, "schema bundles"},
	{"BigtableTableAdmin", "GetSchemaBundle", Refused, "schema bundles"},
	{"BigtableTableAdmin", "ListSchemaBundles", Refused, "schema bundles"},
	{"BigtableTableAdmin", "DeleteSchemaBundle", Refused, "schema bundles"},

	{"BigtableInstanceAdmin", "CreateInstance", Refused, "instances; any instance exists once it is named"},
	{"BigtableInstanceAdmin", "GetInstance", Refused, "instances; any instance exists once it is named"},
	{"BigtableInstanceAdmin", "ListInstances", Refused, "instances; any instance exists once it is named"},
	{"BigtableInstanceAdmin", "UpdateInstance", Refused, "instances; any instance exists once it is named"},
	{"BigtableInstanceAdmin", "PartialUpdateInstance", Refused, "instances; any instance exists once it is named"},
	{"BigtableInstanceAdmin", "DeleteInstance", Refused, "instances; any instance exists once it is named"},
	{"BigtableInstanceAdmin", "CreateCluster", Refused, "clusters"},
	{"BigtableInstanceAdmin", "GetCluster", Refused, "clusters"},
	{"BigtableInstanceAdmin", "ListClusters", Refused, "clusters"},
	{"BigtableInstanceAdmin", "UpdateCluster", Refused, "clusters"},
	{"BigtableInstanceAdmin", "PartialUpdateCluster", Refused, "clusters"},
	{"BigtableInstanceAdmin", "DeleteCluster", Refused, "clusters"},
	{"BigtableInstanceAdmin", "UpdateMemoryLayer", Refused, "memory layers"},
	{"BigtableInstanceAdmin", "ListMemoryLayers", Refused, "memory layers"},
	{"BigtableInstanceAdmin", "GetMemoryLayer", Refused, "memory layers"},
	{"BigtableInstanceAdmin", "CreateAppProfile", Refused, "app profiles; any id is accepted and ignored"},
	{"BigtableInstanceAdmin", "GetAppProfile", Refused, "app profiles; any id is accepted and ignored"},
	{"BigtableInstanceAdmin", "ListAppProfiles", Refused, "app profiles; any id is accepted and ignored"},
	{"BigtableInstanceAdmin", "UpdateAppProfile", Refused, "app profiles; any id is accepted and ignored"},
	{"BigtableInstanceAdmin", "DeleteAppProfile", Refused, "app profiles; any id is accepted and ignored"},
	{"BigtableInstanceAdmin", "GetIamPolicy", Refused, "access control"},
	{"BigtableInstanceAdmin", "SetIamPolicy", Refused, "access control"},
	{"BigtableInstanceAdmin", "TestIamPermissions", Refused, "access control"},
	{"BigtableInstanceAdmin", "ListHotTablets", Refused, "hot tablets"},
	{"BigtableInstanceAdmin", "CreateLogicalView", Refused, "SQL views"},
	{"BigtableInstanceAdmin", "GetLogicalView", Refused, "SQL views"},
	{"BigtableInstanceAdmin", "ListLogicalViews", Refused, "SQL views"},
	{"BigtableInstanceAdmin", "UpdateLogicalView", Refused, "SQL views"},
	{"BigtableInstanceAdmin", "DeleteLogicalView", Refused, "SQL views"},
	{"BigtableInstanceAdmin", "CreateMaterializedView", Refused, "SQL views"},
	{"BigtableInstanceAdmin", "GetMaterializedView", Refused, "SQL views"},
	{"BigtableInstanceAdmin", "ListMaterializedViews", Refused, "SQL views"},
	{"BigtableInstanceAdmin", "UpdateMaterializedView", Refused, "SQL views"},
	{"BigtableInstanceAdmin", "DeleteMaterializedView", Refused, "SQL views"},

	{"Operations", "ListOperations", Refused, "long-running operations"},
	{"Operations", "GetOperation", Refused, "long-running operations"},
	{"Operations", "DeleteOperation", Refused, "long-running operations"},
	{"Operations", "CancelOperation", Refused, "long-running operations"},
	{"Operations", "WaitOperation", Refused, "long-running operations"},

	{"RowFilter", "chain", Served, ""},
	{"RowFilter", "interleave", Served, ""},
	{"RowFilter", "condition", Served, "predicate and branches see the row at the same moment"},
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

	{"GcRule", "max_num_versions", Served, "applied by an explicit run"},
	{"GcRule", "max_age", Served, "applied by an explicit run"},
	{"GcRule", "intersection", Served, "applied by an explicit run"},
	{"GcRule", "union", Served, "applied by an explicit run"},
}

// refusal returns the answer to an RPC that is not served, or nil. A method
// that the table does not know is refused: what a new version of the protos
// adds is not built.
func refusal(service, method string) error {
	short := shortService(service)
	for _, f := range features {
		if f.Group == short && f.Name == method && f.Status == Served {
			return nil
		}
	}
	return statusNotBuilt(fmt.Sprintf("RPC %s/%s", service, method))
}
