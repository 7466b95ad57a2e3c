// Package endpoints reads the tables of a run through both endpoints: with DynamoDB requests and
// with native Bigtable reads. It runs access patterns and compares the answers with the
// fixture's expectations, with each other, and with an oracle: a DynamoDB endpoint that
// holds the items without their mapping.
//
// What it promises: a refusal of an endpoint is an answer, and a difference; the tables are
// afterwards as they were; the oracle leaves its own instance empty.
//
// What it does not do: it loads no data of its own, and it does not check rows: package
// compare does.
package endpoints
