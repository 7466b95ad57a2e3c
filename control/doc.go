// Package control serves the HTTP API that inspects and controls a running server: what
// package testkit does for Go tests, for every language. docs/control.md describes it for
// people, openapi.yaml for programs.
//
// What it promises: a request needs a token, and one that a web page of another origin
// made, or that names another host, is refused; every error is JSON that says
// what is wrong and what to do; every body, list and stream has a bound; what it
// reads for itself meets no faults.
//
//   - lab: a Bigtable with a clock, faults and snapshots. lab/fault decides which calls
//     faults strike, lab/dynamodb is its DynamoDB endpoint, lab/changestream reads its
//     change streams.
//   - requests: the last requests of both endpoints; access writes them as access patterns.
//   - console: the pages.
package control
