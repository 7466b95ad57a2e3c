package btclient_test

import (
	"io"
	"slices"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tabletop-emu/tabletop/internal/btclient"
)

// TestTables_Pages reads all pages.
func TestTables_Pages(t *testing.T) {
	t.Parallel()
	f := &fake{answer: func(_ int, req proto.Message) ([]proto.Message, error) {
		if req.(*btapb.ListTablesRequest).GetPageToken() == "" {
			return []proto.Message{&btapb.ListTablesResponse{Tables: []*btapb.Table{{Name: "projects/p/instances/i/tables/b"}}, NextPageToken: "x"}}, io.EOF
		}
		return []proto.Message{&btapb.ListTablesResponse{Tables: []*btapb.Table{{Name: "projects/p/instances/i/tables/a"}}}}, io.EOF
	}}
	if ids, err := f.client(btclient.Options{}).Tables(t.Context()); err != nil || !slices.Equal(ids, []string{"a", "b"}) {
		t.Errorf("tables %q, %v", ids, err)
	}
}

func TestGCOf(t *testing.T) {
	t.Parallel()
	versions := func(n int32) *btapb.GcRule {
		return &btapb.GcRule{Rule: &btapb.GcRule_MaxNumVersions{MaxNumVersions: n}}
	}
	age := func(d time.Duration) *btapb.GcRule {
		return &btapb.GcRule{Rule: &btapb.GcRule_MaxAge{MaxAge: durationpb.New(d)}}
	}
	either := func(rules ...*btapb.GcRule) *btapb.GcRule {
		return &btapb.GcRule{Rule: &btapb.GcRule_Union_{Union: &btapb.GcRule_Union{Rules: rules}}}
	}
	both := func(rules ...*btapb.GcRule) *btapb.GcRule {
		return &btapb.GcRule{Rule: &btapb.GcRule_Intersection_{Intersection: &btapb.GcRule_Intersection{Rules: rules}}}
	}
	for _, c := range []struct {
		rule *btapb.GcRule
		want btclient.GC
		ok   bool
	}{
		{nil, btclient.GC{}, true},
		{&btapb.GcRule{}, btclient.GC{}, true},
		{either(versions(3), either(age(time.Hour), versions(2)), age(time.Minute)), btclient.GC{Versions: 2, MaxAge: time.Minute}, true},
		{age(0), btclient.GC{}, false},
		{both(versions(3)), btclient.GC{Versions: 3}, true},
		{both(versions(3), age(time.Hour)), btclient.GC{}, false},
		{either(versions(3), both(versions(3), age(time.Hour))), btclient.GC{}, false},
	} {
		if got, ok := btclient.GCOf(c.rule); got != c.want || ok != c.ok {
			t.Errorf("%v is %+v, %v; want %+v, %v", c.rule, got, ok, c.want, c.ok)
		}
	}
}
