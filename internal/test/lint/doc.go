// Package lint checks the module's own rules: imports, the length of files, package lists that are
// complete, paths that exist, plain English in documents and comments, a Go test in docs/sql.md that
// runs, and a profile without paths of a machine. It contains only tests, which read sources and link
// no package of the module but helpers. Tests of cmd/tabletop compare the tables of emu and facade.
package lint
