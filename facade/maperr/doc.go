// Package maperr defines the errors of mappings. An item, a key or a row that does not
// fit its mapping is an [Error]; a fault in a mapping file is a [SpecError]. Both have a
// [Code], which names the violated rule. docs/mapping.md lists the codes.
//
// Packages mapping, facade and migrate return these errors. errors.As finds them.
package maperr
