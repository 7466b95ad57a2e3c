// Package soak is a test that puts many clients to work on both doors at the
// same time, at a bounded rate, for as long as is asked, while faults strike
// some of their calls. It has no other code.
//
// It fails for an error that no fault asked for, for data that are not what the
// answers say, and for goroutines, heap or resident memory that grow. It
// reports, without a verdict, how long writes take while a long scan runs and
// while none does.
package soak
