// Package strictyaml reads the YAML files that people write for this project: mappings,
// fixtures, access patterns and settings of lint.
//
// A file is one document. It is decoded into structs by their tags. An unknown key is an error,
// and so is a repeated one. An error has file, line, column and path, the fault and the expected
// value; for an unknown key, the nearest known one. Aliases and merges are resolved, within
// limits. No text makes this package panic or use excessive memory and time.
//
// It rejects tags other than !!str, keys that are not scalars, and several documents.
package strictyaml
