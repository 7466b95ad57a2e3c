package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/test/intercept"
)

// betweenConn calls between once, after a definition was read and before the reader gets it.
type betweenConn struct {
	grpc.ClientConnInterface
	between atomic.Pointer[func()]
}

func (c *betweenConn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := c.ClientConnInterface.NewStream(ctx, desc, method, opts...)
	return &betweenStream{ClientStream: stream, c: c}, err
}

type betweenStream struct {
	grpc.ClientStream
	c          *betweenConn
	definition bool
}

func (s *betweenStream) SendMsg(m any) error {
	if r, ok := m.(*btpb.ReadRowsRequest); ok && len(r.GetRows().GetRowKeys()) == 1 {
		s.definition = strings.HasPrefix(string(r.GetRows().GetRowKeys()[0]), tableRowPrefix)
	}
	return s.ClientStream.SendMsg(m)
}

func (s *betweenStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if s.definition {
		if do := s.c.between.Swap(nil); do != nil {
			(*do)()
		}
	}
	return err
}

// A definition that changes during its read must not be used in its old form: writes would
// have no record, or no index entry.
func TestCatalog_Overtaken(t *testing.T) {
	t.Parallel()
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &betweenConn{ClientConnInterface: start(t)}
			s := openStore(t, testOptions(c))
			table := newTable(t, s, tabledef.Table{Name: "music", Key: testSchemas["S"], Attributes: []attr.KeyAttr{stringKey("p")}, BillingMode: "PAY_PER_REQUEST"})
			change := func() {
				_, err := s.UpdateTable(t.Context(), "music", func(d *tabledef.Table) error {
					d.StreamEnabled, d.StreamView = true, "KEYS_ONLY"
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
			c.between.Store(&change)
			if got, err := s.TableNow(t.Context(), "music"); err != nil || !got.StreamEnabled {
				t.Errorf("the definition as it was: %+v, %v", got, err)
			}
			if got, err := s.Table(t.Context(), "music"); err != nil || !got.StreamEnabled {
				t.Errorf("the definition as it was is remembered: %+v, %v", got, err)
			}
			drop := func() {
				if _, err := s.DeleteTable(t.Context(), "music"); err != nil {
					t.Error(err)
				}
			}
			c.between.Store(&drop)
			if got, err := s.TableNow(t.Context(), "music"); !errors.Is(err, ErrTableNotFound) {
				t.Errorf("a table that is gone: %+v, %v", got, err)
			}
			if got, err := s.LoggedTable(t.Context(), "music", table.ID); err != nil || got == nil || got.Log == nil {
				t.Errorf("the log of a table that is gone: %+v, %v", got, err)
			}
		})
	}
}

// LoggedTable finds a table with a log at every moment of the table's deletion.
func TestStore_LoggedTable(t *testing.T) {
	t.Parallel()
	conn := backends["emu"](t)
	c := intercept.New(conn, nil)
	s, other := openStore(t, testOptions(c)), openStore(t, testOptions(conn))
	table := newTable(t, s, tabledef.Table{
		Name: "music", Key: testSchemas["S"], Attributes: []attr.KeyAttr{stringKey("p")}, BillingMode: "PAY_PER_REQUEST",
		StreamEnabled: true, StreamView: "KEYS_ONLY",
	})
	look := func(when string) {
		if got, err := other.LoggedTable(t.Context(), "music", table.ID); err != nil || got == nil || got.Log == nil {
			t.Errorf("%s: %+v, %v", when, got, err)
		}
		if got, err := other.TablesWithStreams(t.Context(), "music"); err != nil || len(got) != 1 {
			t.Errorf("%s: %d tables with streams, %v", when, len(got), err)
		}
	}
	c.Before(func(_ context.Context, req any) error {
		look(fmt.Sprintf("before %T", req))
		return nil
	})
	if _, err := s.DeleteTable(t.Context(), "music"); err != nil {
		t.Fatal(err)
	}
	c.Before(nil)
	look("afterwards")
}
