// Package unmapped lays out tables without a mapping file, with one row per item and one
// self-describing cell per attribute. It is lossless, accepts every legal item, and preserves the
// order of sort keys.
package unmapped
