// Package progress tells of work that goes over all items of a table: how far it is, and
// which rows it could not read.
package progress
