// Package iontext reads and writes DynamoDB items in the text form of Amazon Ion, as exports
// and imports have it: one item per line, `$ion_1_0 {Item:{…}}`. Sources: developer guide,
// "DynamoDB table export output format" and "S3 import formats for DynamoDB";
// https://amazon-ion.github.io/ion-docs/docs/spec.html.
//
// What it promises: what it writes it reads back, the same item; no input takes more than
// its own size in memory, or nests deeper than an item can.
//
// What it does not do: it knows no binary Ion, no symbol tables, and none of the types
// that no item has: timestamps, clobs, expressions, symbols as values. All are refused.
package iontext
