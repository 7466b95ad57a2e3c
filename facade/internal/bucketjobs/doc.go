// Package bucketjobs exports tables to buckets and imports from them: it checks requests,
// runs the jobs, and describes them. A bucket of S3 is a folder of that name below one
// folder.
//
// What it promises: an export appears whole or not at all; an import puts each item once
// or again, the last of a key last; both go on after a restart, from their start; memory
// does not grow with the table, nor with what a file unpacks to; nothing outside the
// folder of buckets is read or written.
//
// What it does not do: it reads and writes no table itself (Options has what does), and
// encrypts nothing: encryption and owners of buckets are looked at and described.
package bucketjobs
