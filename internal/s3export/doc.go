// Package s3export reads and writes the format of DynamoDB's exports to S3, full and incremental:
// the names of folders and files, the manifests, and the lines of data files. Source: developer
// guide, "DynamoDB table export output format".
//
// An export that Writer makes appears completely or not at all, with its manifests written last.
// The same items produce the same files, byte for byte. Memory use does not grow with the table.
//
// The package does not encrypt exports. Package migrate/source validates exports of other
// programs.
package s3export
