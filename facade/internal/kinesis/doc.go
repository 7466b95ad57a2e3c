// Package kinesis delivers the changes of tables to Kinesis data streams, and stores the
// state of a table's destinations.
//
// A destination is a part of the table's definition. While it is live, the table has a
// change log, which a [Delivery] reads. A delivery is a job of package jobs, with its
// checkpoint as progress; one is created each time that a destination is enabled. The
// records go to a [Sink], which is an [Endpoint] with the API of Kinesis or a [Dir] of
// files. Without a sink they stay in the log for 24 hours.
//
// # Guarantees of a delivery
//
//  1. Each change committed while a destination is live is delivered at least once, if
//     the sink accepts it within 24 hours of the clock.
//  2. The records of one item are first delivered in the order of its writes: a rejected
//     record delays the later ones with the same partition key.
//  3. After a restart, and when another process takes over, records since the checkpoint
//     are delivered again, in the same order.
package kinesis
