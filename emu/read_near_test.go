package emu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/btclient"
)

// far hides that a connection is in this process, so that all rows come in messages.
type far struct{ grpc.ClientConnInterface }

// nearTable fills a table with rows of different shapes: narrow, wide, larger than a message, with
// empty names and values, and with several versions.
func nearTable(e *env) {
	e.t.Helper()
	e.createTable("t", "f", "g")
	var entries []*btpb.MutateRowsRequest_Entry
	for i := range 300 {
		muts := []*btpb.Mutation{set("f", "", 1000, ""), set("f", "a", 1000, "old"), set("f", "a", 2000, strings.Repeat("x", i*7))}
		for j := range i % 20 {
			muts = append(muts, set("g", fmt.Sprintf("q%02d", j), 1000, fmt.Sprint(i)))
		}
		entries = append(entries, entry(fmt.Sprintf("r%03d", i), muts...))
	}
	wide := make([]*btpb.Mutation, 500)
	for i := range wide {
		wide[i] = set("g", fmt.Sprintf("w%03d", i), 1000, strings.Repeat("y", 1000))
	}
	entries = append(entries, entry("wide", wide...), entry("x", set("f", "big", 1000, strings.Repeat("z", 5<<20))))
	if _, err := e.mutateRows(entries...); err != nil {
		e.t.Fatal(err)
	}
}

// TestReadRows_Near: a client in this process gets the same rows without messages as with them, and
// the observer and the load map get the same counts.
func TestReadRows_Near(t *testing.T) {
	t.Parallel()
	var seen []string
	observed := Options{CountLoad: true, Observe: func(c *Call) {
		if c.Method == btpb.Bigtable_ReadRows_FullMethodName {
			seen = append(seen, fmt.Sprintf("%v rows=%d bytes=%d", status.Code(c.Err), c.Rows, c.Bytes))
		}
	}}
	envs := make([]*env, 3)
	for i := range envs {
		envs[i] = newEnvWith(t, observed, engine.Options{})
		nearTable(envs[i])
	}
	clients := []*btclient.Client{
		btclient.New(envs[0].srv.Conn(), "p", "i", btclient.Options{}),
		btclient.New(envs[1].srv.Conn(), "p", "i", btclient.Options{Deadline: time.Hour}),
		btclient.New(far{envs[2].srv.Conn()}, "p", "i", btclient.Options{}),
	}
	all := []btclient.Span{{}}
	for name, read := range map[string]btclient.Read{
		"all":            {Spans: all},
		"copied":         {Spans: all, Clone: true},
		"reversed":       {Spans: all, Reverse: true},
		"limited":        {Spans: all, Limit: 77},
		"one row":        {Keys: [][]byte{[]byte("r077")}},
		"one wide row":   {Keys: [][]byte{[]byte("wide")}},
		"one large row":  {Keys: [][]byte{[]byte("x")}},
		"no row":         {Keys: [][]byte{[]byte("none")}},
		"several":        {Keys: [][]byte{[]byte("r077"), []byte("none"), []byte("x")}, Spans: []btclient.Span{{Start: []byte("r1"), End: []byte("r2")}}},
		"newest":         {Spans: all, Filter: btclient.Newest(1)},
		"without values": {Spans: all, Filter: btclient.KeysOnly()},
		"nothing passes": {Spans: all, Filter: btclient.OfFamily("none")},
		"refused":        {Spans: all, Filter: &btpb.RowFilter{Filter: &btpb.RowFilter_CellsPerRowLimitFilter{CellsPerRowLimitFilter: -1}}},
	} {
		var stats [3]*btpb.ReadIterationStats
		var rows [3][]btclient.Row
		var errs [3]error
		seen = nil
		for i, c := range clients {
			read.Table, read.Stats = "t", func(s *btpb.ReadIterationStats) { stats[i] = s }
			for row, err := range c.Read(t.Context(), read) {
				if errs[i] = err; err == nil {
					rows[i] = append(rows[i], row)
				}
			}
		}
		for i := range 2 {
			if !reflect.DeepEqual(rows[i], rows[2]) { // cmp.Diff is slow for large values
				t.Errorf("%s: %d rows differ from the %d in messages", name, len(rows[i]), len(rows[2]))
			}
			if fmt.Sprint(errs[i]) != fmt.Sprint(errs[2]) || stats[i].String() != stats[2].String() {
				t.Errorf("%s: %v and %v, with messages %v and %v", name, errs[i], stats[i], errs[2], stats[2])
			}
		}
		if len(seen) != 3 || seen[0] != seen[2] || seen[1] != seen[2] {
			t.Errorf("%s: observed %q", name, seen)
		}
		if name == "one row" && len(rows[0]) != 1 || name == "refused" && errs[0] == nil {
			t.Errorf("%s: %d rows, %v", name, len(rows[0]), errs[0])
		}
	}
	for i := range 2 {
		if diff := cmp.Diff(envs[2].keyLoad(), envs[i].keyLoad()); diff != "" {
			t.Errorf("load differs (-messages +near):\n%s", diff)
		}
	}
}

