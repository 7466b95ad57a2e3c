// Package settled compares a live DynamoDB table with the Bigtable tables that a follower writes.
//
// The target is behind the source, so an item that differs is only a suspect. [Run] compares all
// items once, without any wait, and judges the suspects by the settle rule:
//
//  1. read the item of the target with the position of its last change,
//  2. read the item of the source consistently, at time t of the source,
//  3. wait until the follower has applied all writes up to t,
//  4. read the position again.
//
// An unchanged position proves that the item of the target is still that of step 1, with all
// writes up to t: a difference is final. A changed position costs another round. An item that
// moves in each round is unsettled: it is counted and named apart.
//
// Entries of indexes are written around the item, so a difference there is final only after a
// second wait.
//
// [RunPart] reads a share of both sides and saves hashes of the items; [FinishParts] compares sums of
// them, and then the keys that the sums point to. [RunAsOf] compares an older export, and excuses
// items that changed after it.
//
// A verification starts a generation of changed keys before it reads. If it finds no difference,
// the next one can judge the keys of that generation alone.
package settled
