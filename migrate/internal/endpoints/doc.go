// Package endpoints reads the tables of a run through both endpoints: with DynamoDB
// requests and with native Bigtable reads. It runs access patterns, and compares the
// answers with the fixture's expectations, with each other, and with an oracle. The
// oracle is a DynamoDB endpoint that holds the items without their mapping.
//
// If an endpoint refuses a request, the refusal counts as its answer, and as a
// difference. Afterwards the tables are as they were before, and the oracle's instance is
// empty.
//
// The package does not load data, and it does not check rows: package compare does.
package endpoints
