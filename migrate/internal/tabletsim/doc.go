// Package tabletsim replays the schedule of a load in parts against a model of a Bigtable
// whose tablets split and move, and whose nodes queue what is beyond their guidance, in
// virtual time: what a load of a billion rows would take, and which of its settings matter.
//
// What it promises: the same plan gives the same figures; no clock is read.
//
// What it does not do: it refuses no call for want of room, it knows nothing of rows but
// their number and size, and its constants are the service's guidance, not measurements of it.
package tabletsim
