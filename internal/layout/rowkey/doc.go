// Package rowkey encodes values in row keys and qualifiers, and decodes them: encoders of one
// value, listed in the table Encoders; templates, which are text with references that have
// encoders; joiners, which join segments.
//
// Each is injective on its domain, and its inverse accepts only what it writes;
// Encoder.Derived marks the exceptions. The order of an encoder guarantees that the bytes sort
// as the values do, or in reverse.
//
// The package does not know rules: the caller defines the variables of a template.
package rowkey
