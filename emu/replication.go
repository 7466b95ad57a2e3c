package emu

import (
	"context"
	"fmt"
	"time"

	"github.com/tabletop-emu/tabletop/emu/internal/admin"
	"github.com/tabletop-emu/tabletop/emu/internal/instancedef"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/replica"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/engine"
)

// Replication controls the replication between the clusters of an instance, and the failure of
// clusters. Its methods take cluster ids, and return an error for unknown clusters or if the store
// fails. Its state is in memory. It is safe for concurrent use.
type Replication interface {
	// Lag sets the delay after which each cluster sees new writes of the others, 0 to
	// MaxReplicationLag. Earlier writes keep their lag.
	Lag(d time.Duration) error
	// LagBetween is like Lag, but only for the replication from one cluster to another.
	LagBetween(from, to string, d time.Duration) error
	// Pause stops the delivery of writes of cluster from to cluster to, including
	// pending ones, until Resume.
	Pause(from, to string) error
	// Resume ends a Pause: overdue writes arrive at once.
	Resume(from, to string) error
	// Fail makes a cluster unavailable until Recover: it neither receives nor delivers writes.
	Fail(cluster string) error
	// Recover ends a Fail: overdue writes arrive at once.
	Recover(cluster string) error
	// DeliverAll makes all earlier writes visible in all clusters now, even if replication is
	// paused. It skips writes to and from failed clusters.
	DeliverAll() error
	// DataBoostLag sets the delay after which Data Boost sees a write, 0 to MaxReplicationLag.
	DataBoostLag(d time.Duration) error
}

// MaxReplicationLag is the longest lag: 7 days, the longest retention of a change stream.
const MaxReplicationLag time.Duration = replica.MaxLag

// Replication returns the replication controls of the instance with the given resource name. The
// initial lag is Options.ReplicationLag.
func (s *Server) Replication(instance string) Replication { return s.replication.Instance(instance) }

// ResetReplication restores the initial replication state of all instances.
func (s *Server) ResetReplication() { s.replication.Reset() }

// connectReplication connects the controls with the store.
func (s *Server) connectReplication(lag time.Duration) error {
	replication, err := replica.NewControl(replica.Options{
		Now: s.now, Last: s.db.JournalLast, Lag: lag,
		Clusters: func(instance string) ([]*instancedef.StoredCluster, error) {
			if err := resname.CheckInstance("instance", instance); err != nil {
				return nil, err
			}
			return admin.StoredClusters(s.db, instance)
		},
		Keep: func(instance string, keep time.Duration) error {
			return s.control.KeepRecords(context.Background(), resname.TablesOf(instance), keep)
		},
	})
	if err != nil {
		return fmt.Errorf("emu: Options.ReplicationLag: %w", err)
	}
	s.replication, s.rows = replication, replica.NewRows(replica.RowsOptions{DB: s.db, Control: replication})
	s.control.Replication, s.control.Rows = s.replication, s.rows
	if lag == 0 {
		return s.rows.Clear(context.Background())
	}
	return nil
}

// takenBy returns a context for writes to a table through the cluster at. Before, it adapts how
// long the table's journal keeps records for replication, if the lag has changed or the table is
// new.
func (s *Server) takenBy(ctx context.Context, t *engine.Table, at replica.At) (context.Context, error) {
	view := s.replication.View(at.Instance)
	if view == nil && t.Journal == (engine.Journal{}) {
		return ctx, nil
	}
	keep, kept := view.Keep(s.now()), t.Journal[engine.JournalReplication].Keep
	if keep > kept || keep == 0 && kept > 0 { // the table is new, or the lag has changed
		routes, err := s.control.CurrentRoutes()
		if err == nil && (keep == 0 || len(routes.Instances[at.Instance].Clusters) > 1) {
			err = s.control.KeepRecords(ctx, t.Name, keep)
		}
		if err != nil {
			return ctx, refusal.Of(err)
		}
	}
	ctx, err := s.rows.Taken(ctx, t, at)
	return ctx, refusal.Of(err)
}
