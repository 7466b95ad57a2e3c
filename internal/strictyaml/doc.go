// Package strictyaml reads the YAML files of this project that people write: mappings,
// fixtures, access patterns and settings of lint.
//
// A file is one document. It is decoded into structs by their tags; a key that a
// struct does not have is an error, and so is one that occurs twice. An error names
// file, line, column and path, what was wrong and what was expected; for an unknown
// key, the nearest known one. Aliases and merges are resolved, within bounds, and no
// text makes this package panic or use memory and time out of proportion.
//
// Tags other than !!str, keys that are not scalars and several documents are refused.
package strictyaml
