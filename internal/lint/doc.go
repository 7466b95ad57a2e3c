// Package lint holds the module's own rules as tests: which package may import
// which, where a reader finds an RPC or an operation, that the generated text of
// the README is current, and that the profile of the program names no folder of a
// machine. It has no other code.
package lint
