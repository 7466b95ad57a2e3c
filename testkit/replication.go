package testkit

import (
	"time"

	"github.com/tabletop-emu/tabletop/emu"
)

// WithRandomRouting makes app profiles that route to any cluster draw one of those
// that are up for each call, by [WithSeed]: a program that counts on reading its own
// writes through such a profile meets another cluster. Default: the first that is up,
// by the profile's order and then by name.
func WithRandomRouting() Option { return func(c *config) { c.randomRouting = true } }

// Clusters are the clusters of an environment's instance, as a test wants them: its
// methods are those of [Env], which has it embedded.
type Clusters struct{ env *Env }

// ReplicationLag makes each cluster of the environment's instance see what the others
// take from now on when d has passed by the environment's time, 0 to 7 days. What was
// taken before keeps its time. By default all see everything at once.
//
// Reads of rows, consistency tokens and change streams follow the lag: docs/bigtable.md
// says how, in "Replication".
func (c Clusters) ReplicationLag(d time.Duration) {
	c.env.tb.Helper()
	c.env.must("ReplicationLag", c.replication().Lag(d))
}

// ReplicationLagBetween is [Clusters.ReplicationLag] for what the cluster with the id to
// sees of the cluster from.
func (c Clusters) ReplicationLagBetween(from, to string, d time.Duration) {
	c.env.tb.Helper()
	c.env.must("ReplicationLagBetween", c.replication().LagBetween(from, to, d))
}

// PauseReplication lets nothing that cluster from takes, or has on its way, arrive in
// cluster to until [Clusters.ResumeReplication].
func (c Clusters) PauseReplication(from, to string) {
	c.env.tb.Helper()
	c.env.must("PauseReplication", c.replication().Pause(from, to))
}

// ResumeReplication ends [Clusters.PauseReplication]: what is overdue arrives at once.
func (c Clusters) ResumeReplication(from, to string) {
	c.env.tb.Helper()
	c.env.must("ResumeReplication", c.replication().Resume(from, to))
}

// FailCluster makes a cluster of the environment's instance unavailable until
// [Clusters.RecoverCluster]. App profiles that route to it alone are answered with
// UNAVAILABLE, and others go on with the next cluster that is up. Scans under way
// through it end after their current row, its change streams at once, both with
// UNAVAILABLE. Nothing arrives there, or from there.
func (c Clusters) FailCluster(id string) {
	c.env.tb.Helper()
	c.env.must("FailCluster", c.replication().Fail(id))
}

// RecoverCluster ends [Clusters.FailCluster]: what is overdue arrives at once.
func (c Clusters) RecoverCluster(id string) {
	c.env.tb.Helper()
	c.env.must("RecoverCluster", c.replication().Recover(id))
}

// ReplicateAll makes everything visible everywhere now, over pauses too, but neither in
// nor from clusters that have failed.
func (c Clusters) ReplicateAll() {
	c.env.tb.Helper()
	c.env.must("ReplicateAll", c.replication().DeliverAll())
}

// DataBoostLag sets how long Data Boost takes to see what was written, which
// CheckConsistency with data_boost_read_local_writes tells. Default: no time.
func (c Clusters) DataBoostLag(d time.Duration) {
	c.env.tb.Helper()
	c.env.must("DataBoostLag", c.replication().DataBoostLag(d))
}

func (c Clusters) replication() *emu.Replication {
	return c.env.lab.Bigtable().Replication("projects/" + c.env.Project() + "/instances/" + c.env.Instance())
}

// must fails the environment's test if a call has failed.
func (e *Env) must(call string, err error) {
	e.tb.Helper()
	if err != nil {
		e.tb.Fatalf("testkit: %s: %v", call, err)
	}
}
