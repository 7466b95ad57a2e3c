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
// It keeps the promises of package testkit: every Start is a server of its own, so that
// tests may run in parallel; starting opens no port and takes about a millisecond; whatever
// was started ends with the test, and no goroutine, port or file remains.
//
// A test that needs the DynamoDB endpoint, mappings, fixtures or the console as well calls
// testkit.Start instead. The Env of testkit has this one embedded; its options, faults,
// snapshots and changes are those of this package.
package btkit
