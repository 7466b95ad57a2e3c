// Package btkit starts a private Bigtable inside a Go test, with the official clients. It is
// package testkit without DynamoDB: its test binaries compile no AWS SDK and none of the
// packages that convert, load and verify DynamoDB data.
//
//	func TestOrders(t *testing.T) {
//		env := btkit.Start(t)
//		client := env.Bigtable(t)     // *bigtable.Client
//		admin := env.BigtableAdmin(t) // *bigtable.AdminClient
//		...
//	}
//
// It gives the same guarantees as package testkit. Every Start starts a separate server, so tests
// may run in parallel. Starting opens no port and takes about a millisecond. The server ends with
// the test and leaves no goroutine, port or file behind.
//
// A test that also needs the DynamoDB endpoint, mappings, fixtures or the console calls
// testkit.Start instead. The Env of testkit embeds this one, and shares its options, faults,
// snapshots and changes.
package btkit
