package lab

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/facade/mapping"
)

// Door is the DynamoDB server of a lab, which a restore replaces by a new one:
// what it knows of its tables would be of another time. It answers HTTP and
// in process.
type Door struct {
	lab    *Lab
	faults *faults

	mu     sync.RWMutex // held shared by requests
	server *facade.Server

	pastMu sync.Mutex // taken with mu held; guards past
	past   map[*Snapshot]*pastServer
}

var (
	_ http.Handler      = (*Door)(nil)
	_ http.RoundTripper = (*Door)(nil)
)

// Open starts the server if it is not there. Options are those of the lab.
func (d *Door) Open() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.openLocked()
}

func (d *Door) openLocked() error {
	if d.server != nil {
		return nil
	}
	// Opening is not an operation of the door, which faults are meant for.
	var err error
	d.server, err = facade.New(Probe(d.lab.ctx), d.options(d.lab.emu.Conn()))
	return err
}

// options are those of a server over conn.
func (d *Door) options(conn grpc.ClientConnInterface) facade.Options {
	o := d.lab.opts.DynamoDB
	o.Conn, o.Project, o.Instance, o.Now = conn, d.lab.opts.Project, d.lab.opts.Instance, d.lab.opts.Clock.Now
	if o.Logger == nil {
		o.Logger = d.lab.opts.Logger
	}
	if !d.lab.opts.Faultless {
		o.Logger = slog.New(expected{o.Logger.Handler(), d.lab.faults})
	}
	if o.Seat == "" {
		o.Seat = "lab" // there is one such server, and in a snapshot what another left
	}
	return o
}

// Restart runs change while no server is there, and starts a new one if there
// was one.
func (d *Door) Restart(change func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.server == nil {
		return change()
	}
	err := d.server.Close()
	d.server = nil
	return errors.Join(err, change(), d.openLocked())
}

// Call runs an operation without HTTP and faults; see facade.Server.Call.
func (d *Door) Call(ctx context.Context, operation string, request []byte) ([]byte, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.server == nil {
		return nil, ErrClosed
	}
	return d.server.Call(ctx, operation, request)
}

// Mapping returns how the items of a DynamoDB table lie in Bigtable.
func (d *Door) Mapping(ctx context.Context, table string) (*mapping.Mapping, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.server == nil {
		return nil, ErrClosed
	}
	return d.server.Mapping(ctx, table)
}

// TopKeys are the keys of a table or an index that are used most, as JSON; see facade.Server.TopKeys.
func (d *Door) TopKeys(ctx context.Context, table, index string) (any, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.server == nil {
		return nil, ErrClosed
	}
	return d.server.TopKeys(ctx, table, index)
}

// kinesisWaiting hands what waits for Kinesis data streams to visit; see facade.Server.KinesisWaiting.
func (d *Door) kinesisWaiting(ctx context.Context, visit func(streamARN string, record []byte) error) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.server == nil {
		return nil
	}
	return d.server.KinesisWaiting(ctx, visit)
}

// ErrClosed is the error of a call through a door that is not open.
var ErrClosed = errors.New("the DynamoDB door is not open")

// nextDue returns when the server has something to do next; see
// facade.Server.NextDue.
func (d *Door) nextDue(ctx context.Context, after, until time.Time) (time.Time, bool, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.server == nil {
		return time.Time{}, false, nil
	}
	return d.server.NextDue(ctx, after, until)
}

// reap lets the server delete the items that have expired.
func (d *Door) reap(ctx context.Context) (items int, err error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.server == nil {
		return 0, nil
	}
	return d.server.ReapExpired(ctx)
}

// Close ends the server if it is there.
func (d *Door) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.server == nil {
		return nil
	}
	err := d.server.Close()
	d.server = nil
	for _, p := range d.past {
		err = errors.Join(err, p.close())
	}
	return err
}

// ServeHTTP hands a request to the server of the moment.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.server == nil {
		http.Error(w, "the server has ended", http.StatusServiceUnavailable)
		return
	}
	resp, r, err := d.faulty(r)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case resp == nil:
		d.server.ServeHTTP(w, r)
	default:
		defer func() { _ = resp.Body.Close() }()
		maps.Copy(w.Header(), resp.Header)
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body) // a client that has gone needs no answer
	}
}

// RoundTrip hands a request to the server of the moment, in this process.
func (d *Door) RoundTrip(r *http.Request) (*http.Response, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.server == nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, errors.New("the server has ended")
	}
	resp, r, err := d.faulty(r)
	if resp != nil || err != nil {
		return resp, err
	}
	return d.server.RoundTripper().RoundTrip(r)
}
