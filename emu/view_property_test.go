package emu

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/internal/test/property"
)

// Texts have few letters, so that prefixes match. Each draw creates new generators, since
// parallel tests must not share them.
func someKey() *rapid.Generator[string] {
	return rapid.StringOfN(rapid.SampledFrom([]rune("ab\x00")), 1, 3, -1)
}

func someQualifier() *rapid.Generator[string] {
	return rapid.StringOfN(rapid.SampledFrom([]rune("ab\x00")), 0, 2, -1)
}

func someFamily() *rapid.Generator[string] { return rapid.SampledFrom([]string{"g", "f", "h"}) }

// drawSubset draws the definition of a view.
func drawSubset(t *rapid.T) *btapb.AuthorizedView_SubsetView {
	d := subset(rapid.SliceOfN(someQualifier(), 0, 3).Draw(t, "row prefixes"))
	for _, family := range rapid.SliceOfNDistinct(someFamily(), 0, 3, rapid.ID).Draw(t, "families") {
		s := columns(family, "", rapid.SliceOfN(someQualifier(), 0, 2).Draw(t, "prefixes")...).subset
		for _, q := range rapid.SliceOfN(someQualifier(), 0, 3).Draw(t, "qualifiers") {
			s.Qualifiers = append(s.Qualifiers, []byte(q))
		}
		d.FamilySubsets[family] = s
	}
	return d
}

// holdsRow and holdsColumn implement a definition, by its comments.
func holdsRow(d *btapb.AuthorizedView_SubsetView, row string) bool {
	return slices.ContainsFunc(d.GetRowPrefixes(), func(p []byte) bool { return strings.HasPrefix(row, string(p)) })
}

func holdsColumn(d *btapb.AuthorizedView_SubsetView, family, qualifier string) bool {
	s := d.GetFamilySubsets()[family]
	return slices.ContainsFunc(s.GetQualifiers(), func(q []byte) bool { return string(q) == qualifier }) ||
		slices.ContainsFunc(s.GetQualifierPrefixes(), func(p []byte) bool { return strings.HasPrefix(qualifier, string(p)) })
}

// drawFilter draws a filter, without sinks inside a condition and with a single label.
func drawFilter(t *rapid.T, depth int, sinks bool) *btpb.RowFilter {
	kinds := 12
	if depth == 0 {
		kinds = 9
	}
	pattern := rapid.SampledFrom([]string{"a", "a\\C*", "\\C*b", "a|b", "\\C*"})
	switch rapid.IntRange(0, kinds-1).Draw(t, "filter") {
	case 0:
		return passAll()
	case 1:
		return rowKeyRegexOf(pattern.Draw(t, "row"))
	case 2:
		return familyRegexOf(rapid.SampledFrom([]string{"f", "g|h", ".*"}).Draw(t, "family"))
	case 3:
		return qualifierRegexOf(pattern.Draw(t, "qualifier"))
	case 4:
		return rowLimitOf(rapid.Int32Range(1, 4).Draw(t, "limit"))
	case 5:
		return rowOffsetOf(rapid.Int32Range(0, 3).Draw(t, "offset"))
	case 6:
		return columnLimitOf(rapid.Int32Range(1, 2).Draw(t, "versions"))
	case 7:
		from, to := someQualifier().Draw(t, "from"), someQualifier().Draw(t, "to")
		return &btpb.RowFilter{Filter: &btpb.RowFilter_ColumnRangeFilter{ColumnRangeFilter: &btpb.ColumnRange{
			FamilyName:     someFamily().Draw(t, "of"),
			StartQualifier: &btpb.ColumnRange_StartQualifierClosed{StartQualifierClosed: []byte(min(from, to))},
			EndQualifier:   &btpb.ColumnRange_EndQualifierClosed{EndQualifierClosed: []byte(max(from, to))},
		}}}
	case 8:
		if sinks {
			return sinkFilter()
		}
		return valueRegexOf(pattern.Draw(t, "value"))
	case 9:
		return chainOf(drawFilter(t, depth-1, sinks), drawFilter(t, depth-1, sinks))
	case 10:
		return interleaveOf(drawFilter(t, depth-1, sinks), drawFilter(t, depth-1, sinks))
	default:
		return conditionOf(drawFilter(t, depth-1, false), drawFilter(t, depth-1, false), drawFilter(t, depth-1, false))
	}
}

// viewPair is a server with a table t, a view of it, and a table with the content of the view.
type viewPair struct {
	*env
	d    *btapb.AuthorizedView_SubsetView
	view string
	part string
}

func drawPair(rt *rapid.T, e *env) *viewPair {
	p := &viewPair{env: e, d: drawSubset(rt), view: viewName("v"), part: testInstance + "/tables/part"}
	for _, id := range []string{"t", "part"} {
		// Delete tables of these names from other tests.
		_, _ = e.admin.DeleteTable(e.ctx(), &btapb.DeleteTableRequest{Name: testInstance + "/tables/" + id})
		e.createTable(id, "g", "f", "h") // not in name order
	}
	type column struct{ row, family, qualifier string }
	for _, c := range rapid.SliceOfN(rapid.Custom(func(t *rapid.T) column {
		return column{someKey().Draw(t, "row"), someFamily().Draw(t, "family"), someQualifier().Draw(t, "qualifier")}
	}), 0, 40).Draw(rt, "cells") {
		for i := range rapid.Int64Range(1, 2).Draw(rt, "versions") {
			m := set(c.family, c.qualifier, 1000*i, c.row)
			e.mustMutate(c.row, m)
			if holdsRow(p.d, c.row) && holdsColumn(p.d, c.family, c.qualifier) {
				if _, err := e.data.MutateRow(e.ctx(), &btpb.MutateRowRequest{TableName: p.part, RowKey: []byte(c.row), Mutations: []*btpb.Mutation{m}}); err != nil {
					rt.Fatal(err)
				}
			}
		}
	}
	e.mustCreateView("v", viewOf(p.d))
	return p
}

