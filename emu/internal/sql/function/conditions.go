package function

import "github.com/tabletop-emu/tabletop/emu/internal/sql/value"

type argumentFunc = func(i int) (value.Value, error)

func conditionTable() []*Function {
	nullIf := fn("NULLIF", nullable("T1, T1 -> T1", func(_ *Context, a []value.Value) (value.Value, error) {
		if e := value.Equal(a[0], a[1]); !e.IsNull() && e.Bool() {
			return value.Null, nil
		}
		return a[0], nil
	}))
	nullIf.requires = "NULLIF"
	greatest, least := fn("GREATEST", sig("T1... -> T1", extreme(1))), fn("LEAST", sig("T1... -> T1", extreme(-1)))
	greatest.requires, least.requires = "GREATEST", "LEAST"
	caseValue := operator("CASE VALUE", caseSignatures("T1, ", evalCaseValue)...)
	caseValue.requires = "Equality"
	return []*Function{
		fn("IF", lazy("BOOL, T1, T1 -> T1", func(_ *Context, _ int, argument argumentFunc) (value.Value, error) {
			v, err := argument(0)
			if err != nil {
				return value.Null, err
			}
			if v.Bool() {
				return argument(1)
			}
			return argument(2)
		})),
		fn("IFNULL", lazy("T1, T1 -> T1", coalesce)),
		fn("COALESCE", lazy("T1... -> T1", coalesce)),
		nullIf,
		fn("IFERROR", lazy("T1, T1 -> T1", func(_ *Context, _ int, argument argumentFunc) (value.Value, error) {
			v, err := argument(0)
			if isEvaluation(err) {
				return argument(1)
			}
			return v, err
		})),
		fn("ISERROR", lazy("T1 -> BOOL", func(_ *Context, _ int, argument argumentFunc) (value.Value, error) {
			_, err := argument(0)
			if err != nil && !isEvaluation(err) {
				return value.Null, err
			}
			return value.Bool(err != nil), nil
		})),
		operator("CASE", caseSignatures("", evalCase)...),
		caseValue,
		greatest,
		least,
	}
}

func caseSignatures(operand string, eval func(*Context, int, argumentFunc) (value.Value, error)) []signature {
	if operand == "" {
		return []signature{lazy("BOOL..., T1..., T1 -> T1", eval)}
	}
	return []signature{lazy("T1, T1..., T2..., T2 -> T2", eval)}
}

func coalesce(_ *Context, n int, argument argumentFunc) (value.Value, error) {
	for i := range n {
		if v, err := argument(i); err != nil || !v.IsNull() {
			return v, err
		}
	}
	return value.Null, nil
}

// evalCase evaluates CASE WHEN. Its arguments are pairs of a condition and a value, and the value of
// ELSE last.
func evalCase(_ *Context, n int, argument argumentFunc) (value.Value, error) {
	for i := 0; i+1 < n; i += 2 {
		v, err := argument(i)
		if err != nil {
			return value.Null, err
		}
		if v.Bool() {
			return argument(i + 1)
		}
	}
	return argument(n - 1)
}

// evalCaseValue evaluates CASE with an operand, its first argument. The others are like those of
// evalCase, with a value to compare with the operand in place of a condition.
func evalCaseValue(_ *Context, n int, argument argumentFunc) (value.Value, error) {
	operand, err := argument(0)
	if err != nil {
		return value.Null, err
	}
	for i := 1; i+1 < n; i += 2 {
		v, err := argument(i)
		if err != nil {
			return value.Null, err
		}
		if e := value.Equal(operand, v); e.Bool() {
			return argument(i + 1)
		}
	}
	return argument(n - 1)
}

// extreme returns the greatest or least argument; NaN wins.
func extreme(sign int) Eval {
	return func(_ *Context, a []value.Value) (value.Value, error) {
		best := a[0]
		for _, v := range a {
			if value.IsNaN(v) {
				return v, nil
			}
			if value.Compare(v, best)*sign > 0 {
				best = v
			}
		}
		return best, nil
	}
}
