package secondary

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
)

// mappedLayout is the layout of `as: table`. The row key has the optional shard and some of
// the key attributes. Family FamilyItem has one cell per other projected attribute, and
// FamilyTypes the exceptions to the schema.
type mappedLayout struct {
	schema   map[string]codec.Schema
	keys     []attr.KeyAttr // the segments of the row key, after the shard
	joiner   rowkey.Joiner
	shard    *indexShard
	families []cells.Family
	// ordered reports that the rows of a shard are in the order of the index's sort key and
	// then of the table's key.
	ordered bool
}

// indexShard computes the shard of an entry.
type indexShard struct {
	n, width int
	by       attr.KeyAttr
	digest   func(text string) []byte // nil: the attribute is the number of the shard
}

// Compile builds the layout of an index with `as: table`. key is the key of the index, and path is
// the path of its entry in the mapping file. It calls fail for each fault, with a path below path.
func Compile(spec *mapfile.Spec, g *mapfile.GSI, key attr.KeySchema, path string, fail func(path string, code maperr.Code, what, expected string)) *Index {
	def := Def{Name: g.Name, Key: key, KeysOnly: g.Projection == mapfile.ProjectKeysOnly, Include: g.Include}
	x := &Index{Shape: NewShape(spec.Source.Table, spec.Source.Key, def), table: mapfile.IndexTable(spec.Target.Table, g.Name), lag: g.Lag}
	x.mapped = &mappedLayout{schema: spec.Types(), families: []cells.Family{{Name: lens.FamilyItem, GC: cells.GC{Versions: 1}}, {Name: lens.FamilyTypes, GC: cells.GC{Versions: 1}}}}
	x.compileRow(g, path, fail)
	return x
}

// compileRow compiles the row key of an index.
func (x *Index) compileRow(g *mapfile.GSI, path string, fail func(path string, code maperr.Code, what, expected string)) {
	m := x.mapped
	var all []attr.KeyAttr
	for _, a := range append(x.def.Key.Attrs(), x.base.Attrs()...) {
		if !slices.ContainsFunc(all, func(k attr.KeyAttr) bool { return k.Name == a.Name }) {
			all = append(all, a)
		}
	}
	find := func(path, name string) attr.KeyAttr {
		i := slices.IndexFunc(all, func(a attr.KeyAttr) bool { return a.Name == name })
		if i < 0 {
			fail(path, maperr.CodeInverse, fmt.Sprintf("%q is neither a key attribute of the index nor of the table", name), "one of them")
			return attr.KeyAttr{}
		}
		return all[i]
	}
	joinerText := g.Joiner
	if g.Shard != nil {
		m.shard = &indexShard{n: g.Shard.N, width: len(strconv.Itoa(g.Shard.N - 1))}
		if g.Shard.N < 1 || g.Shard.N > rowkey.MaxShards {
			fail(path+".shard.n", maperr.CodeSyntax, fmt.Sprintf("%d shards", g.Shard.N), fmt.Sprintf("1 to %d", rowkey.MaxShards))
		}
		by := g.Shard.By
		if hash, arg, ok := strings.Cut(by, "("); ok && strings.HasSuffix(arg, ")") {
			by = strings.TrimSuffix(arg, ")")
			var err error
			if m.shard.digest, err = rowkey.ParseDigest(hash); err != nil {
				fail(path+".shard.by", maperr.CodeSyntax, err.Error(), "")
			}
		}
		if m.shard.by = find(path+".shard.by", by); m.shard.digest == nil && m.shard.by.Type == attr.B {
			fail(path+".shard.by", maperr.CodeSyntax, "a binary cannot be a shard number", "a hash of it")
		}
		if joinerText == "" {
			joinerText = "plain('#')"
		}
	}
	if joinerText == "" {
		joinerText = "oc"
	}
	var err error
	if m.joiner, err = rowkey.ParseJoiner(joinerText); err != nil || m.joiner.Auto || m.joiner.All || m.joiner.Kind == rowkey.JoinFixed {
		fail(path+".joiner", maperr.CodeSyntax, fmt.Sprintf("%q is not a joiner of an index", joinerText), "plain('#'), escaped('#') or oc")
	}
	for i, name := range g.Row {
		at := fmt.Sprintf("%s.row[%d]", path, i)
		if slices.Contains(g.Row[:i], name) {
			fail(at, maperr.CodeSyntax, fmt.Sprintf("%q is listed twice", name), "each attribute once")
		}
		m.keys = append(m.keys, find(at, name))
	}
	if len(g.Row) > 0 {
		return
	}
	m.ordered = m.joiner.Kind != rowkey.JoinPlain
	for _, a := range all {
		if m.shard == nil || a.Name != x.def.Key.Hash.Name || x.base.IsKey(a.Name) {
			m.keys = append(m.keys, a)
		}
	}
}

