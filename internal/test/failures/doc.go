// Package failures tests what happens to requests, loads and verifications when the Bigtable
// behind them fails: each of its calls in each way that a remote server can fail, once and
// permanently. It has no other code.
//
// What came of it is a table in docs/reliability.md, which the test holds to what it
// sees; go generate writes it anew. Time is virtual: a test that waits for a server that
// hangs takes no time.
package failures

//go:generate go test . -run TestMatrix$ -count=1 -rewrite
