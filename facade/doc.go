// Package facade answers the DynamoDB API over any Bigtable.
//
// A [Server] speaks AWS JSON 1.0 over HTTP, or inside the process through its
// [Server.RoundTripper], and keeps its tables as rows of the Bigtable behind
// Options.Conn. It uses nothing but the Bigtable API there: what works here
// works on Cloud Bigtable too, given an app profile with single-cluster routing
// and single-row transactions. The place of an item's cells is decided by a
// [github.com/tabletop-emu/tabletop/facade/mapping.Mapping], or by a default
// lossless layout.
//
// Every operation of the API is in the operation table, see [Operations]: it is
// served, or it answers UnknownOperationException with its name and the reason.
// Requests are checked in DynamoDB's order and refused with its texts.
//
// The write of an item is atomic, its condition holds at that moment, and once
// it is acknowledged it is in every index of its table. A transaction over
// several items happens wholly or not at all; if the process ends in the middle
// of one, the next process that meets it settles it. TransactGetItems sees all of
// a transaction or nothing; Query, Scan, BatchGetItem and native reads may see
// some of its items before and others after it. Capacity is counted, and
// throttled if Options say so. Signatures are checked for their form, and verified when Options
// names the keys: see [Options].
package facade