// text reads a table or a view.
func (e *env) text(req *btpb.ReadRowsRequest) string {
	res, err := readRows(withFeatures(e.ctx(), &btpb.FeatureFlags{ReverseScans: true}, base64.URLEncoding), e.data, req)
	if err != nil {
		return status.Code(err).String()
	}
	return res.text()
}

// asksForF reports whether a filter requires the family f, alone or in a chain.
func asksForF(f *btpb.RowFilter) bool {
	for _, f := range f.GetChain().GetFilters() {
		if asksForF(f) {
			return true
		}
		if strings.Contains(f.String(), "sink") {
			return false // later filters do not see the cells of the sink
		}
	}
	return f.GetFamilyNameRegexFilter() == "f"
}

// TestProperty_ReadThroughView: property (c), of views. A read through a view equals a read of
// a table with only the content of the view.
func TestProperty_ReadThroughView(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	rapid.Check(t, property.First(30, func(rt *rapid.T) {
		p := drawPair(rt, e)
		for range 8 {
			req := &btpb.ReadRowsRequest{
				Reversed: rapid.Bool().Draw(rt, "reversed"), RowsLimit: rapid.Int64Range(0, 3).Draw(rt, "rows"),
				Filter: drawFilter(rt, 3, true), RequestStatsView: btpb.ReadRowsRequest_REQUEST_STATS_NONE,
			}
			if rapid.Bool().Draw(rt, "of rows") {
				req.Rows = rowsOf(rapid.SliceOfN(someKey(), 0, 3).Draw(rt, "keys")...)
				if from, to := someKey().Draw(rt, "from"), someKey().Draw(rt, "to"); from < to {
					req.Rows.RowRanges = []*btpb.RowRange{closedOpen(from, to)}
				}
			}
			req.TableName = p.part
			want := p.text(req)
			req.TableName, req.AuthorizedViewName = "", p.view
			if f := p.d.GetFamilySubsets()["f"]; asksForF(req.GetFilter()) && len(f.GetQualifiers())+len(f.GetQualifierPrefixes()) == 0 {
				want = codes.PermissionDenied.String()
			}
			if got := p.text(req); got != want {
				rt.Fatalf("view %v\nrequest %v\ngot:\n%swant:\n%s", p.d, req, got, want)
			}
		}
	}))
}

// TestProperty_WriteThroughView: property (c), of views. A write through a view is allowed if
// all cells that it can reach are in the view, and then has the same effect as on the table;
// otherwise it has no effect. The predicate of CheckAndMutateRow sees only the content of the
// view.
func TestProperty_WriteThroughView(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	rapid.Check(t, property.First(30, func(rt *rapid.T) {
		p := drawPair(rt, e)
		row := someKey().Draw(rt, "row")
		allowed := holdsRow(p.d, row)
		mutation := rapid.Custom(func(t *rapid.T) *btpb.Mutation {
			family, qualifier := someFamily().Draw(t, "family"), someQualifier().Draw(t, "qualifier")
			switch rapid.IntRange(0, 5).Draw(t, "mutation") {
			case 0:
				allowed = allowed && slices.ContainsFunc(p.d.GetFamilySubsets()[family].GetQualifierPrefixes(), func(p []byte) bool { return len(p) == 0 })
				return deleteFamily(family)
			case 1:
				allowed = allowed && holdsColumn(p.d, family, qualifier)
				return deleteColumn(family, qualifier, 0, 0)
			default:
				allowed = allowed && holdsColumn(p.d, family, qualifier)
				return set(family, qualifier, 0, "new")
			}
		})
		muts, others := rapid.SliceOfN(mutation, 1, 3).Draw(rt, "mutations"), rapid.SliceOfN(mutation, 0, 1).Draw(rt, "others")
		predicate := drawFilter(rt, 2, false)
		before := p.text(&btpb.ReadRowsRequest{TableName: testTable})
		check := func(table, view string) (bool, error) {
			resp, err := e.data.CheckAndMutateRow(e.ctx(), &btpb.CheckAndMutateRowRequest{
				TableName: table, AuthorizedViewName: view, RowKey: []byte(row), PredicateFilter: predicate, TrueMutations: muts, FalseMutations: others,
			})
			return resp.GetPredicateMatched(), err
		}
		got, err := check("", p.view)
		if denied := err != nil; denied == allowed {
			rt.Fatalf("view %v\nrow %q: %v %v: %v; allowed: %v", p.d, row, muts, others, err, allowed)
		}
		if !allowed {
			wantOutside(t, "a write", err)
			if after := p.text(&btpb.ReadRowsRequest{TableName: testTable}); after != before {
				rt.Fatalf("a write was denied and done: from\n%sto\n%s", before, after)
			}
			return
		}
		want, err := check(p.part, "")
		if err != nil || got != want {
			rt.Fatalf("view %v\nrow %q: matched %v, want %v, %v", p.d, row, got, want, err)
		}
		if through, part := p.text(&btpb.ReadRowsRequest{AuthorizedViewName: p.view}), p.text(&btpb.ReadRowsRequest{TableName: p.part}); through != part {
			rt.Fatalf("view %v\nthrough the view:\n%son the table:\n%s", p.d, through, part)
		}
	}))
}
