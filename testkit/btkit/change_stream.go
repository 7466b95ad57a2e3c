package btkit

import "github.com/tabletop-emu/tabletop/testkit/internal/server"

// WithPartitionChurn splits or merges partitions of change streams while they are read, as the
// service may at any time. After each record sent to a stream, it does so with probability p, from
// 0 to 1. Consumers must follow the new partitions. [WithSeed] seeds the choices. Default: 0;
// partitions change only by [Env.SplitPartition] and [Env.MergePartitions].
func WithPartitionChurn(p float64) Option {
	return func(c *server.Config) { c.Lab.Bigtable.PartitionChurn = p }
}

// SplitPartition splits the partition that contains key, at key, as the service may at any time.
// Streams that read the partition are closed with tokens for both parts. table is the id of a table
// in the environment's instance that has a change stream.
func (e *Env) SplitPartition(table string, key []byte) {
	e.server.TB().Helper()
	if err := e.server.Lab().Bigtable().SplitPartition(e.server.Context(), e.server.Lab().TableName(table), key); err != nil {
		e.server.TB().Fatalf("testkit: SplitPartition: %v%s", err, e.server.Elsewhere(table))
	}
}

// MergePartitions merges the two partitions of a table's change stream that meet at key; see
// [Env.SplitPartition].
func (e *Env) MergePartitions(table string, key []byte) {
	e.server.TB().Helper()
	if err := e.server.Lab().Bigtable().MergePartitions(e.server.Context(), e.server.Lab().TableName(table), key); err != nil {
		e.server.TB().Fatalf("testkit: MergePartitions: %v%s", err, e.server.Elsewhere(table))
	}
}
