// Package changestream reads the change streams of a lab's Bigtable tables like a client: it
// follows partitions through splits and merges.
package changestream
