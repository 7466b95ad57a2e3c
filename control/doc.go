// Package control serves the HTTP API that inspects and controls a running server. It offers
// programs in any language the functions that package testkit offers Go tests. docs/control.md
// describes it for people, openapi.yaml for programs.
//
// Every request needs a token. Requests that name another host, or come from a web page of another
// origin, are refused. Errors are JSON with a text and a remedy. Bodies, lists and streams are
// limited. Armed faults do not affect the API's own reads.
//
//   - lab: runs a Bigtable with a clock, faults and snapshots. lab/fault selects the calls that
//     faults affect, lab/dynamodb runs the lab's DynamoDB endpoint, and lab/changestream reads its
//     change streams.
//   - requests: the last requests of both endpoints; access writes them as access patterns.
//     Neither depends on HTTP.
//   - console: the pages, as embedded files. Its doc.go names the script of each page and form.
package control
