// Package source reads DynamoDB data: an export to S3, with the incremental exports or the
// change records (of DynamoDB Streams or Kinesis) that follow it, JSON lines (or items one after
// the other), Ion text, the items of a Hive export, a BatchWriteItem request file, pages of a
// Scan, a NoSQL Workbench model or CSV, or a folder of pages or part files; uncompressed, gzip or
// zstd. [Open] recognizes an input by its content, and CSV by its name.
// Options.Plain reads JSON without type tags.
//
// What it promises: a damaged input gives an [Error] with the place and the expectation;
// items are streamed, any number of times, in memory bounded by one item; counts and
// checksums of an input are checked.
//
// What it does not do: it reads no network source and no binary Ion; both are refused with
// a hint.
//
// [Open], [OpenFS] and their results are stable; the rest is exported for other packages of
// migrate, without a promise.
package source
