// Package lint holds the module's own rules as tests: which package may import
// which, how large files, packages and types may become, that doc.go names every
// package, where a reader finds an RPC or an operation, that generated text is
// current, and that the profile of the program names no folder of a machine. It
// has no other code.
package lint
