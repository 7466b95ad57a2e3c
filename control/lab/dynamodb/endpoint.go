package dynamodb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tabletop-emu/tabletop/control/lab"
	"github.com/tabletop-emu/tabletop/control/lab/fault"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/exchange"
)

// Endpoint is the DynamoDB server of a lab. It serves HTTP and in-process calls. A restore replaces
// the underlying server, whose cached state of the tables would be outdated.
type Endpoint struct {
	lab    *lab.Lab
	opts   facade.Options
	given  []*mapping.Mapping // of New
	faults *fault.Set
	reaped atomic.Int64 // see Reaped

	mu     sync.RWMutex // held shared by requests
	server *facade.Server

	pastMu sync.Mutex // taken with mu held; guards past
	past   map[*engine.Snapshot]*past
}

var (
	_ lab.Endpoint      = (*Endpoint)(nil)
	_ http.Handler      = (*Endpoint)(nil)
	_ http.RoundTripper = (*Endpoint)(nil)
)

// New returns the endpoint of a lab and attaches it; Open starts it. The lab sets the options
// Conn, Project, Instance and Now, and if they are unset also Logger and Slot.
func New(l *lab.Lab, o facade.Options) *Endpoint {
	e := &Endpoint{lab: l, opts: o, given: o.Mappings, faults: fault.NewSet(l.Options().Seed)}
	l.Attach(e)
	return e
}

// Open starts the server if it is not running.
func (e *Endpoint) Open() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.openLocked()
}

func (e *Endpoint) openLocked() error {
	if e.server != nil {
		return nil
	}
	// Opening does not count as an operation of the endpoint, so faults do not affect it.
	ctx := lab.Probe(e.lab.Context())
	var err error
	e.server, err = facade.New(ctx, e.options(e.lab))
	return err
}

// options returns the options of a server over the rows of a lab.
func (e *Endpoint) options(over *lab.Lab) facade.Options {
	o, of := e.opts, e.lab.Options()
	o.Conn, o.Project, o.Instance, o.Now = over.Bigtable().Conn(), of.Project, of.Instance, of.Clock.Now
	if o.Logger == nil {
		o.Logger = of.Logger
	}
	o.Logger = e.lab.ExpectFaults(o.Logger)
	if o.Slot == "" {
		o.Slot = "lab" // there is one such server, and a snapshot has the state of another
	}
	return o
}

// Restart stops a running server, runs change, and then starts a new server in its place.
func (e *Endpoint) Restart(change func() error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.server == nil {
		return change()
	}
	err := e.server.Close()
	e.server = nil
	return errors.Join(err, change(), e.openLocked())
}

// Map sets the additional layouts of tables whose rows were written without the endpoint, and
// starts a new server. They replace the layouts of an earlier call of Map, and complement those
// passed to New. After an error the layouts are unchanged.
func (e *Endpoint) Map(mappings []*mapping.Mapping) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.server == nil {
		return ErrClosed
	}
	was := e.opts.Mappings
	e.opts.Mappings = slices.Concat(e.given, mappings)
	err := e.server.Close()
	e.server = nil
	if err = errors.Join(err, e.openLocked()); err != nil {
		e.opts.Mappings = was
		return errors.Join(err, e.openLocked())
	}
	return nil
}

// Prepare runs do with a server of its own, which has no lags, delays and throttling. No other
// server of the endpoint runs meanwhile. Faults do not affect the context of do.
func (e *Endpoint) Prepare(ctx context.Context, do func(context.Context, *facade.Server) error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	opened := e.server != nil
	if opened {
		err := e.server.Close()
		if e.server = nil; err != nil {
			return err
		}
	}
	ctx = lab.Probe(ctx)
	server, err := facade.New(ctx, e.options(e.lab).Immediate())
	if err == nil {
		err = errors.Join(do(ctx, server), server.Close())
	}
	if opened {
		err = errors.Join(err, e.openLocked())
	}
	return err
}

// Call runs an operation without HTTP and without faults; see facade.Server.Call.
func (e *Endpoint) Call(ctx context.Context, operation string, request []byte) ([]byte, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.server == nil {
		return nil, ErrClosed
	}
	return e.server.Call(ctx, operation, request)
}

// Tables returns the names of all DynamoDB tables.
func (e *Endpoint) Tables(ctx context.Context) ([]string, error) {
	var names []string
	for start := ""; ; {
		request := []byte("{}")
		if start != "" {
			request, _ = json.Marshal(map[string]string{"ExclusiveStartTableName": start}) // a map of strings never fails
		}
		answer, err := e.Call(ctx, "ListTables", request)
		var page struct {
			TableNames             []string
			LastEvaluatedTableName string
		}
		if err == nil {
			err = json.Unmarshal(answer, &page)
		}
		if err != nil {
			return nil, err
		}
		names = append(names, page.TableNames...)
		if start = page.LastEvaluatedTableName; start == "" {
			return names, nil
		}
	}
}

// Mapping returns the layout of a DynamoDB table's items in Bigtable.
func (e *Endpoint) Mapping(ctx context.Context, table string) (*mapping.Mapping, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.server == nil {
		return nil, ErrClosed
	}
	return e.server.Mapping(ctx, table)
}

