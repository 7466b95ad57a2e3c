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
// A test that uses only Bigtable should call btkit.Start instead, which compiles neither the AWS
// SDK nor the DynamoDB code. Package btkit provides Bigtable, the clock, faults, snapshots and
// checks of rows. [Env] embeds [btkit.Env] and adds DynamoDB, its streams, mappings and fixtures.
//
// Every Start starts a separate server, so tests may run in parallel. Starting opens no port and
// takes about a millisecond. The server ends with the test and leaves no goroutine, port or file
// behind. Loopback ports are opened only on request ([btkit.Env.Addr], [Env.DynamoDBURL]).
//
// Each environment has its own clock: [btkit.Env.Advance] moves it forward, and [WithFrozenClock]
// stops it. Moving the clock deletes expired DynamoDB items. Garbage collection is manual: as in
// production, expired cells may stay readable, here until [btkit.Env.RunGC]; [WithGC] changes this.
//
// An environment can simulate production problems: RPCs that fail, are slow, arrive twice or break
// off ([btkit.Env.Fail], [btkit.Env.Latency], [btkit.Env.Duplicate], [btkit.Env.CutReadRows]),
// either scripted or at random from a seed. It can save and restore the whole store
// ([btkit.Env.Snapshot], [btkit.Env.Restore]), print it ([btkit.Env.Dump], [btkit.Env.DumpAll]) and
// check rows ([btkit.Env.CheckRow]) and query them ([btkit.Env.SQL]). The streams of both endpoints return the changes
// ([btkit.Env.Changes], [Env.StreamRecords]). [Env.Follow] rehearses the migration of a live table.
//
// The package is only for tests. It imports testing and two SDKs; the program and the other packages of
// this module do not.
//
//   - btkit: starts a private Bigtable without DynamoDB.
//   - internal/server: runs the server of an environment; internal/iam evaluates IAM policies.
package testkit
