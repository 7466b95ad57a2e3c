// Package internal contains the packages that several parts of the module share.
//
// Rows and calls:
//
//   - btclient: the one client of a Bigtable, with the one retry;
//     rowmerge: joins the chunks in which rows arrive; preflight: checks that a Bigtable can
//     be used, and knows no command.
//   - inproc: a gRPC channel inside the process, which knows no Bigtable; pull: iterators from
//     sequences.
//   - layout: mappings between items and rows.
//   - heat: counts of the load on keys; cause, probe: the DynamoDB request, or the probe, that
//     a call belongs to.
//   - hllpp: the sketch of HLL families.
//
// Files and formats:
//
//   - s3export: DynamoDB's exports to S3; itemtext: the texts of items in a file, one after
//     the other; iontext: items as Ion; csvtext: records of CSV; extsort: sorting on disk.
//   - strictyaml: the one reader of YAML; httpbody: bodies of HTTP messages; filelock: locks
//     of files.
//
// Words and time:
//
//   - clock: the time source; days: durations; phrase: texts that reports share; nearest: the
//     correction of a misspelled name; hosts: host names that a server accepts.
//
// Tests: test/lint checks the rules of the module; internal/test/doc.go names the others.
// ddbmodel is a naive DynamoDB, also for trials of a migration.
package internal
