// Package rowkey encodes values in row keys and qualifiers, and decodes them. Encoders, listed in
// the table Encoders, encode single values. Templates are texts with references, which have
// encoders. Joiners join segments.
//
// Each of them is injective on its domain, and its inverse accepts only what it writes;
// Encoder.Derived marks the exceptions. The order of an encoder guarantees that the bytes sort like
// the values, or in reverse.
//
// The package does not deal with rules: the caller defines the variables of a template.
package rowkey
