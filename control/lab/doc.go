// Package lab runs a Bigtable for experiments: a store and a server over it, with a clock that can
// be moved, faults, snapshots, and a text dump of all data. Packages testkit and btkit use it as
// the environment of a test. `tabletop serve --console` uses it as a server under external control.
//
// An Endpoint, which serves the rows through another API, can be attached to a lab. It then follows
// the lab's clock and restores.
//
// fault_rpc.go arms faults and selects the faults that match a call; fault_calls.go applies them.
// While no fault is armed, a call costs the same as without a lab.
package lab
