// Package testkit starts a private Tabletop inside a Go test: a Bigtable and a
// DynamoDB over the same rows, with the official client of each.
//
//	func TestOrders(t *testing.T) {
//		env := testkit.Start(t)
//		bt := env.Bigtable(t)   // *bigtable.Client
//		ddb := env.DynamoDB(t)  // *dynamodb.Client
//		...
//	}
//
// A test that uses only Bigtable calls btkit.Start instead: it compiles neither the AWS SDK nor the
// DynamoDB code. Package btkit has Bigtable, the clock, faults, snapshots and rows. [Env] embeds its
// [btkit.Env] and adds DynamoDB, its streams, mappings and fixtures.
//
// Every Start is a server of its own, so tests may run in parallel. Starting opens no port and takes
// about a millisecond. The server ends with the test and leaves no goroutine, port or file. Ports on
// the loopback address are opened only on request ([btkit.Env.Addr], [Env.DynamoDBURL]).
//
// Each environment has its own time: [btkit.Env.Advance] moves it forward, [WithFrozenClock] stops it.
// Moving it deletes expired DynamoDB items. Garbage collection is manual: expired cells stay readable
// until [btkit.Env.RunGC], as they may in production; [WithGC] changes that.
//
// An environment simulates problems of production: RPCs that fail, take long, arrive twice or break off
// ([btkit.Env.Fail], [btkit.Env.Latency], [btkit.Env.Duplicate], [btkit.Env.CutReadRows]), scripted or
// at random with a seed. It saves and restores the whole store ([btkit.Env.Snapshot],
// [btkit.Env.Restore]), prints it ([btkit.Env.Dump], [btkit.Env.DumpAll]) and checks rows
// ([btkit.Env.CheckRow]). The streams of both endpoints return the changes ([btkit.Env.Changes],
// [Env.StreamRecords]).
//
// The package is only for tests. It imports testing and two SDKs; the program and the other packages of
// this module do not.
//
//   - btkit: the Bigtable part.
//   - internal/server: the server of an environment; internal/iam evaluates IAM policies.
package testkit
