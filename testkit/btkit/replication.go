package btkit

import (
	"time"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/testkit/internal/server"
)

// WithRandomRouting makes app profiles that route to any cluster draw one of those
// that are up for each call, by [WithSeed]: a program that counts on reading its own
// writes through such a profile meets another cluster. Default: the first that is up,
// by the profile's order and then by name.
func WithRandomRouting() Option {
	return func(c *server.Config) { c.Lab.Bigtable.RandomRouting = true }
}

// Clusters are the clusters of an environment's instance, as a test wants them: its
// methods are those of [Env], which has it embedded.
type Clusters struct{ server *server.Server }

// ReplicationLag makes each cluster of the environment's instance see what the others
// take from now on when d has passed by the environment's time, 0 to 7 days. What was
// taken before keeps its time. By default all see everything at once.
//
// Reads of rows, consistency tokens and change streams follow the lag: docs/bigtable.md
// says how, in "Replication".
func (c Clusters) ReplicationLag(d time.Duration) {
	c.server.TB().Helper()
	c.server.Must("ReplicationLag", c.replication().Lag(d))
}

// ReplicationLagBetween is [Clusters.ReplicationLag] for what the cluster with the id to
// sees of the cluster from.
func (c Clusters) ReplicationLagBetween(from, to string, d time.Duration) {
	c.server.TB().Helper()
	c.server.Must("ReplicationLagBetween", c.replication().LagBetween(from, to, d))
}

// PauseReplication lets nothing that cluster from takes, or has on its way, arrive in
// cluster to until [Clusters.ResumeReplication].
func (c Clusters) PauseReplication(from, to string) {
	c.server.TB().Helper()
	c.server.Must("PauseReplication", c.replication().Pause(from, to))
}

// ResumeReplication ends [Clusters.PauseReplication]: what is overdue arrives at once.
func (c Clusters) ResumeReplication(from, to string) {
	c.server.TB().Helper()
	c.server.Must("ResumeReplication", c.replication().Resume(from, to))
}

// FailCluster makes a cluster of the environment's instance unavailable until
// [Clusters.RecoverCluster]. App profiles that route to it alone are answered with
// UNAVAILABLE, and others go on with the next cluster that is up. Scans under way
// through it end after their current row, its change streams at once, both with
// UNAVAILABLE. Nothing arrives there, or from there.
func (c Clusters) FailCluster(id string) {
	c.server.TB().Helper()
	c.server.Must("FailCluster", c.replication().Fail(id))
}

// RecoverCluster ends [Clusters.FailCluster]: what is overdue arrives at once.
func (c Clusters) RecoverCluster(id string) {
	c.server.TB().Helper()
	c.server.Must("RecoverCluster", c.replication().Recover(id))
}

// ReplicateAll makes everything visible everywhere now, over pauses too, but neither in
// nor from clusters that have failed.
func (c Clusters) ReplicateAll() {
	c.server.TB().Helper()
	c.server.Must("ReplicateAll", c.replication().DeliverAll())
}

// DataBoostLag sets how long Data Boost takes to see what was written, which
// CheckConsistency with data_boost_read_local_writes tells. Default: no time.
func (c Clusters) DataBoostLag(d time.Duration) {
	c.server.TB().Helper()
	c.server.Must("DataBoostLag", c.replication().DataBoostLag(d))
}

func (c Clusters) replication() emu.Replication {
	return c.server.Lab().Bigtable().Replication(c.server.InstanceName())
}
