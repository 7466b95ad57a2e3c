package testkit

import (
	"errors"

	"github.com/tabletop-emu/tabletop/engine"
)

// Snapshot is everything that an environment held at one moment: instances,
// tables, families, rows, and so the DynamoDB tables and items too. It costs
// no more than its bytes, can be restored any number of times, also side by
// side, and ends with the environment.
type Snapshot struct{ store *engine.Snapshot }

// Snapshot keeps what the environment holds now, as one consistent cut.
func (e *Env) Snapshot() *Snapshot {
	e.tb.Helper()
	s, err := e.db.Snapshot(e.ctx)
	if err != nil {
		e.tb.Fatalf("testkit: Snapshot: %v", err)
	}
	return &Snapshot{s}
}

// Restore makes the environment hold what a snapshot does, of its own or of
// another environment that has not ended: what is costly to build can be built
// once, and restored into the environment of each test. Clients, ports and faults stay as they are, and so does the time,
// which never runs backwards. Bigtable calls under way happen before it or
// after it; DynamoDB calls under way are waited for, and begin after it if they
// come later.
func (e *Env) Restore(s *Snapshot) {
	e.tb.Helper()
	err := e.dynamo.restart(func() error { return e.db.Restore(e.ctx, s.store) })
	if err != nil {
		e.tb.Fatalf("testkit: Restore: %v", err)
	}
}

// Reset makes the environment what it was at first: nothing is in it, and no
// fault strikes. Time, clients and ports stay as they are, as with
// [Env.Restore].
func (e *Env) Reset() {
	e.tb.Helper()
	e.faults.removeAll()
	e.dynamo.faults.removeAll()
	empty, err := engine.Open(engine.Options{Now: e.config.clock.Now, Logger: e.config.logger})
	if err != nil {
		e.tb.Fatalf("testkit: Reset: %v", err)
	}
	s, err := empty.Snapshot(e.ctx)
	if err == nil {
		err = e.dynamo.restart(func() error { return e.db.Restore(e.ctx, s) })
	}
	if err := errors.Join(err, empty.Close()); err != nil {
		e.tb.Fatalf("testkit: Reset: %v", err)
	}
}
