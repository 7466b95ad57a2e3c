// Package differential draws items and requests from a mapping itself and runs them through
// the mapping, the DynamoDB endpoint and the loader: every item must come back or be
// rejected, and requests are answered as a naive DynamoDB does.
//
// What it promises: the same seed draws the same; what fails is made smaller before it
// is told, and saved as a fixture where a folder is given; its own tables are deleted.
//
// What it does not do: it does not touch the tables of the run.
package differential
