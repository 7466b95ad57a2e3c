package btkit

import (
	"github.com/tabletop-emu/tabletop/engine"
)

// Snapshot holds the data of an environment at one moment: instances, tables, families and rows,
// and with package testkit also the DynamoDB tables and items. It needs no more memory than the
// size of the data. It can be restored any number of times, even concurrently, until the
// environment that took it ends.
type Snapshot struct{ taken *engine.Snapshot }

// Snapshot takes a consistent snapshot of the environment's current data.
func (e *Env) Snapshot() *Snapshot {
	e.server.TB().Helper()
	s, err := e.server.Lab().Snapshot(e.server.Context())
	e.server.Must("Snapshot", err)
	return &Snapshot{s}
}

// Restore replaces the environment's data with the data of a snapshot. The snapshot may come from
// another environment that has not ended, so expensive data can be built once and restored in each
// test. Restore does not change clients, ports, faults, lags or the clock. A concurrent Bigtable
// call takes effect either before or after the restore. Restore waits for running DynamoDB calls,
// and holds back new ones until it is done.
func (e *Env) Restore(s *Snapshot) {
	e.server.TB().Helper()
	if s == nil {
		e.server.TB().Fatalf("testkit: Restore: the snapshot is nil; call Snapshot to take one")
	}
	e.server.Must("Restore", e.server.Lab().Restore(e.server.Context(), s.taken))
}

// Reset returns the environment to its initial state: it removes all data and faults, and resets
// lags and failures of clusters. The tables of testkit.WithSeedFiles are as at the start. Like
// [Env.Restore], it does not change the clock, clients or ports.
func (e *Env) Reset() {
	e.server.TB().Helper()
	e.server.Must("Reset", e.server.Lab().Reset(e.server.Context()))
}
