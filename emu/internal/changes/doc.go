// Package changes implements the parts of a change stream: partitions,
// positions, the tokens that encode them, and the messages of a record. It does
// not access storage.
package changes
