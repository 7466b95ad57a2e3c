// Package store stores the items of operations as rows of a Bigtable. Operations never see a
// row; the store never sees an expression or a request.
//
// It makes these guarantees on any Bigtable with single-row atomicity:
//   - A write of an item is one CheckAndMutateRow. It happens completely, on the item that
//     it was evaluated against, or not at all.
//   - A transaction happens completely, at one moment, or not at all.
//   - An acknowledged write is in every index of its table, at the latest when
//     Options.IndexLag has passed. Bigtable keeps indexes that are materialized views; the
//     store only creates and reads these.
//   - Deleting an item removes its row; only its pending log record may remain for a while.
//   - Items that a loader or another client wrote natively are read and written like any
//     other.
//
// It does not check requests, format DynamoDB's responses or count capacity.
//
// Its parts, each below those that it uses:
//
//	instance      the Bigtable, the clock, tokens; work in the background
//	catalog       definitions of tables, cached; the latch of each table
//	marks         (package marks) the rows that may contain unfinished work
//	rows          reads items and their bookkeeping from rows
//	outbox        commits changes of items, and applies them to the indexes
//	logs          (package changelog) records the changes of tables that have a log
//	transactions  records, intents, outcomes; request tokens
//	writer        writes of single items; the latches of items
//	transactor    TransactWriteItems and TransactGetItems
//	cutter        (package segment) divides tables for parallel scans
//	reader        GetItem, Query, Scan
//	filler        fills indexes and due times of tables that have items
//	tables        CreateTable, UpdateTable, DeleteTable
//	reaper        deletes expired items
//	counter       counts the items of tables
//	keeper        stores the items of backups and of restored tables
//	history       (package history) reads past states of tables, by their logs
//
// Locks are taken in this order: the catalog's ddl, the latch of a table, the latch of an
// item, and then the mutex of one part.
package store