// inRow reports whether the row key determines an attribute.
func (m *mappedLayout) inRow(name string) bool {
	return slices.ContainsFunc(m.keys, func(a attr.KeyAttr) bool { return a.Name == name })
}

// Distinct reports whether the row key alone distinguishes the entries, because it contains all key
// attributes of the table. If the mapping file omits some of them (GSI.Row), its author asserts
// that two items never share a row.
func (x *Index) Distinct() bool {
	return x.mapped == nil || !slices.ContainsFunc(x.base.Attrs(), func(a attr.KeyAttr) bool { return !x.mapped.inRow(a.Name) })
}

// schemaOf returns the type of an attribute's cell.
func (x *Index) schemaOf(name string) codec.Schema {
	for _, a := range append(x.def.Key.Attrs(), x.base.Attrs()...) {
		if a.Name == name {
			return codec.Schema{Type: a.Type}
		}
	}
	return x.mapped.schema[name]
}

// of returns the shard of an entry; false if the attribute must be the shard number and is not
// one.
func (s *indexShard) of(v attr.Value) (int, bool) {
	if s.digest != nil {
		return rowkey.ShardOf(s.digest, v.Str, s.n), true
	}
	n, err := strconv.Atoi(v.Str)
	return n, err == nil && n >= 0 && n < s.n && strconv.Itoa(n) == v.Str
}

func (s *indexShard) append(dst []byte, shard int) []byte {
	return fmt.Appendf(dst, "%0*d", s.width, shard)
}

// shardFits reports whether the row key begins with the item's shard.
func (m *mappedLayout) shardFits(row []byte, item attr.Item) bool {
	if m.shard == nil {
		return true
	}
	shard, ok := m.shard.of(item[m.shard.by.Name])
	return ok && bytes.HasPrefix(row, m.shard.append(nil, shard))
}

// mappedRow returns the row key of an entry.
func (x *Index) mappedRow(keys attr.Item) ([]byte, *maperr.Error) {
	m := x.mapped
	fault := func(code maperr.Code, name, what, expected string) *maperr.Error {
		return &maperr.Error{Code: code, Table: x.source, Rule: x.def.Name, Key: x.base.KeyOf(keys), Attribute: name, What: what, Expected: expected}
	}
	var row []byte
	if m.shard != nil {
		shard, ok := m.shard.of(keys[m.shard.by.Name])
		if !ok {
			return nil, fault(maperr.CodeDomain, m.shard.by.Name, fmt.Sprintf("%q is not a shard", keys[m.shard.by.Name].Str), fmt.Sprintf("a number from 0 to %d", m.shard.n-1))
		}
		row = append(m.shard.append(row, shard), m.joiner.Delimiter()...)
	}
	for i, a := range m.keys {
		if i > 0 {
			row = append(row, m.joiner.Delimiter()...)
		}
		seg := rowkey.KeyBytes(keys[a.Name])
		if m.joiner.Kind == rowkey.JoinPlain && i > 0 && bytes.IndexByte(seg, m.joiner.Delim) >= 0 {
			return nil, fault(maperr.CodeDelim, a.Name, fmt.Sprintf("%q holds the delimiter %q", seg, m.joiner.Delim), "the delimiter only in the first attribute of the row, or joiner escaped or oc")
		}
		row = m.joiner.AppendSegment(row, seg, i == len(m.keys)-1)
	}
	return row, nil
}

// parseMappedRow is the inverse of mappedRow, for the attributes in the row key.
func (x *Index) parseMappedRow(row []byte) (attr.Item, bool) {
	m := x.mapped
	if m.shard != nil {
		delim := m.joiner.Delimiter()
		if len(row) < m.shard.width+len(delim) || !bytes.HasPrefix(row[m.shard.width:], delim) {
			return nil, false
		}
		row = row[m.shard.width+len(delim):]
	}
	var segs [][]byte
	var ok bool
	if m.joiner.Kind == rowkey.JoinPlain {
		segs = make([][]byte, len(m.keys))
		for i := len(segs) - 1; i > 0; i-- {
			cut := bytes.LastIndexByte(row, m.joiner.Delim)
			if cut < 0 {
				return nil, false
			}
			segs[i], row = row[cut+1:], row[:cut]
		}
		segs[0] = row
	} else if segs, ok = m.joiner.Split(row, len(m.keys), nil); !ok {
		return nil, false
	}
	item := attr.Item{}
	for i, a := range m.keys {
		if item[a.Name], ok = rowkey.ParseKeyBytes(a.Type, segs[i]); !ok {
			return nil, false
		}
	}
	return item, true
}

