// Package bucketjobs exports tables to buckets, imports tables from buckets, and puts
// items from buckets into existing tables by bulk operations. It checks requests, runs
// the jobs, and describes them. One folder holds all buckets: each of its subfolders
// stands for the S3 bucket of that name.
//
// An export appears completely or not at all. An import puts each item at least once; if
// several items have the same key, the last one wins. Exports and imports start over
// after a restart. A bulk operation resumes, and counts each record once. Memory use does
// not grow with the table, nor with the unpacked size of a file. Nothing outside the
// folder of buckets is read or written.
//
// The package accesses tables only through Options. It does not encrypt data, but it
// checks and describes the encryption and the owners of buckets.
package bucketjobs
