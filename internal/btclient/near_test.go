package btclient_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/internal/btclient"
)

// nearFake is a fake that passes rows to sinks. Its answers have one message for each step.
type nearFake struct {
	*fake
	steps  [][]btclient.Row // of each message; those of the last step come before the error
	ended  error
	closed int
	// together answers calls of CheckAndMutateRow by their rows, "yes" and "no"; others fail.
	together bool
}

// CheckAndMutateRows answers if f.together is set.
func (f *nearFake) CheckAndMutateRows(_ context.Context, reqs []*btpb.CheckAndMutateRowRequest, matched []bool, errs []error) bool {
	for i, req := range reqs {
		if matched[i] = string(req.GetRowKey()) == "yes"; f.together && !matched[i] && string(req.GetRowKey()) != "no" {
			errs[i] = status.Error(codes.NotFound, "no table "+req.GetTableName())
		}
	}
	return f.together
}

func (f *nearFake) ReadRows(ctx context.Context, req *btpb.ReadRowsRequest, rows cells.RowSink) (btpb.Bigtable_ReadRowsClient, io.Closer, error) {
	_, err := f.begin(ctx, req)
	return &nearStream{f: f, rows: rows}, f, err
}

func (f *nearFake) Close() error {
	f.closed++
	return nil
}

type nearStream struct {
	fakeStream
	f    *nearFake
	rows cells.RowSink
	at   int
}

// Recv passes rows from memory that it overwrites afterwards.
func (s *nearStream) Recv() (*btpb.ReadRowsResponse, error) {
	if s.at == len(s.f.steps) {
		return nil, s.f.ended
	}
	for _, row := range s.f.steps[s.at] {
		key := bytes.Clone(row.Key)
		s.rows.BeginRow(key)
		clear(key)
		for _, c := range row.Cells {
			c.Qualifier, c.Value = bytes.Clone(c.Qualifier), bytes.Clone(c.Value)
			s.rows.AddCell(c)
			clear(c.Qualifier)
			clear(c.Value)
		}
		s.rows.EndRow()
	}
	if s.at++; s.at == len(s.f.steps) && !errors.Is(s.f.ended, io.EOF) {
		return nil, s.f.ended
	}
	return &btpb.ReadRowsResponse{}, nil
}

// newNear returns a fake whose answer is changed by each call.
func newNear(answer func(f *nearFake, call int)) *nearFake {
	f := &nearFake{fake: &fake{}}
	f.answer = func(call int, _ proto.Message) ([]proto.Message, error) {
		answer(f, call)
		return nil, nil
	}
	return f
}

// TestRead_Near: a read without messages returns only rows that a message has confirmed, and
// continues after them.
func TestRead_Near(t *testing.T) {
	t.Parallel()
	for _, clone := range []bool{false, true} {
		f := newNear(func(f *nearFake, call int) {
			f.steps, f.ended = [][]btclient.Row{{row("a", "1"), row("b", "2", "3")}, {row("c", "void")}}, errBroken
			if call > 0 {
				f.steps, f.ended = [][]btclient.Row{{row("c", "4")}, {}, {row("d", "5", "", "6")}}, io.EOF
			}
		})
		var got []btclient.Row
		for r, err := range btclient.New(f, "p", "i", btclient.Options{Retry: btclient.Retry{Reads: 1}}).Read(t.Context(), btclient.Read{Table: "t", Spans: everything, Clone: clone}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, r)
		}
		wantRows(t, got, row("a", "1"), row("b", "2", "3"), row("c", "4"), row("d", "5", "", "6"))
		if f.text(1) != "[b+,)" || f.closed != 2 {
			t.Errorf("the read continued with %q; %d calls were closed", f.text(1), f.closed)
		}
	}
}

// wantRows compares rows.
func wantRows(t *testing.T, got []btclient.Row, want ...btclient.Row) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
	for i, w := range want {
		g := got[i]
		same := bytes.Equal(g.Key, w.Key) && len(g.Cells) == len(w.Cells)
		for j := 0; same && j < len(w.Cells); j++ {
			a, b := g.Cells[j], w.Cells[j]
			same = a.Family == b.Family && bytes.Equal(a.Qualifier, b.Qualifier) && a.Timestamp == b.Timestamp && bytes.Equal(a.Value, b.Value)
		}
		if !same {
			t.Errorf("row %d is %v, want %v", i, g, w)
		}
	}
}

// TestRead_NearLeft: a reader that leaves ends the call, and may change its cells without effect
// on other rows. A row out of order is an error.
func TestRead_NearLeft(t *testing.T) {
	t.Parallel()
	f := newNear(func(f *nearFake, call int) {
		f.steps, f.ended = [][]btclient.Row{{row("b", "1"), row("c", "2")}, {row("a", "3")}}, io.EOF
	})
	c := btclient.New(f, "p", "i", btclient.Options{})
	got, err := c.ReadRow(t.Context(), "t", []byte("b"), nil)
	if err != nil {
		t.Fatal(err)
	}
	wantRows(t, []btclient.Row{got}, row("b", "1"))
	if f.closed != 1 {
		t.Errorf("%d calls were closed", f.closed)
	}
	var rows []btclient.Row
	for r, readErr := range c.Read(t.Context(), btclient.Read{Table: "t", Spans: everything}) {
		if err = readErr; err == nil {
			rows = append(rows, r)
			_ = append(r.Cells, btclient.Cell{Family: "lost"})
		}
	}
	wantRows(t, rows, row("b", "1"), row("c", "2"))
	if err == nil || f.closed != 2 {
		t.Errorf("a row out of order: %v; %d calls were closed", err, f.closed)
	}
}

// TestCheckAndMutateRows: calls are made together if the connection can do that, otherwise one by one.
func TestCheckAndMutateRows(t *testing.T) {
	t.Parallel()
	for _, together := range []bool{true, false} {
		f := newNear(func(*nearFake, int) {})
		f.together = together
		calls := 0
		f.answer = func(_ int, req proto.Message) ([]proto.Message, error) {
			calls++
			switch row := string(req.(*btpb.CheckAndMutateRowRequest).GetRowKey()); row {
			case "yes", "no":
				return []proto.Message{&btpb.CheckAndMutateRowResponse{PredicateMatched: row == "yes"}}, io.EOF
			}
			return nil, status.Error(codes.NotFound, "no table")
		}
		c := btclient.New(f, "p", "i", btclient.Options{})
		checks := []btclient.Check{{Row: []byte("yes")}, {Row: []byte("lost")}, {Row: []byte("no")}}
		c.CheckAndMutateRows(t.Context(), "t", checks)
		if want := map[bool]int{true: 0, false: 3}[together]; calls != want || !c.Together() {
			t.Errorf("together %v: %d single calls, want %d", together, calls, want)
		}
		if !checks[0].Matched || checks[1].Matched || checks[2].Matched || checks[0].Err != nil || checks[2].Err != nil || status.Code(checks[1].Err) != codes.NotFound {
			t.Errorf("together %v: %+v", together, checks)
		}
	}
}
