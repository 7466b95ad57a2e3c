package migrate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/internal/parts"
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

	// Part selects a part of the work: its share of the segments of the source, and of the
	// rows. Each part is a process on any machine, in any order. [FinishVerifyLive]
	// combines the results. It excludes Sample and Dirty.
	Part source.Part
	// Parts is the folder in which parts keep hashes of the items, 33 bytes for an item of
	// each side.
	Parts string

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
		return nil, source.Damaged(source.Unsupported, source.Position{}, nil, "a sample and only changed keys cannot be combined: leave out one")
	case o.Part.Of > 0 && (o.Dirty || o.Sample > 0 || o.Parts == ""):
		return nil, source.Damaged(source.Unsupported, source.Position{}, nil, "a part of a verification needs a folder for its results, and compares all keys: leave out the sample and the limit to changed keys")
	}
	all, err := o.settled(ctx, conn)
	if err != nil {
		return nil, err
	}
	if o.Part.Of > 0 {
		return o.verifyPart(ctx, all)
	}
	r := all[0].Report
	for _, x := range all {
		if err := settled.Run(ctx, x); err != nil {
			return nil, err
		}
	}
	for _, t := range r.Tables {
		r.Items += t.Items
		r.Rows += t.Rows
	}
	describeLive(r, all)
	return r, nil
}

// settled returns the options for each table. They share a report.
func (o LiveOptions) settled(ctx context.Context, conn grpc.ClientConnInterface) (all []settled.Options, err error) {
	mappings, err := followed(ctx, conn, o.Common, o.Tables)
	if err != nil {
		return nil, err
	}
	x := o.options().Normalized()
	r := report.New(x.MaxDifferences)
	r.Compared = true
	for _, m := range mappings {
		all = append(all, settled.Options{
			B: table.NewBigtable(conn, x), Mapping: (*layout.Mapping)(m), Report: r, Table: x,
			Source:     stream.NewItems(o.Source, stream.Options{Table: m.SourceTable(), Now: o.Now, Sleep: o.Sleep, Jitter: o.Jitter}),
			Consistent: o.Consistent, Segments: cmp.Or(o.Segments, 4), Rounds: cmp.Or(o.Settle, settleRounds), Sample: o.Sample, Dirty: o.Dirty,
			Now: o.Now, Sleep: o.Sleep,
		})
	}
	return all, nil
}

// describeLive sets the source of a report, and warns of keys without a result.
func describeLive(r *report.Report, all []settled.Options) {
	var names []string
	for _, x := range all {
		names = append(names, x.Mapping.SourceTable())
	}
	r.Source, r.Format = strings.Join(names, ", "), "live tables"
	for _, t := range r.Tables {
		if t.Live != nil && t.Live.Unsettled > 0 {
			r.Warnings = append(r.Warnings, fmt.Sprintf("table %s: %s changed at each look, and no result is known: %s", t.Name, phrase.Counted(t.Live.Unsettled, "key"), phrase.ClipTo(strings.Join(t.Live.UnsettledKeys, ", "), 1000)))
		}
	}
}

// hashFormat is the version of the hashes that parts save: parts of another one are refused.
const hashFormat = 1

// folder returns the folder of the parts.
func (o LiveOptions) folder(ctx context.Context, all []settled.Options) (parts.Folder, error) {
	x := o.options().Normalized()
	f := parts.Folder{Dir: o.Parts, Verb: parts.Verifying, Tables: len(all), MaxDifferences: x.MaxDifferences}
	text := fmt.Appendf(nil, "live %d %q %q\n", hashFormat, x.Project, x.Instance)
	for _, of := range all {
		id, err := settled.Identity(ctx, of)
		if err != nil {
			return f, err
		}
		text = fmt.Appendln(text, id)
	}
	sum := sha256.Sum256(text)
	f.Identity = hex.EncodeToString(sum[:])
	return f, nil
}

// verifyPart verifies a part of all tables. A complete part is not verified again.
func (o LiveOptions) verifyPart(ctx context.Context, all []settled.Options) (*report.Report, error) {
	f, err := o.folder(ctx, all)
	if err == nil {
		err = f.Admit(o.Part)
	}
	if err != nil {
		return nil, err
	}
	if done, err := f.Read(o.Part); err != nil {
		return nil, err
	} else if done != nil {
		done.Report.Warnings = append(done.Report.Warnings, fmt.Sprintf("part %v is already complete: see %s", o.Part, f.File(o.Part, parts.Done)))
		return done.Report, nil
	}
	done := parts.Complete{Report: all[0].Report}
	for _, x := range all {
		t, err := settled.RunPart(ctx, x, o.Part, f)
		if err != nil {
			return nil, err
		}
		done.Tables = append(done.Tables, t)
	}
	for _, t := range done.Report.Tables {
		done.Report.Items += t.Items
		done.Report.Rows += t.Rows
	}
	describeLive(done.Report, all)
	return done.Report, f.End(o.Part, done)
}

// FinishVerifyLive ends a verification in parts, whose folder is LiveOptions.Parts. It checks that
// all parts are complete, and adds up their hashes by the hash of the keys, without the keys that
// changed since the first part began. It compares those keys, and the keys of the sums that differ, as
// [VerifyLive] does. The report covers all parts. It counts as a complete verification, and removes the
// files of the parts.
func FinishVerifyLive(ctx context.Context, conn grpc.ClientConnInterface, o LiveOptions) (*report.Report, error) {
	all, err := o.settled(ctx, conn)
	if err != nil {
		return nil, err
	}
	f, err := o.folder(ctx, all)
	if err != nil {
		return nil, err
	}
	n, begun, err := f.Count()
	if err != nil {
		return nil, err
	}
	done, err := f.ReadAll(n, begun)
	if err != nil {
		return nil, err
	}
	r := report.Joined(f.MaxDifferences, parts.Reports(done))
	if len(r.Tables) != len(all) {
		return nil, source.Damaged(source.CheckpointInvalid, source.Position{File: o.Parts}, nil, "the reports of the parts have %d tables, want %d: remove the files of the parts, and verify them again", len(r.Tables), len(all))
	}
	for i, x := range all {
		var tables []parts.Table
		for _, p := range done {
			tables = append(tables, p.Tables[i])
		}
		x.Report = r
		if err := settled.FinishParts(ctx, x, f, tables, &r.Tables[i]); err != nil {
			return nil, err
		}
	}
	describeLive(r, all)
	return r, f.Remove(n)
}
