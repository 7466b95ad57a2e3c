// Package bucketjobs exports tables to buckets, imports tables from them and puts their items
// into tables by bulk operations: it checks requests, runs the jobs, and describes them. A
// subfolder of one folder stands for the S3 bucket of that name.
//
// An export appears whole or not at all. An import puts each item at least once; of several
// items with the same key, the last wins. Both start over after a restart. A bulk operation
// resumes, and counts each record once. Memory does not grow with the table, nor with the
// unpacked size of a file. Nothing outside the folder of buckets is read or written.
//
// The package accesses tables only through Options. It does not encrypt: it checks and
// describes the encryption and the owners of buckets.
package bucketjobs
