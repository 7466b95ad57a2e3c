// Package conformance holds the official clients of both sides, unchanged,
// against a running `tabletop serve`: Go clients as tests here, Python ones in
// python/run.py, the AWS SDK for JavaScript in js/run.mjs. Clients are pointed
// at the server only by the lines that it prints for export.
// dynamodb-suites/run.mjs runs public DynamoDB test suites against it. The
// package has no code of its own.
package conformance
