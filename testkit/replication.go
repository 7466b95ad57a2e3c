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

// ReplicationLag makes each cluster of the environment's instance see what the others
// take from now on when d has passed by the environment's time, 0 to 7 days. What was
// taken before keeps its time. By default all see everything at once.
//
// Consistency tokens and change streams follow the lag; reads of rows do not yet:
// every cluster reads what was written at once.
func (e *Env) ReplicationLag(d time.Duration) {
	e.tb.Helper()
	e.must("ReplicationLag", e.replication().Lag(d))
}

// ReplicationLagBetween is [Env.ReplicationLag] for what the cluster with the id to
// sees of the cluster from.
func (e *Env) ReplicationLagBetween(from, to string, d time.Duration) {
	e.tb.Helper()
	e.must("ReplicationLagBetween", e.replication().LagBetween(from, to, d))
}

// PauseReplication lets nothing that cluster from takes, or has on its way, arrive in
// cluster to until [Env.ResumeReplication].
func (e *Env) PauseReplication(from, to string) {
	e.tb.Helper()
	e.must("PauseReplication", e.replication().Pause(from, to))
}

// ResumeReplication ends [Env.PauseReplication]: what is overdue arrives at once.
func (e *Env) ResumeReplication(from, to string) {
	e.tb.Helper()
	e.must("ResumeReplication", e.replication().Resume(from, to))
}

// FailCluster makes a cluster of the environment's instance unavailable until
// [Env.RecoverCluster]. App profiles that route to it alone are answered with
// UNAVAILABLE, and others go on with the next cluster that is up. Scans under way
// through it end after their current row, its change streams at once, both with
// UNAVAILABLE. Nothing arrives there, or from there.
func (e *Env) FailCluster(id string) {
	e.tb.Helper()
	e.must("FailCluster", e.replication().Fail(id))
}

// RecoverCluster ends [Env.FailCluster]: what is overdue arrives at once.
func (e *Env) RecoverCluster(id string) {
	e.tb.Helper()
	e.must("RecoverCluster", e.replication().Recover(id))
}

// ReplicateAll makes everything visible everywhere now, over pauses too, but neither in
// nor from clusters that have failed.
func (e *Env) ReplicateAll() {
	e.tb.Helper()
	e.must("ReplicateAll", e.replication().DeliverAll())
}

// DataBoostLag sets how long Data Boost takes to see what was written, which
// CheckConsistency with data_boost_read_local_writes tells. Default: no time.
func (e *Env) DataBoostLag(d time.Duration) {
	e.tb.Helper()
	e.must("DataBoostLag", e.replication().DataBoostLag(d))
}

func (e *Env) replication() *emu.Replication {
	return e.emu.Replication("projects/" + e.Project() + "/instances/" + e.Instance())
}

// must fails the environment's test if a call has failed.
func (e *Env) must(call string, err error) {
	e.tb.Helper()
	if err != nil {
		e.tb.Fatalf("testkit: %s: %v", call, err)
	}
}
