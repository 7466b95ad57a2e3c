// Package strictyaml reads the YAML files that people write for this project: mappings, fixtures,
// access patterns and lint settings.
//
// A file contains one document, which is decoded into structs by their tags. Unknown and repeated
// keys are errors. An error has the file, line, column and path, the fault, and the expected value;
// for an unknown key, it has the closest known key. Aliases and merges are resolved within limits.
// No input makes this package panic or use excessive memory or time.
//
// It rejects tags other than !!str, keys that are not scalars, and several documents.
package strictyaml
