// Package unmapped lays out tables without a mapping file: one row per item, one
// self-describing cell per attribute. It loses nothing, accepts every legal item, and keeps
// the order of sort keys.
package unmapped
