// Package lint checks the module's own rules: imports, the length of files, package lists that are
// complete, paths that exist, the files of RPCs and operations, plain English in documents and
// comments, generated text that is up to date, and a profile without paths of a machine. It
// contains only tests.
package lint
