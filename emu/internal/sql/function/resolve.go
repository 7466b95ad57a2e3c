package function

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// cost is the price of coercions: smaller is a better signature.
type cost struct{ expressions, literals int }

func (c cost) less(o cost) bool {
	if c.expressions != o.expressions {
		return c.expressions < o.expressions
	}
	return c.literals < o.literals
}

func (c *cost) add(o cost) {
	c.expressions += o.expressions
	c.literals += o.literals
}

// coerce returns the cost of using an argument as a value of type t.
func coerce(a Arg, t value.Type) (c cost, ok bool) {
	if a.Part != "" || a.Lambda != nil {
		return c, false
	}
	if a.Origin == NullLiteral || a.Origin == EmptyArray && t.Kind() == value.KindArray {
		return c, true
	}
	if a.Type.Equal(t) {
		return c, true
	}
	from, to := a.Type.Kind(), t.Kind()
	switch {
	case to == value.KindFloat64 && (from == value.KindInt64 || from == value.KindFloat32):
		if a.Origin == Literal {
			return cost{literals: 1}, true
		}
		return cost{expressions: 1}, true
	case from == value.KindArray && to == value.KindArray && a.Origin == Literal:
		return coerce(Arg{Type: a.Type.Elem(), Origin: Literal}, t.Elem())
	case from == value.KindArray && to == value.KindArray:
		return c, equivalent(a.Type.Elem(), t.Elem())
	case from == value.KindStruct && to == value.KindStruct && len(a.Type.Fields()) == len(t.Fields()):
		for i, f := range t.Fields() {
			fieldCost, ok := coerce(a.field(i), f.Type)
			if !ok {
				return c, false
			}
			c.add(fieldCost)
		}
		return c, true
	case a.Origin == Literal || a.Origin == Parameter:
		switch {
		case from == value.KindString && to == value.KindBytes:
			return cost{literals: 1}, a.Origin == Literal
		case from == value.KindString && (to == value.KindDate || to == value.KindTimestamp || to == value.KindEnum),
			from == value.KindFloat64 && to == value.KindFloat32:
			return cost{literals: 2}, true
		case from == value.KindInt64 && (to == value.KindFloat32 || to == value.KindEnum):
			return cost{literals: 2}, true
		}
	}
	return c, false
}

// equivalent reports whether two types differ only in the names of fields.
func equivalent(a, b value.Type) bool {
	if a.Kind() != value.KindStruct || b.Kind() != value.KindStruct {
		return a.Equal(b)
	}
	return slices.EqualFunc(a.Fields(), b.Fields(), func(f, g value.Field) bool { return equivalent(f.Type, g.Type) })
}

// Supertype returns the type that all arguments can be used as: of CASE, of the elements of an
// array and the like. It is the zero Type if all arguments are NULL.
func Supertype(args []Arg) (t value.Type, ok bool) {
	if t, ok := structSupertype(args); ok {
		return t, true
	}
	var firm, soft []value.Type // of expressions, of literals
	for _, a := range args {
		switch {
		case a.Part != "" || a.Lambda != nil:
			return t, false
		case a.Origin == NullLiteral:
		case a.Origin == EmptyArray:
			soft = append(soft, value.ArrayOf(value.Int64Type))
		case a.Origin == Literal || a.Origin == Parameter:
			soft = append(soft, a.Type)
		default:
			firm = append(firm, a.Type)
		}
	}
	candidates := firm
	if len(firm)+len(soft) > 1 {
		candidates = append(candidates, value.Float64Type)
	}
	candidates = append(candidates, soft...)
	if len(firm)+len(soft) == 0 {
		return t, true
	}
	best, found := cost{}, false
	for i, candidate := range candidates {
		if isExtra := i == len(firm) && len(firm)+len(soft) > 1; isExtra && !anyNumeric(firm, soft) {
			continue
		}
		total, fits := cost{}, true
		for _, a := range args {
			c, ok := coerce(a, candidate)
			if fits = ok; !fits {
				break
			}
			total.add(c)
		}
		if fits && (!found || total.less(best)) {
			t, best, found = candidate, total, true
		}
	}
	return t, found
}

// structSupertype is Supertype for arguments that are STRUCTs with the same number of fields, or
// NULL. The names of fields are those of the first STRUCT.
func structSupertype(args []Arg) (t value.Type, ok bool) {
	var structs []Arg
	for _, a := range args {
		switch {
		case a.Origin == NullLiteral:
		case a.Type.Kind() != value.KindStruct || len(structs) > 0 && len(a.Type.Fields()) != len(structs[0].Type.Fields()):
			return t, false
		default:
			structs = append(structs, a)
		}
	}
	if len(structs) == 0 {
		return t, false
	}
	fields := slices.Clone(structs[0].Type.Fields())
	for i := range fields {
		parts := make([]Arg, len(structs))
		for n := range structs {
			parts[n] = structs[n].field(i)
		}
		of, ok := Supertype(parts)
		if !ok {
			return t, false
		}
		if !of.IsUnknown() {
			fields[i].Type = of
		}
	}
	return value.StructOf(fields...), true
}

