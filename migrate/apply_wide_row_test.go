package migrate_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/migrate/internal/apply"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
)

// readCells counts the cells that reads of rows return.
type readCells struct {
	grpc.ClientConnInterface
	n atomic.Int64
}

func (c *readCells) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := c.ClientConnInterface.NewStream(ctx, desc, method, opts...)
	return &countedStream{stream, &c.n}, err
}

type countedStream struct {
	grpc.ClientStream
	n *atomic.Int64
}

func (s *countedStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if answer, ok := m.(*btpb.ReadRowsResponse); ok && err == nil {
		s.n.Add(int64(len(answer.GetChunks())))
	}
	return err
}

// A change of an item reads the cells of this item alone, however many others share its row.
func TestApply_WideRow(t *testing.T) {
	t.Parallel()
	for _, guarded := range []bool{false, true} {
		t.Run(fmt.Sprint("guarded ", guarded), func(t *testing.T) {
			t.Parallel()
			to := newApplyTarget(t, mustLoad(t, rowOfMany))
			comments := map[string]apply.Change{}
			var changes []apply.Change
			n := 0
			add := func(sk string, item attr.Item, complete bool) {
				n++
				key := attr.Item{"PK": attr.String("p"), "SK": attr.String(sk)}
				item["PK"], item["SK"] = key["PK"], key["SK"]
				c := apply.Change{Key: key, Now: item, Complete: complete, Position: applyPosition(n), Time: int64(n), Cells: 1e15}
				changes = append(changes, c)
				comments[sk] = c
			}
			for i := range 500 {
				add(fmt.Sprint("c1700000000", 100+i), attr.Item{"c": attr.String("text")}, true)
			}
			w := to.writer(t, guarded)
			if _, err := w.Apply(t.Context(), changes); err != nil {
				t.Fatal(err)
			}
			changes = nil
			for i := range 3 {
				add("l1", attr.Item{"tags": attr.Value{Type: attr.SS, Set: []string{fmt.Sprint("x", i), "y"}}}, false)
				add("c1700000000107", attr.Item{"c": attr.String(fmt.Sprint("changed ", i))}, false)
			}
			counting := &readCells{ClientConnInterface: to}
			w.B = table.NewBigtable(counting, table.Options{})
			for _, c := range changes {
				if _, err := w.Apply(t.Context(), []apply.Change{c}); err != nil {
					t.Fatal(err)
				}
			}
			// Two tags or a text, and a position.
			if got := counting.n.Load(); got == 0 || got > 3*(3+2) {
				t.Errorf("the changes read %d cells", got)
			}
			if got, want := sortedLines(to.text(t)), sortedLines(wantedCells(t, to.m, comments)); got != want {
				t.Errorf("after the changes:\n%s\nwant\n%s", got, want)
			}
		})
	}
}
