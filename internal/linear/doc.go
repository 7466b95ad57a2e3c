// Package linear checks as tests that what clients see at the same time could
// have happened one after the other: histories of concurrent calls on both
// doors, some of which are struck by faults, are given to a linearizability
// checker with a model of what each call does. It has no other code.
package linear
