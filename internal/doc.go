// Package internal contains the packages that several parts of the module share.
//
// Rows and calls:
//
//   - btclient: the only client of a Bigtable, with the only retry logic;
//     sqlclient: runs SQL queries, and writes their values as text;
//     rowmerge: joins the chunks in which rows arrive; preflight: checks that a Bigtable can
//     be used, for any command.
//   - rest: serves gRPC services as HTTP with JSON; exchange: carries HTTP requests to a handler,
//     whatever server holds the connection; fastserver: such a server, with fasthttp; quicknet: cheap
//     TCP connections for servers.
//   - inproc: a gRPC channel inside the process, for any service; pull: iterators from sequences.
//   - layout: mappings between items and rows.
//   - heat: counts of the load on keys; cause, probe: the DynamoDB request, or the probe, that
//     a call belongs to.
//   - hllpp: the sketch of HLL families.
//
// Files and formats:
//
//   - s3export: reads and writes DynamoDB's exports to S3; itemtext: splits a file into the texts
//     of its items; iontext: reads and writes items as Ion; csvtext: parses CSV; extsort: sorts on
//     disk.
//   - strictyaml: reads all YAML files; httpbody: reads bodies of HTTP messages; filelock: locks
//     files; packed: opens the compressed documents and pages of a release, which packed/pack
//     writes.
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
