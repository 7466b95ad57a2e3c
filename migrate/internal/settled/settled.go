package settled

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
	ms "github.com/tabletop-emu/tabletop/internal/layout/migrationstate"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/infer"
	compared "github.com/tabletop-emu/tabletop/migrate/internal/compare"
	"github.com/tabletop-emu/tabletop/migrate/internal/follow"
	"github.com/tabletop-emu/tabletop/migrate/internal/statetable"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
	"github.com/tabletop-emu/tabletop/migrate/stream"
)

// Source reads the items of a live table; *[stream.Items] is one.
type Source interface {
	Scan(ctx context.Context, segment, segments int, consistent bool) iter.Seq2[stream.Page, error]
	Get(ctx context.Context, keys ...attr.Item) (items []attr.Item, at time.Time, err error)
}

// Options are the options of Run. All but Consistent, Sample and Dirty are required.
type Options struct {
	B       *table.Bigtable
	Mapping *layout.Mapping
	Source  Source
	Report  *report.Report
	Table   table.Options // normalized

	Consistent bool // scan consistently
	Segments   int  // of the scan
	Rounds     int  // of the settle rule
	// Sample is the share of the keys to compare; 0 and 1: all.
	Sample float64
	// Dirty compares only the keys that changed since the last verification.
	Dirty bool

	Now   func() time.Time
	Sleep func(context.Context, time.Duration) error
}

// verification is the verification of one table.
type verification struct {
	o     Options
	b     *table.Bigtable
	j     *table.Job
	c     *judge
	store statetable.Store
	mark  watermark

	followed bool                 // a process follows the table
	letters  map[string]ms.Letter // by key
	asOf     *export              // the source, if it is not the live table
	unplaced bool                 // the target has no family of positions
	part     *part                // the work, if it is not all
	buckets  *[buckets]bool       // the keys to compare; nil: all

	answers sync.Mutex // guards last and the counts of firstLook while suspects are judged, since mu is held then

	mu       sync.Mutex
	open     []*suspect
	held     int // bytes of their items
	live     report.Live
	last     time.Time            // of the source's answers
	reported map[attr.ItemID]bool // items that differ, at most maxOpen
	broken   map[string]bool      // rows of them that cannot be read
	faults   []rowFault           // of one goroutine
}

// maxOpen is the number of suspects that are collected before they are judged.
const maxOpen = 20_000

// CheckName is the name of the check in a report.
const CheckName = "live comparison"

// skipViews reports the views of the table, which Bigtable updates after the rows, as not compared.
func (v *verification) skipViews() {
	for _, x := range v.o.Mapping.Views() {
		v.o.Report.Skip("index "+x.Name(), x.ID(), "the view follows the rows: verify --against, without --live and --as-of, compares it")
	}
}

// Run compares one table, and adds the result to the report.
func Run(ctx context.Context, o Options) error {
	v := newVerification(o)
	_, err := compared.Families(ctx, o.B, o.Report, v.j)
	if err == nil {
		err = o.Report.Check(CheckName, v.store.Table, func() (string, error) { return v.run(ctx) })
	}
	if err != nil {
		return err
	}
	v.skipViews()
	v.j.Report.Live = &v.live
	o.Report.Tables = append(o.Report.Tables, v.j.Report)
	return nil
}

func newVerification(o Options) *verification {
	m := o.Mapping
	v := &verification{
		o: o, b: o.B, store: statetable.Store{B: o.B, Table: m.TargetTable(), Now: o.Now}, reported: map[attr.ItemID]bool{}, broken: map[string]bool{},
		j: &table.Job{Mapping: m, Indexes: m.Indexes(), Options: o.Table, Report: report.TableReport{
			Name: m.SourceTable(), Target: m.TargetTable(), Choices: []infer.Choice{}, Fidelity: []report.Fidelity{}, Samples: []report.Sample{}, Rules: []report.RuleRows{},
			Sidecar: []report.SidecarCells{}, Accepted: []report.AcceptedLoss{}, Phases: []report.Phase{}, Refused: []report.RefusedItems{},
		}},
	}
	v.c = newJudge(v.j, o.Now)
	v.c.cells = o.Dirty
	v.mark = watermark{store: v.store, sourceName: m.SourceTable(), sleep: o.Sleep}
	return v
}

