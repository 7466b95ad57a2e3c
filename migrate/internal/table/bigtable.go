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
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// How often a call is sent again after an error that may pass, and how long the
// first wait is; each further one is twice as long. A read is the first that meets a
// server that is not there: it gives up after 3 s, a write after 25 s.
const (
	maxReadRetries  = 5
	maxWriteRetries = 8
	// maxLateRetries of these are of calls that got no answer: a load of hours goes on where
	// one call is lost, and of a server that hangs a person hears soon.
	maxLateRetries = 2
	firstRetryWait = 100 * time.Millisecond
)

// defaultDeadline is how long a Bigtable may go without an answer.
const defaultDeadline = time.Minute

// Bigtable is the client of the instance that the tables are in.
type Bigtable struct {
	*btclient.Client
	// Extra reports cells that reads skip, with rows that hold nothing else; nil for
	// none.
	Extra func(layout.Cell) bool
	// Live removes from a row what has expired, by table id; nil for tables where nothing
	// expires.
	Live map[string]func(layout.Row) layout.Row

	profile string // of calls on rows; "": the instance's own
	// Splits are the keys at which a table that is made is split, by table id.
	Splits map[string][][]byte
}

// NewBigtable returns the client of the instance that the options name.
func NewBigtable(conn grpc.ClientConnInterface, o Options) *Bigtable {
	retry := btclient.Retry{Reads: maxReadRetries, Writes: maxWriteRetries, Late: maxLateRetries, First: firstRetryWait, Sleep: o.Sleep, Jitter: o.Jitter}
	if o.Waiting != nil && o.Sleep != nil {
		retry.Waiting = o.Waiting
	}
	return &Bigtable{profile: o.AppProfile, Client: btclient.New(conn, cmp.Or(o.Project, defaultName), cmp.Or(o.Instance, defaultName), btclient.Options{
		AppProfile: o.AppProfile, Retry: retry, Deadline: cmp.Or(o.Deadline, defaultDeadline),
	})}
}

// StateFamily is in every table of items and indexes: the DynamoDB door keeps its
// books in the rows.
var StateFamily = layout.Family{Name: lens.FamilyState, GC: layout.GC{Versions: 1}}

// MakeTable creates a table, or the families that an existing one lacks. It rejects a table
// whose garbage collection differs from the mapping's: items would not last as the mapping
// says.
func (b *Bigtable) MakeTable(ctx context.Context, id string, families []layout.Family) (created bool, err error) {
	families = slices.Clone(families)
	if id != layout.SchemaTable {
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
			Detail: fmt.Sprintf("family %s of Bigtable table %s has the garbage-collection rule {%v}, the mapping's is {%v}: change one of them, or load into another table",
				family, id, have, want),
		}
	})
}

// Rows streams rows in key order. A row's slices are its own.
func (b *Bigtable) Rows(ctx context.Context, r btclient.Read) iter.Seq2[layout.Row, error] {
	return func(yield func(layout.Row, error) bool) {
		for part, err := range b.Parts(ctx, r, math.MaxInt) {
			if (err != nil || len(part.Cells) > 0) && !yield(part.Row, err) {
				return
			}
		}
	}
}

// Parts streams rows of any size: a row of more than most bytes comes in parts. A part, and
// a row, may be empty, since extra cells are left out.
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

// notFound is the error of a read that says that something is not there. It stays a
// NotFound if that is the table, and not the app profile that was named.
func (b *Bigtable) notFound(ctx context.Context, table string, err error) error {
	if b.profile == "" {
		return err
	}
	tables, listErr := b.Tables(ctx)
	if listErr != nil || !slices.Contains(tables, table) { // who may read need not be allowed to list
		return err
	}
	return status.Errorf(codes.FailedPrecondition, "table %s is there, and not found by the app profile %s: %v", table, b.profile, err)
}

// TableRows streams the rows of a table, or of spans of it, without the bookkeeping of the
// DynamoDB endpoint and rows that hold nothing else.
func (b *Bigtable) TableRows(ctx context.Context, table string, spans ...layout.Span) iter.Seq2[layout.Row, error] {
	return func(yield func(layout.Row, error) bool) {
		for part, err := range b.TableParts(ctx, table, spans, math.MaxInt) {
			if (err != nil || len(part.Cells) > 0) && !yield(part.Row, err) {
				return
			}
		}
	}
}

// TableParts is TableRows with large rows in parts, as [Bigtable.Parts] has them.
func (b *Bigtable) TableParts(ctx context.Context, table string, spans []layout.Span, most int) iter.Seq2[btclient.Part, error] {
	return func(yield func(btclient.Part, error) bool) {
		if len(spans) == 0 {
			spans = []layout.Span{{}}
		}
		for part, err := range b.Parts(ctx, btclient.Read{Table: table, Spans: slices.Clone(spans)}, most) {
			part.Cells = slices.DeleteFunc(part.Cells, func(c layout.Cell) bool {
				return c.Family == lens.FamilyState || c.Family == lens.FamilyTombstone
			})
			if live := b.Live[table]; live != nil {
				part.Row = live(part.Row)
			}
			if !yield(part, err) {
				return
			}
		}
	}
}

// Micros returns a time as cells hold it, in whole milliseconds.
func Micros(t time.Time) int64 { return t.UnixMilli() * 1000 }

// HasTable reports whether a table exists.
func (b *Bigtable) HasTable(ctx context.Context, table string) (bool, error) {
	_, err := b.HasRows(ctx, table)
	if status.Code(err) == codes.NotFound {
		return false, nil
	}
	return err == nil, err
}

// HasRows reports whether a table has rows; the error is NotFound if there is no table.
func (b *Bigtable) HasRows(ctx context.Context, table string) (bool, error) {
	for _, err := range b.Rows(ctx, btclient.Read{Table: table, Spans: []layout.Span{{}}, Filter: btclient.FirstCells(1), Limit: 1}) {
		return err == nil, err
	}
	return false, nil
}
