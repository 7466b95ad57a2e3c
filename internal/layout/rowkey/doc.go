// Package rowkey encodes values in row keys and qualifiers, and decodes them: encoders of
// one value, listed in the table Encoders; templates, which are text with references that
// have encoders; joiners, which join segments.
//
// Each is injective on its domain, and its inverse takes nothing that it does not
// write; encoders that are not say so (Encoder.Derived). An encoder's order
// promises that the bytes sort as the values do, or in reverse.
//
// It knows no rules: the caller decides what the variables of a template stand for.
package rowkey
