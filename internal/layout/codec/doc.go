// Package codec converts the values of DynamoDB attributes to the values of Bigtable cells and
// back. All is the table of codecs; a mapping file names one of them for each attribute.
//
// A codec returns exactly the encoded value, with the types of the Schema. Values that it
// cannot restore are outside its domain and rejected, never changed. If only the bytes can
// carry the type, a letter tags the value (AppendTagged).
//
// The package does not know rows, qualifiers or timestamps.
package codec
