// Package s3export reads and writes the format of DynamoDB's exports to S3: the names of
// their folders and files, their manifests, and the lines of their data files, for full and
// incremental exports. Source: developer guide, "DynamoDB table export output format".
//
// What it promises: what Writer wrote appears whole or not at all, with its manifests
// written last; the same items give the same files, byte for byte; memory does not
// grow with the table.
//
// What it does not do: it judges no export that others wrote (package migrate/source
// does), and encrypts nothing.
package s3export
