// Package preflight checks, before anything is served or loaded, that a Bigtable can be
// used: that the address is one, its instance, its app profile, the caller's permissions,
// the garbage collection of existing tables, and its clock. It changes nothing.
package preflight
