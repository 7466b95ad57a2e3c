// Package maperr defines the errors of mappings: an item, a key or a row outside its mapping
// is an [Error], a fault of a mapping file a [SpecError]. Both have a [Code], the name of the
// broken rule. docs/mapping.md lists the codes.
//
// Packages mapping, facade and migrate return these errors; errors.As finds them.
package maperr
