package testkit

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/facade"
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

// dynamoDBDoor is the DynamoDB server, which a restore replaces by a new one:
// what it knows of its tables would be of another time. It answers HTTP and
// in process.
type dynamoDBDoor struct {
	env *Env

	mu     sync.RWMutex // held shared by requests
	server *facade.Server
}

var (
	_ http.Handler      = (*dynamoDBDoor)(nil)
	_ http.RoundTripper = (*dynamoDBDoor)(nil)
)

// open starts the server if it is not there.
func (d *dynamoDBDoor) open() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.openLocked()
}

func (d *dynamoDBDoor) openLocked() error {
	if d.server != nil {
		return nil
	}
	c := d.env.config
	// Opening is not an operation of the door, which faults are meant for.
	ctx := probe(d.env.ctx)
	var err error
	d.server, err = facade.New(ctx, facade.Options{
		Conn:     d.env.emu.Conn(),
		Project:  c.project,
		Instance: c.instance,
		Mappings: c.mappings,
		Now:      c.clock.Now,
		Logger:   c.logger,
	})
	return err
}

// restart runs change while no server is there, and starts a new one if there
// was one.
func (d *dynamoDBDoor) restart(change func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.server == nil {
		return change()
	}
	err := d.server.Close()
	d.server = nil
	return errors.Join(err, change(), d.openLocked())
}

// reap lets the server delete the items that have expired.
func (d *dynamoDBDoor) reap(ctx context.Context) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.server == nil {
		return nil
	}
	_, err := d.server.ReapExpired(ctx)
	return err
}

// close ends the server if it is there.
func (d *dynamoDBDoor) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.server == nil {
		return nil
	}
	server := d.server
	d.server = nil
	return server.Close()
}

// ServeHTTP hands a request to the server of the moment.
func (d *dynamoDBDoor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.server == nil {
		http.Error(w, "the environment has ended", http.StatusServiceUnavailable)
		return
	}
	d.server.ServeHTTP(w, r)
}

// RoundTrip hands a request to the server of the moment, in this process.
func (d *dynamoDBDoor) RoundTrip(r *http.Request) (*http.Response, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.server == nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, errors.New("testkit: the environment has ended")
	}
	return d.server.RoundTripper().RoundTrip(r)
}