func anyNumeric(sets ...[]value.Type) bool {
	for _, set := range sets {
		for _, t := range set {
			if t.IsNumeric() {
				return true
			}
		}
	}
	return false
}

// Resolve chooses the signature for arguments. The text of an error has no position.
func (f *Function) Resolve(args []Arg) (Call, error) {
	if f.missing {
		return Call{}, value.Unimplemented("%s is not implemented", f.Name)
	}
	if f.refusesNull && len(args) == 2 && (args[0].Origin == NullLiteral || args[1].Origin == NullLiteral) {
		return Call{}, value.InvalidArgument("Operands of %s cannot be literal NULL", f.Name)
	}
	var best matched
	var bestCost cost
	var bind func(*Call) error
	reasons := make([]string, len(f.signatures))
	for i := range f.signatures {
		s := &f.signatures[i]
		call, c, reason, err := s.match(args)
		if err != nil {
			return Call{}, err
		}
		if reasons[i] = reason; reason == "" && (bind == nil || c.less(bestCost)) {
			best, bestCost, bind = call, c, s.bind
		}
	}
	if bind == nil {
		return Call{}, f.noMatch(args, reasons)
	}
	if err := f.check(best.bound); err != nil {
		return Call{}, err
	}
	call := best.Call
	call.Function, call.args = f, args
	for i, a := range args {
		if a.Origin != Literal || a.Value.IsNull() || a.Type.Equal(call.Params[i]) {
			continue
		}
		if _, err := value.Cast(a.Value, a.Type, call.Params[i], time.UTC); err != nil {
			return Call{}, value.InvalidArgument("Could not cast literal %s to type %v", Quote(a.Value), call.Params[i])
		}
	}
	if err := bind(&call); err != nil {
		return Call{}, err
	}
	return call, nil
}

// check reports a T1 for which the function is not defined.
func (f *Function) check(b bindings) error {
	if f.requires == "" || b[1].IsUnknown() {
		return nil
	}
	ok := b[1].SupportsOrdering()
	if f.requires == "Equality" || f.requires == "IN" || f.requires == "IS DISTINCT FROM" || f.requires == "NULLIF" {
		ok = b[1].SupportsEquality()
	}
	if !ok {
		return value.InvalidArgument("%s is not defined for arguments of type %v", f.requires, b[1])
	}
	return nil
}

// matched is a call with the types of its templates.
type matched struct {
	Call
	bound bindings
}

// match compares arguments with the signature. If they do not match, it returns the reason.
func (s *signature) match(args []Arg) (call matched, total cost, reason string, err error) {
	params, ok := s.arrange(len(args))
	if !ok {
		return call, total, s.countReason(len(args)), nil
	}
	if reason := s.infer(&call.bound, params, args); reason != "" {
		return call, total, reason, nil
	}
	call.Params = make([]value.Type, len(args))
	for i, n := range params {
		a := args[i]
		switch {
		case n.isPart:
			if a.Part == "" {
				return call, total, fmt.Sprintf("Argument %d: expected a date part", i+1), nil
			}
		case n.kind == value.KindCallable:
			if a.Lambda == nil || a.Lambda.Params != len(n.args)-1 {
				return call, total, fmt.Sprintf("Argument %d: expected a lambda with %d arguments", i+1, len(n.args)-1), nil
			}
			if reason, err := resolveLambda(a.Lambda, n, &call.bound); reason != "" || err != nil {
				return call, total, fmt.Sprintf("Argument %d: %s", i+1, reason), err
			}
		default:
			t := n.fill(&call.bound)
			if n.isAny {
				t = a.anyType()
			}
			c, ok := coerce(a, t)
			if !ok {
				return call, total, fmt.Sprintf("Argument %d: Unable to coerce type %s to expected type %v", i+1, a.name(), t), nil
			}
			total.add(c)
			call.Params[i] = t
		}
	}
	call.Result = s.result.fill(&call.bound)
	return call, total, "", nil
}