func (v *verification) run(ctx context.Context) (string, error) {
	from, generation, err := v.begin(ctx)
	if err != nil {
		return "", err
	}
	before := v.o.Report.AllDifferences()
	if v.o.Dirty {
		err = v.changed(ctx, from, generation-1)
	} else {
		err = v.all(ctx)
	}
	if err != nil {
		return "", err
	}
	v.ends()
	different := v.o.Report.AllDifferences() - before
	same := different == 0
	if v.o.Dirty && !v.followed {
		v.o.Report.Warnings = append(v.o.Report.Warnings, fmt.Sprintf("table %s: no process followed it, so this proves only its writes before %s: if the source is frozen, `tabletop migrate follow %[1]s --until tip` now applies 0 changes", v.j.Report.Name, v.mark.last.Watermark.UTC().Format(time.RFC3339)))
	}
	if generation > 0 {
		err = v.end(ctx, from, generation, different)
	}
	return v.detail(same), err
}

// refused returns the error for a table that cannot be verified now.
func (v *verification) refused(format string, args ...any) error {
	return source.Damaged(source.Unsupported, source.Position{}, nil, "Bigtable table %s: %s", v.store.Table, fmt.Sprintf(format, args...))
}

// begin checks the state, starts a generation of changed keys and waits until the follower writes it.
// from is the first generation to judge. A sample starts none.
func (v *verification) begin(ctx context.Context) (from, generation uint64, err error) {
	hash, err := follow.Hash(v.o.Mapping)
	if err != nil {
		return 0, 0, err
	}
	name := v.o.Mapping.SourceTable()
	s, err := v.store.Change(ctx, func(s ms.State) (ms.State, *ms.Event, error) {
		switch {
		case s.Phase == ms.CatchingUp:
			return s, nil, v.refused("%s; its items can be older than the load: wait for the phase %s (tabletop migrate status --wait phase=%s)", s, ms.Following, ms.Following)
		case s.Phase != ms.Following && s.Phase != ms.Drained:
			return s, nil, v.refused("%s; a table can only be verified while a process follows its source: tabletop migrate follow %s", s, name)
		case s.Mapping != "" && s.Mapping != hash:
			return s, nil, v.refused("it is followed with a mapping that differs from the stored one: run `tabletop migrate status`")
		case v.o.Dirty && s.Verified == 0:
			return s, nil, v.refused("no complete verification has found it equal, so comparing only the changed keys proves nothing: run verify --live --consistent first")
		}
		from = s.Verified
		if !v.sampled() {
			s.Dirty++
		}
		return s, nil, nil
	})
	if err != nil {
		return 0, 0, err
	}
	if !v.sampled() {
		generation = s.Dirty
	}
	// Without a process, no key goes to an earlier generation: the next one reads the state first.
	if v.followed, err = v.mark.records(ctx, generation); v.followed {
		v.live.From = v.mark.last.Progress.SourceNow
	} else if err == nil {
		v.mark.last, _, err = v.store.Checkpoint(ctx, statetable.StreamSource)
		v.live.From = v.mark.last.Watermark
	}
	return from, generation, err
}

// ends notes the time up to which keys were compared: that of the last answer of the source. The follower records
// the keys of later changes for the next run.
func (v *verification) ends() {
	if v.live.To, v.live.Rule = v.last, v.mark.last.Progress.Rule; v.live.To.Before(v.live.From) {
		v.live.To = v.live.From
	}
}

func (v *verification) sampled() bool { return v.o.Sample > 0 && v.o.Sample < 1 }

// end records a verification: if it found no difference, only keys of its generation can differ from
// now on.
func (v *verification) end(ctx context.Context, from, generation uint64, different int64) error {
	same, proved := different == 0, false
	_, err := v.store.Change(ctx, func(s ms.State) (ms.State, *ms.Event, error) {
		s.Proof = ms.Proof{At: v.o.Now(), Dirty: v.o.Dirty, Compared: v.live.Compared, Different: different, Unsettled: v.live.Unsettled}
		switch {
		case same && v.o.Dirty && s.Verified != from: // another verification decided meanwhile
		case same && (v.o.Dirty || v.o.Consistent): // an old answer can hide a lost change
			s.Verified, proved = max(s.Verified, generation), true
		case same:
		case !v.o.Dirty: // a key that did not change differs
			s.Verified = 0
		}
		return s, nil, nil
	})
	if err != nil || !proved {
		return err
	}
	return v.store.DropDirty(ctx, generation-1)
}

