package emu

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/emu/internal/rowchunks"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/memory"
)

func TestMain(m *testing.M) {
	memory.CollectSeldom()
	goleak.VerifyTestMain(m)
}

const (
	testInstance = "projects/p/instances/i"
	testTable    = testInstance + "/tables/t"
)

// start is the initial time of frozen test clocks: 1,700,000,000 s.
var start = time.Unix(1_700_000_000, 0)

// env is a private server with a frozen clock, and client stubs.
type env struct {
	t     *testing.T
	clock *clock.Clock
	db    *engine.DB
	srv   *Server
	data  btpb.BigtableClient
	admin btapb.BigtableTableAdminClient
	view  string // view for the data commands of data-driven tests; "" without one
	peer  bool   // the stubs call another server; db and srv are nil
}

func newEnv(t *testing.T) *env {
	t.Helper()
	return newEnvWith(t, Options{}, engine.Options{})
}

func newEnvWith(t *testing.T, o Options, eo engine.Options) *env {
	t.Helper()
	c := clock.NewFrozen(start)
	eo.Now = c.Now
	db, err := engine.Open(eo)
	if err != nil {
		t.Fatal(err)
	}
	o.DB, o.Clock = db, c
	srv, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return &env{
		t: t, clock: c, db: db, srv: srv,
		data:  btpb.NewBigtableClient(srv.Conn()),
		admin: btapb.NewBigtableTableAdminClient(srv.Conn()),
	}
}

// newTable is like newEnv, with a table t. It creates the families one by one, to keep their order.
func newTable(t *testing.T, families ...string) *env {
	t.Helper()
	e := newEnv(t)
	e.createTable("t", families...)
	return e
}

func (e *env) createTable(id string, families ...string) {
	e.t.Helper()
	if _, err := e.admin.CreateTable(e.ctx(), &btapb.CreateTableRequest{Parent: testInstance, TableId: id}); err != nil {
		e.t.Fatal(err)
	}
	for _, f := range families {
		e.modifyFamilies(id, &btapb.ModifyColumnFamiliesRequest_Modification{
			Id: f, Mod: &btapb.ModifyColumnFamiliesRequest_Modification_Create{Create: &btapb.ColumnFamily{}},
		})
	}
}

func (e *env) modifyFamilies(id string, mods ...*btapb.ModifyColumnFamiliesRequest_Modification) {
	e.t.Helper()
	req := &btapb.ModifyColumnFamiliesRequest{Name: testInstance + "/tables/" + id, Modifications: mods}
	if _, err := e.admin.ModifyColumnFamilies(e.ctx(), req); err != nil {
		e.t.Fatal(err)
	}
}

func (e *env) ctx() context.Context { return e.t.Context() }

// dial serves on a loopback port and connects to it.
func (e *env) dial(opts ...grpc.DialOption) *grpc.ClientConn {
	e.t.Helper()
	conn, err := grpc.NewClient(e.listen(), append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func (e *env) listen() (addr string) {
	e.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		e.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- e.srv.Serve(l) }()
	e.t.Cleanup(func() {
		_ = e.srv.Close()
		if err := <-done; err != nil {
			e.t.Errorf("Serve: %v", err)
		}
	})
	return l.Addr().String()
}

func set(family, qualifier string, micros int64, value string) *btpb.Mutation {
	return &btpb.Mutation{Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{
		FamilyName: family, ColumnQualifier: []byte(qualifier), TimestampMicros: micros, Value: []byte(value),
	}}}
}

func deleteRow() *btpb.Mutation {
	return &btpb.Mutation{Mutation: &btpb.Mutation_DeleteFromRow_{DeleteFromRow: &btpb.Mutation_DeleteFromRow{}}}
}

func deleteFamily(f string) *btpb.Mutation {
	return &btpb.Mutation{Mutation: &btpb.Mutation_DeleteFromFamily_{DeleteFromFamily: &btpb.Mutation_DeleteFromFamily{FamilyName: f}}}
}