// mappedPlan implements PlanQuery.
func (x *Index) mappedPlan(c attr.KeyRange) lens.Plan {
	m := x.mapped
	v := lens.Bounds(c, func(v attr.Value) ([]byte, bool) { return rowkey.KeyBytes(v), true })
	if v.Empty() {
		return lens.Plan{}
	}
	if m.shard == nil {
		span, order, ok := x.entries(nil, c, v)
		if !ok {
			return lens.Plan{}
		}
		return lens.Plan{Spans: []cells.Span{span}, Order: order}
	}
	from, to := 0, m.shard.n
	known := attr.Value{}
	switch m.shard.by.Name {
	case x.def.Key.Hash.Name:
		known = c.Hash
	case x.def.Key.Range.Name:
		if c.Op == attr.RangeEqual {
			known = c.A
		}
	}
	if !known.IsAbsent() {
		shard, ok := m.shard.of(known)
		if !ok {
			return lens.Plan{} // no entry has such a key
		}
		from, to = shard, shard+1
	}
	var plan lens.Plan
	for shard := from; shard < to; shard++ {
		span, order, ok := x.entries(append(m.shard.append(nil, shard), m.joiner.Delimiter()...), c, v)
		if !ok {
			return lens.Plan{}
		}
		plan.Spans, plan.Order = append(plan.Spans, span), order
	}
	if len(plan.Spans) > 1 && plan.Order == lens.SameOrder {
		if plan.Order = lens.SortOrder; m.ordered {
			plan.Order = lens.MergeOrder
		}
	}
	return plan
}

// entries returns the rows that begin with prefix and can satisfy c, and their order; false if no
// row can. v is the interval of the sort keys that satisfy c.
func (x *Index) entries(prefix []byte, c attr.KeyRange, v lens.Interval) (cells.Span, lens.Order, bool) {
	m := x.mapped
	row := prefix
	for i, a := range m.keys {
		last := i == len(m.keys)-1
		if i > 0 {
			row = append(row, m.joiner.Delimiter()...)
		}
		switch {
		case a.Name == x.def.Key.Hash.Name:
			row = m.joiner.AppendSegment(row, rowkey.KeyBytes(c.Hash), last)
		case a.Name == x.def.Key.Range.Name && c.Op == attr.RangeEqual:
			row = m.joiner.AppendSegment(row, rowkey.KeyBytes(c.A), last)
		case a.Name == x.def.Key.Range.Name:
			span, order := x.sortKeys(row, v, last)
			return span, order, len(span.End) == 0 || bytes.Compare(span.Start, span.End) < 0
		default:
			order := lens.SameOrder
			if x.def.Key.Range.Name != "" && c.Op != attr.RangeEqual && slices.ContainsFunc(m.keys[i:], func(k attr.KeyAttr) bool { return k.Name == x.def.Key.Range.Name }) ||
				x.def.Key.Range.Name != "" && !m.inRow(x.def.Key.Range.Name) {
				order = lens.SortOrder
			}
			return lens.Clamp(cells.Prefixed(row)), order, true
		}
	}
	order := lens.SameOrder
	if x.def.Key.Range.Name != "" && !m.inRow(x.def.Key.Range.Name) {
		order = lens.SortOrder
	}
	return lens.Clamp(cells.Span{Start: row, End: append(bytes.Clone(row), 0)}), order, true
}

// sortKeys returns the rows that continue row with a sort key of the interval. The sort key is
// in the last segment only if last is set.
func (x *Index) sortKeys(row []byte, v lens.Interval, last bool) (cells.Span, lens.Order) {
	m := x.mapped
	s := cells.Span{Start: m.joiner.AppendSegment(bytes.Clone(row), v.Lo, last), End: cells.PrefixEnd(row)}
	if v.Hi != nil {
		s.End = m.joiner.AppendSegment(bytes.Clone(row), v.Hi, last)
	}
	if m.joiner.Kind != rowkey.JoinPlain || last {
		return lens.Clamp(s), lens.SameOrder
	}
	// A delimiter sorts above some bytes that can be in its place, so a longer sort key with
	// the same beginning may come first.
	if v.Hi != nil {
		for n := 1; n < len(v.Hi); n++ {
			if bytes.Compare(v.Hi[:n], v.Lo) < 0 {
				continue
			}
			if end := cells.PrefixEnd(append(append(bytes.Clone(row), v.Hi[:n]...), m.joiner.Delim)); bytes.Compare(end, s.End) > 0 {
				s.End = end
			}
		}
	}
	return lens.Clamp(s), lens.SortOrder
}
