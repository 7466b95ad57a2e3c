package btclient_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/btclient"
)

func TestViews(t *testing.T) {
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
