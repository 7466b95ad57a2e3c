package btkit

import (
	"time"

	"github.com/tabletop-emu/tabletop/control/lab"
	"github.com/tabletop-emu/tabletop/control/lab/changestream"
	"github.com/tabletop-emu/tabletop/testkit/internal/server"
)

// Delivered returns the records up to a time in the order in which streams delivered
// them.
func (r *ChangeReader) Delivered(until time.Time) ([]changestream.Record, error) {
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

// PrincipalHeader is server.PrincipalHeader.
const PrincipalHeader = server.PrincipalHeader
