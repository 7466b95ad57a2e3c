package store

import (
	"context"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// brokenConn breaks each stream after a number of messages, unless the number is negative. If
// broken is set, it is called when a stream breaks.
type brokenConn struct {
	grpc.ClientConnInterface
	after  int
	broken func()
}

func (c *brokenConn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := c.ClientConnInterface.NewStream(ctx, desc, method, opts...)
	if c.after < 0 {
		return stream, err
	}
	return &brokenStream{stream, c.after, c.broken}, err
}

type brokenStream struct {
	grpc.ClientStream
	left   int
	broken func()
}

func (s *brokenStream) RecvMsg(m any) error {
	if s.left--; s.left < 0 {
		if s.broken != nil {
			s.broken()
		}
		return status.Error(codes.Unavailable, "broken by the test")
	}
	return s.ClientStream.RecvMsg(m)
}

// If the connection breaks, a read continues after its last row. It gives up if no row arrives
// between breaks.
func TestRowReader_Resume(t *testing.T) {
	t.Parallel()
	conn := &brokenConn{backends["emu"](t), -1, nil}
	s := openStore(t, testOptions(conn))
	def := newTable(t, s, tabledef.Table{Name: "resume", Key: testSchemas["SN"]})
	var want []attr.Item
	for i := range 10 {
		item := attr.Item{"p": attr.String("p"), "s": attr.Int(int64(i))}
		want = append(want, item)
		if err := put(t.Context(), s, def, item); err != nil {
			t.Fatal(err)
		}
	}
	cond := attr.KeyRange{Hash: attr.String("p")}
	for _, forward := range []bool{true, false} {
		conn.after = 3
		got, err := collect(s.Query(t.Context(), def, nil, cond, forward, nil))
		if !forward {
			slices.Reverse(got)
		}
		if d := diffItems(want, got); d != "" || err != nil {
			t.Errorf("forward %v: %v (-want +got):\n%s", forward, err, d)
		}
	}
	conn.after = 0
	if _, err := collect(s.Query(t.Context(), def, nil, cond, true, nil)); status.Code(err) != codes.Unavailable {
		t.Errorf("dead connection: %v", err)
	}
	conn.after = -1
}

// A row that has arrived does not wait for the end of its stream, which a dead connection may
// never send.
func TestRowReader_OneRow(t *testing.T) {
	t.Parallel()
	conn := &brokenConn{backends["emu"](t), -1, nil}
	s := openStore(t, testOptions(conn))
	def := newTable(t, s, tabledef.Table{Name: "one", Key: testSchemas["S"]})
	if err := put(t.Context(), s, def, attr.Item{"p": attr.String("p")}); err != nil {
		t.Fatal(err)
	}
	conn.after, conn.broken = 1, func() { t.Error("the stream was read on behind the row") }
	var keys [][]byte
	for row, err := range s.bt.Read(t.Context(), btclient.Read{Table: s.o.Catalog, Spans: []layout.Span{{}}, Limit: 1}) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, row.Key)
		break
	}
	if len(keys) != 1 {
		t.Fatal("the catalog has no row")
	}
	if row, err := s.bt.ReadRow(t.Context(), s.o.Catalog, keys[0], nil); err != nil || len(row.Cells) == 0 {
		t.Errorf("got %d cells, %v", len(row.Cells), err)
	}
	conn.after = -1
}
