package function

import (
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

func subscriptTable() []*Function {
	key := sig("MAP<T1, T2>, T1 -> T2", func(_ *Context, a []value.Value) (value.Value, error) {
		v, _ := a[0].Lookup(a[1])
		return v, nil
	})
	at := func(base int64, safe bool) signature {
		return sig("ARRAY<T1>, INT64 -> T1", func(_ *Context, a []value.Value) (value.Value, error) {
			elems, n := a[0].Elems(), a[1].Int64()
			if i := n - base; n >= base && i < int64(len(elems)) {
				return elems[i], nil
			}
			if safe {
				return value.Null, nil
			}
			return value.Null, value.OutOfRange("Array index %d is out of bounds", n)
		})
	}
	return []*Function{
		operator("[]", at(0, false), key),
		operator("[OFFSET]", at(0, false)),
		operator("[ORDINAL]", at(1, false)),
		operator("[SAFE_OFFSET]", at(0, true)),
		operator("[SAFE_ORDINAL]", at(1, true)),
		operator("[SAFE_KEY]", key),
	}
}

// Field resolves the access to a field of a STRUCT by its name, in any letter case.
func Field(t value.Type, name string) (Call, error) {
	i, count, ok := t.Field(name)
	switch {
	case t.Kind() != value.KindStruct:
		return Call{}, value.InvalidArgument("Cannot access field %s on a value with type %v", name, t)
	case count > 1:
		return Call{}, value.InvalidArgument("Field name %s is ambiguous", name)
	case !ok:
		return Call{}, value.InvalidArgument("Field name %s does not exist in %v", name, t)
	}
	return Call{
		Params: []value.Type{t}, Result: t.Fields()[i].Type,
		Eval: func(_ *Context, a []value.Value) (value.Value, error) {
			if a[0].IsNull() {
				return value.Null, nil
			}
			return a[0].Elems()[i], nil
		},
	}, nil
}

// Cast resolves CAST and, if isSafe, SAFE_CAST of an argument.
func Cast(a Arg, to value.Type, isSafe bool) (Call, error) {
	cast, ok := value.Caster(a.Type, to)
	if a.Origin == EmptyArray && to.Kind() == value.KindArray {
		ok = true
	}
	if !ok {
		return Call{}, value.InvalidArgument("Invalid cast from %s to %v", a.name(), to)
	}
	c := Call{Params: []value.Type{a.Type}, Result: to, Eval: func(ctx *Context, args []value.Value) (value.Value, error) {
		if args[0].IsNull() || cast == nil {
			return args[0], nil
		}
		return cast(args[0], ctx.zone())
	}}
	if isSafe {
		return c.Safe(), nil
	}
	return c, nil
}
