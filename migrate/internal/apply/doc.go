// Package apply brings changes of DynamoDB items into the rows of a mapped table and of its
// indexes.
//
// A [Writer] applies each change as a whole: afterwards the row has exactly the cells of the new
// item, and each index exactly its entry. A change that cannot be made leaves the item unchanged.
//
// # Order
//
// Changes of incremental exports have no [Position]: one process applies them, in their
// order. A change with a position is applied only to an item, or to an index entry, whose
// stored position is lower. The position is a cell in the row itself, and is written with the
// change. So any order of delivery, any number of repeats, and any number of processes give
// the state of the last change.
//
// A deleted item or entry leaves its position, so that an earlier change cannot restore it.
//
// # Two ways to write
//
// A guarded writer tests and writes each row in one request, CheckAndMutateRow. An ordered
// writer sends many rows in one request, MutateRows: it needs the changes of each item in their
// order, and no other process may write.
//
// Most changes are written without a read. A row is read first if its obsolete cells do not
// follow from the item's key, or if the former item is unknown.
//
// # Order of the writes of one change
//
// The item is written before its new index entries, so that an index never has an entry of an item
// that does not exist. If only the stored item shows which entries are obsolete, they are deleted
// before the item: a process that stops in between finds the stored item again.
package apply
