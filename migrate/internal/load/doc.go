// Package load writes the items of a migration's tables to Bigtable.
//
// A [Loader] first checks that a load does not spoil its target. Then it records in
// layout.SchemaTable how to read each table, and applies the incremental exports of the
// source. It writes the missing rows, from the position of the checkpoint on.
// A load in parts ends with [Finish]. A [Stream] writes rows without items.
//
// What it promises: memory is bounded by the largest item, row and batch, and by a fixed
// allowance; an interrupted load can be repeated, and leaves each item either old or new.
//
// What it does not do: it reads rows only to skip what is already written, and checks
// none of them (package compare does).
package load
