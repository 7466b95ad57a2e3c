// Package doors asks the tables of a run through the two doors there are to them: as a
// DynamoDB request and as a native Bigtable read. It runs access patterns, and compares
// the answers with what a fixture expects, with each other, and with an oracle, which
// is a DynamoDB door on the items without their mapping.
//
// What it promises: a refusal of a door is an answer, and a difference; the tables are
// afterwards as they were; the oracle leaves its own instance empty.
//
// What it does not do: it loads nothing of its own, and it judges no row: package compare
// does.
package doors
