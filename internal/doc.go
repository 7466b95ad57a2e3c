// Package internal contains the packages that several parts of the module share.
//
// Rows and calls:
//
//   - btclient: implements the only Bigtable client and its retries; rowmerge: joins the chunks in
//     which rows arrive; preflight: checks that a Bigtable can be used.
//   - inproc: implements an in-process gRPC channel; pull: makes iterators from sequences.
//   - layout: converts between items and rows by mappings.
//   - heat: counts the load on keys; cause, probe: mark calls that belong to a DynamoDB request, or
//     to a probe.
//   - hllpp: implements the sketches of HLL families.
//
// Files and formats:
//
//   - s3export: reads and writes DynamoDB's exports to S3; itemtext: splits a file into the texts
//     of its items; iontext: reads and writes items as Ion; csvtext: parses CSV; extsort: sorts on
//     disk.
//   - strictyaml: reads all YAML files; httpbody: reads bodies of HTTP messages; filelock: locks
//     files.
//
// Words and time:
//
//   - clock: provides the time source; days: parses durations; phrase: writes texts that reports
//     share; nearest: corrects misspelled names; hosts: checks the host names that a server
//     accepts.
//
// Tests: test/lint checks the rules of the module; internal/test/doc.go lists the other test
// packages. ddbmodel implements a naive DynamoDB, which trials of a migration use too.
package internal