// sink takes rows as text.
type sink struct{ text []string }

func (s *sink) BeginRow(key []byte)  { s.text = append(s.text, string(key)) }
func (s *sink) AddCell(c cells.Cell) { s.text = append(s.text, string(c.Value)) }
func (s *sink) EndRow()              { s.text = append(s.text, ".") }

// readInto reads rows of the table into a sink, and returns the number of chunks in messages.
func readInto(e *env, s cells.RowSink, req *btpb.ReadRowsRequest) (chunks int, err error) {
	e.t.Helper()
	conn := e.srv.Conn().(interface {
		ReadRows(context.Context, *btpb.ReadRowsRequest, cells.RowSink) (btpb.Bigtable_ReadRowsClient, io.Closer, error)
	})
	req.TableName = testTable
	stream, end, err := conn.ReadRows(e.ctx(), req, s)
	if err != nil {
		return 0, err
	}
	defer func() { _ = end.Close() }()
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return chunks, nil
		}
		if err != nil {
			return chunks, err
		}
		chunks += len(resp.GetChunks())
	}
}

// cut implements faults that end a ReadRows call after some messages.
type cut struct {
	disarmed
	armed bool
}

func (c *cut) Armed() bool { return c.armed }

func (c *cut) Stream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	_ = handler(srv, ss)
	return status.Error(codes.Aborted, "cut")
}

// TestReadRows_NearFaults: a sink gets the rows, but while a fault is armed or messages are copied,
// they come in messages, which the fault can count and cut.
func TestReadRows_NearFaults(t *testing.T) {
	t.Parallel()
	faults := &cut{disarmed: disarmed{t}}
	e := newEnvWith(t, Options{Faults: faults}, engine.Options{})
	e.createTable("t", "f")
	e.mustMutate("a", set("f", "q", 1000, "v"))
	e.mustMutate("b", set("f", "q", 1000, "w"))
	var s sink
	if chunks, err := readInto(e, &s, &btpb.ReadRowsRequest{}); err != nil || chunks != 0 || strings.Join(s.text, " ") != "a v . b w ." {
		t.Errorf("without faults: %d chunks, %q, %v", chunks, s.text, err)
	}
	faults.armed, s = true, sink{}
	if chunks, err := readInto(e, &s, &btpb.ReadRowsRequest{}); status.Code(err) != codes.Aborted || chunks != 2 || s.text != nil {
		t.Errorf("with a fault: %d chunks, %q, %v", chunks, s.text, err)
	}
	copies := newEnvWith(t, Options{CloneInProcess: true}, engine.Options{})
	copies.createTable("t", "f")
	copies.mustMutate("a", set("f", "q", 1000, "v"))
	if chunks, err := readInto(copies, &s, &btpb.ReadRowsRequest{}); err != nil || chunks != 1 || s.text != nil {
		t.Errorf("with copied messages: %d chunks, %q, %v", chunks, s.text, err)
	}
}
