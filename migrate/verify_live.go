package migrate

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/internal/settled"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
	"github.com/tabletop-emu/tabletop/migrate/stream"
)

// LiveOptions configure [VerifyLive]. Source, Now and Sleep are required. The mappings are those by
// which the tables were loaded: Mappings is ignored.
type LiveOptions struct {
	Common

	// Tables are the DynamoDB tables to verify. Default: all that were loaded.
	Tables []string

	// Source calls the DynamoDB that has the tables.
	Source stream.ItemClient

	// Consistent scans the source consistently, at twice the price. Default: eventually consistent,
	// so that an old answer can equal an item that lacks its last change. Items that differ are
	// always read consistently.
	Consistent bool

	// Segments is the number of segments of the source that are scanned at once. Default: 4.
	Segments int

	// Settle is how often an item that differs is read again while it changes. Default: 5.
	Settle int

	// Sample compares a share of the keys, above 0 and below 1. Default: all.
	Sample float64

	// Dirty compares only the keys that changed since the last verification that found no
	// difference. It needs a complete one first.
	Dirty bool
}

// settleRounds is the default of LiveOptions.Settle.
const settleRounds = 5

// VerifyLive compares live DynamoDB tables with the Bigtable tables that [Follow] writes, while
// writes continue. A difference is reported only if the item did not change while the follower
// passed it; so lag is never reported as a difference. Items that changed at each look are counted
// and named apart, in report.Live: they are not differences.
//
// A complete verification starts to record changed keys. If it finds no difference, LiveOptions.Dirty
// can later compare those keys alone, for example while writes are held before a switch.
//
// The follower must run, in another process or goroutine. Without it, differences cannot be judged,
// which is an error. But if all items are equal, for example in a frozen source, it is not needed.
func VerifyLive(ctx context.Context, conn grpc.ClientConnInterface, o LiveOptions) (*report.Report, error) {
	switch {
	case o.Sample < 0 || o.Sample > 1:
		return nil, source.Damaged(source.Unsupported, source.Position{}, nil, "sample %g: expected a share from 0 to 1", o.Sample)
	case o.Dirty && o.Sample > 0:
		return nil, source.Damaged(source.Unsupported, source.Position{}, nil, "a sample and only changed keys exclude each other: leave out one")
	}
	mappings, err := followed(ctx, conn, o.Common, o.Tables)
	if err != nil {
		return nil, err
	}
	x := o.options().Normalized()
	r := report.New(x.MaxDifferences)
	r.Compared = true
	var names []string
	for _, m := range mappings {
		name := m.SourceTable()
		names = append(names, name)
		err := settled.Run(ctx, settled.Options{
			B: table.NewBigtable(conn, x), Mapping: (*layout.Mapping)(m), Report: r, Table: x,
			Source:     stream.NewItems(o.Source, stream.Options{Table: name, Now: o.Now, Sleep: o.Sleep, Jitter: o.Jitter}),
			Consistent: o.Consistent, Segments: cmp.Or(o.Segments, 4), Rounds: cmp.Or(o.Settle, settleRounds), Sample: o.Sample, Dirty: o.Dirty,
			Now: o.Now, Sleep: o.Sleep,
		})
		if err != nil {
			return nil, err
		}
	}
	r.Source, r.Format = strings.Join(names, ", "), "live tables"
	for _, t := range r.Tables {
		r.Items += t.Items
		r.Rows += t.Rows
		if n := t.Live.Unsettled; n > 0 {
			r.Warnings = append(r.Warnings, fmt.Sprintf("table %s: %s changed at each look, and no result is known: %s", t.Name, phrase.Counted(n, "key"), phrase.ClipTo(strings.Join(t.Live.UnsettledKeys, ", "), 1000)))
		}
	}
	return r, nil
}
