package infer

import (
	"context"
	"fmt"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/extsort"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// key returns the declared key with its types or, if none is declared, a guess.
func (in *Inferred) key(ctx context.Context, t *source.Table, p *profile, o Options) (attr.KeySchema, error) {
	key := t.Key
	if key.Hash.Name != "" {
		why := t.KeyFrom
		for _, k := range []*attr.KeyAttr{&key.Hash, &key.Range} {
			switch {
			case k.Name == "" || k.Type != attr.Absent:
			case p.items == 0:
				k.Type = attr.S
				why = t.KeyFrom + "; no item shows its type: S is assumed"
			default:
				if k.Type = p.keyType(k.Name); k.Type == attr.Absent {
					return key, mixedKey(t, k.Name)
				}
			}
		}
		in.chose("key", source.KeyText(key), "%s", why)
		return key, nil
	}
	if p.items == 0 {
		return key, source.Damaged(source.KeyUnknown, source.Position{File: t.File}, nil, "the input has no items and declares no key: name the key (--key PK[,SK])")
	}
	if hash, sort := p.named[0], p.named[1]; p.pairs != nil && p.keyType(hash) != attr.Absent && p.keyType(sort) != attr.Absent {
		key.Hash, key.Range = attr.KeyAttr{Name: hash, Type: p.keyType(hash)}, attr.KeyAttr{Name: sort, Type: p.keyType(sort)}
		if len(p.shared) > 0 {
			return key, sharedPair(t, p)
		}
		in.guessed(t, key, bothOf(p.items))
		return key, nil
	}
	for _, name := range p.order {
		typ := p.keyType(name)
		if typ == attr.Absent || len(p.attrs[name].repeats) > 0 {
			continue
		}
		key := attr.KeySchema{Hash: attr.KeyAttr{Name: name, Type: typ}}
		unique := p.attrs[name].seen != nil
		if !unique {
			var err error
			if unique, err = isUnique(ctx, t, name, o); err != nil {
				return key, err
			}
		}
		if unique {
			in.guessed(t, key, "this is the first S, N or B attribute that "+eachHas(p.items))
			return key, nil
		}
	}
	return attr.KeySchema{}, noKey(t, p)
}

// guessed records the choice of a key that the input does not declare, and warns of it. why
// completes the reason.
func (in *Inferred) guessed(t *source.Table, key attr.KeySchema, why string) {
	in.chose("key", source.KeyText(key), "a guess: the input declares no key; %s", why)
	in.Warnings = append(in.Warnings, fmt.Sprintf("table %s: the key %s is a guess, since the input declares none: declare it with --key PK[,SK], or with --table-schema FILE, which also declares indexes",
		t.Name, source.KeyText(key)))
}

func eachHas(items int64) string {
	if items == 1 {
		return "the one item has"
	}
	return fmt.Sprintf("each of the %d items has with a different value", items)
}

func bothOf(items int64) string {
	if items == 1 {
		return "the only item has attributes with these names"
	}
	return fmt.Sprintf("each of the %d items has attributes with these names, and their values differ", items)
}

// sharedPair returns an error with two items that have the same values in the attributes named
// like a key.
func sharedPair(t *source.Table, p *profile) error {
	var first *source.Entry
	for e, err := range t.Entries() {
		switch {
		case err != nil:
			return err
		case p.pair(e) != p.shared[0]:
		case first == nil:
			first = &e
		default:
			return source.Damaged(source.KeyUnknown, e.Position, nil, "the input declares no key, and %s and %s, which are named like a key, have the same values here as at %s, %s and %s: name the key (--key PK[,SK]), or remove one of the items",
				p.named[0], p.named[1], first.Position, phrase.Clip(e.Item[p.named[0]].Str), phrase.Clip(e.Item[p.named[1]].Str))
		}
	}
	return source.Damaged(source.KeyUnknown, source.Position{File: t.File}, nil, "the input declares no key, and %s and %s, which are named like a key, have the same values in two items: name the key (--key PK[,SK])", p.named[0], p.named[1])
}

// mixedKey returns an error with the first item whose key attribute has a different type
// from earlier items.
func mixedKey(t *source.Table, name string) error {
	var first *source.Entry
	for e, err := range t.Entries() {
		if err != nil {
			return err
		}
		if first == nil {
			first = &e
			continue
		}
		if v := e.Item[name]; v.Type != first.Item[name].Type {
			return source.Damaged(source.KeyTypeMismatch, e.Position, nil, "key attribute %q is of type %s here, but of type %s at %s: a key attribute must have one type",
				name, v.Type, first.Item[name].Type, first.Position)
		}
	}
	return source.Damaged(source.KeyTypeMismatch, source.Position{File: t.File}, nil, "key attribute %q does not have the same type in every item: want S, N or B", name)
}

// noKey returns an error that lists why each attribute cannot be the key, with the lines.
func noKey(t *source.Table, p *profile) error {
	var at source.Position
	var reasons []string
	excluded := map[string]bool{}
	seen := map[string]map[extsort.Hash]source.Position{} // of repeated values, by attribute; zero until the first occurrence
	for _, name := range p.order[:min(len(p.order), maxCandidates)] {
		seen[name] = map[extsort.Hash]source.Position{}
		for _, h := range p.attrs[name].repeats {
			seen[name][h] = source.Position{}
		}
	}
	exclude := func(e source.Entry, name, format string, args ...any) {
		if excluded[name] = true; len(reasons) == 0 {
			at = e.Position
		}
		reasons = append(reasons, fmt.Sprintf("%q ", name)+fmt.Sprintf(format, args...))
	}
	for e, err := range t.Entries() {
		if err != nil {
			return err
		}
		if len(e.Item) == 0 {
			return source.Damaged(source.KeyUnknown, e.Position, nil, "the item is empty, and the input declares no key: name the key (--key PK[,SK]), or remove the item")
		}
		for _, name := range p.order[:min(len(p.order), maxCandidates)] {
			v, ok := e.Item[name]
			a := p.attrs[name]
			switch {
			case excluded[name] || a == nil:
			case !ok:
				exclude(e, name, "is missing at %s", e.Position)
			case v.Type > attr.B:
				exclude(e, name, "is of type %s at %s", v.Type, e.Position)
			case v.Type != attr.N && v.Str == "":
				exclude(e, name, "is empty at %s", e.Position)
			case p.keyType(name) == attr.Absent && v.Type != a.types.majority().typ:
				exclude(e, name, "is of type %s at %s, and of type %s elsewhere", v.Type, e.Position, a.types.majority().typ)
			default:
				h := extsort.HashOf([]byte(v.Str))
				first, repeated := seen[name][h]
				switch {
				case !repeated:
				case first == (source.Position{}):
					seen[name][h] = e.Position
				default:
					exclude(e, name, "has the same value at %s and %s", first, e.Position)
				}
			}
		}
	}
	if len(reasons) == 0 {
		return source.Damaged(source.KeyUnknown, source.Position{File: t.File}, nil, "the input declares no key, and no S, N or B attribute is unique in all items: name the key (--key PK[,SK])")
	}
	return source.Damaged(source.KeyUnknown, at, nil, "the input declares no key, and none can be inferred (%s): name the key (--key PK[,SK])", strings.Join(reasons, "; "))
}

// isUnique reports whether no two items have the same value of an attribute.
func isUnique(ctx context.Context, t *source.Table, name string, o Options) (bool, error) {
	seen := extsort.NewSet(o.TempDir)
	defer seen.Close()
	for e, err := range entriesOf(ctx, t, o) {
		if err != nil {
			return false, err
		}
		if err := seen.Add(extsort.HashOf([]byte(e.Item[name].Str))); err != nil {
			return false, err
		}
	}
	_, repeated, _, err := seen.Finish(1, 1)
	return len(repeated) == 0, err
}
