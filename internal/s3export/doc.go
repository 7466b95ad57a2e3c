// Package s3export reads and writes the format of DynamoDB's exports to S3: the names of their
// folders and files, their manifests, and the lines of their data files, for full and
// incremental exports. Source: developer guide, "DynamoDB table export output format".
//
// An export of Writer appears completely or not at all, with its manifests written last. The
// same items give the same files, byte for byte. Memory does not grow with the table.
//
// The package does not judge exports of other programs (package migrate/source does), and
// encrypts nothing.
package s3export
