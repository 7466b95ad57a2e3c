// Package conformance runs the official clients of both sides, unchanged,
// against a running `tabletop serve`: Go clients as tests here, Python clients in
// python/run.py, the AWS SDK for JavaScript in js/run.mjs. Clients are pointed
// at the server only by the export lines that it prints.
// dynamodb-suites/run.mjs runs public DynamoDB test suites against it. The
// package has no code of its own.
package conformance
