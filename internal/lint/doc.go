// Package lint holds the module's own rules as tests: which package may import
// which, where a reader finds an RPC or an operation, and that the generated
// text of the README is current. It has no other code.
package lint
