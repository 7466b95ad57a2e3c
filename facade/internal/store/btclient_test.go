package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/test/peer"
)

// The tests in this file check the store's Bigtable client against a server. They are not beside
// btclient, whose own tests answer calls with a fake: its test binary would link the server too.

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

// keysOf reads the keys of all rows of table t.
func keysOf(ctx context.Context, c *btclient.Client, reverse bool) (string, error) {
	var keys []string
	for row, err := range c.Read(ctx, btclient.Read{Table: "t", Spans: []btclient.Span{{}}, Reverse: reverse}) {
		if err != nil {
			return "", err
		}
		keys = append(keys, string(row.Key))
	}
	return strings.Join(keys, " "), nil
}

// TestBtclient writes and reads a table.
func TestBtclient(t *testing.T) {
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
		if got, err := keysOf(ctx, c, reverse); got != want || err != nil {
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
	if got, err := keysOf(ctx, c, false); got != "c" || err != nil {
		t.Errorf("rows %s, %v", got, err)
	}
	if err := c.DropRows(ctx, "no", a); status.Code(err) != codes.NotFound || !strings.HasPrefix(err.Error(), `dropping the rows of table no that begin with "a": `) {
		t.Error(err)
	}
}

func TestBtclient_EnsureTable(t *testing.T) {
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

func TestBtclient_Filters(t *testing.T) {
	t.Parallel()
	c, ctx := newServer(t), t.Context()
	var muts []*btpb.Mutation
	for _, cell := range []struct{ family, qualifier, value string }{
		{"f", "", "v"}, {"f", "a", "v1"}, {"f", "a.", "v2"}, {"f", "b", "\xff1"}, {"f", "\xff", "w"}, {"g", "a", "v"},
	} {
		muts = append(muts, btclient.SetCell(cell.family, []byte(cell.qualifier), 2000, []byte(cell.value)))
	}
	muts = append(muts, btclient.SetCell("f", []byte("a"), 1000, []byte("old")))
	if err := c.MutateRow(ctx, "t", []byte("r"), muts); err != nil {
		t.Fatal(err)
	}
	const all = "f:@2=v f:a@2=v1 f:a@1=old f:a.@2=v2 f:b@2=\xff1 f:\xff@2=w g:a@2=v"
	none := btclient.AnyOf()
	for name, f := range map[string]struct {
		filter *btpb.RowFilter
		want   string
	}{
		"none":                  {nil, all},
		"chain of one":          {btclient.Chain(btclient.OfFamily("g")), "g:a@2=v"},
		"chain":                 {btclient.Chain(btclient.OfColumn("f", []byte("a")), btclient.Newest(1)), "f:a@2=v1"},
		"any of nothing":        {none, ""},
		"any of one":            {btclient.AnyOf(btclient.OfFamily("g")), "g:a@2=v"},
		"any":                   {btclient.AnyOf(btclient.OfFamily("g"), btclient.OfColumn("f", []byte("b"))), "f:b@2=\xff1 g:a@2=v"},
		"unless":                {btclient.Unless(btclient.OfFamily("g"), btclient.OfFamily("f")), ""},
		"when":                  {btclient.When(btclient.OfValues([]byte("v1"), []byte("v2")), btclient.All()), all},
		"when nothing":          {btclient.When(none, btclient.All()), ""},
		"values":                {btclient.OfValues([]byte("v1"), []byte("w")), "f:a@2=v1 f:a.@2=v2"},
		"values to the last":    {btclient.OfValues([]byte("w"), nil), "f:b@2=\xff1 f:\xff@2=w"},
		"pattern of values":     {btclient.OfValuePattern("v[12]"), "f:a@2=v1 f:a.@2=v2"},
		"unless nothing":        {btclient.Unless(none, btclient.OfFamily("g")), "g:a@2=v"},
		"newest two":            {btclient.Newest(2), all},
		"column":                {btclient.OfColumn("f", []byte("a")), "f:a@2=v1 f:a@1=old"},
		"column without a name": {btclient.OfColumn("f", nil), "f:@2=v"},
		"columns":               {btclient.OfColumns("f", []byte("a"), []byte("b")), "f:a@2=v1 f:a@1=old f:a.@2=v2"},
		"columns to the end":    {btclient.OfColumns("f", []byte("b"), nil), "f:b@2=\xff1 f:\xff@2=w"},
		"column prefix":         {btclient.OfColumnPrefix("f", []byte("a")), "f:a@2=v1 f:a@1=old f:a.@2=v2"},
		"no column prefix":      {btclient.OfColumnPrefix("g", nil), "g:a@2=v"},
		"greatest prefix":       {btclient.OfColumnPrefix("f", []byte("\xff")), "f:\xff@2=w"},
		"qualifier":             {btclient.OfQualifier("a."), "f:a.@2=v2"},
		"qualifier of families": {btclient.Chain(btclient.OfQualifier("a"), btclient.Newest(1)), "f:a@2=v1 g:a@2=v"},
		"keys":                  {btclient.KeysOnly(), "f:@2="},
		"first cells":           {btclient.FirstCells(2), "f:@2=v f:a@2=v1"},
		"behind cells":          {btclient.BehindCells(5), "f:\xff@2=w g:a@2=v"},
		"time":                  {btclient.OfTime(1000, 2000), "f:a@1=old"},
		"time to the end":       {btclient.Chain(btclient.OfTime(2000, 0), btclient.OfFamily("g")), "g:a@2=v"},
		"value":                 {btclient.OfValue([]byte("v")), "f:@2=v g:a@2=v"},
		"value prefix":          {btclient.OfValuePrefix([]byte("v")), "f:@2=v f:a@2=v1 f:a.@2=v2 g:a@2=v"},
		"greatest value prefix": {btclient.OfValuePrefix([]byte("\xff")), "f:b@2=\xff1"},
	} {
		if r, err := c.ReadRow(ctx, "t", []byte("r"), f.filter); err != nil || text(r) != f.want {
			t.Errorf("%s: %q, %v; want %q", name, text(r), err, f.want)
		}
	}
}

func TestBtclient_Views(t *testing.T) {
	t.Parallel()
	c := newServer(t)
	ctx := t.Context()
	for i, city := range []string{"Rome", "Oslo"} {
		set := btclient.SetCell("f", []byte("city"), 1000, []byte(city))
		if err := c.MutateRow(ctx, "t", []byte{'a' + byte(i)}, []*btpb.Mutation{set}); err != nil {
			t.Fatal(err)
		}
	}
	const query = "SELECT f['city'] AS city, _key AS k FROM t ORDER BY city, k"
	for i, want := range []bool{true, false} {
		if created, err := c.EnsureView(ctx, "v", query+strings.Repeat("\n", i)); err != nil || created != want {
			t.Fatal(created, err)
		}
	}
	rows := func(r btclient.Read) (keys []string) {
		r.Table, r.View, r.Spans = "v", true, []btclient.Span{{}}
		for row, err := range c.Read(ctx, r) {
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, strings.ReplaceAll(string(row.Key), "\x00\x01", "|"))
		}
		return keys
	}
	if got := fmt.Sprint(rows(btclient.Read{}), rows(btclient.Read{Reverse: true, Limit: 1})); got != "[Oslo|b Rome|a] [Rome|a]" {
		t.Errorf("the view has the rows %s", got)
	}
	if _, bytes, err := c.SampleViewKeys(ctx, "v"); err != nil || bytes <= 0 {
		t.Errorf("the view has %d bytes: %v", bytes, err)
	}
	for id, want := range map[string]string{
		"v": "the materialized view v exists with another query, which cannot be changed: delete the view, so that it is created again (gcloud bigtable materialized-views delete v --instance=i)",
		"t": "a table has the id of the materialized view t: delete the table, so that the view is created, or use another instance (gcloud bigtable tables delete t --instance=i)",
	} {
		if _, err := c.EnsureView(ctx, id, strings.Replace(query, "k FROM", "k, f['x'] AS x FROM", 1)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got the error %v, want %s", err, want)
		}
	}
	var conflict *btclient.Conflict
	if _, err := c.EnsureTable(ctx, "v", []btclient.Family{{Name: "f"}}, nil); !errors.As(err, &conflict) ||
		err.Error() != "a materialized view has the id of the table v: delete the view, so that the table is created, or use another instance (gcloud bigtable materialized-views delete v --instance=i)" {
		t.Errorf("got the error %v for a table with the id of a view", err)
	}
	if _, err := c.EnsureView(ctx, "w", "SELECT"); status.Code(err) != codes.InvalidArgument || !strings.HasPrefix(err.Error(), "creating the materialized view w: ") {
		t.Errorf("got the error %v for a wrong query", err)
	}
	for range 2 {
		if err := c.DropView(ctx, "v"); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range c.Read(ctx, btclient.Read{Table: "v", View: true, Spans: []btclient.Span{{}}}) {
		if status.Code(err) != codes.NotFound || !strings.HasPrefix(err.Error(), "reading the materialized view v: ") {
			t.Errorf("got the error %v for a deleted view", err)
		}
	}
	if _, _, err := c.SampleViewKeys(ctx, "v"); status.Code(err) != codes.NotFound || !strings.HasPrefix(err.Error(), "sampling the materialized view v: ") {
		t.Errorf("got the error %v for a deleted view", err)
	}
}