// arrange returns the pattern of each of n arguments.
func (s *signature) arrange(n int) (params []pattern, ok bool) {
	repeated := 0
	required := 0
	for _, p := range s.params {
		switch {
		case p.repeated:
			repeated++
			required++
		case !p.optional:
			required++
		}
	}
	if n < required {
		return nil, false
	}
	extra := 0
	if repeated > 0 {
		if extra = n - len(s.params); extra < 0 {
			extra = 0
		}
		if extra%repeated != 0 {
			return nil, false
		}
		extra /= repeated
	}
	for i := 0; i < len(s.params); i++ {
		p := s.params[i]
		if !p.repeated {
			params = append(params, p)
			continue
		}
		group := s.params[i : i+repeated]
		for range extra + 1 {
			params = append(params, group...)
		}
		i += repeated - 1
	}
	if n > len(params) {
		return nil, false
	}
	return params[:n], true
}

func (s *signature) countReason(n int) string {
	least, most := 0, len(s.params)
	for _, p := range s.params {
		if !p.optional {
			least++
		}
		if p.repeated {
			most = -1
		}
	}
	switch {
	case most < 0:
		return fmt.Sprintf("Signature requires at least %s, found %s", arguments(least), arguments(n))
	case least == most:
		return fmt.Sprintf("Signature requires %s, found %s", arguments(least), arguments(n))
	case n < least:
		return fmt.Sprintf("Signature requires at least %s, found %s", arguments(least), arguments(n))
	}
	return fmt.Sprintf("Signature accepts at most %s, found %s", arguments(most), arguments(n))
}

func arguments(n int) string {
	if n == 1 {
		return "1 argument"
	}
	return fmt.Sprintf("%d arguments", n)
}

// infer binds the templates from the arguments that are not lambdas.
func (s *signature) infer(b *bindings, params []pattern, args []Arg) (reason string) {
	var evidence [len(b)][]Arg
	var mentioned [len(b)]bool
	for i, n := range params {
		if reason := gather(n, args[i], &evidence, &mentioned); reason != "" {
			return fmt.Sprintf("Argument %d: %s", i+1, reason)
		}
	}
	for t := 1; t < len(b); t++ {
		if !mentioned[t] {
			continue
		}
		common, ok := Supertype(evidence[t])
		if !ok {
			var names []string
			for _, a := range evidence[t] {
				names = append(names, a.name())
			}
			return fmt.Sprintf("Unable to find common supertype for templated argument <T%d>\n      Input types for <T%d>: {%s}", t, t, strings.Join(names, ", "))
		}
		if common.IsUnknown() {
			common = value.Int64Type
		}
		b[t] = common
	}
	return ""
}

// gather collects the arguments that decide the templates of a pattern.
func gather(n pattern, a Arg, evidence *[3][]Arg, mentioned *[3]bool) (reason string) {
	switch {
	case n.template > 0:
		if a.Part != "" || a.Lambda != nil {
			return "expected a value"
		}
		mentioned[n.template] = true
		evidence[n.template] = append(evidence[n.template], a)
	case a.Origin == NullLiteral || a.Origin == EmptyArray:
		mention(n, mentioned)
	case n.kind == value.KindArray:
		if a.Type.Kind() != value.KindArray {
			return fmt.Sprintf("Unable to coerce type %s to expected type %s", a.name(), n.name())
		}
		return gather(n.args[0], Arg{Type: a.Type.Elem(), Origin: a.Origin}, evidence, mentioned)
	case n.kind == value.KindMap:
		if a.Type.Kind() != value.KindMap {
			return fmt.Sprintf("Unable to coerce type %s to expected type %s", a.name(), n.name())
		}
		if reason := gather(n.args[0], Arg{Type: a.Type.Key()}, evidence, mentioned); reason != "" {
			return reason
		}
		return gather(n.args[1], Arg{Type: a.Type.Elem()}, evidence, mentioned)
	case n.kind == value.KindStruct:
		if a.Type.Kind() != value.KindStruct || len(a.Type.Fields()) != len(n.args) {
			return fmt.Sprintf("Unable to coerce type %s to expected type %s", a.name(), n.name())
		}
		for i, f := range a.Type.Fields() {
			if reason := gather(n.args[i], Arg{Type: f.Type, Origin: a.Origin}, evidence, mentioned); reason != "" {
				return reason
			}
		}
	}
	return ""
}

// mention marks the templates of a pattern, for an argument that does not decide them.
func mention(n pattern, mentioned *[3]bool) {
	mentioned[n.template] = true
	for _, inner := range n.args {
		mention(inner, mentioned)
	}
}

// resolveLambda resolves the body of a lambda, whose result may bind a template.
func resolveLambda(l *Lambda, n pattern, b *bindings) (reason string, err error) {
	last := len(n.args) - 1
	params := make([]value.Type, last)
	for i, p := range n.args[:last] {
		params[i] = p.fill(b)
	}
	got, err := l.Resolve(params)
	if err != nil {
		return "", err
	}
	if result := n.args[last]; result.template > 0 && b[result.template].IsUnknown() {
		if got.IsUnknown() {
			got = value.Int64Type // of a NULL
		}
		b[result.template] = got
		return "", nil
	}
	if want := n.args[last].fill(b); !got.IsUnknown() && !got.Equal(want) {
		return fmt.Sprintf("lambda body type %v cannot be coerced to expected type %v", got, want), nil
	}
	return "", nil
}

