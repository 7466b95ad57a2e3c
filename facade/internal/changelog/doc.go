// Package changelog is the log of what was changed in a table: one record for each
// committed write of an item that changed it. Streams are read from it.
//
// # What a log promises
//
//  1. A record is there exactly once for every acknowledged write that changed its
//     item, and never for one that did not happen or changed nothing.
//  2. Records of one item are in the order of its writes.
//  3. Who has read a slot up to a position that Floor gave never finds a record below
//     it later.
//  4. All of that with single-row atomicity alone, whatever crashes between two calls.
//
// # How
//
// The mutation that commits a write puts its record into the item's row too, in a
// column of its own (CellQualifier): the record cell. The writer then appends the
// record to the log's table and, later and in bulk, deletes the record cell.
// Where the record goes in the log is decided by the record cell, so that whoever
// finds one can append it, as often as they like.
//
// Positions are sequence numbers of a clock for the whole process: nanoseconds of the
// wall clock, and above all that was given out before (Sequencer). Before a write
// takes one, it holds the floor down, and lets go of it once its record is appended:
// readers read below the floor.
//
// So that a process that starts anew goes on above what was given out and read before,
// a ceiling ahead of the clock is kept in the catalog. Several processes over one
// Bigtable write records of their own that all read; but a floor is that of one
// process: a reader in another may pass a record that is still to be appended.
package changelog
