package layout

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/internal/layout/rowtext"
)

// expTime is the export time of the golden rows, 2024-05-14T11:14:20.608Z.
const expTime = 1715685260608000

// rowsOf merges placed items into rows, in key order.
func rowsOf(placed []lens.Placed) []Row {
	byKey := map[string]*Row{}
	var rows []*Row
	for _, p := range placed {
		r := byKey[string(p.Row)]
		if r == nil {
			r = &Row{Key: p.Row}
			byKey[string(p.Row)] = r
			rows = append(rows, r)
		}
		r.Cells = append(r.Cells, p.Cells...)
	}
	var out []Row
	for _, r := range rows {
		slices.SortFunc(r.Cells, storageOrder)
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b Row) int { return bytes.Compare(a.Key, b.Key) })
	return out
}

func storageOrder(a, b Cell) int {
	if c := strings.Compare(a.Family, b.Family); c != 0 {
		return c
	}
	if c := bytes.Compare(a.Qualifier, b.Qualifier); c != 0 {
		return c
	}
	return int(max(-1, min(1, b.Timestamp-a.Timestamp)))
}

func parseItems(t *testing.T, input string) []attr.Item {
	t.Helper()
	var items []attr.Item
	for line := range strings.Lines(input) {
		item, err := attr.UnmarshalItem([]byte(line))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		items = append(items, item)
	}
	return items
}

func covered(extents []lens.Extent, c Cell) bool {
	return slices.ContainsFunc(extents, func(e lens.Extent) bool { return e.Covers(c) })
}

// readPlan executes a plan as a Bigtable would.
func readPlan(p lens.Plan, rows []Row) []Row {
	var out []Row
	for _, r := range rows {
		in := slices.ContainsFunc(p.Spans, func(s Span) bool {
			return bytes.Compare(r.Key, s.Start) >= 0 && (len(s.End) == 0 || bytes.Compare(r.Key, s.End) < 0)
		})
		if !in {
			continue
		}
		part := Row{Key: r.Key}
		for _, c := range r.Cells {
			if p.Extents == nil || covered(p.Extents, c) {
				part.Cells = append(part.Cells, c)
			}
		}
		if len(part.Cells) > 0 {
			out = append(out, part)
		}
	}
	return out
}

func formatExtent(e lens.Extent) string {
	s := fmt.Sprintf("%s:%q", e.Family, e.Qualifier)
	if e.Prefix {
		s += "*"
	}
	if e.MinTime != 0 || e.MaxTime != 0 {
		s += fmt.Sprintf(" @[%d,%d)", e.MinTime, e.MaxTime)
	}
	return s
}

var rangeOps = map[string]attr.RangeOp{"=": attr.RangeEqual, "<": attr.RangeLess, "<=": attr.RangeLessEqual, ">": attr.RangeGreater, ">=": attr.RangeGreaterEqual, "between": attr.RangeBetween, "begins_with": attr.RangeBeginsWith}