// detail describes the result.
func (v *verification) detail(same bool) string {
	l := &v.live
	what := phrase.Counted(l.Compared, "key") + " compared"
	if v.o.Dirty {
		what += ", those that changed since the last verification"
	}
	switch {
	case v.sampled() && same && l.Compared > 0:
		what += fmt.Sprintf(", a sample of %g: at 95 %%, fewer than %.2g %% of all differ", v.o.Sample, min(100, 300/float64(l.Compared)))
	case v.sampled():
		what += fmt.Sprintf(", a sample of %g", v.o.Sample)
	}
	what += fmt.Sprintf(", each at a time from %s to %s", l.From.UTC().Format(time.RFC3339), l.To.UTC().Format(time.RFC3339))
	if v.followed {
		what += fmt.Sprintf(" (watermark by %s)", l.Rule)
	} else {
		what += " (no process followed the source: only a frozen source is proved)"
	}
	return what + l.Outcomes()
}

// suspect adds suspects, and judges them if they are many.
func (v *verification) suspect(ctx context.Context, some ...*suspect) error {
	v.mu.Lock()
	for _, x := range some {
		if !v.reported[x.id] {
			v.open = append(v.open, x)
			v.held += x.exported.Size()
		}
	}
	var all []*suspect
	if len(v.open) >= maxOpen || v.held > maxHeldBytes {
		all, v.open, v.held = v.open, nil, 0
	}
	v.mu.Unlock()
	return v.settle(ctx, all)
}

// settleRest judges the suspects that are left.
func (v *verification) settleRest(ctx context.Context) error {
	v.mu.Lock()
	all := v.open
	v.open, v.held = nil, 0
	v.mu.Unlock()
	return v.settle(ctx, all)
}