// RowsOf implements lab.Endpoint.
func (e *Endpoint) RowsOf(ctx context.Context, table string) string {
	m, err := e.Mapping(ctx, table)
	if err != nil {
		return ""
	}
	return m.TargetTable()
}

// Operations implements lab.Endpoint.
func (e *Endpoint) Operations() []string { return operations() }

// TopKeys returns the most used keys of a table or an index, as JSON; see
// facade.Server.TopKeys.
func (e *Endpoint) TopKeys(ctx context.Context, table, index string) (any, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.server == nil {
		return nil, ErrClosed
	}
	return e.server.TopKeys(ctx, table, index)
}

// AppendDump appends the changes of items that have not yet reached their Kinesis data stream, in
// the stream's format.
func (e *Endpoint) AppendDump(ctx context.Context, dump []byte) ([]byte, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.server == nil {
		return dump, nil
	}
	err := e.server.KinesisWaiting(ctx, func(streamARN string, record []byte) error {
		dump = fmt.Appendf(dump, "# waits for %s: %s\n", streamARN, record)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("changes that have not reached Kinesis: %w", err)
	}
	return dump, nil
}

// ErrClosed is returned for calls to an endpoint that is not open.
var ErrClosed = errors.New("the DynamoDB endpoint is not open")

// NextDue implements lab.Endpoint; see facade.Server.NextDue.
func (e *Endpoint) NextDue(ctx context.Context, after, until time.Time) (time.Time, bool, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.server == nil {
		return time.Time{}, false, nil
	}
	return e.server.NextDue(ctx, after, until)
}

// RunDue implements lab.Endpoint: it deletes expired items.
func (e *Endpoint) RunDue(ctx context.Context) error {
	_, err := e.ReapExpired(ctx)
	return err
}

// ReapExpired deletes expired items if the server is running, and returns their number. Faults do
// not affect it.
func (e *Endpoint) ReapExpired(ctx context.Context) (items int, err error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.server == nil {
		return 0, nil
	}
	items, err = e.server.ReapExpired(lab.Probe(ctx))
	e.reaped.Add(int64(items))
	return items, err
}

// Reaped returns the number of expired items that were deleted so far.
func (e *Endpoint) Reaped() int64 { return e.reaped.Load() }

// Close stops the server, and the servers of snapshots, if they are running.
func (e *Endpoint) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.server == nil {
		return nil
	}
	err := e.server.Close()
	e.server = nil
	for _, p := range e.past {
		err = errors.Join(err, p.close())
	}
	return err
}

// ServeHTTP applies the armed faults to a request, and passes it to the current server unless
// a fault answers it.
func (e *Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	exchange.ServeHTTP(e.Handler(), w, r)
}

// Handler returns what ServeHTTP calls, for other servers of this module than package net/http.
func (e *Endpoint) Handler() exchange.Handler { return (*served)(e) }

// served is an Endpoint as a handler of any HTTP server.
type served Endpoint

// Serve implements exchange.Handler.
func (h *served) Serve(ctx context.Context, r *exchange.Request, a *exchange.Answer) {
	e := (*Endpoint)(h)
	var faulty *http.Request // r, if a fault may affect it
	if len(e.faults.All()) > 0 {
		var err error
		if faulty, err = e.delayed(r.HTTP(ctx), e.sleep); err != nil {
			fail(a, http.StatusServiceUnavailable, err.Error())
			return
		}
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.server == nil {
		fail(a, http.StatusServiceUnavailable, "the server has stopped")
		return
	}
	if faulty != nil {
		resp, next, err := e.faulty(faulty)
		switch {
		case err != nil:
			fail(a, http.StatusInternalServerError, err.Error())
			return
		case resp != nil:
			copyAnswer(a, resp)
			_ = resp.Body.Close() // it has been read
			return
		}
		ctx, r = next.Context(), exchange.FromHTTP(next)
	}
	e.server.Handler().Serve(ctx, r, a)
}

// fail answers with a text that is not of DynamoDB.
func fail(a *exchange.Answer, status int, text string) {
	a.Status, a.Body = status, []byte(text+"\n")
	a.Set("Content-Type", "text/plain; charset=utf-8")
}

// copyAnswer fills a with the answer of a fault.
func copyAnswer(a *exchange.Answer, resp *http.Response) {
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		fail(a, http.StatusInternalServerError, err.Error())
		return
	}
	a.Status, a.Body = resp.StatusCode, body
	for _, name := range slices.Sorted(maps.Keys(resp.Header)) {
		for _, value := range resp.Header[name] {
			if name != "Content-Length" {
				a.Set(name, value)
			}
		}
	}
}

// RoundTrip acts like ServeHTTP for a request in this process, but delays advance the clock
// instead of waiting.
func (e *Endpoint) RoundTrip(r *http.Request) (*http.Response, error) {
	r, err := e.delayed(r, e.lab.Pass)
	if err != nil {
		return nil, err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.server == nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, errors.New("the server has stopped")
	}
	resp, r, err := e.faulty(r)
	if resp != nil || err != nil {
		return resp, err
	}
	return e.server.RoundTripper().RoundTrip(r)
}
