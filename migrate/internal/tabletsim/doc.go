// Package tabletsim runs the writing side of a load in parts, the loader's own (package
// run's Stream over the client of package btclient), against a model of a Bigtable whose
// tablets split and move, and whose nodes queue what is beyond their guidance, and refuse
// what is beyond their room: what a load of a billion rows would take, and which of its
// settings matter.
//
// What it promises: batches, pace, what is read first, what is sent again, when, and how
// much at a time are the loader's code, which the model meets at the connection; each row
// was answered as written when a load is through; the same plan gives the same figures, as
// no two parts act at one moment of a time that is given, that of a bubble of
// testing/synctest.
//
// A plan may be run at a scale of 1/n ([Plan.Scale]): it has 1/n of the rows, tablets split
// at 1/n of the bytes, and one move in n keeps its tablet away. Each second is like one at
// full size, but there are fewer of them. Moves that coincide at full size do not coincide
// at a smaller scale, and parts wait rather longer for them.
//
// What it does not do: it lays out no items, whose CPU is a number of the plan; it keeps
// no rows, and so a row that is looked up is never there; reads are queued and not
// refused; and its constants are the service's guidance, or guesses where it tells
// nothing, not measurements of it.
package tabletsim
