// Package iontext reads and writes DynamoDB items in the text form of Amazon Ion, as exports
// and imports have it: one item per line, `$ion_1_0 {Item:{…}}`. Sources: developer guide,
// "DynamoDB table export output format" and "S3 import formats for DynamoDB";
// https://amazon-ion.github.io/ion-docs/docs/spec.html.
//
// It reads the same item back that it has written. No input takes more than its own size in
// memory, or nests deeper than an item can.
//
// It rejects binary Ion, symbol tables, and types that items do not have: timestamps, clobs,
// expressions, symbols as values.
package iontext
