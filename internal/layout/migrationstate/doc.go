// Package migrationstate encodes the rows of the table _migration_state, in which the migrations
// from live tables keep their state: the phase and the lease of a table, the checkpoints of
// shards, dead letters, the keys that changed since a verification, and the history of phases.
// It also has the rules by which one phase follows another.
//
// The package does not read or write rows. A change of a state is one conditional write of its
// row: the guard is the value as read, so that of two operators one fails.
package migrationstate