func deleteColumn(f, q string, start, end int64) *btpb.Mutation {
	m := &btpb.Mutation_DeleteFromColumn{FamilyName: f, ColumnQualifier: []byte(q)}
	if start != 0 || end != 0 {
		m.TimeRange = &btpb.TimestampRange{StartTimestampMicros: start, EndTimestampMicros: end}
	}
	return &btpb.Mutation{Mutation: &btpb.Mutation_DeleteFromColumn_{DeleteFromColumn: m}}
}

func (e *env) mutate(row string, muts ...*btpb.Mutation) error {
	_, err := e.data.MutateRow(e.ctx(), &btpb.MutateRowRequest{TableName: testTable, RowKey: []byte(row), Mutations: muts})
	return err
}

func (e *env) mustMutate(row string, muts ...*btpb.Mutation) {
	e.t.Helper()
	if err := e.mutate(row, muts...); err != nil {
		e.t.Fatalf("mutate %q: %v", row, err)
	}
}

// mutateRows returns the statuses of the entries.
func (e *env) mutateRows(entries ...*btpb.MutateRowsRequest_Entry) ([]codes.Code, error) {
	stream, err := e.data.MutateRows(e.ctx(), &btpb.MutateRowsRequest{TableName: testTable, Entries: entries})
	if err != nil {
		return nil, err
	}
	got := make([]codes.Code, len(entries))
	for i := range got {
		got[i] = math.MaxUint32
	}
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err != nil {
			return nil, err
		}
		for _, en := range resp.GetEntries() {
			got[en.GetIndex()] = codes.Code(en.GetStatus().GetCode())
		}
	}
}

func entry(row string, muts ...*btpb.Mutation) *btpb.MutateRowsRequest_Entry {
	return &btpb.MutateRowsRequest_Entry{RowKey: []byte(row), Mutations: muts}
}

// cell and row are parsed responses.
type (
	cell struct {
		family, qualifier string
		micros            int64
		value             string
		labels            []string
	}
	row struct {
		key   string
		cells []cell
	}
	result struct {
		rows     []row
		messages []*btpb.ReadRowsResponse
		stats    *btpb.RequestStats
	}
)

