// Package bombs tests inputs that are small for the sender and would grow large for the
// receiver: each is rejected with an error or served, and allocates no more than a bound. It
// has no other code.
//
// Nor do reads that are large together leave anything behind on the heap.
//
// The counters of allocations are those of the process: the tests run one at a
// time, in a process of their own.
package bombs
