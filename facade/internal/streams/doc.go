// Package streams serves the change log of a table as DynamoDB Streams: the shards of a
// stream at a time, iterators, and records in the form of answers. It stores nothing: shards
// follow from the start of the stream and its rotation, and iterators contain their whole
// state.
package streams
