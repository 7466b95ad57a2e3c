// Package linear tests that what concurrent clients see could have happened one
// call after the other: histories of concurrent calls on both doors, some of them
// hit by faults, are given to a linearizability checker with a model of what each
// call does. It has no other code.
package linear
