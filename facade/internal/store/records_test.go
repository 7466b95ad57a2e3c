package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/clock"
)

// recordsOf returns what is in the log of a table below its floor: kinds and keys.
func recordsOf(t *testing.T, s *Store, def *tabledef.Table) (all []string) {
	t.Helper()
	floor, err := s.LogFloor(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range s.logs.ReadSlots(t.Context(), def.Log, 0, floor) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprint(r.Kind, " ", string(r.Key.JSON)))
	}
	return all
}

// twiceConn delivers writes of the items of a table twice, and answers with what the
// second came to.
type twiceConn struct {
	grpc.ClientConnInterface
	table string
}

func (c *twiceConn) Invoke(ctx context.Context, method string, req, resp any, opts ...grpc.CallOption) error {
	if m, ok := req.(*btpb.CheckAndMutateRowRequest); ok && c.table != "" && strings.HasSuffix(m.GetTableName(), "/"+c.table) {
		first := proto.Clone(resp.(proto.Message))
		if err := c.ClientConnInterface.Invoke(ctx, method, proto.Clone(m), first, opts...); err != nil {
			return err
		}
	}
	return c.ClientConnInterface.Invoke(ctx, method, req, resp, opts...)
}

// A write that arrives twice is one change, whose record is in the log when the write
// has returned.
func TestLog_ArrivesTwice(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(ctx context.Context, s *Store, def *tabledef.Table) error{
		"one item": func(ctx context.Context, s *Store, def *tabledef.Table) error {
			if err := put(ctx, s, def, account("b", 1)); err != nil {
				return err
			}
			old, _, err := s.WriteItem(ctx, def, keyAttrs(def, account("a", 0)), func(attr.Item) (attr.Item, error) { return nil, nil }, Hint{})
			if err == nil && sumOf(old) != 100 {
				err = fmt.Errorf("the item that was deleted is said to have been %v", old)
			}
			return err
		},
		"several": func(ctx context.Context, s *Store, def *tabledef.Table) error {
			return s.WriteItems(ctx, def, []Replacement{
				{Key: keyAttrs(def, account("b", 0)), Item: account("b", 1)}, {Key: keyAttrs(def, account("a", 0))},
			})
		},
		"transaction": func(ctx context.Context, s *Store, def *tabledef.Table) error {
			ok, _, err := s.Transact(ctx, RequestToken{}, []*Change{
				replaceBy(def, keyAttrs(def, account("b", 0)), account("b", 1)), replaceBy(def, keyAttrs(def, account("a", 0)), nil),
			})
			if err == nil && !ok {
				err = ErrContended
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := clock.NewFrozen(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
			conn := &twiceConn{ClientConnInterface: testBigtable(t, now)}
			o := testOptions(conn)
			o.Now = now.Now
			s := openStore(t, o)
			newTable(t, s, tabledef.Table{Name: "tab", Key: testSchemas["SN"]})
			def := recoverable(t, s, "tab")
			if err := put(t.Context(), s, def, account("a", 100)); err != nil {
				t.Fatal(err)
			}
			conn.table = def.BigtableTable
			if err := write(t.Context(), s, def); err != nil {
				t.Fatal(err)
			}
			conn.table = ""
			got := recordsOf(t, s, def)
			slices.Sort(got)
			want := []string{`INSERT {"p":{"S":"a"},"s":{"N":"0"}}`, `INSERT {"p":{"S":"b"},"s":{"N":"0"}}`, `REMOVE {"p":{"S":"a"},"s":{"N":"0"}}`}
			if !slices.Equal(got, want) {
				t.Errorf("the log has %q", got)
			}
		})
	}
}
