package plan

import (
	"context"
	"time"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// Expr is an expression with a type. It is safe for concurrent use.
type Expr interface {
	Type() value.Type
	// Eval computes the value for a row. Errors are of type *[value.Error], or those of the context.
	Eval(env *Env) (value.Value, error)
}

// Env is what an expression can see. It is for one goroutine.
type Env struct {
	Context context.Context
	Row     []value.Value // the slots
	// Params and ViewParams are the parameters of the execution, by name in lower case.
	Params     map[string]value.Value
	ViewParams map[string]value.Value
	Now        time.Time // the time of the query: CURRENT_TIMESTAMP is the same in each row
	stack      []value.Value
}

// The expressions.
type (
	// Const is a constant.
	Const struct {
		Of    value.Type
		Value value.Value
	}

	// Param is a query parameter.
	Param struct {
		Name string // in lower case
		Of   value.Type
	}

	// ViewParam is VIEW_PARAMETERS('name').
	ViewParam struct{ Name string }

	// Slot is a slot of the row.
	Slot struct {
		N  int
		Of value.Type
	}

	// Field is a field of a STRUCT.
	Field struct {
		Expr Expr
		N    int
		Of   value.Type
	}

	// Cell is the value of a qualifier in a map of cells; NULL if it is absent. Both parts may be NULL.
	Cell struct {
		Map, Qualifier Expr
	}

	// Logical is AND or OR of operands, which are evaluated only as far as needed.
	Logical struct {
		Or   bool
		Args []Expr
	}

	// When is a condition and the result of the first condition that is TRUE.
	When struct{ Cond, Result Expr }

	// Case is CASE without an operand, IF, and other expressions that evaluate one of several parts.
	Case struct {
		Whens []When
		Else  Expr // never nil
		Of    value.Type
	}

	// Coalesce is the first argument that is not NULL.
	Coalesce struct {
		Args []Expr
		Of   value.Type
	}

	// Safe is NULL if its expression fails with an error of evaluation. Else evaluates another expression
	// then, if it is set.
	Safe struct{ Expr, Else Expr }

	// MakeArray is an array.
	MakeArray struct {
		Items []Expr
		Of    value.Type
	}

	// MakeStruct is a struct.
	MakeStruct struct {
		Items []Expr
		Of    value.Type
	}

	// Lambda is a function of N arguments. Its body sees them in the slots from Base on, after those of the
	// row around it.
	Lambda struct {
		Base, N int
		Body    Expr
	}
)

// Type returns the type of the constant.
func (e *Const) Type() value.Type { return e.Of }

// Eval returns the constant.
func (e *Const) Eval(*Env) (value.Value, error) { return e.Value, nil }

// Type returns the declared type.
func (e *Param) Type() value.Type { return e.Of }

// Eval returns the parameter.
func (e *Param) Eval(env *Env) (value.Value, error) { return env.Params[e.Name], nil }

// Type returns STRING.
func (e *ViewParam) Type() value.Type { return value.StringType }

// Eval returns the parameter. It fails without one, so that a view never shows all rows by mistake.
func (e *ViewParam) Eval(env *Env) (value.Value, error) {
	v, ok := env.ViewParams[e.Name]
	if !ok {
		return v, value.InvalidArgument("missing parameter: view_parameters does not contain key '%s'", e.Name)
	}
	return v, nil
}

// Type returns the type of the slot.
func (e *Slot) Type() value.Type { return e.Of }

// Eval returns the slot.
func (e *Slot) Eval(env *Env) (value.Value, error) { return env.Row[e.N], nil }

// Type returns the type of the field.
func (e *Field) Type() value.Type { return e.Of }

// Eval returns the field; NULL of a NULL.
func (e *Field) Eval(env *Env) (value.Value, error) {
	v, err := e.Expr.Eval(env)
	if err != nil || v.IsNull() {
		return value.Null, err
	}
	return v.Elems()[e.N], nil
}

// Type returns the type of the map's values.
func (e *Cell) Type() value.Type { return e.Map.Type().Elem() }

// Eval returns the value of the qualifier.
func (e *Cell) Eval(env *Env) (value.Value, error) {
	m, err := e.Map.Eval(env)
	if err != nil || m.IsNull() {
		return value.Null, err
	}
	q, err := e.Qualifier.Eval(env)
	if err != nil || q.IsNull() {
		return value.Null, err
	}
	v, _ := m.Lookup(q)
	return v, nil
}

// Type returns BOOL.
func (e *Logical) Type() value.Type { return value.BoolType }

// Eval evaluates operands until one decides. NULL does not decide, but prevails over the others.
func (e *Logical) Eval(env *Env) (value.Value, error) {
	out := value.Bool(!e.Or)
	for _, arg := range e.Args {
		v, err := arg.Eval(env)
		if err != nil {
			return v, err
		}
		if v.IsNull() {
			out = v
		} else if v.Bool() == e.Or {
			return v, nil
		}
	}
	return out, nil
}

// Type returns the common type of the results.
func (e *Case) Type() value.Type { return e.Of }

// Eval returns the result of the first condition that is TRUE.
func (e *Case) Eval(env *Env) (value.Value, error) {
	for _, w := range e.Whens {
		if v, err := w.Cond.Eval(env); err != nil {
			return v, err
		} else if IsTrue(v) {
			return w.Result.Eval(env)
		}
	}
	return e.Else.Eval(env)
}

// IsTrue reports whether a condition holds: NULL does not.
func IsTrue(v value.Value) bool { return !v.IsNull() && v.Bool() }

// Type returns the common type of the arguments.
func (e *Coalesce) Type() value.Type { return e.Of }

// Eval returns the first argument that is not NULL.
func (e *Coalesce) Eval(env *Env) (v value.Value, err error) {
	for _, arg := range e.Args {
		if v, err = arg.Eval(env); err != nil || !v.IsNull() {
			return v, err
		}
	}
	return v, nil
}

// Type returns the type of the expression.
func (e *Safe) Type() value.Type { return e.Expr.Type() }

// Eval returns the value of the expression, or of Else after an error.
func (e *Safe) Eval(env *Env) (value.Value, error) {
	depth := len(env.stack)
	v, err := e.Expr.Eval(env)
	if err == nil {
		return v, nil
	}
	env.stack = env.stack[:depth]
	if !value.Recoverable(err) {
		return v, err
	}
	if e.Else == nil {
		return value.Null, nil
	}
	return e.Else.Eval(env)
}

// Type returns the type of the array.
func (e *MakeArray) Type() value.Type { return e.Of }

// Eval makes the array.
func (e *MakeArray) Eval(env *Env) (value.Value, error) {
	items, err := evalAll(env, e.Items)
	return value.Array(items), err
}

// Type returns the type of the struct.
func (e *MakeStruct) Type() value.Type { return e.Of }

// Eval makes the struct.
func (e *MakeStruct) Eval(env *Env) (value.Value, error) {
	items, err := evalAll(env, e.Items)
	return value.Struct(items...), err
}

// evalAll evaluates expressions into a new list.
func evalAll(env *Env, exprs []Expr) ([]value.Value, error) {
	items := make([]value.Value, len(exprs))
	for i, item := range exprs {
		v, err := item.Eval(env)
		if err != nil {
			return nil, err
		}
		items[i] = v
	}
	return items, nil
}

// Type returns the unknown type: only the function that takes the lambda knows it.
func (e *Lambda) Type() value.Type { return value.Type{} }

// Eval returns the function, which sees the current row.
func (e *Lambda) Eval(env *Env) (value.Value, error) {
	row := make([]value.Value, e.Base+e.N)
	copy(row, env.Row)
	return value.Callable(func(args []value.Value) (value.Value, error) {
		copy(row[e.Base:], args)
		inner := *env
		inner.Row, inner.stack = row, nil
		return e.Body.Eval(&inner)
	}), nil
}

// push evaluates arguments onto the stack, and returns them. The caller pops them.
func (env *Env) push(args []Expr) ([]value.Value, error) {
	depth := len(env.stack)
	for _, arg := range args {
		v, err := arg.Eval(env)
		if err != nil {
			return nil, err
		}
		env.stack = append(env.stack, v)
	}
	return env.stack[depth:], nil
}
