// Package soak runs many clients on both endpoints at the same time, at a bounded rate, for
// as long as requested, while faults hit some of their calls, beside readers of both
// endpoints' streams and hourly backups. It has no other code.
//
// It fails on an error that no fault caused, on data that does not match the
// answers, on streams or backups that do not come to it, and on goroutines, heap or
// resident memory that grow. It reports, without a verdict, how long writes take
// while a long scan is running and while none is.
package soak
