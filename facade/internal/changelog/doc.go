// Package changelog records the changes of a table: one record for each committed write
// that changed an item. DynamoDB Streams, Kinesis deliveries and backups read the log.
//
// # Guarantees
//
//  1. Every acknowledged write that changed its item has exactly one record. A write
//     that failed or changed nothing has no record.
//  2. Records of one item are in the order of its writes.
//  3. After a reader has read a slot up to a position that Floor returned, no record
//     appears below that position.
//  4. All of this needs only single-row atomicity, and holds if a process crashes
//     between any two calls.
//
// # Mechanism
//
// The mutation that commits a write also stores its record in a separate column of the
// item's row (CellQualifier): the record cell. The writer then appends the record to the
// log's table and later, in bulk, deletes record cells. The record cell contains the row
// of the log for its record, so that any process that finds it can append the record, any
// number of times.
//
// Positions are sequence numbers that are shared by the whole process: nanoseconds of the
// wall clock, and always above all earlier numbers (Sequencer). A write holds the floor
// before it takes a number, and releases it after its record is appended. Readers read
// below the floor.
//
// Several processes over one Bigtable write to one log. Each of them has a registration
// in the catalog: a ceiling above its numbers and, if there are others, the floor below
// which all its records are in the log (Registration). Readers read below the lowest
// floor. Clocks of different processes are never compared: a process that is behind
// continues above the others. If a process has not renewed its registration for half a
// minute of the reader's own monotonic time, a reader considers it dead. The reader
// finishes the work in the rows that the process marked, and then removes the
// registration; until then the log does not advance.
//
// A record cell stays in its row until the numbers of all processes are above it, so that
// the next writer of the item, in any process, takes a number above it.
package changelog
