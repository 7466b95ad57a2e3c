package settled

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	ms "github.com/tabletop-emu/tabletop/internal/layout/migrationstate"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	compared "github.com/tabletop-emu/tabletop/migrate/internal/compare"
	"github.com/tabletop-emu/tabletop/migrate/internal/follow"
	"github.com/tabletop-emu/tabletop/migrate/internal/statetable"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/stream"
)

// export is an export as the source of a comparison with tables that changed since. An item that
// differs is excused if the position of its last change is newer than the export.
type export struct {
	of    *table.Job // examined
	after int64      // microseconds: an item that changed later may differ
}

// approximate is how much earlier than a change its record can be dated: DynamoDB Streams rounds
// down to seconds.
const approximate = 2 * time.Second

// maxHeldBytes bounds the items of an export that wait for their judgment.
const maxHeldBytes = 32 << 20

// RunAsOf compares one table with the items that an export had at a time, and adds the result to
// the report and to the job of the export. Of the options, Source, Consistent, Segments, Sample and
// Dirty are ignored.
func RunAsOf(ctx context.Context, o Options, of *table.Job, at time.Time) error {
	x := &export{of: of, after: at.Add(-approximate).UnixMicro()}
	o.Source, o.Segments, o.Sample, o.Dirty = x, 1, 0, false
	v := newVerification(o)
	v.asOf = x
	if _, err := compared.Families(ctx, o.B, o.Report, of); err != nil {
		return err
	}
	err := o.Report.Check("comparison as of "+at.UTC().Format(time.RFC3339), v.store.Table, func() (string, error) { return v.runAsOf(ctx, at) })
	v.skipViews()
	of.Report.Rows, of.Report.Cells, of.Report.IndexRows, of.Report.Live = v.j.Report.Rows, v.j.Report.Cells, v.j.Report.IndexRows, &v.live
	return err
}

func (v *verification) runAsOf(ctx context.Context, at time.Time) (string, error) {
	s, err := v.store.State(ctx)
	if err != nil {
		return "", err
	}
	if s.Phase.Followed() {
		switch hash, err := follow.Hash(v.o.Mapping); {
		case err != nil:
			return "", err
		case s.Mapping != "" && s.Mapping != hash:
			return "", v.refused("it is followed with another mapping: compare with the mapping of its load (--mapping FILE)")
		}
		// Until then, an older item may only be late.
		if err := v.mark.await(ctx, at); err != nil {
			return "", err
		}
	}
	v.live.From, v.live.To, v.live.Rule = at, at, v.mark.last.Progress.Rule
	families, err := v.b.Families(ctx, v.store.Table)
	if status.Code(err) == codes.NotFound {
		v.o.Report.Fail(report.Failure{Kind: report.MissingTable, Table: v.store.Table})
		return "the table does not exist", nil
	}
	// Permission to read rows does not imply permission to read families.
	if _, ok := families[lens.FamilyPosition]; err == nil && !ok {
		v.unplaced = true
		v.o.Report.Warnings = append(v.o.Report.Warnings, fmt.Sprintf("Bigtable table %s has no positions of changes (family %s), so that an item that changed after the export cannot be distinguished from a wrong one: each difference is reported",
			v.store.Table, lens.FamilyPosition))
	}
	err = v.all(ctx)
	return phrase.Counted(v.live.Compared, "key") + " compared" + v.live.Outcomes(), err
}

// Scan implements [Source]. The only segment has all items.
func (x *export) Scan(ctx context.Context, _, _ int, _ bool) iter.Seq2[stream.Page, error] {
	return func(yield func(stream.Page, error) bool) {
		var page stream.Page
		errStop := errors.New("stop")
		err := x.of.Each(ctx, "comparing", func(p table.Placed) error {
			if page.Items = append(page.Items, p.Entry.Item); len(page.Items) < chunk {
				return nil
			}
			if !yield(page, nil) {
				return errStop
			}
			page.Items = page.Items[:0]
			return nil
		})
		if err == nil && len(page.Items) > 0 || err != nil && !errors.Is(err, errStop) {
			yield(page, err)
		}
	}
}

// Get implements [Source]: a key that no rule takes is not in the export.
func (*export) Get(_ context.Context, keys ...attr.Item) ([]attr.Item, time.Time, error) {
	return make([]attr.Item, len(keys)), time.Time{}, nil
}

// newer excuses the differences of an item that changed after the export.
func (v *verification) newer(x *suspect, o outcome) outcome {
	if v.asOf != nil && len(o.failures) > 0 && x.changed > v.asOf.after {
		o.failures, o.stale, o.newer = nil, false, true
	}
	return o
}

// exported sets the item of each suspect to the one in the export or, if only its index entries are
// suspect, to the one in its Bigtable row.
func (v *verification) exported(some []*suspect) {
	for _, x := range some {
		if x.item = x.exported; len(x.entries) > 0 { // only the entries are suspect
			x.item, _ = v.o.Mapping.Item(x.row, x.key)
		}
	}
}

// moment returns a time of the source after which all changes are newer than those that are being
// applied now; zero without a follower. The record of such a change is older than the next
// checkpoint.
func (v *verification) moment(ctx context.Context) (time.Time, error) {
	if follows, err := v.mark.followed(ctx); err != nil || !follows {
		return time.Time{}, err
	}
	before, _, err := v.store.Checkpoint(ctx, statetable.StreamSource)
	if err == nil {
		err = v.mark.until(ctx, func(c ms.Checkpoint) bool { return !c.At.Equal(before.At) })
	}
	return v.mark.last.Progress.SourceNow, err
}
