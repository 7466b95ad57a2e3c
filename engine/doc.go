// Package engine stores data in Bigtable's model on Pebble: tables of rows, column families,
// versioned cells, garbage-collection rules and row-atomic mutations, in memory or on disk.
//
// It uses bytes and its own small types, without protos, gRPC or DynamoDB. Each cell has its own
// Pebble key, so the cost of a read depends on the size of its result and not of the row. The
// resources of the layer above are stored next to the tables as opaque values, in the same
// consistent view. RunGC collects garbage, StartGC does so in the background, and Options.EagerGC
// hides garbage from readers at once. A Backup is a copy of one table at one moment, and a Snapshot
// is a copy of the whole store, to which Restore returns.
//
// The mutations of a row are atomic, even across a crash. A Scan is a consistent view. If the store
// has a directory, acknowledged data is on disk unless Options.NoSync is set. Invalid arguments
// cause errors, not panics. The API above checks Bigtable's limits, such as key and value sizes,
// names, and a table's timestamp granularity.
//
// The lock order is: DB.copyMu, DB.gcMu, DB.catalogMu, row latches by ascending stripe, DB.viewMu,
// the journals' mutex. Catalog changes that affect rows hold all latches, so the catalog is stable
// while a caller holds one latch.
//
// The package is exported for the module's own layers; its API is not stable. The stored format is:
// raise formatVersion in catalog.go if older programs would misread new data.
//
// delete_table.go keeps the data of a deleted table for UndeleteTable, and later frees it.
//
// Below the package, internal/memfs is the file system of a store in memory.
// internal/guardfs hides disk errors from Pebble, which would end the process. Neither of
// them depends on the store.
package engine
