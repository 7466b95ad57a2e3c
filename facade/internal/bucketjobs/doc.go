// Package bucketjobs exports tables to buckets, imports tables from them and puts their items
// into tables by bulk operations: it checks requests, runs the jobs, and describes them. A
// bucket of S3 is a folder of that name below one folder.
//
// What it promises: an export appears whole or not at all; an import puts each item once
// or again, the last of a key last. A restart begins both again, and continues a bulk operation
// without a second count of a record. Memory does not grow with the table, nor with what a
// file unpacks to. Nothing outside the folder of buckets is read or written.
//
// The package accesses tables only through Options. It does not encrypt: it checks and
// describes the encryption and the owners of buckets.
package bucketjobs
