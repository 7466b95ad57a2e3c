package analysis

import (
	"fmt"
	"strings"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/function"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/plan"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/syntax"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// windowing collects the calls with OVER of a SELECT or of a pipe operator.
type windowing struct {
	named map[string]*syntax.Window // the windows of WINDOW by name in lower case, with inherited clauses
	op    plan.Window
	specs map[string]int // index of each spec and call, by its text
	calls map[string]int
	// slots stand for the calls in expressions. Their numbers are negative until the width of the input is
	// known, since aggregates of later clauses come before them.
	slots []*plan.Slot
}

// windowing returns an empty collection with the windows of a WINDOW clause.
func (a *analyzer) windowing(windows []*syntax.NamedWindow) (*windowing, error) {
	w := &windowing{named: map[string]*syntax.Window{}, specs: map[string]int{}, calls: map[string]int{}}
	for _, n := range windows {
		name := strings.ToLower(n.Name.Text)
		if w.named[name] != nil {
			return nil, a.fail(n.Name.At, "Duplicate window alias %s", n.Name.Text)
		}
		of, err := w.inherit(a, n.Window)
		if err != nil {
			return nil, err
		}
		w.named[name] = of
	}
	return w, nil
}

// inherit returns own with the clauses that it inherits from the window that it names, if any.
func (w *windowing) inherit(a *analyzer, own *syntax.Window) (*syntax.Window, error) {
	if own.Name == nil {
		return own, nil
	}
	base := w.named[strings.ToLower(own.Name.Text)]
	switch {
	case base == nil:
		return nil, a.fail(own.Name.At, "Unrecognized window alias %s", own.Name.Text)
	case len(own.PartitionBy) > 0:
		return nil, a.fail(own.Name.At, "If a window has a PARTITION BY, it cannot reference a named window")
	case base.Frame != nil && (len(own.OrderBy) > 0 || own.Frame != nil):
		return nil, a.fail(own.Name.At, "If a window has an inline ORDER BY or window frame clause, it cannot reference another window that contains or inherits a window frame clause")
	case len(base.OrderBy) > 0 && len(own.OrderBy) > 0:
		return nil, a.fail(own.OrderAt, "If a window inherits an ORDER BY from its referenced window, it cannot have an inline ORDER BY")
	}
	of := *own
	of.Name, of.PartitionBy = nil, base.PartitionBy
	if len(own.OrderBy) == 0 {
		of.OrderBy, of.OrderAt = base.OrderBy, base.OrderAt
	}
	if own.Frame == nil {
		of.Frame = base.Frame
	}
	return &of, nil
}

// apply returns the operator that computes the calls over the rows of input, and sets the final
// numbers of their slots.
func (w *windowing) apply(input plan.Operator) plan.Operator {
	if len(w.op.Calls) == 0 {
		return input
	}
	width := widthOf(input)
	for _, slot := range w.slots {
		slot.N = width - 1 - slot.N
	}
	w.op.Input = input
	return &w.op
}

// isWindow reports whether an expression is the slot of a call with OVER, before apply.
func isWindow(e plan.Expr) bool {
	slot, ok := e.(*plan.Slot)
	return ok && slot.N < 0
}

// window analyzes a call with OVER.
func (a *analyzer) window(e *syntax.Call, s *scope) (typed, error) {
	switch {
	case s.windows == nil:
		return typed{}, a.fail(e.Pos(), "Analytic function not allowed in %s", s.clause)
	case len(e.OrderBy) > 0:
		return typed{}, a.fail(e.OrderAt, "ORDER BY in arguments is not supported on analytic functions")
	case e.Limit != nil:
		return typed{}, a.fail(e.LimitAt, "LIMIT in arguments is not supported on analytic functions")
	case e.Having != nil:
		return typed{}, a.fail(e.Having.At, "HAVING modifier is not supported on analytic functions")
	}
	f, ok := function.Lookup(dotted(e.Path))
	switch {
	case !ok:
		return typed{}, a.fail(e.Path[0].At, "Function not found: %s", dotted(e.Path))
	case e.Star && f.Name != "COUNT":
		return typed{}, a.fail(e.StarAt, "Argument * can only be used in COUNT(*)")
	}
	args, others, parts, err := a.arguments(e.Args, s)
	if err != nil {
		return typed{}, err
	}
	for _, arg := range args {
		if arg.Expr != nil && plan.Any(arg.Expr, isWindow) {
			return typed{}, a.fail(e.Pos(), "Analytic function cannot be an argument of another analytic function")
		}
	}
	if f.Over == nil {
		return typed{}, a.fail(e.Pos(), "Function %s does not support an OVER clause", f.Name)
	}
	t, err := a.resolved(e.Pos(), f, args, others, parts)
	if err != nil {
		return typed{}, err
	}
	call := t.Expr.(*plan.Call)
	if e.Safe {
		makeSafe(call)
	}
	if err := a.windowArguments(e, f, args); err != nil {
		return typed{}, err
	}
	out := plan.WindowCall{Call: call.Call, Args: call.Args, Distinct: e.Distinct}
	order, err := a.over(e, f, s, &out)
	if err != nil {
		return typed{}, err
	}
	switch {
	case e.Ignore == syntax.NullsUnspecified:
	case !f.Over.Nulls:
		return typed{}, a.fail(e.Pos(), "IGNORE NULLS and RESPECT NULLS are not allowed for analytic function %s", callText(e, f))
	case e.Ignore == syntax.IgnoreNulls:
		out.Nulls = function.IgnoreNulls
	default:
		out.Nulls = function.RespectNulls
	}
	return typed{Expr: s.windows.add(out, order, textOf(call))}, nil
}

// callText names the function of a call in errors.
func callText(e *syntax.Call, f *function.Function) string {
	if e.Star {
		return f.Name + "(*)"
	}
	return f.Name
}

// windowArguments checks the arguments that must be constant, not NULL or ordered.
func (a *analyzer) windowArguments(e *syntax.Call, f *function.Function, args []typed) error {
	fail := func(n int, must string) error {
		subject := "The argument"
		if len(args) > 1 {
			subject = fmt.Sprintf("Argument %d", n)
		}
		return a.fail(e.Args[n-1].Pos(), "%s to %s must %s", subject, f.Name, must)
	}
	isNull := func(n int) bool {
		c, ok := args[n-1].Expr.(*plan.Const)
		return ok && c.Value.IsNull()
	}
	over := f.Over
	if over.NotNull && isNull(1) && args[0].origin != function.EmptyArray {
		return fail(1, "be non-NULL")
	}
	if over.Ordered && !args[0].Type().SupportsOrdering() {
		return fail(1, fmt.Sprintf("support ordering; Type %v does not", args[0].Type()))
	}
	if n := over.Constant; n > 0 && n <= len(args) {
		c, literal := args[n-1].Expr.(*plan.Const)
		switch {
		case !isLiteral(args[n-1].Expr):
			return fail(n, "be a literal or query parameter")
		case isNull(n):
			return fail(n, "be non-NULL")
		case literal && over.Share && (c.Value.Number() < 0 || c.Value.Number() > 1):
			return fail(n, "be between 0 and 1")
		case literal && over.Counts && c.Value.Int64() < 1:
			return fail(n, "be at least 1")
		}
	}
	if n := over.Default; n > 0 && n <= len(args) && !plan.Constant(args[n-1].Expr) {
		return a.fail(e.Args[n-1].Pos(), "The third argument (the default expression) to %s must be constant", f.Name)
	}
	return nil
}

// isLiteral reports whether an expression is a literal or a parameter, maybe with another type.
func isLiteral(e plan.Expr) bool {
	switch e := e.(type) {
	case *plan.Const, *plan.Param:
		return true
	case *plan.Call:
		return e.IsCast() && isLiteral(e.Args[0])
	}
	return false
}

// over analyzes the window of a call. It sets the frame of out, and returns the spec.
func (a *analyzer) over(e *syntax.Call, f *function.Function, s *scope, out *plan.WindowCall) (spec plan.WindowSpec, err error) {
	if e.Over.Name != nil && s.unnamed != "" {
		return spec, a.fail(e.Over.Name.At, "Cannot reference a named window in %s", s.unnamed)
	}
	of, err := s.windows.inherit(a, e.Over)
	if err != nil {
		return spec, err
	}
	ordered, name := len(of.OrderBy) > 0, strings.ToLower(f.Name)
	switch {
	case f.Over.NeedsOrder && !ordered:
		return spec, a.fail(e.Over.At, "Window ORDER BY is required for analytic function %s", name)
	case f.Over.RefusesOrder && ordered:
		return spec, a.fail(of.OrderAt, "Window ORDER BY is not allowed for analytic function %s", name)
	case of.Frame != nil && !f.Over.Frames:
		return spec, a.fail(of.Frame.At, "Window framing clause is not allowed for analytic function %s", name)
	}
	if e.Distinct {
		if err := a.distinctOver(e, f, of, out); err != nil {
			return spec, err
		}
	}
	for _, x := range of.PartitionBy {
		t, err := a.windowKey(x, s.in("PARTITION BY"))
		if err != nil {
			return spec, err
		}
		if text, ok := parted(t.Type(), false); !ok {
			return spec, a.fail(x.Pos(), "Partitioning by expressions of type %s is not allowed", text)
		}
		spec.PartitionBy = append(spec.PartitionBy, t.Expr)
	}
	for _, x := range of.OrderBy {
		t, err := a.windowKey(x.Expr, s.in("Window ORDER BY"))
		if err != nil {
			return spec, err
		}
		if !t.Type().SupportsOrdering() {
			return spec, a.fail(x.Pos(), "Ordering by expressions of type %v is not allowed", t.Type().Kind())
		}
		spec.OrderBy = append(spec.OrderBy, sortKey(t.Expr, x.Direction))
	}
	switch {
	case of.Frame != nil:
		out.Frame, err = a.frame(of, spec.OrderBy, s)
	case f.Over.Frames:
		out.Frame = &plan.Frame{Range: ordered, Start: plan.Bound{Unbounded: true}, End: plan.Bound{Unbounded: !ordered}}
	}
	return spec, err
}

// distinctOver checks whether a call with OVER may have DISTINCT.
func (a *analyzer) distinctOver(e *syntax.Call, f *function.Function, of *syntax.Window, out *plan.WindowCall) error {
	switch {
	case e.Star:
		return a.fail(e.Pos(), "COUNT(*) cannot be used with DISTINCT")
	case len(out.Args) == 0:
		return a.fail(e.Pos(), "DISTINCT function call with no arguments not possible")
	}
	for _, arg := range out.Args {
		if text, ok := parted(arg.Type(), true); !ok {
			return a.fail(e.Pos(), "Analytic aggregate functions with DISTINCT cannot be used with arguments of type %s", text)
		}
	}
	switch {
	case !f.Aggregate:
		return a.fail(e.Pos(), "DISTINCT is not allowed for analytic function %s", strings.ToLower(f.Name))
	case len(of.OrderBy) > 0:
		return a.fail(of.OrderAt, "Window ORDER BY is not allowed if DISTINCT is specified")
	case of.Frame != nil:
		return a.fail(of.Frame.At, "Window framing clause is not allowed if DISTINCT is specified")
	}
	return nil
}

// parted reports whether PARTITION BY or, with floats, DISTINCT accepts values of a type.
// PARTITION BY rejects floats. text names the type in errors.
func parted(t value.Type, floats bool) (text string, ok bool) {
	switch t.Kind() { //nolint:exhaustive // the others are scalar
	case value.KindArray:
		text, ok = parted(t.Elem(), floats)
	case value.KindStruct:
		ok = true
		for _, f := range t.Fields() {
			if text, ok = parted(f.Type, floats); !ok {
				break
			}
		}
	default:
		return t.Kind().String(), t.SupportsGrouping() && (floats || !t.IsFloat())
	}
	return t.Kind().String() + " containing " + text, ok
}

// windowKey analyzes an expression of PARTITION BY or ORDER BY, which has no calls with OVER.
func (a *analyzer) windowKey(x syntax.Expr, s *scope) (typed, error) {
	s.windows = nil
	t, err := a.expr(x, s)
	if err != nil {
		return t, err
	}
	t.Expr = t.alone()
	return t, a.noWindow(x, t.Expr, s)
}

// noWindow returns an error if e, the analyzed form of x, uses a column of the SELECT list that
// has a call with OVER.
func (a *analyzer) noWindow(x syntax.Expr, e plan.Expr, s *scope) (err error) {
	if !plan.Any(e, isWindow) {
		return nil
	}
	syntax.Walk(x, func(n syntax.Node) bool {
		if p, ok := n.(*syntax.Path); ok && err == nil {
			if c := s.aliasOf(p); c != nil && plan.Any(c.expr, isWindow) {
				err = a.fail(p.Pos(), "Column %s contains an analytic function, which is not allowed in %s", p.Names[0].Text, s.clause)
			}
		}
		return err == nil
	})
	return err
}

// frame analyzes a frame. by are the sort keys of its window.
func (a *analyzer) frame(of *syntax.Window, by []plan.SortKey, s *scope) (*plan.Frame, error) {
	f := of.Frame
	end := syntax.Bound{At: f.Start.At, Kind: syntax.CurrentRow}
	if f.End != nil {
		end = *f.End
	}
	target := value.Int64Type
	if f.Range {
		if err := a.rangeFrame(of, by, end); err != nil {
			return nil, err
		}
		if len(by) > 0 {
			target = by[0].Expr.Type()
		}
	}
	out := &plan.Frame{Range: f.Range}
	var err error
	if out.Start, err = a.bound(f.Start, f.Range, target, s); err != nil {
		return nil, err
	}
	if out.End, err = a.bound(end, f.Range, target, s); err != nil {
		return nil, err
	}
	const starting, ending = "Starting window framing expression cannot be %s", "Ending window framing expression cannot be %s"
	start, last := boundNames[f.Start.Kind], boundNames[end.Kind]
	switch {
	case f.Start.Kind == syntax.UnboundedFollowing:
		return nil, a.fail(f.Start.At, starting, start)
	case f.Start.Kind == syntax.CurrentRow && end.Kind == syntax.Preceding:
		return nil, a.fail(end.At, starting+" when the ending window framing expression is %s", start, last)
	case f.Start.Kind == syntax.Following && f.End == nil:
		return nil, a.fail(f.Start.At, starting+" because the implicit ending window framing expression is %s", start, last)
	case f.Start.Kind == syntax.Following && (end.Kind == syntax.Preceding || end.Kind == syntax.CurrentRow):
		return nil, a.fail(end.At, ending+" when the starting window framing expression is %s", last, start)
	case end.Kind == syntax.UnboundedPreceding:
		return nil, a.fail(end.At, ending, last)
	}
	return out, nil
}

var boundNames = map[syntax.BoundKind]string{
	syntax.UnboundedPreceding: "UNBOUNDED PRECEDING", syntax.Preceding: "OFFSET PRECEDING", syntax.CurrentRow: "CURRENT ROW",
	syntax.Following: "OFFSET FOLLOWING", syntax.UnboundedFollowing: "UNBOUNDED FOLLOWING",
}

// rangeFrame checks that the sort keys of a window allow its RANGE frame.
func (a *analyzer) rangeFrame(of *syntax.Window, by []plan.SortKey, end syntax.Bound) error {
	f := of.Frame
	offsets := f.Start.Expr != nil || end.Expr != nil
	switch {
	case len(by) == 0 && f.End == nil:
		return a.fail(f.At, "A RANGE-based window without ORDER BY includes all rows in the window frame so only RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING syntax is supported")
	case len(by) == 0 && offsets:
		return a.fail(f.At, "A RANGE-based window including an OFFSET PRECEDING or OFFSET FOLLOWING window frame boundary requires an ORDER BY")
	case len(by) == 0 && (f.Start.Kind != syntax.UnboundedPreceding || end.Kind != syntax.UnboundedFollowing):
		return a.fail(f.At, "A RANGE-based window without ORDER BY cannot include a CURRENT ROW window frame boundary since all rows are included in the window frame. Remove the RANGE clause or use RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING")
	case offsets && len(by) != 1:
		return a.fail(of.OrderAt, "A RANGE-based window with OFFSET PRECEDING or OFFSET FOLLOWING boundaries must have exactly one ORDER BY key")
	case offsets && !by[0].Expr.Type().IsNumeric():
		return a.fail(of.OrderAt, "ORDER BY key must be numeric in a RANGE-based window with OFFSET PRECEDING or OFFSET FOLLOWING boundaries, but has type %v", by[0].Expr.Type().Kind())
	}
	return nil
}

// bound analyzes a bound of a frame, whose offset has the target type.
func (a *analyzer) bound(b syntax.Bound, isRange bool, target value.Type, s *scope) (plan.Bound, error) {
	out := plan.Bound{
		Unbounded: b.Kind == syntax.UnboundedPreceding || b.Kind == syntax.UnboundedFollowing,
		After:     b.Kind == syntax.Following || b.Kind == syntax.UnboundedFollowing,
	}
	if b.Expr == nil {
		return out, nil
	}
	inner := s.in("window frame")
	inner.windows = nil
	t, err := a.expr(b.Expr, inner)
	if err != nil {
		return out, err
	}
	switch {
	case !isLiteral(t.Expr):
		return out, a.fail(b.At, "Window framing expression must be a literal or parameter")
	case coercible(t.arg(), target):
	case isRange:
		return out, a.fail(b.At, "Window framing expression has type %v that cannot coerce to the type of the ORDER BY expression, which is %v", t.Type(), target)
	default:
		return out, a.fail(b.At, "Window framing expression for ROWS can only be of integer type, but has type %v", t.Type())
	}
	if out.Offset, err = a.coerce(t, target); err != nil {
		return out, a.failed(b.At, err)
	}
	c, ok := out.Offset.(*plan.Const)
	switch {
	case ok && c.Value.IsNull():
		return out, a.fail(b.At, "Window framing expression cannot be NULL")
	case ok && c.Value.Number() < 0:
		return out, a.fail(b.At, "Window framing expression cannot evaluate to a negative value")
	}
	return out, nil
}

// add returns the slot of a call. Equal calls over equal windows are computed once. text is the
// text of its function and arguments.
func (w *windowing) add(call plan.WindowCall, spec plan.WindowSpec, text string) plan.Expr {
	specText := listText(spec.PartitionBy)
	for _, k := range spec.OrderBy {
		specText += fmt.Sprintf("%v%s,", k.Order, textOf(k.Expr))
	}
	n, ok := w.specs[specText]
	if !ok {
		n = len(w.op.Specs)
		w.specs[specText] = n
		w.op.Specs = append(w.op.Specs, spec)
	}
	call.Spec = n
	text += fmt.Sprintf("%t%d/%d", call.Distinct, call.Nulls, n)
	if f := call.Frame; f != nil {
		text += fmt.Sprintf("%t", f.Range)
		for _, b := range []plan.Bound{f.Start, f.End} {
			text += fmt.Sprintf(" %t%t", b.Unbounded, b.After)
			if b.Offset != nil {
				text += textOf(b.Offset)
			}
		}
	}
	at, ok := w.calls[text]
	if !ok {
		at = len(w.op.Calls)
		w.calls[text] = at
		w.op.Calls = append(w.op.Calls, call)
	}
	slot := &plan.Slot{N: -1 - at, Of: call.Result}
	w.slots = append(w.slots, slot)
	return slot
}

// containsWindow reports whether an expression has a call with OVER.
func containsWindow(e syntax.Expr) bool {
	found := false
	syntax.Walk(e, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.Call); ok && call.Over != nil {
			found = true
		}
		return !found
	})
	return found
}
