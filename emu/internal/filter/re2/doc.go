// Package re2 compares the regular expressions of row filters with RE2 itself, which
// Bigtable uses. It is a module of its own because RE2 comes as a large WebAssembly
// program, which would double the time in which the filters' tests compile.
package re2
