// Package control serves the HTTP API that inspects and controls a running server. It gives
// every language what package testkit gives Go tests. docs/control.md describes it for people,
// openapi.yaml for programs.
//
// A request needs a token. It is refused if it names another host, or comes from a web page of
// another origin. Every error is JSON with a text and a remedy. Every body, list and stream
// has a limit. Faults do not affect its own reads.
//
//   - lab: a Bigtable with a clock, faults and snapshots. lab/fault selects the calls
//     that faults affect, lab/dynamodb is its DynamoDB endpoint, lab/changestream reads its
//     change streams.
//   - requests: the last requests of both endpoints; access writes them as access patterns. Both
//     know no HTTP.
//   - console: the pages, as embedded files without other code.
package control
