// Package failures tests requests, loads and verifications over a failing Bigtable. Each call fails
// in each way in which a remote server can fail, once and permanently. Package testkit runs it.
//
// The results are in a table in docs/reliability.md. The test compares the table with its results,
// and go generate rewrites it. Time is virtual, so waiting for a hanging server takes no wall time.
package failures

//go:generate go test ../../../testkit -run TestMatrix$ -count=1 -failures.rewrite
