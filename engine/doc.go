// Package engine stores data in Bigtable's model on Pebble: tables of rows, column families,
// versioned cells, garbage-collection rules and row-atomic mutations, in memory or on disk.
//
// It uses bytes and its own small types, without protos, gRPC or DynamoDB. One Pebble key is
// one cell, so the cost of a read depends on its result and not on the size of the row. The
// resources of the layer above are stored next to the tables, opaque, in the same consistent
// view. RunGC collects garbage, StartGC does so in the background, and Options.EagerGC hides
// it at once. A Backup is a copy of one table at one moment, a Snapshot one of the whole
// store; Restore returns to a Snapshot.
//
// The mutations of a row apply all or none, even across a crash. A Scan is a consistent view.
// With a directory, acknowledged data is on disk unless Options.NoSync is set. No argument
// causes a panic. The API above checks Bigtable's limits (key and value sizes, names, a
// table's timestamp granularity).
//
// Lock order: DB.copyMu, DB.gcMu, DB.catalogMu, row latches by ascending stripe, DB.viewMu,
// the journals' mutex. Catalog changes that affect rows hold all latches, so the catalog is
// stable while a caller holds one latch.
//
// The package is exported for the module's own layers; its API is not stable.
//
// delete_table.go keeps the data of a deleted table for UndeleteTable, and later frees it.
//
// Below it, internal/memfs is the file system of a store in memory. internal/guardfs hides
// disk errors from Pebble, which would end the process. Both know nothing of the store.
package engine
