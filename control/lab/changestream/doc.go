// Package changestream reads the change streams of a lab's Bigtable tables as a client does:
// it follows partitions through splits and merges.
package changestream
