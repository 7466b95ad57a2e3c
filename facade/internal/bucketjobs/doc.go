// Package bucketjobs is exports of tables to buckets and imports from them: what requests
// say, the jobs that do the work, and how they are described. Buckets of S3 are folders
// below one folder, each named as its bucket.
//
// What it promises: an export appears whole or not at all; an import puts each item once
// or again, the last of a key last; both go on after a restart, from their start; memory
// does not grow with the table, nor with what a file unpacks to; nothing outside the
// folder of buckets is read or written.
//
// What it does not do: it reads and writes no table itself (Options has what does), and
// encrypts nothing: encryption and owners of buckets are looked at and described.
package bucketjobs