// readRows runs a request, merges its chunks and checks the protocol.
func readRows(ctx context.Context, c btpb.BigtableClient, req *btpb.ReadRowsRequest) (result, error) {
	var res result
	stream, err := c.ReadRows(ctx, req)
	if err != nil {
		return res, err
	}
	var (
		cur     *row
		family  string
		qual    string
		partial *cell // with an incomplete value
		size    int
	)
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			if cur != nil {
				return res, fmt.Errorf("the stream ended within row %q", cur.key)
			}
			return res, nil
		}
		if err != nil {
			return res, err
		}
		if res.stats != nil {
			return res, errors.New("a message after the statistics")
		}
		rows := 0
		for _, c := range resp.GetChunks() {
			if len(c.GetRowKey()) > 0 {
				rows++
			}
		}
		if n := proto.Size(resp); rows > 1 && n > rowchunks.MaxMessageBytes || n >= 4<<20 {
			return res, fmt.Errorf("a message of %d bytes", n)
		}
		res.messages = append(res.messages, resp)
		res.stats = resp.GetRequestStats()
		for _, ch := range resp.GetChunks() {
			switch {
			case ch.GetResetRow():
				return res, errors.New("a row is reset, which this server never does")
			case cur == nil && len(res.rows) > 0 && (string(ch.GetRowKey()) > res.rows[len(res.rows)-1].key) == req.GetReversed():
				return res, fmt.Errorf("row %q follows %q", ch.GetRowKey(), res.rows[len(res.rows)-1].key)
			case cur == nil && len(ch.GetRowKey()) == 0:
				return res, errors.New("a row begins without its key")
			case cur == nil:
				cur, family, qual = &row{key: string(ch.GetRowKey())}, "", ""
				if ch.GetFamilyName() == nil || ch.GetQualifier() == nil {
					return res, fmt.Errorf("row %q begins without a column", cur.key)
				}
			case ch.GetRowKey() != nil:
				return res, fmt.Errorf("row %q is named again", cur.key)
			}
			if f := ch.GetFamilyName(); f != nil {
				family = f.GetValue()
				if ch.GetQualifier() == nil {
					return res, errors.New("a family begins without a qualifier")
				}
			}
			if q := ch.GetQualifier(); q != nil {
				qual = string(q.GetValue())
			}
			if partial == nil {
				cur.cells = append(cur.cells, cell{family, qual, ch.GetTimestampMicros(), string(ch.GetValue()), ch.GetLabels()})
				if ch.GetValueSize() > 0 {
					partial, size = &cur.cells[len(cur.cells)-1], int(ch.GetValueSize())
				}
			} else {
				if ch.GetTimestampMicros() != 0 || ch.GetLabels() != nil || ch.GetFamilyName() != nil || ch.GetQualifier() != nil {
					return res, errors.New("a piece of a value repeats the cell's head")
				}
				partial.value += string(ch.GetValue())
				if ch.GetValueSize() == 0 {
					if len(partial.value) != size {
						return res, fmt.Errorf("a value of %d bytes was announced with %d", len(partial.value), size)
					}
					partial = nil
				}
			}
			if ch.GetCommitRow() {
				if partial != nil {
					return res, errors.New("a row was committed within a value")
				}
				res.rows = append(res.rows, *cur)
				cur = nil
			}
		}
	}
}

// text returns the canonical text of rows.
func (r result) text() string {
	var b strings.Builder
	for _, row := range r.rows {
		fmt.Fprintf(&b, "%s\n", name(row.key))
		for _, c := range row.cells {
			v := c.value
			suffix := ""
			if len(v) > 64 {
				suffix = fmt.Sprintf("… (%d bytes)", len(v))
				v = v[:16]
			}
			fmt.Fprintf(&b, "  %s:%s @%d = %q%s", c.family, name(c.qualifier), c.micros, v, suffix)
			if len(c.labels) > 0 {
				fmt.Fprintf(&b, " %v", c.labels)
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// name quotes a key or qualifier if necessary.
func name(s string) string {
	plain := s != ""
	for i := range len(s) {
		plain = plain && s[i] > ' ' && s[i] < 0x7f && s[i] != '"' && s[i] != '\\'
	}
	if plain {
		return s
	}
	return fmt.Sprintf("%+q", s)
}

func (e *env) read(req *btpb.ReadRowsRequest) (result, error) {
	if req.TableName == "" {
		req.TableName = testTable
	}
	return readRows(e.ctx(), e.data, req)
}

func (e *env) mustRead(req *btpb.ReadRowsRequest) result {
	e.t.Helper()
	res, err := e.read(req)
	if err != nil {
		e.t.Fatalf("read %v: %v", req, err)
	}
	return res
}

// cells reads the table through a filter and returns one short text per cell.
func (e *env) cells(f *btpb.RowFilter) []string {
	e.t.Helper()
	var out []string
	for _, r := range e.mustRead(&btpb.ReadRowsRequest{Filter: f}).rows {
		for _, c := range r.cells {
			s := r.key + " " + c.family + ":" + c.qualifier + "@" + fmt.Sprint(c.micros) + "=" + c.value
			if len(c.labels) > 0 {
				s += " " + strings.Join(c.labels, ",")
			}
			out = append(out, s)
		}
	}
	return out
}

// wantCells reads the table through a filter and compares the texts of cells.
func (e *env) wantCells(f *btpb.RowFilter, want ...string) {
	e.t.Helper()
	got := e.cells(f)
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		e.t.Errorf("filter %v:\ngot:\n\t%s\nwant:\n\t%s", f, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

func wantCode(t *testing.T, err error, want ...codes.Code) {
	t.Helper()
	got := status.Code(err)
	for _, w := range want {
		if got == w {
			return
		}
	}
	t.Errorf("got %v (%v), want %v", got, err, want)
}

// wantBelief checks a belief of testdata/traps.tsv: the service's response is not documented,
// so clients must handle every accepted outcome. An outcome is the name of a code, or the
// result of a read. This server always returns the same one of them.
func wantBelief(t *testing.T, what string, outcome func() string, accepted ...string) {
	t.Helper()
	got := outcome()
	if !slices.Contains(accepted, got) {
		t.Errorf("%s: got %s, want one of %q", what, got, accepted)
	}
	for range 3 {
		if again := outcome(); again != got {
			t.Fatalf("%s: got %s and then %s", what, got, again)
		}
	}
}

// outcomeOf returns the outcome of a read for wantBelief: the name of its code or its cells.
func (e *env) outcomeOf(req *btpb.ReadRowsRequest) string {
	res, err := e.read(req)
	if err != nil {
		return status.Code(err).String()
	}
	return res.text()
}

// withFeatures adds the feature header of a client.
func withFeatures(ctx context.Context, f *btpb.FeatureFlags, enc *base64.Encoding) context.Context {
	raw, err := proto.Marshal(f)
	if err != nil {
		panic(err)
	}
	return metadata.AppendToOutgoingContext(ctx, "bigtable-features", enc.EncodeToString(raw))
}

// Short constructors of filters.
func chainOf(f ...*btpb.RowFilter) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_Chain_{Chain: &btpb.RowFilter_Chain{Filters: f}}}
}

func interleaveOf(f ...*btpb.RowFilter) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_Interleave_{Interleave: &btpb.RowFilter_Interleave{Filters: f}}}
}

func conditionOf(p, t, f *btpb.RowFilter) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_Condition_{Condition: &btpb.RowFilter_Condition{
		PredicateFilter: p, TrueFilter: t, FalseFilter: f,
	}}}
}

