// Package control serves the HTTP API by which a running server is inspected and
// controlled: what package testkit does for tests in Go, for every language. It
// is described in docs/control.md and, for programs, in openapi.yaml.
//
// What it promises: a request needs a token, and one that a web page of another origin
// made, or that names another host, is refused; every error is JSON that says
// what is wrong and what to do; every body, list and stream has a bound; what it
// reads for itself meets no faults.
//
//   - lab: a server with a clock, faults and snapshots; lab/changestream reads its change
//     streams.
//   - requests: the last requests of both endpoints; access writes them as access patterns.
//   - console: the pages.
package control
