// Package codec turns the values of DynamoDB attributes into the values of
// Bigtable cells, and back: All is the table of codecs, of which mapping files
// name one for each attribute.
//
// What a codec takes it gives back exactly, with the types that the Schema says;
// what it cannot is outside of its domain and refused, never changed. Where the
// bytes alone have to tell the type, a value is tagged by a letter (AppendTagged).
//
// It knows neither rows nor qualifiers nor timestamps.
package codec
