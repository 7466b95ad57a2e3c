package function

import (
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

func subscriptTable() []*Function {
	key := nullable("MAP<T1, T2>, T1 -> T2", func(_ *Context, a []value.Value) (value.Value, error) {
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
