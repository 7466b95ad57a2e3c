// Package bombs tests small inputs that expand in the receiver: each is rejected with an error or
// served, and its allocations have a limit. It also tests that large reads leave no memory behind.
// It has no other code.
//
// The counters of allocations are those of the process, so the tests run one at a time, in a
// process of their own.
package bombs
