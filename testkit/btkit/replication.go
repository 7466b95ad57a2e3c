package btkit

import (
	"time"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/testkit/internal/server"
)

// WithRandomRouting makes app profiles with multi-cluster routing choose a random working cluster
// for each call; [WithSeed] seeds the choice. It exposes programs that expect to read their own
// writes through such a profile. Default: the first working cluster, by the profile's order and
// then by name.
func WithRandomRouting() Option {
	return func(c *server.Config) { c.Lab.Bigtable.RandomRouting = true }
}

// Clusters controls the clusters of an environment's instance. [Env] embeds it.
type Clusters struct{ server *server.Server }

// ReplicationLag sets the delay after which a write in one cluster of the environment's instance
// becomes visible in the others. d is from 0 to 7 days of the environment's time. Earlier writes
// keep their lag. By default all writes are visible at once.
//
// Reads of rows, consistency tokens and change streams follow the lag; see "Replication" in
// docs/bigtable.md.
func (c Clusters) ReplicationLag(d time.Duration) {
	c.server.TB().Helper()
	c.server.Must("ReplicationLag", c.replication().Lag(d))
}

// ReplicationLagBetween is like [Clusters.ReplicationLag], but only for the replication from one
// cluster to another. from and to are cluster ids.
func (c Clusters) ReplicationLagBetween(from, to string, d time.Duration) {
	c.server.TB().Helper()
	c.server.Must("ReplicationLagBetween", c.replication().LagBetween(from, to, d))
}

// PauseReplication stops replication from cluster from to cluster to, including writes that are in
// transit, until [Clusters.ResumeReplication].
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
// [Clusters.RecoverCluster]. Requests through an app profile that routes only to this cluster fail
// with UNAVAILABLE; other profiles use the next available cluster. Running scans in the cluster end
// after their current row, and its change streams end at once, both with UNAVAILABLE. No writes
// replicate to or from it.
func (c Clusters) FailCluster(id string) {
	c.server.TB().Helper()
	c.server.Must("FailCluster", c.replication().Fail(id))
}

// RecoverCluster ends [Clusters.FailCluster]: overdue writes arrive at once.
func (c Clusters) RecoverCluster(id string) {
	c.server.TB().Helper()
	c.server.Must("RecoverCluster", c.replication().Recover(id))
}

// ReplicateAll makes all writes visible in all clusters now, even if replication is paused. It
// skips writes to and from failed clusters.
func (c Clusters) ReplicateAll() {
	c.server.TB().Helper()
	c.server.Must("ReplicateAll", c.replication().DeliverAll())
}

// DataBoostLag sets the delay after which Data Boost sees a write. CheckConsistency with
// data_boost_read_local_writes reports it. Default: 0.
func (c Clusters) DataBoostLag(d time.Duration) {
	c.server.TB().Helper()
	c.server.Must("DataBoostLag", c.replication().DataBoostLag(d))
}

func (c Clusters) replication() emu.Replication {
	return c.server.Lab().Bigtable().Replication(c.server.InstanceName())
}
