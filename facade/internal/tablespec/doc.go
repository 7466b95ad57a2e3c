// Package tablespec checks requests against a table: its keys, indexes and throughput. It
// does not read rows.
//
//   - schema.go, quotas.go: the definitions in CreateTable and UpdateTable.
//   - vectors.go, vector_items.go: vector indexes, and whether an item fits them.
//   - throughput.go, decreases.go: capacity, its bounds, and the frequency of decreases.
//   - sse.go, time_to_live.go: encryption at rest and time to live.
//   - keyrules.go: whether an item fits the keys of a table and its indexes.
//   - itemupdate.go: the paths that an update expression may change, and the result of
//     the update.
//   - source.go: the table or index of a Query or Scan, and its keys.
//   - hashorder.go: the order of names in a Java hash table, which AWS uses in texts.
package tablespec
