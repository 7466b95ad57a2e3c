// Package preflight looks, before anything is served or loaded, whether a Bigtable can
// be used as it is named: that it is one, its instance, its app profile, what the caller
// may do there, the garbage collection of tables that are there, and its clock. It
// changes nothing.
package preflight
