// Package run migrates the tables of one source: it lays the items out, writes the rows,
// reads them back and compares them, and reports the results.
//
// What it promises: memory is bounded by the largest item, row and batch, and by a
// fixed allowance; the same input gives the same rows; nothing is written before all
// of the source has been laid out.
//
// What it does not do: it opens no DynamoDB door (package doors does), and it does not
// decide what is done in which order: the verbs of package migrate do.
package run
