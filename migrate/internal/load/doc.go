// Package load writes the items of a migration's tables to Bigtable.
//
// A [Loader] first checks that a load would not corrupt its target. Then it records in
// layout.SchemaTable how to read each table, and applies the incremental exports of the
// source. Finally it writes the missing rows, starting at the position in the checkpoint.
// A load in parts ends with [Finish]. A [Stream] writes rows without items.
//
// Memory is bounded by the largest item, row and batch, and by a fixed allowance. An
// interrupted load can be repeated, and leaves each item either old or new.
//
// A load reads rows only to skip those that are already written. Package compare checks
// them.
package load
