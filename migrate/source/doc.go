// Package source reads DynamoDB data: an export to S3, with the incremental exports
// that follow it, JSON lines, a BatchWriteItem request file, a NoSQL Workbench model,
// CSV; plain, gzip or zstd. [Open] recognizes an input by its content.
//
// What it promises: a damaged input is an [Error] that names the place and what was
// expected; items stream, any number of times, in memory that one item bounds; what
// an input lets a reader check (counts, checksums) is checked.
//
// What it does not do: it reads no network source and no Ion; both are refused with
// a hint.
package source
