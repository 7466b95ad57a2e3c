// Package linear checks whether the answers of concurrent clients have a sequential order: it
// passes a [History] of calls, some of them without an answer, to a linearizability checker
// with a model of each call. Its tests do so with both endpoints of one process, while faults
// affect some calls.
package linear
