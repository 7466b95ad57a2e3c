// Package live follows live tables between servers in processes of their own, while clients write
// and processes are killed. It contains only tests.
//
// A test starts two servers, the source and the target, a third one that reads the rows of the
// target as items, and a follower. A generator writes items to the source and keeps the history of
// each. A judge compares what it reads in the target with the histories:
//
//   - Each state of an item was a state of the source, and no older than one seen before.
//   - The watermark is honest: each write that was acknowledged before it is visible.
//   - At the end all items and index entries of both sides are equal.
//
// Each test has a small size without a rate, and a full one, which runs for the time of -live.for
// at the rate of -live.rate and reports figures: the lag, and the CPU and memory of each process.
package live
