// Package kinesis delivers the changes of tables to Kinesis data streams, and keeps the
// state of a table's destinations.
//
// A destination is a part of the table's definition. While it is live the table has a
// change log, from which a [Delivery] reads: a job of package jobs, one for each time
// that a destination was enabled, with its checkpoint as progress. The records go to a
// [Sink]: an [Endpoint] that speaks Kinesis, or a [Dir] of files. Without one they stay
// in the log for 24 hours.
//
// # What a delivery promises
//
//  1. Each change that is committed while a destination is live is given to it at least
//     once, if the sink takes it within 24 hours of the clock.
//  2. The first times of the records of one item are in the order of its writes: one
//     that was not taken holds back those of its partition key.
//  3. After a restart, and where a process takes over from another, records since the
//     checkpoint are given again, in the same order.
package kinesis