// anyType returns the type of an argument that is not coerced.
func (a Arg) anyType() value.Type {
	switch a.Origin { //nolint:exhaustive // the others have a type
	case NullLiteral:
		return value.Int64Type
	case EmptyArray:
		return value.ArrayOf(value.Int64Type)
	default:
		return a.Type
	}
}

// name returns the type of an argument as in error texts.
func (a Arg) name() string {
	switch {
	case a.Part != "":
		return "DATE_TIME_PART"
	case a.Lambda != nil:
		return "LAMBDA"
	case a.Origin == EmptyArray:
		return "ARRAY"
	}
	return a.Type.String()
}

// noMatch is the error for arguments that fit no signature.
func (f *Function) noMatch(args []Arg, reasons []string) error {
	if f.IsOperator && f.Name == "CASE" {
		return noMatchOfCase(args)
	}
	var b strings.Builder
	b.WriteString("No matching signature for ")
	switch {
	case f.IsOperator:
		b.WriteString("operator ")
	case f.Aggregate, f.Over != nil && f.Over.RefusesOrder: // percentiles
		b.WriteString("aggregate function ")
	case f.Window:
		b.WriteString("analytic function ")
	default:
		b.WriteString("function ")
	}
	b.WriteString(strings.TrimSuffix(f.Name, " VALUE")) // of CASE
	for i, a := range args {
		if i == 0 {
			b.WriteString(" for argument types: ")
		} else {
			b.WriteString(", ")
		}
		b.WriteString(a.name())
	}
	if len(args) == 0 {
		b.WriteString(" with no arguments")
	}
	for i := range f.signatures {
		fmt.Fprintf(&b, "\n  Signature: %s\n    %s", f.text(&f.signatures[i]), reasons[i])
	}
	return value.InvalidArgument("%s", b.String())
}

// noMatchOfCase is noMatch for pairs of a condition and a value, and the value of ELSE.
func noMatchOfCase(args []Arg) error {
	var conditions, values []string
	var all strings.Builder
	add := func(names []string, name string) []string {
		if slices.Contains(names, name) {
			return names
		}
		return append(names, name)
	}
	for i, a := range args {
		switch {
		case i%2 == 1:
			fmt.Fprintf(&all, " %s)", a.name())
		case i == len(args)-1:
			fmt.Fprintf(&all, " %s", a.name())
		default:
			fmt.Fprintf(&all, " (%s", a.name())
			if a.Type.Kind() != value.KindBool {
				conditions = add(conditions, a.name())
			}
			continue
		}
		if a.Origin != NullLiteral && a.Origin != EmptyArray {
			values = add(values, a.name())
		}
	}
	slices.Sort(conditions)
	slices.Sort(values)
	text := "No matching signature for operator CASE"
	if len(conditions) > 0 {
		text += "; all WHEN argument types must be BOOL but found: " + strings.Join(conditions, ", ")
	}
	if len(values) > 1 {
		text += "; all THEN/ELSE arguments must be coercible to a common type but found: " + strings.Join(values, ", ")
	}
	return value.InvalidArgument("%s; actual argument types (WHEN THEN) ELSE:%s", text, all.String())
}

// text returns a signature as in error texts.
func (f *Function) text(s *signature) string {
	names := make([]string, len(s.params))
	for i, n := range s.params {
		names[i] = n.String()
	}
	if !f.IsOperator {
		return f.Name + "(" + strings.Join(names, ", ") + ")"
	}
	switch {
	case strings.HasPrefix(f.Name, "["):
		return names[0] + "[" + strings.Join(names[1:], ", ") + "]"
	case strings.HasPrefix(f.Name, "IS ") && len(names) == 1:
		return names[0] + " " + f.Name
	case f.Name == "BETWEEN":
		return names[0] + " BETWEEN " + names[1] + " AND " + names[2]
	case len(names) == 1:
		if f.Name == "NOT" {
			return "NOT " + names[0]
		}
		return f.Name + names[0]
	case len(names) == 2:
		return names[0] + " " + f.Name + " " + names[1]
	}
	return strings.TrimSuffix(f.Name, " VALUE") + "(" + strings.Join(names, ", ") + ")"
}

// isEvaluation reports whether err is an error that SAFE turns into NULL.
func isEvaluation(err error) bool {
	var e *value.Error
	return errors.As(err, &e) && (e.Code == codes.OutOfRange || e.Code == codes.InvalidArgument)
}
