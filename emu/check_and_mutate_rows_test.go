package emu

import (
	"fmt"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/inproc"
)

// TestCheckAndMutateRows: calls that are made together have the results of single calls.
func TestCheckAndMutateRows(t *testing.T) {
	t.Parallel()
	one, all := newTable(t, "f"), newTable(t, "f")
	put := func(value string) []*btpb.Mutation {
		return []*btpb.Mutation{btclient.SetCell("f", []byte("q"), 1000, []byte(value))}
	}
	request := func(row string, f *btpb.RowFilter, yes, no []*btpb.Mutation) *btpb.CheckAndMutateRowRequest {
		return &btpb.CheckAndMutateRowRequest{TableName: testTable, RowKey: []byte(row), PredicateFilter: f, TrueMutations: yes, FalseMutations: no}
	}
	reqs := []*btpb.CheckAndMutateRowRequest{
		request("b", nil, nil, put("new")),
		request("a", nil, nil, put("new")),
		request("b", btclient.OfValue([]byte("new")), put("changed"), nil), // sees the first request
		request("", nil, nil, put("no key")),
		request("c", nil, nil, nil),
		request("d", nil, []*btpb.Mutation{btclient.SetCell("g", nil, 1000, nil)}, nil), // no such family
		request("a", btclient.OfColumn("f", []byte("q")), []*btpb.Mutation{btclient.DeleteRow()}, nil),
		request("a", nil, nil, put("again")),
	}
	matched, errs := make([]bool, len(reqs)), make([]error, len(reqs))
	if !all.srv.Conn().(*inproc.Channel).CheckAndMutateRows(all.ctx(), reqs, matched, errs) {
		t.Fatal("the server makes one call after the other")
	}
	failed := 0
	for i, req := range reqs {
		resp, err := one.data.CheckAndMutateRow(one.ctx(), req)
		if got, want := fmt.Sprint(matched[i], status.Convert(errs[i]).Message()), fmt.Sprint(resp.GetPredicateMatched(), status.Convert(err).Message()); got != want {
			t.Errorf("request %d: %s, want %s", i, got, want)
		}
		if err != nil {
			failed++
		}
	}
	if failed != 3 {
		t.Errorf("%d requests fail, want 3", failed)
	}
	rows := func(e *env) (text string) {
		for row, err := range btclient.New(e.srv.Conn(), "p", "i", btclient.Options{}).Read(e.ctx(), btclient.Read{Table: "t", Spans: []btclient.Span{{}}}) {
			text += fmt.Sprintf("%s %+v %v\n", row.Key, row.Cells, err)
		}
		return text
	}
	if got, want := rows(all), rows(one); got != want || want == "" {
		t.Errorf("together:\n%s\none by one:\n%s", got, want)
	}
}

// TestCheckAndMutateRows_Alone: an observer, several tables and a view need single calls.
func TestCheckAndMutateRows_Alone(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{"observed": {Observe: func(*Call) {}}, "two tables": {}, "view": {}} {
		e := newEnvWith(t, o, engine.Options{})
		e.createTable("t", "f")
		muts := []*btpb.Mutation{btclient.SetCell("f", nil, 1000, nil)}
		reqs := []*btpb.CheckAndMutateRowRequest{{TableName: testTable, RowKey: []byte("a"), FalseMutations: muts}}
		switch name {
		case "view":
			reqs[0].TableName, reqs[0].AuthorizedViewName = "", testTable+"/authorizedViews/v"
		case "two tables":
			e.createTable("u", "f")
			reqs = append(reqs, &btpb.CheckAndMutateRowRequest{TableName: testInstance + "/tables/u", RowKey: []byte("a"), FalseMutations: muts})
		}
		if e.srv.Conn().(*inproc.Channel).CheckAndMutateRows(e.ctx(), reqs, make([]bool, len(reqs)), make([]error, len(reqs))) {
			t.Errorf("%s: made together", name)
		}
	}
}