func (v *verification) settle(ctx context.Context, all []*suspect) error {
	if len(all) == 0 {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.asOf == nil { // else the first look decides, except for entries of indexes
		for _, x := range all {
			if !x.unseen {
				v.live.Suspects++
			}
		}
	}
	return settle(ctx, v, all, v.o.Rounds)
}

// newSuspect returns the suspect of a key.
func (v *verification) newSuspect(key attr.Item) (*suspect, error) {
	schema := v.o.Mapping.Key()
	key = schema.KeyOf(key)
	at, err := v.o.Mapping.Locate(key)
	return &suspect{key: key, id: schema.ID(key), at: at}, err
}

// target implements sides.
func (v *verification) target(ctx context.Context, some []*suspect) error {
	return v.read(ctx, some, true)
}

// positions implements sides.
func (v *verification) positions(ctx context.Context, some []*suspect) error {
	if v.unplaced {
		return nil
	}
	return v.read(ctx, some, false)
}

// source implements sides.
func (v *verification) source(ctx context.Context, some []*suspect) (last time.Time, err error) {
	if v.asOf != nil {
		v.exported(some)
		return time.Time{}, nil
	}
	keys := make([]attr.Item, len(some))
	for i, x := range some {
		keys[i] = x.key
	}
	items, last, err := v.o.Source.Get(ctx, keys...)
	if err != nil {
		return last, err
	}
	for i, x := range some {
		x.item = items[i]
	}
	v.answers.Lock()
	defer v.answers.Unlock()
	if last.After(v.last) {
		v.last = last
	}
	return last, nil
}

// await implements sides. It also reads the dead letters: their items are older in the target.
func (v *verification) await(ctx context.Context, t time.Time) (err error) {
	if v.asOf != nil { // the entries of an index may be being written
		if t, err = v.moment(ctx); err != nil {
			return err
		}
	}
	if !t.IsZero() {
		if err := v.mark.await(ctx, t); err != nil {
			return err
		}
	}
	v.letters = map[string]ms.Letter{}
	for l, err := range v.store.Letters(ctx) {
		if err != nil {
			return err
		}
		if v.letters[l.Key] = l; len(v.letters) == maxOpen {
			break
		}
	}
	return nil
}

// judge implements sides.
func (v *verification) judge(ctx context.Context, some []*suspect) error {
	out, err := v.compare(ctx, some)
	for x, o := range out {
		x.found, x.stale, x.outcome = o.failures, o.stale, o
		x.outcome.stored, x.outcome.failures = nil, nil
	}
	if err == nil {
		v.firstLook(some)
	}
	return err
}

// firstLook counts changed keys at their first look.
func (v *verification) firstLook(some []*suspect) {
	v.answers.Lock()
	defer v.answers.Unlock()
	for _, x := range some {
		if !x.unseen {
			continue
		}
		if x.unseen = false; len(x.found) > 0 {
			v.live.Suspects++
		}
		if !v.o.Dirty {
			continue // the scans counted both sides
		}
		if x.item != nil {
			v.j.Report.Items++
		}
		if n := len(x.row.Cells); n > 0 {
			v.j.Report.Rows++
			v.j.Report.Cells += int64(n)
		}
	}
}

// equal implements sides.
func (v *verification) equal(x *suspect) { v.count(x.outcome) }

func (v *verification) count(o outcome) {
	v.live.Compared++
	if o.expired {
		v.live.Expired++
	}
	if o.collected {
		v.live.Collected++
	}
	if o.newer {
		v.live.Newer++
	}
}

// differs implements sides.
func (v *verification) differs(x *suspect) {
	if v.part != nil && !x.stale {
		return // its hashes differ, so the end of the parts reports it
	}
	v.live.Compared++
	if len(v.reported) < maxOpen {
		v.reported[x.id] = true
	}
	if l, ok := v.letters[v.j.KeyJSON(x.key)]; ok {
		f := x.found[0]
		f.Kind, f.Column, f.Want, f.Got, f.Mapping = report.NotLoaded, "", "", "", l.Mapping
		f.Detail = "a change of the item could not be applied: " + l.Reason
		v.o.Report.Fail(f)
		return
	}
	since := "no change of the item was applied since the load"
	if x.changed > 0 {
		since = "last change applied: " + timeOf(x.changed).Format(time.RFC3339Nano)
	}
	for _, f := range x.found {
		if f.Kind == report.RowUnreadable {
			v.broken[f.RowHex] = true
		}
		if f.Detail != "" {
			f.Detail += "; "
		}
		f.Detail += since
		v.o.Report.Fail(f)
	}
}

// maxNamed bounds the unsettled keys that a report names.
const maxNamed = 100

// unsettled implements sides.
func (v *verification) unsettled(x *suspect) {
	if v.part != nil && !x.stale {
		return
	}
	v.live.Unsettled++
	if len(v.live.UnsettledKeys) < maxNamed {
		v.live.UnsettledKeys = append(v.live.UnsettledKeys, v.j.KeyJSON(x.key))
	}
}

// compare compares suspects as they were read, including their entries in indexes.
func (v *verification) compare(ctx context.Context, some []*suspect) (map[*suspect]outcome, error) {
	out, equal := map[*suspect]outcome{}, map[*suspect]attr.Item{}
	for _, x := range some {
		o := v.newer(x, v.c.item(x, x.item, x.row))
		if out[x] = o; len(o.failures) == 0 && !o.newer && !x.at.Derived {
			equal[x] = o.stored
		}
	}
	stale, err := v.stale(ctx, equal)
	for x, failures := range stale {
		o := out[x]
		o.failures, o.stale = failures, true
		out[x] = v.newer(x, o)
	}
	return out, err
}

// stale compares the entries of stored items in indexes, and returns the differences.
func (v *verification) stale(ctx context.Context, stored map[*suspect]attr.Item) (map[*suspect][]report.Failure, error) {
	rows := map[*suspect][]entry{}
	var needed []entry
	for x, item := range stored {
		rows[x] = x.entries
		for _, index := range v.j.Indexes {
			if placed, ok := v.c.expected(index, item); ok {
				rows[x] = append(rows[x][:len(rows[x]):len(rows[x])], entry{index, placed.Row})
			}
		}
		needed = append(needed, rows[x]...)
	}
	if len(needed) == 0 {
		return nil, nil
	}
	found, err := v.entryRows(ctx, needed)
	if err != nil {
		return nil, err
	}
	out := map[*suspect][]report.Failure{}
	for x, entries := range rows {
		for _, e := range entries {
			if failures := v.c.entryRow(x.key, stored[x], e, found[e.index.Name()+"\x00"+string(e.row)]); len(failures) > 0 {
				out[x] = append(out[x], failures...)
			}
		}
	}
	return out, nil
}
