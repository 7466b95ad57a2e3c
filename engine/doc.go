// Package engine stores data in Bigtable's model on Pebble:
// tables of rows, column families, versioned cells, garbage-collection rules
// and row-atomic mutations, in memory or on disk.
//
// It knows bytes and its own small types: no protos, no gRPC, no DynamoDB. One Pebble key is one
// cell, so the cost of a read depends on its result and not on the size of the row. The resources
// of the layer above are stored next to the tables, opaque, in the same consistent view. RunGC
// collects garbage, StartGC does so in the background, and Options.EagerGC hides it at once. A
// Backup keeps a table at one moment. A Snapshot keeps everything at one moment; Restore returns
// to it.
//
// The mutations of a row apply all or none, even across a crash. A Scan is a consistent view. With
// a directory, acknowledged data is on disk unless Options.NoSync is set. No argument makes it
// panic. The API above checks Bigtable's limits (key and value sizes, names, a table's timestamp
// granularity).
//
// Lock order: DB.copyMu, DB.gcMu, DB.catalogMu, row latches by ascending stripe, DB.viewMu, that of
// the journals. Changes of the catalog that rows depend on hold all latches, so the catalog does
// not change while a caller holds one.
//
// The package is exported for the module's own layers; its API is not stable.
//
// Below it, internal/memfs is the file system of a store in memory, and internal/guardfs
// keeps errors of the disk from Pebble, which would end the process.
package engine
