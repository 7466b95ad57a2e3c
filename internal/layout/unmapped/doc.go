// Package unmapped is the layout of a table that no mapping file describes: one row
// an item, one self-describing cell an attribute. It loses nothing, takes every legal
// item, and keeps the order of sort keys.
package unmapped
