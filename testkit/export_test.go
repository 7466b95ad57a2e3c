package testkit

import (
	"io"
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/control/lab"
	"github.com/tabletop-emu/tabletop/control/lab/changestream"
)

// Delivered returns the records up to a time in the order in which streams delivered
// them.
func (r *ChangeReader) Delivered(until time.Time) ([]Change, error) {
	ctx := lab.Probe(r.tb.Context())
	from, err := r.reader.Begin(ctx, r.since)
	if err != nil {
		return nil, err
	}
	err = r.reader.Deliver(ctx, from, until, func(rec *changestream.Record) bool {
		r.add(rec)
		return true
	})
	return r.read, err
}

// PrincipalHeader is principalHeader.
const PrincipalHeader = principalHeader

// HoldTo is Hold that prints somewhere else.
func (e *Env) HoldTo(tb testing.TB, out io.Writer) {
	tb.Helper()
	e.hold(tb, out)
}
