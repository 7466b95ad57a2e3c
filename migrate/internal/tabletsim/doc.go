// Package tabletsim runs the writing side of a load in parts against a model of Bigtable.
// It predicts how long a load of a billion rows takes, and which of its settings matter.
// The writing side is the loader's real code: the Stream of package load, over the client
// of package btclient. In the model, tablets split and move. Nodes queue work beyond
// their recommended load, and refuse work beyond their capacity.
//
// Batches, pace, look-ups and retries are the loader's code; the model begins at the
// connection. When a load ends, every row has been acknowledged. The same plan gives the
// same figures, since no two parts act at the same virtual time. Virtual time is that of
// the surrounding testing/synctest bubble.
//
// A plan can run at a scale of 1/n ([Plan.Scale]): it has 1/n of the rows, tablets split
// at 1/n of the bytes, and one move in n makes its tablet unavailable. Each second is
// like one at full size, but there are fewer of them. Moves that coincide at full size do
// not coincide at a smaller scale, so parts wait somewhat longer for them.
//
// The model does not lay out items; their CPU time is a number in the plan. It does not
// store rows, so a looked-up row is never found. Reads are queued and never refused. The
// constants follow the service's guidance where it exists; the others are guesses, not
// measurements.
package tabletsim
