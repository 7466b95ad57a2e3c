package btclient_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/test/peer"
)

// newServer returns a client of a Bigtable of its own, with a table t of families f and g.
func newServer(t *testing.T) *btclient.Client {
	t.Helper()
	c := btclient.New(peer.Start(t, engine.Options{}, emu.Options{}).Conn(), "p", "i", btclient.Options{Deadline: time.Hour})
	if created, err := c.EnsureTable(t.Context(), "t", []btclient.Family{{Name: "f"}, {Name: "g"}}, nil); err != nil || !created {
		t.Fatal(created, err)
	}
	return c
}

// text returns the cells of a row, each as "family:qualifier@timestamp=value".
func text(r btclient.Row) string {
	var out []string
	for _, c := range r.Cells {
		out = append(out, fmt.Sprintf("%s:%s@%d=%s", c.Family, c.Qualifier, c.Timestamp/1000, c.Value))
	}
	return strings.Join(out, " ")
}

func TestEnsureTable(t *testing.T) {
	t.Parallel()
	c := newServer(t)
	ctx := t.Context()
	day := 24 * time.Hour
	families := []btclient.Family{
		{Name: "none"},
		{Name: "versions", GC: btclient.GC{Versions: 2}},
		{Name: "age", GC: btclient.GC{MaxAge: day}},
		{Name: "both", GC: btclient.GC{Versions: 3, MaxAge: time.Hour}},
	}
	if created, err := c.EnsureTable(ctx, "u", families[:2], nil); err != nil || !created {
		t.Fatal(created, err)
	}
	if created, err := c.EnsureTable(ctx, "u", families, nil); err != nil || created {
		t.Fatal(created, err)
	}
	rules, err := c.Families(ctx, "u")
	if err != nil || len(rules) != len(families) {
		t.Fatal(rules, err)
	}
	for _, f := range families {
		if gc, ok := btclient.GCOf(rules[f.Name]); gc != f.GC || !ok {
			t.Errorf("family %s has %+v, %v", f.Name, gc, ok)
		}
	}

	// Differences are reported before any change.
	refusal := errors.New("refused by the test")
	other := []btclient.Family{families[0], {Name: "more"}, {Name: "versions"}, {Name: "age", GC: btclient.GC{Versions: 1}}, families[3]}
	var conflicts []string
	pass := func(family string, have, want *btapb.GcRule) error {
		h, _ := btclient.GCOf(have)
		w, _ := btclient.GCOf(want)
		conflicts = append(conflicts, fmt.Sprintf("%s, %s, %s", family, h, w))
		return nil
	}
	refuse := func(string, *btapb.GcRule, *btapb.GcRule) error { return refusal }
	if _, err := c.EnsureTable(ctx, "u", other, refuse); !errors.Is(err, refusal) {
		t.Errorf("error %v", err)
	}
	if rules, err := c.Families(ctx, "u"); err != nil || len(rules) != len(families) {
		t.Errorf("%v, %v", rules, err)
	}
	if created, err := c.EnsureTable(ctx, "u", other, pass); err != nil || created {
		t.Error(created, err)
	}
	if got, want := strings.Join(conflicts, "; "), "age, maxAge: 24h, versions: 1; versions, versions: 2, none"; got != want {
		t.Errorf("reported %s, want %s", got, want)
	}
	if ids, err := c.Tables(ctx); err != nil || !slices.Equal(ids, []string{"t", "u"}) {
		t.Errorf("tables %q, %v", ids, err)
	}
	for range 2 { // it may already be deleted
		if err := c.DropTable(ctx, "u"); err != nil {
			t.Error(err)
		}
	}
	if _, err := c.Families(ctx, "u"); status.Code(err) != codes.NotFound || !strings.HasPrefix(err.Error(), "reading the families of table u: ") {
		t.Errorf("error %v", err)
	}
	if _, err := c.EnsureTable(ctx, "no/name", nil, nil); err == nil || !strings.HasPrefix(err.Error(), "creating table no/name: ") {
		t.Errorf("error %v", err)
	}
}

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

