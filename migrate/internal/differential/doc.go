// Package differential draws items and requests from a mapping itself and runs them
// through the mapping, the DynamoDB endpoint and the loader: every item must come back or
// be rejected, and each request must have the answer of a naive DynamoDB.
//
// The same seed draws the same items and requests. A failing case is shrunk before it is
// reported, and saved as a fixture if a folder is given. The package uses and deletes
// separate tables; it does not touch the tables of the run.
package differential
