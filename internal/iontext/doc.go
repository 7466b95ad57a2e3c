// Package iontext reads and writes DynamoDB items in the text format of Amazon Ion that exports and
// imports use: one item per line, `$ion_1_0 {Item:{…}}`. Sources: developer guide, "DynamoDB table
// export output format" and "S3 import formats for DynamoDB";
// https://amazon-ion.github.io/ion-docs/docs/spec.html.
//
// Reading what it has written returns the same item. No input uses more memory than its own size,
// or may nest deeper than an item can.
//
// It rejects binary Ion, symbol tables, and types that items do not have: timestamps, clobs,
// expressions, symbols as values.
package iontext