// TestClient writes and reads a table.
func TestClient(t *testing.T) {
	t.Parallel()
	c, ctx, a := newServer(t), t.Context(), []byte("a")
	x := []byte("x")
	sets := btclient.AppendSets(nil, []btclient.Cell{
		{Family: "f", Qualifier: x, Timestamp: 1000, Value: []byte("1")},
		{Family: "f", Qualifier: x, Timestamp: 2000, Value: []byte("2")},
		{Family: "f", Qualifier: x, Timestamp: 3000, Value: []byte("3")},
	})
	check := func(want string) {
		t.Helper()
		if r, err := c.ReadRow(ctx, "t", a, nil); err != nil || string(r.Key) != "a" || text(r) != want {
			t.Errorf("row %q: %s, %v; want %s", r.Key, text(r), err, want)
		}
	}
	check("")
	if err := c.MutateRow(ctx, "t", a, append(sets, btclient.SetCell("g", []byte("y"), 1000, []byte("z")))); err != nil {
		t.Fatal(err)
	}
	check("f:x@3=3 f:x@2=2 f:x@1=1 g:y@1=z")
	if matched, err := c.CheckAndMutate(ctx, "t", a, btclient.OfValue([]byte("2")), []*btpb.Mutation{btclient.DeleteColumn("f", x, 2000, 3000)}, nil); !matched || err != nil {
		t.Error(matched, err)
	}
	check("f:x@3=3 f:x@1=1 g:y@1=z")
	if matched, err := c.CheckAndMutate(ctx, "t", a, btclient.OfValue([]byte("2")), nil, []*btpb.Mutation{btclient.DeleteColumn("f", x, 0, 0)}); matched || err != nil {
		t.Error(matched, err)
	}
	check("g:y@1=z")
	if refused, err := c.MutateRows(ctx, "t", []*btpb.MutateRowsRequest_Entry{
		{RowKey: a, Mutations: []*btpb.Mutation{btclient.DeleteFamily("g"), btclient.SetCell("f", x, 0, []byte("0"))}},
		{RowKey: []byte("b"), Mutations: []*btpb.Mutation{btclient.DeleteFamily("no")}},
		{RowKey: []byte("c"), Mutations: sets[:1]},
	}); err != nil || len(refused) != 1 || refused[0].Entry != 1 || status.Code(refused[0].Err) != codes.NotFound {
		t.Error(refused, err)
	}
	check("f:x@0=0")
	if r, err := c.ReadModifyWrite(ctx, "t", a, btclient.Increment("f", []byte("n"), 258)); err != nil || len(r.Cells) != 1 || r.Cells[0].Family != "f" ||
		string(r.Cells[0].Qualifier) != "n" || string(r.Cells[0].Value) != "\x00\x00\x00\x00\x00\x00\x01\x02" || r.Cells[0].Timestamp == 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if err := c.MutateRow(ctx, "t", a, []*btpb.Mutation{btclient.DeleteRow()}); err != nil {
		t.Error(err)
	}
	check("")
	for _, reverse := range []bool{false, true} {
		if err := c.MutateRow(ctx, "t", a, sets[:1]); err != nil {
			t.Error(err)
		}
		want := "a c"
		if reverse {
			want = "c a"
		}
		if got, err := keysOf(ctx, c, btclient.Read{Spans: everything, Reverse: reverse}); got != want || err != nil {
			t.Errorf("rows %s, %v", got, err)
		}
	}
	if keys, size, err := c.SampleKeys(ctx, "t"); err != nil || size < 0 || !slices.IsSortedFunc(keys, slices.Compare) {
		t.Error(keys, size, err)
	}
	if _, _, err := c.SampleKeys(ctx, "no"); status.Code(err) != codes.NotFound || !strings.HasPrefix(err.Error(), "sampling table no: ") {
		t.Error(err)
	}
	if err := c.DropRows(ctx, "t", a); err != nil {
		t.Error(err)
	}
	if got, err := keysOf(ctx, c, btclient.Read{Spans: everything}); got != "c" || err != nil {
		t.Errorf("rows %s, %v", got, err)
	}
	if err := c.DropRows(ctx, "no", a); status.Code(err) != codes.NotFound || !strings.HasPrefix(err.Error(), `dropping the rows of table no that begin with "a": `) {
		t.Error(err)
	}
}
