// Package rowkey writes values into row keys and qualifiers, and takes these
// apart again: encoders of one value, of which Encoders is the table; templates,
// which are text with references that have encoders; joiners, which put segments
// together.
//
// Each is injective on its domain, and its inverse takes nothing that it does not
// write; encoders that are not (Encoder.Derived) say so. What an encoder's order
// promises is that the bytes sort as the values do, or reversed.
//
// It knows no rules: whose values a template's variables are is for who uses it.
package rowkey
