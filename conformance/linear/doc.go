// Package linear tells whether what concurrent clients saw could have happened one
// call after the other: a [History] of calls, some of them without an answer, is given
// to a linearizability checker with a model of what each call does. Its tests do so with
// both doors of one process, some of whose calls faults hit.
package linear
