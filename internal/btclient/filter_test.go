package btclient_test

import (
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/internal/btclient"
)

func TestFilters(t *testing.T) {
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
