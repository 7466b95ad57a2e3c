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
// A test that uses only Bigtable starts btkit.Start instead: it compiles neither the AWS
// SDK nor what serves, converts and verifies DynamoDB data. Package btkit has everything
// about Bigtable, the clock, faults, snapshots and rows; [Env] has its [btkit.Env] embedded
// and adds DynamoDB, its streams, mappings and fixtures.
//
// What it promises: every Start is a server of its own, so that tests may run
// in parallel; starting opens no port and takes about a millisecond; whatever was
// started ends with the test, and no goroutine, port or file stays behind.
// Ports on the loopback address are opened only on request ([btkit.Env.Addr],
// [Env.DynamoDBURL]).
//
// Each environment has its own time: [btkit.Env.Advance] moves it forward,
// [WithFrozenClock] stops it. Moving it deletes expired DynamoDB items. Garbage
// collection is manual: expired cells stay readable, as they may in production,
// until [btkit.Env.RunGC]; [WithGC] changes that.
//
// What happens to an application in production can be simulated: RPCs that fail,
// take long, arrive twice or break off ([btkit.Env.Fail], [btkit.Env.Latency],
// [btkit.Env.Duplicate], [btkit.Env.CutReadRows]), scripted or at random with a seed. The
// whole store can be saved and restored ([btkit.Env.Snapshot], [btkit.Env.Restore]),
// shown ([btkit.Env.Dump], [btkit.Env.DumpAll]) and checked ([btkit.Env.CheckRow]). What was
// changed is read from the streams of either endpoint ([btkit.Env.Changes],
// [Env.StreamRecords]).
//
// What it does not do: nothing here is for production. The package imports
// testing and two SDKs; the binary and the other packages of this module do
// not.
//
//   - btkit: the Bigtable part.
//   - internal/server: the server of an environment; internal/iam evaluates IAM policies.
package testkit
