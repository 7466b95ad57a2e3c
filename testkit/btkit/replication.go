package btkit

import (
	"time"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/testkit/internal/server"
)

// WithRandomRouting makes app profiles with multi-cluster routing draw a working cluster
// for each call, by [WithSeed]: a program that relies on reading its own writes through
// such a profile reads from another cluster. Default: the first working cluster, by the
// profile's order and then by name.
func WithRandomRouting() Option {
	return func(c *server.Config) { c.Lab.Bigtable.RandomRouting = true }
}

// Clusters controls the clusters of an environment's instance. [Env] embeds it and has
// its methods.
type Clusters struct{ server *server.Server }

// ReplicationLag sets the time after which a write in one cluster of the environment's
// instance is visible in the others: d of the environment's time, 0 to 7 days. Earlier writes
// keep their lag. By default all writes are visible at once.
//
// Reads of rows, consistency tokens and change streams follow the lag; see "Replication" in
// docs/bigtable.md.
func (c Clusters) ReplicationLag(d time.Duration) {
	c.server.TB().Helper()
	c.server.Must("ReplicationLag", c.replication().Lag(d))
}

// ReplicationLagBetween is like [Clusters.ReplicationLag], but only for writes in the
// cluster from as seen by the cluster to; both are cluster ids.
func (c Clusters) ReplicationLagBetween(from, to string, d time.Duration) {
	c.server.TB().Helper()
	c.server.Must("ReplicationLagBetween", c.replication().LagBetween(from, to, d))
}

// PauseReplication stops the replication of writes from cluster from to cluster to, including
// writes on their way, until [Clusters.ResumeReplication].
func (c Clusters) PauseReplication(from, to string) {
	c.server.TB().Helper()
	c.server.Must("PauseReplication", c.replication().Pause(from, to))
}

// ResumeReplication ends [Clusters.PauseReplication]: overdue writes arrive at once.
func (c Clusters) ResumeReplication(from, to string) {
	c.server.TB().Helper()
	c.server.Must("ResumeReplication", c.replication().Resume(from, to))
}

// FailCluster makes a cluster of the environment's instance unavailable until
// [Clusters.RecoverCluster]. App profiles that route only to it get UNAVAILABLE, and others
// use the next available cluster. Running scans through it end after their current row, its
// change streams at once, both with UNAVAILABLE. No writes replicate to or from it.
func (c Clusters) FailCluster(id string) {
	c.server.TB().Helper()
	c.server.Must("FailCluster", c.replication().Fail(id))
}

// RecoverCluster ends [Clusters.FailCluster]: overdue writes arrive at once.
func (c Clusters) RecoverCluster(id string) {
	c.server.TB().Helper()
	c.server.Must("RecoverCluster", c.replication().Recover(id))
}

// ReplicateAll makes all writes visible everywhere now, despite pauses, but neither in nor
// from failed clusters.
func (c Clusters) ReplicateAll() {
	c.server.TB().Helper()
	c.server.Must("ReplicateAll", c.replication().DeliverAll())
}

// DataBoostLag sets the time after which Data Boost sees a write, as reported by
// CheckConsistency with data_boost_read_local_writes. Default: 0.
func (c Clusters) DataBoostLag(d time.Duration) {
	c.server.TB().Helper()
	c.server.Must("DataBoostLag", c.replication().DataBoostLag(d))
}

func (c Clusters) replication() emu.Replication {
	return c.server.Lab().Bigtable().Replication(c.server.InstanceName())
}
