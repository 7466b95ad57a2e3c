// Package conformance runs the official clients of both endpoints, unchanged, against a running
// `tabletop serve`: Go clients as tests here, Python clients in python/run.py, the AWS SDK for
// JavaScript in js/run.mjs, Java clients in java/. Clients find the server only by the variables
// that it prints.
// dynamodb-suites/run.mjs runs public DynamoDB test suites against it. The package has no code of its
// own.
//
//   - bigtable-client: the Go client's own suite.
//   - clients: the clients of the control API.
//   - console, html: the pages and the report in a browser.
//   - linear: whether concurrent calls have a sequential order; soak: many clients for a long time.
//   - live: clients write a live table, while processes follow it and are killed.
//   - packages: the packages and the image of a release, installed from files.
//   - benchcompare: benchmarks against peers.
//   - internal/program: builds the program.
package conformance
