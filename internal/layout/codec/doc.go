// Package codec converts the values of DynamoDB attributes to the values of Bigtable cells
// and back. All is the table of codecs; a mapping file names one of them for each attribute.
//
// A codec gives back exactly what it takes, with the types that the Schema says;
// a value for which it cannot is outside its domain and refused, never changed.
// Where only the bytes can carry the type, a value is tagged by a letter
// (AppendTagged).
//
// It knows neither rows nor qualifiers nor timestamps.
package codec
