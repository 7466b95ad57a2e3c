package table

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/migrationstate"
	"github.com/tabletop-emu/tabletop/internal/sqlclient"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// The retries after a transient error, and the first wait, which doubles each time. A
// read is the first call that reaches a missing server, so it gives up after 3 s, and a
// write after 25 s.
const (
	maxReadRetries  = 5
	maxWriteRetries = 8
	// maxLateRetries bounds the retries of unanswered calls: a long load survives a lost call,
	// and a hanging server is reported soon.
	maxLateRetries = 2
	firstRetryWait = 100 * time.Millisecond
)

// defaultDeadline is how long a call waits for an answer from Bigtable.
const defaultDeadline = time.Minute

// Bigtable is a client of the instance that holds the tables.
type Bigtable struct {
	*btclient.Client
	// Extra reports whether reads skip a cell. If it is nil, reads skip no cells.
	Extra func(layout.Cell) bool
	// Live maps the id of a table to the function that removes expired items from its rows.
	// Tables without expiry have no entry.
	Live map[string]func(layout.Row) layout.Row
	// Views maps the id of a view to its layout. TableParts reads it, and returns its entries.
	Views map[string]*layout.View

	conn              grpc.ClientConnInterface
	project, instance string
	profile           string // app profile of row calls; "" selects the instance's default
	// Splits are the split keys of new tables, by table id.
	Splits map[string][][]byte
}

// NewBigtable returns a client of the instance that the options name.
func NewBigtable(conn grpc.ClientConnInterface, o Options) *Bigtable {
	retry := btclient.Retry{Reads: maxReadRetries, Writes: maxWriteRetries, Late: maxLateRetries, First: firstRetryWait, Sleep: o.Sleep, Jitter: o.Jitter}
	if o.Waiting != nil && o.Sleep != nil {
		retry.Waiting = o.Waiting
	}
	b := &Bigtable{conn: conn, project: cmp.Or(o.Project, defaultName), instance: cmp.Or(o.Instance, defaultName), profile: o.AppProfile}
	b.Client = btclient.New(conn, b.project, b.instance, btclient.Options{AppProfile: o.AppProfile, Retry: retry, Deadline: cmp.Or(o.Deadline, defaultDeadline)})
	return b
}

// SQL starts a query with its parameters. The caller must close the result.
func (b *Bigtable) SQL(ctx context.Context, query string, params map[string]*btpb.Value) (*sqlclient.Rows, error) {
	return sqlclient.Run(ctx, b.conn, sqlclient.Query{Instance: "projects/" + b.project + "/instances/" + b.instance, AppProfile: b.profile, Text: query, Params: params})
}

// StateFamily is the family in which the DynamoDB endpoint keeps its bookkeeping. Every
// table of items or index entries has it.
var StateFamily = layout.Family{Name: lens.FamilyState, GC: layout.GC{Versions: 1}}

// MakeTable creates a table, or adds missing families to an existing one. It rejects a
// table whose garbage collection differs from that in the mapping, since items would have
// another lifetime.
func (b *Bigtable) MakeTable(ctx context.Context, id string, families []layout.Family) (created bool, err error) {
	families = slices.Clone(families)
	if id != layout.SchemaTable && id != migrationstate.Table {
		families = append(families, StateFamily)
	}
	if splits := b.Splits[id]; len(splits) > 0 {
		if created, err := b.CreateSplit(ctx, id, families, splits); created || err != nil {
			return created, err
		}
	}
	return b.EnsureTable(ctx, id, families, func(family string, have, want *btapb.GcRule) error {
		if family == lens.FamilyState {
			return nil
		}
		return &source.Error{
			Damage: source.MappingRefused,
			Detail: fmt.Sprintf("family %s of Bigtable table %s has the garbage-collection rule {%v}, but the mapping declares {%v}: change one of them, or load into another table",
				family, id, have, want),
		}
	})
}

// Rows streams rows in key order. The caller owns the slices in a row.
func (b *Bigtable) Rows(ctx context.Context, r btclient.Read) iter.Seq2[layout.Row, error] {
	return func(yield func(layout.Row, error) bool) {
		for part, err := range b.Parts(ctx, r, math.MaxInt) {
			if (err != nil || len(part.Cells) > 0) && !yield(part.Row, err) {
				return
			}
		}
	}
}

