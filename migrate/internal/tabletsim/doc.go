// Package tabletsim runs the writing side of a load in parts against a model of a Bigtable, to
// predict the time of a load of a billion rows, and which of its settings matter. The
// writing side is the loader's own code: package load's Stream over the client of package
// btclient. In the model, tablets split and move, and nodes queue work beyond their
// guidance and refuse work beyond their capacity.
//
// What it promises: batches, pace, look-ups and retries are the loader's code, and the
// model begins at the connection; when a load ends, each row was answered as written; the
// same plan gives the same figures, since no two parts act at the same virtual time. That
// time is the bubble of testing/synctest.
//
// A plan can run at a scale of 1/n ([Plan.Scale]): it has 1/n of the rows, tablets split
// at 1/n of the bytes, and one move in n keeps its tablet away. Each second is like one at
// full size, but there are fewer of them. Moves that coincide at full size do not coincide
// at a smaller scale, and parts wait rather longer for them.
//
// What it does not do: it does not lay out items, whose CPU time is a number of the plan;
// it stores no rows, so a looked-up row is never found; reads are queued and never refused.
// Its constants are the service's guidance, or otherwise guesses, not
// measurements.
package tabletsim
