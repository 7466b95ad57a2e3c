package migrate

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/rowmerge"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// bigtable is a connection with the instance that the tables are in.
type bigtable struct {
	data   btpb.BigtableClient
	admin  btapb.BigtableTableAdminClient
	parent string // projects/…/instances/…
	// extra are cells that reads pass over, with rows that hold nothing else; nil
	// for none.
	extra func(layout.Cell) bool
}

func newBigtable(conn grpc.ClientConnInterface, project, instance string) *bigtable {
	return &bigtable{
		data:   btpb.NewBigtableClient(conn),
		admin:  btapb.NewBigtableTableAdminClient(conn),
		parent: "projects/" + project + "/instances/" + instance,
	}
}

func (b *bigtable) table(id string) string { return b.parent + "/tables/" + id }

// tables are the ids of the tables that are there, sorted.
func (b *bigtable) tables(ctx context.Context) ([]string, error) {
	var ids []string
	req := &btapb.ListTablesRequest{Parent: b.parent, View: btapb.Table_NAME_ONLY}
	for {
		resp, err := b.admin.ListTables(routed(ctx, "parent", b.parent), req)
		if err != nil {
			return nil, fmt.Errorf("listing the tables of %s: %w", b.parent, err)
		}
		for _, t := range resp.GetTables() {
			ids = append(ids, t.GetName()[strings.LastIndexByte(t.GetName(), '/')+1:])
		}
		if req.PageToken = resp.GetNextPageToken(); req.GetPageToken() == "" {
			slices.Sort(ids)
			return ids, nil
		}
	}
}

// routed adds the header by which Bigtable finds the place of a request, as its
// client libraries do. Source: AIP-4222, routing headers.
func routed(ctx context.Context, field, name string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "x-goog-request-params", field+"="+url.QueryEscape(name))
}

// stateFamily is in every table of items and indexes: the DynamoDB door keeps its
// books in the rows.
var stateFamily = layout.Family{Name: layout.FamilyState, GC: layout.GC{Versions: 1}}

// ensureTable creates a table, or the families that an existing one lacks. It
// refuses one whose garbage collection is not that of the mapping: what is
// loaded there would not last as the mapping says.
func (b *bigtable) ensureTable(ctx context.Context, id string, families []layout.Family) (created bool, err error) {
	want := map[string]*btapb.ColumnFamily{}
	for _, f := range families {
		want[f.Name] = &btapb.ColumnFamily{GcRule: gcRule(f.GC)}
	}
	if id != layout.SchemaTable {
		want[stateFamily.Name] = &btapb.ColumnFamily{GcRule: gcRule(stateFamily.GC)}
	}
	_, err = b.admin.CreateTable(routed(ctx, "parent", b.parent), &btapb.CreateTableRequest{Parent: b.parent, TableId: id, Table: &btapb.Table{ColumnFamilies: want}})
	if status.Code(err) != codes.AlreadyExists {
		if err != nil {
			return false, fmt.Errorf("creating table %s: %w", id, err)
		}
		return true, nil
	}
	t, err := b.admin.GetTable(routed(ctx, "name", b.table(id)), &btapb.GetTableRequest{Name: b.table(id), View: btapb.Table_SCHEMA_VIEW})
	if err != nil {
		return false, fmt.Errorf("reading the families of table %s: %w", id, err)
	}
	var add []*btapb.ModifyColumnFamiliesRequest_Modification
	for _, name := range slices.Sorted(maps.Keys(want)) {
		f := want[name]
		switch have, ok := t.GetColumnFamilies()[name]; {
		case ok && name != layout.FamilyState && !sameRule(have.GetGcRule(), f.GetGcRule()):
			return false, &source.Error{
				Damage: source.MappingRefused,
				Detail: fmt.Sprintf("family %s of Bigtable table %s has the garbage-collection rule {%v}, the mapping's is {%v}: change one of them, or load into another table",
					name, id, have.GetGcRule(), f.GetGcRule()),
			}
		case !ok:
			add = append(add, &btapb.ModifyColumnFamiliesRequest_Modification{Id: name, Mod: &btapb.ModifyColumnFamiliesRequest_Modification_Create{Create: f}})
		}
	}
	if len(add) == 0 {
		return false, nil
	}
	if _, err := b.admin.ModifyColumnFamilies(routed(ctx, "name", b.table(id)), &btapb.ModifyColumnFamiliesRequest{Name: b.table(id), Modifications: add}); err != nil {
		return false, fmt.Errorf("adding families to table %s: %w", id, err)
	}
	return false, nil
}

// sameRule compares rules; one without a member is none.
func sameRule(a, b *btapb.GcRule) bool {
	if a.GetRule() == nil || b.GetRule() == nil {
		return a.GetRule() == nil && b.GetRule() == nil
	}
	return proto.Equal(a, b)
}

func gcRule(gc layout.GC) *btapb.GcRule {
	var rules []*btapb.GcRule
	if gc.Versions > 0 {
		rules = append(rules, &btapb.GcRule{Rule: &btapb.GcRule_MaxNumVersions{MaxNumVersions: int32(gc.Versions)}})
	}
	if gc.MaxAge > 0 {
		rules = append(rules, &btapb.GcRule{Rule: &btapb.GcRule_MaxAge{MaxAge: durationpb.New(gc.MaxAge)}})
	}
	switch len(rules) {
	case 0:
		return nil
	case 1:
		return rules[0]
	}
	return &btapb.GcRule{Rule: &btapb.GcRule_Union_{Union: &btapb.GcRule_Union{Rules: rules}}}
}

