// Package lint checks the module's own rules as tests: which package may import which, how
// long files may get, that the maps name every package and every path exists, where a reader
// finds an RPC or an operation, that generated text is current, and that the profile of the
// program names no folder of a machine. It has no other code.
package lint
