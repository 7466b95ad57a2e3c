package settled

import (
	"bytes"
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/secondary"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

func timeOf(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

// indexRows reads the table of an index, or spans of it, and suspects the items whose entry is in
// another row. The expected entries were compared with the items.
func (v *verification) indexRows(ctx context.Context, index *secondary.Index, spans ...layout.Span) error {
	var batch []*suspect
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		if err := v.target(ctx, batch); err != nil {
			return err
		}
		for _, x := range batch {
			stored, err := v.o.Mapping.Item(x.row, x.key)
			x.row = layout.Row{}
			placed, ok := v.c.expected(index, stored)
			if err == nil && ok && bytes.Equal(placed.Row, x.entries[0].row) {
				continue
			}
			if err := v.suspect(ctx, x); err != nil {
				return err
			}
		}
		batch = nil
		return nil
	}
	for row, err := range v.b.TableRows(ctx, index.TargetTable(), spans...) {
		if status.Code(err) == codes.NotFound {
			return nil // the items' entries are missing
		}
		if err != nil {
			return err
		}
		v.j.Report.IndexRows++
		items, err := index.Items(row)
		if err != nil {
			l := table.RowLayout{J: v.j, Index: index}
			f := report.InRow(index.TargetTable(), row.Key)
			f.Kind, f.Detail = report.IndexStale, phrase.Clip(string(report.RowUnreadable)+": "+err.Error())
			v.o.Report.Fail(l.Owned(f, table.Owner{}))
			continue
		}
		for _, item := range items {
			x, err := v.newSuspect(item)
			if err != nil || !v.wants(x.id) {
				continue // of no item of the table
			}
			x.entries = []entry{{index, row.Key}}
			batch = append(batch, x)
		}
		if len(batch) >= chunk {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}