// readFeatures is the header by which a client says that it understands
// reversed reads: Bigtable refuses them without.
var readFeatures = func() string {
	raw, err := proto.Marshal(&btpb.FeatureFlags{ReverseScans: true})
	if err != nil {
		return "" // a message of one flag always has a wire form
	}
	return base64.URLEncoding.EncodeToString(raw)
}()

// maxPartBytes is how much of a row is read before the row is taken for a wide one,
// and the size of its parts.
const maxPartBytes = 1 << 20

// rowPart is a row, or some of the cells of a wide one in the order of Bigtable.
type rowPart struct {
	layout.Row
	// goesOn says that the part before is of the same row. Where that is not so and
	// it was one that more was to follow, it is void: Bigtable began the row anew.
	goesOn bool
	more   bool // a further part of the row follows
}

// read streams rows in key order. A row's slices are its own.
func (b *bigtable) read(ctx context.Context, table string, req *btpb.ReadRowsRequest) iter.Seq2[layout.Row, error] {
	return b.readStats(ctx, table, req, func(*btpb.ReadIterationStats) {})
}

// readStats is read, which also hands on what the read cost, where req asks for
// that and the server says it.
func (b *bigtable) readStats(ctx context.Context, table string, req *btpb.ReadRowsRequest, stats func(*btpb.ReadIterationStats)) iter.Seq2[layout.Row, error] {
	return func(yield func(layout.Row, error) bool) {
		for part, err := range b.readParts(ctx, table, req, math.MaxInt, stats) {
			if (err != nil || len(part.Cells) > 0) && !yield(part.Row, err) {
				return
			}
		}
	}
}

// readParts is readStats for rows of any size: those of more than most bytes come in
// parts. A part, and a row, may have no cells but extra ones, which are left out.
func (b *bigtable) readParts(ctx context.Context, table string, req *btpb.ReadRowsRequest, most int, stats func(*btpb.ReadIterationStats)) iter.Seq2[rowPart, error] {
	return func(yield func(rowPart, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel() // ends a stream that is not read to its end
		fail := func(err error) { yield(rowPart{}, fmt.Errorf("reading table %s: %w", table, err)) }
		req.TableName = b.table(table)
		ctx = routed(ctx, "table_name", req.GetTableName())
		if req.GetReversed() {
			ctx = metadata.AppendToOutgoingContext(ctx, "bigtable-features", readFeatures)
		}
		stream, err := b.data.ReadRows(ctx, req)
		if err != nil {
			fail(err)
			return
		}
		size := 0 // of the row at hand
		m := rowmerge.New(req.GetReversed(), func(c rowmerge.Cell) layout.Cell {
			size += cellBytes + len(c.Family) + len(c.Qualifier) + len(c.Value)
			return layout.Cell{Family: c.Family, Qualifier: slices.Clone(c.Qualifier), Timestamp: c.TimestampMicros, Value: slices.Clone(c.Value)}
		})
		hand := func(row rowmerge.Row[layout.Cell], goesOn, more bool) bool {
			size = 0
			part := rowPart{layout.Row(row), goesOn, more}
			if b.extra != nil {
				part.Cells = slices.DeleteFunc(part.Cells, b.extra)
			}
			part.Key = slices.Clone(part.Key)
			return yield(part, nil)
		}
		for {
			resp, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				if err := m.End(); err != nil {
					fail(err)
				}
				return
			}
			if err != nil {
				fail(err)
				return
			}
			if s := resp.GetRequestStats().GetFullReadStatsView().GetReadIterationStats(); s != nil {
				stats(s)
			}
			for row, err := range m.Merge(resp) {
				if err != nil {
					fail(err)
					return
				}
				if !hand(row, m.Taken() > 0, false) {
					return
				}
			}
			if size < most {
				continue
			}
			goesOn := m.Taken() > 0
			if part := m.Cut(); len(part.Cells) > 0 && !hand(part, goesOn, true) {
				return
			}
		}
	}
}

// readAll streams all rows of a table, without the cells of the DynamoDB
// door's bookkeeping and without rows that hold nothing else.
func (b *bigtable) readAll(ctx context.Context, table string, start []byte) iter.Seq2[layout.Row, error] {
	return func(yield func(layout.Row, error) bool) {
		for part, err := range b.readAllParts(ctx, table, start, math.MaxInt) {
			if (err != nil || len(part.Cells) > 0) && !yield(part.Row, err) {
				return
			}
		}
	}
}

// readAllParts is readAll in the parts of readParts.
func (b *bigtable) readAllParts(ctx context.Context, table string, start []byte, most int) iter.Seq2[rowPart, error] {
	req := &btpb.ReadRowsRequest{}
	if len(start) > 0 {
		req.Rows = &btpb.RowSet{RowRanges: []*btpb.RowRange{{StartKey: &btpb.RowRange_StartKeyClosed{StartKeyClosed: start}}}}
	}
	return func(yield func(rowPart, error) bool) {
		for part, err := range b.readParts(ctx, table, req, most, func(*btpb.ReadIterationStats) {}) {
			part.Cells = slices.DeleteFunc(part.Cells, func(c layout.Cell) bool {
				return c.Family == layout.FamilyState || c.Family == layout.FamilyTombstone
			})
			if !yield(part, err) {
				return
			}
		}
	}
}

// micros is a time as cells hold it: whole milliseconds.
func micros(t time.Time) int64 { return t.UnixMilli() * 1000 }
