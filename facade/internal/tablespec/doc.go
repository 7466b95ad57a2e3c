// Package tablespec checks what a request means for a table: its keys, indexes and
// throughput. It reads no row.
//
//   - schema.go, quotas.go: what CreateTable and UpdateTable define.
//   - throughput.go, decreases.go: capacity, its bounds, and how often it may decrease.
//   - sse.go, time_to_live.go: encryption at rest and time to live.
//   - keyrules.go: whether an item fits the keys of a table and its indexes.
//   - itemupdate.go: what an update expression may change, and its result.
//   - source.go: which table or index a Query or Scan reads, and by which keys.
//   - hashorder.go: the order in which a Java hash table lists names; AWS lists them so in
//     texts.
package tablespec
