// Package failures is a test of what becomes of requests, loads and verifications when
// the Bigtable behind them fails: each of its calls in each way that a server that is
// far can fail, once and for good. It has no other code.
//
// What came of it is a table in docs/reliability.md, which the test holds to what it
// sees; go generate writes it anew. Time is virtual: a test that waits for a server that
// hangs takes no time.
package failures

//go:generate go test . -run TestMatrix$ -count=1 -rewrite
