// Package engine stores data in Bigtable's model on Pebble:
// tables of rows, column families, versioned cells, garbage-collection rules
// and row-atomic mutations, in memory or on disk.
//
// It knows bytes and its own small types: no protos, no gRPC, no DynamoDB.
// One Pebble key holds one cell, so that a read costs what it returns and
// never what the row holds. The resources of the layer above are stored next to
// the tables, opaque, and belong to the same consistent view. Garbage is
// collected by RunGC, in the background by StartGC, and hidden at once with
// Options.EagerGC. A Backup holds a table at one moment. A Snapshot holds everything
// at one moment; Restore goes back to it.
//
// It promises: the mutations of a row apply all or none, even across a crash; a
// Scan is a consistent view; with a directory, what a call acknowledged is on disk
// unless Options.NoSync says otherwise; no argument makes it panic. It does not
// check Bigtable's limits (key and value sizes, names, a table's timestamp
// granularity): those belong to the API above it.
//
// Lock order: DB.copyMu, DB.gcMu, DB.catalogMu, row latches by ascending stripe,
// DB.viewMu, that of the journals.
// Changes of the catalog that rows depend on hold all latches, so that whoever
// holds one sees a catalog that does not change.
//
// The package is exported so that the module's own layers can use it; its API
// carries no promise of stability.
//
// Below it, internal/memfs is the file system of a store in memory, and internal/guardfs
// keeps errors of the disk from Pebble, which would end the process.
package engine
