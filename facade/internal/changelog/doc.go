// Package changelog records the changes of a table: one record for each committed write that
// changed an item. Streams are read from it.
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
// Several processes over one Bigtable write to one log. Each that does has a
// registration in the catalog: a ceiling ahead of its numbers, and where there are others,
// the floor below which all of its records are in the log (Registration). Readers read
// below the least of all floors. The clocks of the processes are not compared: who is
// behind goes on above the others, and one that has not renewed its registration for half a
// minute of the reader's own monotonic time is taken for dead. What its marks tell of is
// finished, then its registration goes; until then the log stands still.
//
// A record cell stays in its row until every process numbers above it, so that the next
// writer of the item does, whichever it is.
package changelog