func parseCondition(t *testing.T, input string) attr.KeyRange {
	t.Helper()
	var c attr.KeyRange
	for i, line := range strings.Split(strings.TrimSpace(input), "\n") {
		if i == 1 {
			c.Op = rangeOps[line]
			continue
		}
		v, err := attr.UnmarshalValue([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		*[]*attr.Value{&c.Hash, nil, &c.A, &c.B}[i] = v
	}
	return c
}

func formatPlan(plan lens.Plan) string {
	var b strings.Builder
	for _, s := range plan.Spans {
		fmt.Fprintf(&b, "span [%q, %q)\n", s.Start, s.End)
	}
	for _, e := range plan.Extents {
		fmt.Fprintf(&b, "extent %s\n", formatExtent(e))
	}
	fmt.Fprintf(&b, "order %s\n", orderNames[plan.Order])
	return b.String()
}

var orderNames = [...]string{"same", "reversed", "merge", "merge reversed", "sort"}

// TestMapping runs the text cases: goldens of the design subjects, rejected items, plans of
// queries.
func TestMapping(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/mapping", func(t *testing.T, path string) {
		t.Helper()
		t.Parallel()
		var m *Mapping
		var items []attr.Item
		var rows []Row
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			if m == nil && d.Cmd != "load" {
				return "no mapping"
			}
			switch d.Cmd {
			case "load":
				loaded, err := Load("mapping.yaml", []byte(d.Input))
				var e *maperr.SpecError
				if errors.As(err, &e) && d.Input != "" && (e.Line == 0 || e.Column == 0 || e.What == "") {
					t.Fatalf("%s: the error has no position: %v", d.Pos, err)
				}
				if err != nil {
					return err.Error()
				}
				m = loaded
				if again, err := m.Spec().YAML(); err != nil {
					t.Fatal(err)
				} else if back, err := Load("again.yaml", again); err != nil {
					t.Fatalf("%v\n%s", err, again)
				} else if diff := cmp.Diff(m.Spec(), back.Spec(), cmpopts.IgnoreUnexported(mapfile.Spec{}), cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("%s\n%s", diff, again)
				}
				return "ok"
			case "place":
				items = parseItems(t, d.Input)
				var placed []lens.Placed
				exceptions := 0
				for _, item := range items {
					p, err := m.Place(item, expTime)
					if err != nil {
						return err.Error()
					}
					exceptions += p.Exceptions
					placed = append(placed, p)
				}
				rows = rowsOf(placed)
				var b []byte
				var back []attr.Item
				for _, r := range rows {
					b = rowtext.FormatRow(b, r)
					got, err := m.Items(r)
					if err != nil {
						return err.Error()
					}
					back = append(back, got...)
				}
				equal := len(back) == len(items)
				for _, item := range items {
					equal = equal && slices.ContainsFunc(back, func(o attr.Item) bool { return attr.EqualItems(item, o) })
				}
				return fmt.Sprintf("%sitems %d, rows %d, exceptions %d, round trip %v\n", b, len(items), len(rows), exceptions, equal)
			case "own":
				var b strings.Builder
				for _, key := range parseItems(t, d.Input) {
					at, err := m.Locate(key)
					if err != nil {
						return err.Error()
					}
					fmt.Fprintf(&b, "%s %q\n", at.Rule, at.Row)
					for _, e := range at.Own {
						fmt.Fprintf(&b, "  %s\n", formatExtent(e))
					}
				}
				return b.String()
			case "index-query":
				x := m.Index(d.CmdArgs[0].Key)
				plan, err := x.PlanQuery(parseCondition(t, d.Input))
				if err != nil {
					return err.Error()
				}
				return formatPlan(plan)
			case "query":
				c := parseCondition(t, d.Input)
				plan, err := m.PlanQuery(c)
				if err != nil {
					return err.Error()
				}
				b := strings.Builder{}
				b.WriteString(formatPlan(plan))
				for _, r := range readPlan(plan, rows) {
					got, err := m.Items(r)
					if err != nil {
						return err.Error()
					}
					for _, item := range got {
						if v := item[m.Key().Range.Name]; c.Matches(v) {
							fmt.Fprintf(&b, "%s %s\n", item[m.Key().Hash.Name].Str, v.Str)
						}
					}
				}
				return b.String()
			case "prove-joiner":
				proof := m.ProveJoiner()
				for _, item := range parseItems(t, d.Input) {
					if err := proof.Add(item); err != nil {
						return err.Error()
					}
				}
				if o := proof.Offender(); o != nil {
					return proof.Joiner() + "\n" + o.Error()
				}
				return proof.Joiner()
			case "live":
				now, err := strconv.ParseInt(d.CmdArgs[0].Key, 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				var b strings.Builder
				for _, r := range rows {
					items, err := m.Items(m.Live(r, now))
					if err != nil {
						return err.Error()
					}
					fmt.Fprintf(&b, "%s: %d\n", r.Key, len(items))
				}
				return b.String()
			case "returned":
				var b strings.Builder
				for _, item := range parseItems(t, d.Input) {
					p, err := m.Place(item, expTime)
					if err != nil {
						return err.Error()
					}
					back, losses := m.Returned(item, p)
					fmt.Fprintf(&b, "%s", attr.AppendItemJSON(nil, back))
					for _, l := range losses {
						fmt.Fprintf(&b, " %s: %s", l.What, l.Attribute)
					}
					b.WriteByte('\n')
				}
				return b.String()
			case "views":
				var b strings.Builder
				for _, v := range m.Views() {
					fmt.Fprintf(&b, "-- %s\n%s", v.ID(), v.SQL())
				}
				return b.String()
			case "prove-versions":
				if err := prove(m, items); err != nil {
					return err.Error()
				}
				return "ok"
			case "fidelity":
				var b strings.Builder
				for _, f := range m.Fidelity() {
					fmt.Fprintln(&b, f)
				}
				for _, note := range m.Notes() {
					fmt.Fprintln(&b, "note:", note)
				}
				return b.String()
			case "index":
				x := m.Index(d.CmdArgs[0].Key)
				var b []byte
				for _, item := range items {
					p, ok, err := x.Place(item, expTime)
					if err != nil {
						return err.Error()
					}
					if !ok {
						continue
					}
					b = rowtext.FormatRow(b, Row{Key: p.Row, Cells: p.Cells})
					back, err := x.Items(Row{Key: p.Row, Cells: p.Cells})
					if err != nil || len(back) != 1 || !attr.EqualItems(back[0], x.Project(item)) {
						t.Fatalf("index item %v: %v %v", item, back, err)
					}
				}
				return "table " + x.TargetTable() + "\n" + string(b)
			}
			t.Fatalf("unknown command %s", d.Cmd)
			return ""
		})
	})
}

// TestFormatRow shows every kind of value and key.
func TestFormatRow(t *testing.T) {
	t.Parallel()
	row := Row{Key: []byte("a\x00b"), Cells: []Cell{
		{Family: "b", Qualifier: []byte("json"), Timestamp: 2000, Value: []byte(`{"a":1}`)},
		{Family: "_t", Qualifier: []byte("a/x"), Timestamp: 1000, Value: []byte("S")},
		{Family: "_f", Qualifier: []byte("s"), Timestamp: 1000, Value: []byte("state")},
		{Family: "b", Qualifier: []byte("json"), Timestamp: 1000, Value: []byte("{\"a\":\n1}")},
		{Family: "a", Qualifier: []byte(`q"\`), Timestamp: 1000, Value: nil},
		{Family: "a", Qualifier: []byte("\xff"), Timestamp: 1000, Value: []byte{0, 0, 0, 7}},
	}}
	want := "a\\x00b [610062]\n" +
		"  a:q\"\\\\ @1000 = \"\"\n" +
		"  a:\\xff @1000 = 00000007\n" +
		"  b:json @2000 = {\"a\":1}\n" +
		"  b:json @1000 = " + strconv.Quote("{\"a\":\n1}") + "\n" +
		"  _t:a/x @1000 = \"S\"\n"
	if got := string(rowtext.FormatRow(nil, row)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
