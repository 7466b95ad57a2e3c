package infer

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/extsort"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// profile is the result of one pass over the data.
type profile struct {
	items   int64
	order   []string // names of the first item's attributes, in the order of the file
	attrs   map[string]*attrProfile
	dropped bool // some attributes were not counted, since there are too many
	longest int  // elements of the longest top-level list

	named  [2]string      // attributes of the first item called PK and SK, if it has both
	pairs  *extsort.Set   // the values of named; nil without
	shared []extsort.Hash // repeated pairs
}

type attrProfile struct {
	types   typeCounts
	keys    map[string]*typeCounts // of maps, by key
	values  typeCounts             // of maps, over all keys
	seen    *extsort.Set           // values of a candidate key
	repeats []extsort.Hash         // repeated values of a candidate key
	empty   bool                   // a value is "", which a key cannot be
}

// typeCounts counts values by type, in order of first occurrence.
type typeCounts []typeCount

type typeCount struct {
	typ   attr.Type
	n     int64
	first source.Position // of a value of that type
}

func (c *typeCounts) add(typ attr.Type, at source.Position) {
	i := slices.IndexFunc(*c, func(t typeCount) bool { return t.typ == typ })
	if i < 0 {
		i = len(*c)
		*c = append(*c, typeCount{typ: typ, first: at})
	}
	(*c)[i].n++
}

// majority returns the most frequent type with its count; among equal counts, the one with
// the lowest attr.Type.
func (c typeCounts) majority() (best typeCount) {
	for _, t := range c {
		if t.n > best.n || t.n == best.n && t.typ < best.typ {
			best = t
		}
	}
	return best
}

func profileOf(ctx context.Context, t *source.Table, o Options) (*profile, error) {
	p := &profile{attrs: map[string]*attrProfile{}}
	for e, err := range entriesOf(ctx, t, o) {
		if err != nil {
			return p, err
		}
		p.items++
		// The order depends only on the input, so that the same attributes are counted in each
		// run if there are too many. The attributes of the first item come first, since keys
		// are chosen among them.
		names := slices.Sorted(maps.Keys(e.Item))
		if p.items == 1 {
			names = e.Names()
		}
		for _, name := range names {
			p.add(name, e.Item[name], e.Position)
		}
		if p.items == 1 {
			p.order = names
			if t.Key.Hash.Name == "" {
				p.candidates(o.TempDir)
			}
		}
		if p.pairs != nil {
			if err := p.pairs.Add(p.pair(e)); err != nil {
				return p, err
			}
		}
		for _, name := range p.order[:min(len(p.order), maxCandidates)] {
			if a := p.attrs[name]; a.seen != nil {
				if err := a.seen.Add(extsort.HashOf([]byte(e.Item[name].Str))); err != nil {
					return p, err
				}
			}
		}
	}
	if p.pairs != nil {
		var err error
		if _, p.shared, _, err = p.pairs.Finish(1, 1); err != nil {
			return p, err
		}
	}
	for _, a := range p.attrs {
		if a.seen == nil {
			continue
		}
		_, twice, _, err := a.seen.Finish(maxRepeats, 1)
		if err != nil {
			return p, err
		}
		a.repeats = twice
	}
	return p, nil
}

// candidates starts to record the values of the first attributes of the first item, and of a
// pair named PK and SK, so that the profile shows whether they are unique.
func (p *profile) candidates(tempDir string) {
	for _, name := range p.order[:min(len(p.order), maxCandidates)] {
		if p.keyType(name) != attr.Absent {
			p.attrs[name].seen = extsort.NewSet(tempDir)
		}
	}
	for i, want := range []string{"PK", "SK"} {
		at := slices.IndexFunc(p.order, func(name string) bool { return strings.EqualFold(name, want) && p.keyType(name) != attr.Absent })
		if at < 0 {
			return
		}
		p.named[i] = p.order[at]
	}
	p.pairs = extsort.NewSet(tempDir)
}

// pair hashes the values of the named attributes of an item.
func (p *profile) pair(e source.Entry) extsort.Hash {
	return extsort.HashOf([]byte(e.Item[p.named[0]].Str), []byte(e.Item[p.named[1]].Str))
}

func (p *profile) close() {
	if p.pairs != nil {
		p.pairs.Close()
	}
	for _, a := range p.attrs {
		if a.seen != nil {
			a.seen.Close()
		}
	}
}

func (p *profile) add(name string, v attr.Value, at source.Position) {
	a := p.attrs[name]
	if a == nil {
		if len(p.attrs) >= maxSchemaNames {
			p.dropped = true
			return
		}
		a = &attrProfile{}
		p.attrs[name] = a
	}
	a.types.add(v.Type, at)
	switch v.Type {
	case attr.S, attr.B:
		a.empty = a.empty || v.Str == ""
	case attr.L:
		p.longest = max(p.longest, len(v.List))
	case attr.M:
		if a.keys == nil {
			a.keys = map[string]*typeCounts{}
		}
		for _, key := range slices.Sorted(maps.Keys(v.Map)) {
			elem := v.Map[key]
			a.values.add(elem.Type, at)
			if a.keys[key] == nil {
				if len(a.keys) >= maxSchemaNames {
					continue
				}
				a.keys[key] = &typeCounts{}
			}
			a.keys[key].add(elem.Type, at)
		}
	case attr.Absent, attr.N, attr.BOOL, attr.NULL, attr.SS, attr.NS, attr.BS:
	}
}

// keyType returns the type of an attribute if it is the same key type in every item, else
// Absent.
func (p *profile) keyType(name string) attr.Type {
	a := p.attrs[name]
	if a == nil || a.empty {
		return attr.Absent
	}
	if t := a.types.majority(); t.n == p.items && t.typ <= attr.B {
		return t.typ
	}
	return attr.Absent
}
