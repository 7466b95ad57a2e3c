package function

import "github.com/tabletop-emu/tabletop/emu/internal/sql/value"

func mapTable() []*Function {
	const entry = "STRUCT<key T1, value T2>"
	viewParameters := fn("VIEW_PARAMETERS", sig("STRING -> STRING", func(ctx *Context, a []value.Value) (value.Value, error) {
		v, ok := ctx.ViewParameters[a[0].Str()]
		if !ok {
			return value.Null, value.InvalidArgument("missing parameter %s", a[0].Str())
		}
		return value.String(v), nil
	}))
	cluster := fn("CLUSTER_ATTRIBUTE", sig("STRING -> STRING", func(ctx *Context, a []value.Value) (value.Value, error) {
		if a[0].Str() != "cluster_id" {
			return value.Null, value.InvalidArgument("unknown cluster attribute %s; want cluster_id", a[0].Str())
		}
		return value.String(ctx.Cluster), nil
	}))
	return []*Function{
		viewParameters, cluster,
		fn("MAP_KEYS", sig("MAP<T1, T2> -> ARRAY<T1>", func(_ *Context, a []value.Value) (value.Value, error) {
			return everySecond(a[0], 0), nil
		})),
		fn("MAP_VALUES", sig("MAP<T1, T2> -> ARRAY<T2>", func(_ *Context, a []value.Value) (value.Value, error) {
			return everySecond(a[0], 1), nil
		})),
		fn("MAP_ENTRIES", sig("MAP<T1, T2> -> ARRAY<"+entry+">", func(_ *Context, a []value.Value) (value.Value, error) {
			pairs := a[0].Elems()
			out := make([]value.Value, 0, len(pairs)/2)
			for ; len(pairs) > 1; pairs = pairs[2:] {
				out = append(out, value.Struct(pairs[0], pairs[1]))
			}
			return value.Array(out), nil
		})),
		fn("MAP_CONTAINS_KEY", nullable("MAP<T1, T2>, T1 -> BOOL", func(_ *Context, a []value.Value) (value.Value, error) {
			if a[0].IsNull() {
				return value.Null, nil
			}
			_, ok := a[0].Lookup(a[1])
			return value.Bool(ok), nil
		})),
		fn("MAP_EMPTY", sig("MAP<T1, T2> -> BOOL", func(_ *Context, a []value.Value) (value.Value, error) {
			return value.Bool(a[0].Len() == 0), nil
		})),
		fn("MAP_FROM_ARRAY", sig("ARRAY<"+entry+"> -> MAP<T1, T2>", func(_ *Context, a []value.Value) (value.Value, error) {
			pairs := make([]value.Value, 0, 2*a[0].Len())
			for _, v := range a[0].Elems() {
				if v.IsNull() {
					return value.Null, value.OutOfRange("MAP_FROM_ARRAY: an entry is NULL")
				}
				pairs = append(pairs, v.Elems()...)
			}
			m, twice, ok := value.MapOfPairs(pairs)
			if !ok {
				return value.Null, value.OutOfRange("Duplicate map keys are not allowed, but got multiple instances of key: %s", Quote(twice))
			}
			return m, nil
		})),
	}
}

func everySecond(m value.Value, from int) value.Value {
	pairs := m.Elems()
	out := make([]value.Value, 0, len(pairs)/2)
	for i := from; i < len(pairs); i += 2 {
		out = append(out, pairs[i])
	}
	return value.Array(out)
}
