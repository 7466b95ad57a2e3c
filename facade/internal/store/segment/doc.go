// Package segment divides the rows of a table, or of an index, into the segments of a
// parallel scan.
//
// Each item is in exactly one segment for all requests. Cuts divide a table into pieces, and
// a segment is a run of pieces, so the same cuts serve any number of segments. Without cuts
// the items are divided by a hash of the partition key, and each segment reads all rows.
//
// The requests of one parallel scan come from many clients, at any time and through any
// process, and each must see the same cuts. A [Cutter] therefore stores them in the catalog,
// in one row for each Bigtable table, while requests use them; a scan that begins after a
// pause chooses new cuts. A small table has no cuts.
package segment
