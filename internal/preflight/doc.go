// Package preflight checks a Bigtable before a server or a load uses it: the address, the instance,
// the app profile, the caller's permissions, the garbage collection of existing tables, and the
// clock. It does not change any data.
package preflight
