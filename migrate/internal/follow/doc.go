// Package follow applies the changes of a live DynamoDB table to the Bigtable tables that hold its
// items, until it is stopped.
//
// [Run] takes the lease of the table, reads changes from the checkpoint on, and applies them with package
// apply. Once a second it saves a checkpoint, which covers exactly the applied changes; so after a
// crash changes come again, and none is missing. Changes come from DynamoDB Streams, incremental
// exports, or a Kinesis data stream.
//
// Changes that cannot be applied become dead letters: the target keeps the older state of the item.
// Their keys stay in memory, since the former item of their next change was never stored.
package follow
