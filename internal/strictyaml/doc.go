// Package strictyaml reads the YAML files that people write for this project:
// mappings, fixtures, access patterns and settings of lint.
//
// A file is one document. What it says is decoded into structs by their tags, and a
// key that a struct has not is an error, as one that is given twice is. An error
// tells file, line, column and path, what was wrong and what was expected; of an
// unknown key, the nearest that there is. Aliases and merges are resolved, within
// bounds, and no text makes this package panic, or take memory and time out of
// proportion.
//
// Tags but !!str, keys that are no scalars and several documents are refused.
package strictyaml