func passAll() *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_PassAllFilter{PassAllFilter: true}}
}

func qualifierRegexOf(p string) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_ColumnQualifierRegexFilter{ColumnQualifierRegexFilter: []byte(p)}}
}

func rowKeyRegexOf(p string) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_RowKeyRegexFilter{RowKeyRegexFilter: []byte(p)}}
}

func valueRegexOf(p string) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_ValueRegexFilter{ValueRegexFilter: []byte(p)}}
}

func familyRegexOf(p string) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_FamilyNameRegexFilter{FamilyNameRegexFilter: p}}
}

func labelOf(l string) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_ApplyLabelTransformer{ApplyLabelTransformer: l}}
}

func sinkFilter() *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_Sink{Sink: true}}
}

func stripFilter() *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_StripValueTransformer{StripValueTransformer: true}}
}

func rowLimitOf(n int32) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_CellsPerRowLimitFilter{CellsPerRowLimitFilter: n}}
}

func rowOffsetOf(n int32) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_CellsPerRowOffsetFilter{CellsPerRowOffsetFilter: n}}
}

func columnLimitOf(n int32) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_CellsPerColumnLimitFilter{CellsPerColumnLimitFilter: n}}
}

func timeRangeOf(start, end int64) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_TimestampRangeFilter{TimestampRangeFilter: &btpb.TimestampRange{
		StartTimestampMicros: start, EndTimestampMicros: end,
	}}}
}

// big returns n bytes without repetitions.
func big(n int) string {
	b := make([]byte, 0, n+16)
	for i := int64(0); len(b) < n; i++ {
		b = append(strconv.AppendInt(b, i, 10), ',')
	}
	return string(b[:n])
}

// shortService returns the service's name without its package.
func shortService(full string) string {
	return full[strings.LastIndexByte(full, '.')+1:]
}
