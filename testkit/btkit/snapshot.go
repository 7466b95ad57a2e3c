package btkit

import (
	"github.com/tabletop-emu/tabletop/engine"
)

// Snapshot is the data of an environment at one moment: instances, tables, families and rows;
// with package testkit, therefore, the DynamoDB tables and items too. It costs no more than
// its bytes, can be restored any number of times, even concurrently, and ends with the
// environment.
type Snapshot struct{ taken *engine.Snapshot }

// Snapshot saves the present data of the environment as one consistent view.
func (e *Env) Snapshot() *Snapshot {
	e.server.TB().Helper()
	s, err := e.server.Lab().Snapshot(e.server.Context())
	e.server.Must("Snapshot", err)
	return &Snapshot{s}
}

// Restore replaces the environment's data by the data of a snapshot, which may come from
// another environment that has not ended: costly data can be built once and restored into the
// environment of each test. Clients, ports, faults, lags and the time, which never decreases,
// stay as they are. Running Bigtable calls take effect before or after it. It waits for
// running DynamoDB calls; later calls begin after it.
func (e *Env) Restore(s *Snapshot) {
	e.server.TB().Helper()
	if s == nil {
		e.server.TB().Fatalf("testkit: Restore: the snapshot is nil; Snapshot takes one")
	}
	e.server.Must("Restore", e.server.Lab().Restore(e.server.Context(), s.taken))
}

// Reset returns the environment to its initial state: without data, faults, and lags or
// failures of clusters. Time, clients and ports stay as they are, as with [Env.Restore].
func (e *Env) Reset() {
	e.server.TB().Helper()
	e.server.Must("Reset", e.server.Lab().Reset(e.server.Context()))
}
