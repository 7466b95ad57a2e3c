// Package lint checks the module's own rules as tests: imports, the length of files, maps that
// name every package, paths that exist, the files of RPCs and operations, plain words in documents
// and comments, current generated text, and a profile without folders of a machine. It has no other
// code.
package lint
