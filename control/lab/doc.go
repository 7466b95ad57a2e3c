// Package lab runs a Bigtable for experiments: a store and the server over it, with a clock
// that can be moved, faults, snapshots, and a dump of everything as text. Packages testkit and
// btkit use it as the environment of a test, and `tabletop serve --console` as a server under
// external control.
//
// An Endpoint that serves the rows in another way can be attached to a lab and follows it.
//
// fault_rpc.go arms faults and selects the ones that match a call; fault_calls.go applies them.
// Without armed faults a call costs the same as without a lab.
package lab
