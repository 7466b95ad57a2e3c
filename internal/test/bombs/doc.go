// Package bombs tests small inputs that expand in the receiver: each must be rejected with an error
// or served, with limited allocations. It also tests that large reads do not leave memory in use.
// It contains only tests.
//
// Allocations are counted for the whole process, so the tests run one at a time, in a separate
// process.
package bombs
