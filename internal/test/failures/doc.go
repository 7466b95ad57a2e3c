// Package failures tests requests, loads and verifications over a failing Bigtable: each call fails
// in each way that a remote server can fail, once and permanently. It has no other code.
//
// The results are a table in docs/reliability.md. The test compares the table with its results, and
// go generate writes it again. Time is virtual, so waiting for a hanging server takes no time.
package failures

//go:generate go test . -run TestMatrix$ -count=1 -rewrite
