// Package changes implements the data types of change streams: partitions, positions, the tokens
// that encode them, and the messages of a record. It does not access storage.
package changes
