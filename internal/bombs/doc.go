// Package bombs is a test of inputs that are small for who sends them and would
// be large for who takes them: each is answered with an error or done, and
// allocates no more than a bound. It has no other code.
//
// The counters of allocations are those of the process: the tests run one at a
// time, in a process of their own.
package bombs
