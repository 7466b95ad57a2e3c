// Package iontext reads and writes DynamoDB items in the text format of Amazon Ion that exports and
// imports use: one item per line, `$ion_1_0 {Item:{…}}`. Sources: developer guide, "DynamoDB table
// export output format" and "S3 import formats for DynamoDB";
// https://amazon-ion.github.io/ion-docs/docs/spec.html.
//
// Writing and reading an item returns the same item. Memory use is limited by the size of the
// input, and values that nest deeper than in an item are rejected.
//
// It rejects binary Ion, symbol tables, and types that items do not have: timestamps, clobs,
// expressions, symbols as values.
package iontext