// Parts streams rows of any size. It splits a row of more than most bytes into parts.
// Parts and rows may be empty, since extra cells are left out.
func (b *Bigtable) Parts(ctx context.Context, r btclient.Read, most int) iter.Seq2[btclient.Part, error] {
	r.Clone = true
	return func(yield func(btclient.Part, error) bool) {
		for part, err := range b.ReadParts(ctx, r, most) {
			if b.Extra != nil {
				part.Cells = slices.DeleteFunc(part.Cells, b.Extra)
			}
			if status.Code(err) == codes.NotFound {
				err = b.notFound(ctx, r.Table, err)
			}
			if !yield(part, err) {
				return
			}
		}
	}
}

// notFound returns the error of a read that failed with NotFound. That is err, unless the
// table exists and the client has an app profile: the instance then lacks that profile, and
// the code is FailedPrecondition.
func (b *Bigtable) notFound(ctx context.Context, table string, err error) error {
	if b.profile == "" {
		return err
	}
	tables, listErr := b.Tables(ctx)
	if listErr != nil || !slices.Contains(tables, table) { // permission to read does not imply permission to list
		return err
	}
	return status.Errorf(codes.FailedPrecondition, "table %s exists, but app profile %s does not find it: %v", table, b.profile, err)
}

// FamilyChange is how a family of a table differs from its declaration.
type FamilyChange struct {
	layout.Family           // as it is declared
	At            int       // its index among the declared ones
	Missing       bool      // the table lacks it
	Has           layout.GC // its rule
	Plain         bool      // Has is all of the rule; otherwise, no mapping can declare it
}

// FamilyChanges returns the declared families that a table lacks, or has with another rule.
func FamilyChanges(have map[string]*btapb.GcRule, declared []layout.Family) (all []FamilyChange) {
	for i, want := range declared {
		x := FamilyChange{Family: want, At: i}
		if rule, ok := have[want.Name]; ok {
			x.Has, x.Plain = btclient.GCOf(rule)
		} else {
			x.Missing = true
		}
		if !x.Plain || x.Has != want.GC {
			all = append(all, x)
		}
	}
	return all
}

// TableRows streams the rows of a table, or of spans of it. It omits bookkeeping, and rows
// with nothing else.
func (b *Bigtable) TableRows(ctx context.Context, table string, spans ...layout.Span) iter.Seq2[layout.Row, error] {
	return func(yield func(layout.Row, error) bool) {
		for part, err := range b.TableParts(ctx, table, spans, math.MaxInt) {
			if (err != nil || len(part.Cells) > 0) && !yield(part.Row, err) {
				return
			}
		}
	}
}

// TableParts is like TableRows, but returns large rows in parts, as [Bigtable.Parts]
// does.
func (b *Bigtable) TableParts(ctx context.Context, table string, spans []layout.Span, most int) iter.Seq2[btclient.Part, error] {
	return func(yield func(btclient.Part, error) bool) {
		if len(spans) == 0 {
			spans = []layout.Span{{}}
		}
		if v := b.Views[table]; v != nil {
			b.viewParts(ctx, v, slices.Clone(spans), yield)
			return
		}
		for part, err := range b.Parts(ctx, btclient.Read{Table: table, Spans: slices.Clone(spans)}, most) {
			part.Cells = slices.DeleteFunc(part.Cells, func(c layout.Cell) bool { return lens.Bookkeeping(c.Family) })
			if live := b.Live[table]; live != nil {
				part.Row = live(part.Row)
			}
			if !yield(part, err) {
				return
			}
		}
	}
}

// Micros converts a time to the timestamp of a cell, truncated to milliseconds.
func Micros(t time.Time) int64 { return t.UnixMilli() * 1000 }

// HasTable reports whether a table exists.
func (b *Bigtable) HasTable(ctx context.Context, table string) (bool, error) {
	_, err := b.HasRows(ctx, table)
	if status.Code(err) == codes.NotFound {
		return false, nil
	}
	return err == nil, err
}

// HasRows reports whether a table has rows. The error has the code NotFound if the table
// does not exist.
func (b *Bigtable) HasRows(ctx context.Context, table string) (bool, error) {
	for _, err := range b.Rows(ctx, btclient.Read{Table: table, Spans: []layout.Span{{}}, Filter: btclient.FirstCells(1), Limit: 1}) {
		return err == nil, err
	}
	return false, nil
}
