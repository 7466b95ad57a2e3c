// Package soak runs many clients on both endpoints at the same time, at a limited rate, for as
// long as requested. Faults affect some of their calls. Other clients read the streams of both
// endpoints and make hourly backups. The package contains only tests.
//
// It fails on an error that no fault caused, on data that does not match the answers, on
// streams or backups that do not match the data, and on goroutines, heap or resident memory
// that grow. It reports, without a verdict, the time of writes with and without a concurrent
// long scan.
package soak
