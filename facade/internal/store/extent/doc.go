// Package extent turns the places of items in their rows into filters of reads, and
// tells which of them lie in others.
package extent
