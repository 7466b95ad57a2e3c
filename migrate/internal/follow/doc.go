// Package follow applies the changes of a live DynamoDB table to the Bigtable tables that hold its
// items, until it is stopped.
//
// [Run] takes the lease of the table, reads the source's stream from the checkpoint on, and applies
// the records with package apply. Once a second it saves a checkpoint, which covers exactly the
// applied records; so after a crash records come again, and none is missing.
//
// Changes that cannot be applied become dead letters: the target keeps the older state of the item.
// Their keys stay in memory, since the former item of their next change was never stored.
package follow
