// Package re2 compares the regular expressions of row filters with RE2, which
// Bigtable uses. It is a separate module because RE2 comes as a large
// WebAssembly program, which would double the compile time of the filters'
// tests.
package re2
