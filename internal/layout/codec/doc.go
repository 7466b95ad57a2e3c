// Package codec converts the values of DynamoDB attributes to the values of Bigtable cells and
// back. All is the table of codecs, from which a mapping file names one for each attribute.
//
// Decoding restores exactly the value that was encoded, with the types of the Schema. Values that a
// codec cannot restore are outside its domain: it rejects them and never changes them. If neither
// the schema nor the codec determines the type, a tag byte precedes the value (AppendTagged).
//
// The package does not deal with rows, qualifiers or timestamps.
package codec
