package follow_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/migrate"
)

// readsOf calls first before the first read of a table.
type readsOf struct {
	grpc.ClientConnInterface
	table string
	first func()
}

func (r *readsOf) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := r.ClientConnInterface.NewStream(ctx, desc, method, opts...)
	return &readOf{stream, r}, err
}

type readOf struct {
	grpc.ClientStream
	of *readsOf
}

func (s *readOf) SendMsg(m any) error {
	if req, ok := m.(*btpb.ReadRowsRequest); ok && strings.HasSuffix(req.GetTableName(), "/tables/"+s.of.table) {
		s.of.first()
	}
	return s.ClientStream.SendMsg(m)
}

// An endpoint that opens the loaded table looks for missing index entries. If a follower starts
// meanwhile and removes entries, the endpoint does not write them again.
func TestFollow_EndpointFills(t *testing.T) {
	t.Parallel()
	l := startEarly(t, 0)
	group := func(g string) map[string]string { return map[string]string{"G": g} }
	l.put(t, "a", "x", 1, group("before"))
	l.load(t)
	l.put(t, "a", "x", 2, group("after"))
	conn := &readsOf{ClientConnInterface: l.target, table: "t__G", first: sync.OnceFunc(func() {
		o := l.options("one")
		o.UntilTip = true
		if err := migrate.Follow(t.Context(), l.target, o); err != nil {
			t.Error(err)
		}
	})}
	s, err := facade.New(t.Context(), facade.Options{Conn: conn, Mappings: []*mapping.Mapping{l.m}, Now: l.now})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	l.verify(t)
}
