// Package load writes the items of a migration's tables to Bigtable.
//
// A [Loader] first checks that a load does not spoil its target. Then it records in
// layout.SchemaTable how to read each table, and applies the incremental exports of the
// source. It writes the missing rows, from the position of the checkpoint on.
// A load in parts ends with [Finish]. A [Stream] writes rows without items.
//
// What it promises: memory is bounded by the largest item, row and batch, and by a fixed
// allowance; a load that is cut off can be repeated, and leaves items as they were or as
// they are to be.
//
// What it does not do: it reads rows back only to see what need not be written, and judges
// none of them (package compare does).
package load
