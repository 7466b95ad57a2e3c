// Package streams serves the change log of a table as DynamoDB Streams: the shards of a
// stream at a given time, iterators, and records in the form of responses. It does not
// store anything: shards follow from the start of the stream and its rotation, and
// iterators contain their complete state.
package streams
