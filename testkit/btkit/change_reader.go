package btkit

import (
	"context"
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/control/lab"
	"github.com/tabletop-emu/tabletop/control/lab/changestream"
	"github.com/tabletop-emu/tabletop/testkit/internal/server"
)

// changesDeadline is the longest wait of a ChangeReader for an answer: an environment that
// hangs fails its test, with the reason.
const changesDeadline = time.Minute

// ChangesOption configures [Env.Changes] and [Env.ReadChanges].
type ChangesOption func(*ChangeReader)

// WithBookkeeping also returns the DynamoDB endpoint's own cells in the rows of its
// tables, in the families _f, _t and _x, and those of a migration, in _m.
func WithBookkeeping() ChangesOption { return func(r *ChangeReader) { r.bookkeeping = true } }

// ChangeReader reads the change stream of a table and returns each record once. It holds no
// resources between calls, so it need not be closed. It is not safe for concurrent use.
type ChangeReader struct {
	tb          testing.TB
	server      *server.Server
	table       string
	reader      changestream.Reader
	bookkeeping bool
	since       time.Time             // time of the first unread records
	read        []changestream.Record // read, but not returned yet
}

// Changes returns the change stream records of all writes to a Bigtable table of the environment's
// instance that were acknowledged before the call, in order of commit time. It reads them through
// the API, and follows splits and merges of partitions. Records are available for the stream's
// retention period, on the environment's clock.
//
// Unless [WithBookkeeping] is given, it omits a DynamoDB endpoint's bookkeeping cells, and records
// that contain only such cells. To read later records, use [Env.ReadChanges].
func (e *Env) Changes(tb testing.TB, table string, opts ...ChangesOption) []changestream.Record {
	tb.Helper()
	return e.ReadChanges(tb, table, opts...).Rest()
}

// ReadChanges returns a reader of the change stream of a Bigtable table of the environment's
// instance, for the test tb. The reader starts at the first retained record, and returns the same
// records as [Env.Changes].
func (e *Env) ReadChanges(tb testing.TB, table string, opts ...ChangesOption) *ChangeReader {
	tb.Helper()
	e.server.Use(tb)
	r := &ChangeReader{tb: tb, server: e.server, table: table, reader: changestream.Reader{Lab: e.server.Lab(), Table: e.server.Lab().TableName(table)}}
	for _, o := range opts {
		o(r)
	}
	return r
}

// Rest returns all remaining records of writes that were acknowledged before the call, in order of
// commit time. It does not wait for later ones.
func (r *ChangeReader) Rest() []changestream.Record {
	r.tb.Helper()
	r.server.Use(r.tb)
	ctx, cancel := context.WithTimeout(lab.Probe(r.tb.Context()), changesDeadline)
	defer cancel()
	if err := r.fill(ctx); err != nil {
		r.tb.Fatalf("testkit: changes of table %s: %v%s", r.table, err, r.server.Elsewhere(r.table))
	}
	out := r.read
	r.read = nil
	return out
}

// Next returns the next record in order of commit time. It waits for one if necessary, and fails
// the test after a minute.
func (r *ChangeReader) Next() changestream.Record {
	r.tb.Helper()
	r.server.Use(r.tb)
	ctx, cancel := context.WithTimeout(lab.Probe(r.tb.Context()), changesDeadline)
	defer cancel()
	var err error
	for len(r.read) == 0 && err == nil {
		if err = r.fill(ctx); err == nil && len(r.read) == 0 {
			err = r.reader.Wait(ctx, r.since)
		}
	}
	if err != nil {
		r.tb.Fatalf("testkit: next change of table %s: %v%s", r.table, err, r.server.Elsewhere(r.table))
	}
	next := r.read[0]
	r.read = r.read[1:]
	return next
}

// fill reads the records of all writes acknowledged by now.
func (r *ChangeReader) fill(ctx context.Context) error {
	got, next, _, err := r.reader.Read(ctx, r.since)
	if err != nil {
		return err
	}
	r.since = next
	for i := range got {
		r.add(&got[i])
	}
	return nil
}

// add adds a record to the pending ones, unless all of it is hidden.
func (r *ChangeReader) add(rec *changestream.Record) {
	if r.bookkeeping || rec.DropBookkeeping() {
		r.read = append(r.read, *rec)
	}
}
