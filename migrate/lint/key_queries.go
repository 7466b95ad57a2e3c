package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// queries calls f for every pattern that is a Query on the table, not on an index.
func queries(c *check, f func(p *Pattern, r *request)) {
	for i, r := range c.t.requests {
		if r != nil && r.op == "Query" && r.index == "" && r.ranged {
			f(&c.t.Patterns[i], r)
		}
	}
}

// salted reports whether native ranges or keys differ only in a first segment
// of at most two characters.
func salted(r *NativeRead) bool {
	starts := slices.Clone(r.Keys)
	for _, x := range r.Ranges {
		starts = append(starts, x[0])
	}
	rest := map[string]bool{}
	for _, s := range starts {
		i := strings.IndexAny(s, "#:/|")
		if i < 1 || i > 2 {
			return false
		}
		rest[s[i:]] = true
	}
	return len(rest) == 1
}

func severalRanges(c *check) {
	c.onEnd = func() {
		for i := range c.t.Patterns {
			p, r := &c.t.Patterns[i], c.t.requests[i]
			if r != nil && r.op != "Query" && r.op != "GetItem" || r == nil && p.Read != nil && len(p.Read.Ranges) == 0 {
				continue // a request for several items: see L43 and L45
			}
			spans := 0
			switch {
			case p.Read != nil:
				if spans = p.Read.spans(); salted(p.Read) {
					continue
				}
			case r != nil && r.ranged && r.index == "" && c.t.Mapping != nil:
				if spans = len(c.plan(r).Spans); c.t.salted() {
					continue
				}
			}
			if spans > 1 {
				f := Finding{File: p.File, Pattern: p.ID, Message: fmt.Sprintf("the pattern reads %d separate ranges of rows", spans), Expected: "one row, prefix or range"}
				if p.Read != nil && p.Read.Table != "" {
					f.Message += " of " + p.Read.Table
				}
				c.report(f)
			}
		}
	}
}

// salted reports whether the row keys of any rule begin with a salt.
func (t *tablePass) salted() bool {
	found := false
	t.each(func(l *ruleLayout) {
		found = found || len(l.segments) > 0 && slices.ContainsFunc(l.segments[0].Encoders, func(e string) bool { return strings.HasPrefix(e, "salt(") })
	})
	return found
}

// plan returns the way in which the mapping reads the items of a query.
func (c *check) plan(r *request) lens.Plan {
	plan, err := c.t.Mapping.PlanQuery(r.rng)
	if err != nil {
		return lens.Plan{} // the condition does not fit the key: unknown
	}
	return plan
}

func fullScan(c *check) {
	c.onEnd = func() {
		for i := range c.t.Patterns {
			p, r := &c.t.Patterns[i], c.t.requests[i]
			if c.suffix(p, r) != "" {
				continue // L10 reports it with more detail
			}
			why := ""
			switch {
			case r != nil && r.op == "Scan" && len(r.filtered) > 0:
				why = fmt.Sprintf("the Scan filters by %s", strings.Join(r.filtered, ", "))
			case p.Read != nil && p.Read.spans() == 0 && !p.FullScan:
				why = "the native read names no row key, prefix or range"
			case p.Read != nil && p.Read.spans() == 0 && r != nil && (r.op == "Query" || r.op == "GetItem"):
				why = "the native read of a " + r.op + " scans the whole table"
			case p.Read == nil && r != nil && r.ranged && r.index == "" && c.t.Mapping != nil && wholeTable(c.plan(r)):
				why = "the mapping has to read the whole table for the Query"
			default:
				continue
			}
			c.report(Finding{File: p.File, Pattern: p.ID, Message: why, Expected: "a row key, a prefix or a range"})
		}
	}
}

func wholeTable(p lens.Plan) bool {
	return slices.ContainsFunc(p.Spans, func(s layout.Span) bool { return len(s.Start) == 0 && len(s.End) == 0 })
}

// suffix returns the attribute of a later key segment that a scan or a full-table query filters
// by, or "".
func (c *check) suffix(p *Pattern, r *request) string {
	if r == nil {
		return ""
	}
	names := r.filtered
	switch {
	case r.op == "Scan":
	case r.op == "Query" && r.ranged && r.index == "" && c.t.Mapping != nil && (p.Read == nil || p.Read.spans() == 0) && wholeTable(c.plan(r)):
		names = []string{c.t.Key.Hash.Name}
	default:
		return ""
	}
	for _, name := range names {
		later, first := false, false
		c.t.each(func(l *ruleLayout) {
			for i, s := range l.segments {
				if slices.Contains(s.Attrs, name) {
					later, first = later || i > 0, first || i == 0
				}
			}
		})
		if later && !first {
			return name
		}
	}
	return ""
}

func queryBySuffix(c *check) {
	c.onEnd = func() {
		for i := range c.t.Patterns {
			p, r := &c.t.Patterns[i], c.t.requests[i]
			if name := c.suffix(p, r); name != "" {
				c.report(Finding{File: p.File, Pattern: p.ID, Column: name, Message: fmt.Sprintf("the pattern filters by %s, which the row key holds behind its first segment", name), Expected: "the segment at the front of a key"})
			}
		}
	}
}
