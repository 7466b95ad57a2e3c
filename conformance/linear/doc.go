// Package linear checks whether the answers that concurrent clients saw have a sequential
// order: it gives a [History] of calls, some of them without an answer, to a linearizability
// checker with a model of each call. Its tests do so with both endpoints of one process,
// while faults hit some calls.
package linear
