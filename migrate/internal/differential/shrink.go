package differential

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

// maxShrinkRuns bounds the runs that shrink a failing set.
const maxShrinkRuns = 500

// shrink makes a failing set smaller while it fails in the same way: fewer items, then fewer
// attributes, then shorter values.
func (d *trial) shrink(ctx context.Context, items []attr.Item, kind report.Kind) ([]attr.Item, error) {
	runs := 0
	fails := func(items []attr.Item) (bool, error) {
		if runs++; runs > maxShrinkRuns {
			return false, nil
		}
		r, err := d.run(ctx, items)
		return err == nil && slices.ContainsFunc(r.Failures, func(f report.Failure) bool { return f.Kind == kind }), err
	}
	items, err := fewer(items, 1, fails)
	if err != nil {
		return nil, err
	}
	for again := true; again; {
		again = false
		for i := range items {
			for smaller := range d.smaller(items[i]) {
				set := slices.Clone(items)
				set[i] = smaller
				ok, err := fails(set)
				if err != nil {
					return nil, err
				}
				if ok {
					items, again = set, true
					break
				}
			}
		}
	}
	return items, nil
}

// fewer removes elements from a list while it still fails, down to least elements.
func fewer[T any](list []T, least int, fails func([]T) (bool, error)) ([]T, error) {
	for part := max(1, len(list)/2); part > 0; part /= 2 {
		for at := 0; at < len(list) && len(list) > least; {
			end := min(at+part, len(list), at+len(list)-least)
			ok, err := fails(slices.Delete(slices.Clone(list), at, end))
			if err != nil {
				return nil, err
			}
			if ok {
				list = slices.Delete(slices.Clone(list), at, end)
			} else {
				at += part
			}
		}
	}
	return list, nil
}

// smaller returns the items that are one step smaller than item.
func (d *trial) smaller(item attr.Item) iter.Seq[attr.Item] {
	isKey := d.mapping.Key().IsKey
	return func(yield func(attr.Item) bool) {
		names := slices.Sorted(maps.Keys(item))
		for _, name := range names {
			if isKey(name) {
				continue
			}
			with := maps.Clone(item)
			delete(with, name)
			if !yield(with) {
				return
			}
		}
		for _, name := range names {
			for v := range smallerValues(item[name]) {
				if isKey(name) && v.Str == "" {
					continue
				}
				with := maps.Clone(item)
				with[name] = v
				if !yield(with) {
					return
				}
			}
		}
	}
}

// smallerValues returns the values of the same type that are one step smaller.
func smallerValues(v attr.Value) iter.Seq[attr.Value] {
	return func(yield func(attr.Value) bool) {
		switch v.Type {
		case attr.S, attr.B:
			runes := bytes.Runes([]byte(v.Str))
			if v.Type == attr.B {
				runes = nil
				for i := range len(v.Str) {
					runes = append(runes, rune(v.Str[i]))
				}
			}
			text := func(runes []rune) attr.Value {
				if v.Type == attr.S {
					return attr.String(string(runes))
				}
				var b []byte
				for _, r := range runes {
					b = append(b, byte(r))
				}
				return attr.Binary(b)
			}
			for part := len(runes); part > 0; part /= 2 {
				for at := 0; at+part <= len(runes); at += part {
					if len(runes) > 64 && part < len(runes)/8 {
						return
					}
					if !yield(text(slices.Delete(slices.Clone(runes), at, at+part))) {
						return
					}
				}
			}
		case attr.N:
			for _, text := range []string{"0", "1"} {
				if len(v.Str) > 1 && !yield(attr.Value{Type: attr.N, Str: text}) {
					return
				}
			}
		case attr.SS, attr.NS, attr.BS:
			for i := range v.Set {
				if len(v.Set) > 1 && !yield(attr.SetOf(v.Type, slices.Delete(slices.Clone(v.Set), i, i+1)...)) {
					return
				}
			}
		case attr.L:
			for i := range v.List {
				if !yield(attr.Value{Type: attr.L, List: slices.Delete(slices.Clone(v.List), i, i+1)}) {
					return
				}
			}
			for i := range v.List {
				for e := range smallerValues(v.List[i]) {
					list := slices.Clone(v.List)
					list[i] = e
					if !yield(attr.Value{Type: attr.L, List: list}) {
						return
					}
				}
			}
		case attr.M:
			for _, k := range slices.Sorted(maps.Keys(v.Map)) {
				m := maps.Clone(v.Map)
				delete(m, k)
				if !yield(attr.MapOf(m)) {
					return
				}
			}
			for _, k := range slices.Sorted(maps.Keys(v.Map)) {
				for e := range smallerValues(v.Map[k]) {
					m := maps.Clone(v.Map)
					m[k] = e
					if !yield(attr.MapOf(m)) {
						return
					}
				}
			}
		case attr.BOOL, attr.NULL, attr.Absent:
		}
	}
}
