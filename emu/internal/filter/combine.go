package filter

import (
	"slices"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// chain pipes each filter's output into the next.
type chain struct{ filters []node }

func (d *decoder) chain(m *btpb.RowFilter_Chain, at place) (node, error) {
	filters, err := d.list(m.GetFilters(), at)
	if err != nil {
		return nil, err
	}
	// "A Chain may have no more than one sub-filter which contains a
	// apply_label_transformer" (data.proto).
	labels := 0
	for _, f := range filters {
		if f.hasLabel() {
			labels++
		}
	}
	if labels > 1 {
		return nil, at.errorf("%d of the filters contain an apply_label_transformer; at most one filter of a chain may", labels)
	}
	return chain{filters}, nil
}

// list decodes the filters of a chain or interleave. Production rejects fewer
// than two (google-cloud-go#4095).
func (d *decoder) list(filters []*btpb.RowFilter, at place) ([]node, error) {
	if len(filters) < 2 {
		return nil, at.errorf("has %d filters; expected at least 2", len(filters))
	}
	nodes := make([]node, len(filters))
	for i, f := range filters {
		var err error
		if nodes[i], err = d.decode(f, at.element("filters", i)); err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

func (n chain) link(l *linker, next stage) stage {
	for i := len(n.filters) - 1; i >= 0; i-- {
		next = n.filters[i].link(l, next)
	}
	return next
}

func (n chain) levels(decided int) int {
	for _, f := range n.filters {
		decided = f.levels(decided)
	}
	return decided
}

func (n chain) rows() RowSet {
	rows := AllRows()
	for _, f := range n.filters {
		rows = rows.Intersect(f.rows())
		if f.hasSink() {
			// Later filters do not see the cells that went into the sink.
			break
		}
	}
	return rows
}

func (n chain) onlyFamily() string {
	for _, f := range n.filters {
		if name := f.onlyFamily(); name != "" || f.hasSink() {
			return name
		}
	}
	return ""
}

func (n chain) hasSink() bool  { return slices.ContainsFunc(n.filters, node.hasSink) }
func (n chain) hasLabel() bool { return slices.ContainsFunc(n.filters, node.hasLabel) }

// interleave gives each filter the same input and merges the outputs in order,
// with duplicates.
type interleave struct{ filters []node }

func (d *decoder) interleave(m *btpb.RowFilter_Interleave, at place) (node, error) {
	filters, err := d.list(m.GetFilters(), at)
	if err != nil {
		return nil, err
	}
	return interleave{filters}, nil
}

func (n interleave) link(l *linker, next stage) stage {
	s := make(interleaveStage, len(n.filters))
	for i, f := range n.filters {
		s[i] = f.link(l, next)
	}
	return s
}

func (n interleave) levels(decided int) int {
	most := decided
	for _, f := range n.filters {
		most = max(most, f.levels(decided))
	}
	return most
}

// onlyFamily ignores the branches: production's behavior there is unknown.
func (n interleave) onlyFamily() string { return "" }

func (n interleave) rows() RowSet {
	var rows RowSet
	for _, f := range n.filters {
		rows = rows.Union(f.rows())
	}
	return rows
}

func (n interleave) hasSink() bool  { return slices.ContainsFunc(n.filters, node.hasSink) }
func (n interleave) hasLabel() bool { return slices.ContainsFunc(n.filters, node.hasLabel) }

type interleaveStage []stage

func (s interleaveStage) push(r *run, c *Cell) hint {
	h := hint{to: nextRow}
	for _, branch := range s {
		if r.copies++; r.copies > hardMaxCopies && r.err == nil {
			r.err = ErrTooManyCopies
		}
		if r.err != nil {
			return h
		}
		h = nearest(h, branch.push(r, c))
	}
	return h
}

// condition pushes a row through one branch if the predicate emits a cell for
// it, else through the other. A condition is decided in pass level-1 and acts
// in all later ones. Conditions in its predicate or before it in a chain have
// lower levels; conditions after it or in its branches have higher ones.
type condition struct {
	predicate, onTrue, onFalse node
	level                      int
}

func (d *decoder) condition(m *btpb.RowFilter_Condition, at place) (node, error) {
	at.condition = true
	n := &condition{predicate: pass{}, onTrue: block{}, onFalse: block{}}
	for _, b := range []struct {
		name string
		f    *btpb.RowFilter
		to   *node
	}{
		{"predicate_filter", m.GetPredicateFilter(), &n.predicate},
		{"true_filter", m.GetTrueFilter(), &n.onTrue},
		{"false_filter", m.GetFalseFilter(), &n.onFalse},
	} {
		if b.f == nil {
			continue
		}
		var err error
		if *b.to, err = d.decode(b.f, at.in(b.name)); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func (n *condition) levels(decided int) int {
	n.level = n.predicate.levels(decided) + 1
	return max(n.onTrue.levels(n.level), n.onFalse.levels(n.level))
}

func (n *condition) link(l *linker, next stage) stage {
	s := &conditionStage{level: n.level}
	s.predicate = n.predicate.link(l, decided{s})
	s.onTrue = n.onTrue.link(l, next)
	s.onFalse = n.onFalse.link(l, next)
	l.p.perRow = append(l.p.perRow, s)
	return s
}

func (n *condition) onlyFamily() string { return "" }

func (n *condition) rows() RowSet  { return n.onTrue.rows().Union(n.onFalse.rows()) }
func (n *condition) hasSink() bool { return false }
func (n *condition) hasLabel() bool {
	return n.predicate.hasLabel() || n.onTrue.hasLabel() || n.onFalse.hasLabel()
}

type conditionStage struct {
	level                      int
	predicate, onTrue, onFalse stage
	matched                    bool
}

func (s *conditionStage) resetRow() { s.matched = false }

func (s *conditionStage) push(r *run, c *Cell) hint {
	switch {
	case r.pass < s.level:
		if s.matched {
			return hint{to: nextRow}
		}
		return s.predicate.push(r, c)
	case s.matched:
		return s.onTrue.push(r, c)
	default:
		return s.onFalse.push(r, c)
	}
}

// decided receives the output of a predicate.
type decided struct{ s *conditionStage }

func (d decided) push(r *run, _ *Cell) hint {
	// In earlier passes the predicate runs only for the conditions inside it.
	if r.pass == d.s.level-1 {
		d.s.matched = true
	}
	return hint{to: nextRow}
}

// sink copies its input to the filter's output and yields nothing.
type sink struct{ leaf }

func decodeSink(value bool, at place) (node, error) {
	if at.condition {
		return nil, at.errorf("sink cannot be nested in a condition filter")
	}
	return onlyTrue(sink{}, value, at)
}

func (sink) hasSink() bool             { return true }
func (sink) link(*linker, stage) stage { return output{} }
