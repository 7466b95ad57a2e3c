package layout

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/internal/strictyaml"
)

// googleUtility is the layout of Google's DynamoDB to Bigtable migration utility: the
// partition key as text is the row key, there is one family, a column per attribute, nested
// maps are dotted columns, and all values are text at timestamp 0. Types are lost.
//
// Source: GoogleCloudPlatform/professional-services, tools/dynamodb-bigtable-migration
// (DynamoRowUtils, BeamRowUtils).
type googleUtility struct {
	table    string
	key      attr.KeySchema
	schema   map[string]codec.Schema
	families []Family
}

func compileCompat(spec *mapfile.Spec) (*Mapping, error) {
	c := &compiler{spec: spec, l: &rules{key: spec.Source.Key}}
	c.faults = append(c.faults, spec.CheckWords()...)
	c.key()
	t := spec.Target
	if t.Table == "" {
		c.fail("target.table", maperr.CodeSyntax, "no table", "the id of the Bigtable table")
	}
	switch {
	case len(t.Families) != 1 || !familyName.MatchString(t.Families[0].Name):
		c.fail("target.families", maperr.CodeFamily, fmt.Sprintf("%d families", len(t.Families)), "exactly the family that compat "+spec.Compat+" writes")
	case t.Families[0].GC.MaxAge > 0:
		c.fail(strictyaml.Join("target.families", t.Families[0].Name), maperr.CodeFamily, "garbage collection by age would remove every cell: all timestamps are in 1970", "no maxAge")
	}
	if len(spec.Rules) > 0 {
		c.fail("rules", maperr.CodeSyntax, "rules together with compat "+spec.Compat, "no rules, because the layout is fixed")
	}
	if len(c.faults) > 0 {
		return nil, maperr.Joined(c.faults)
	}
	l := &googleUtility{table: spec.Source.Table, key: spec.Source.Key, schema: spec.Source.Schema, families: t.Families}
	return &Mapping{spec: spec, source: l.table, target: t.Table, key: l.key, layout: l}, nil
}

func (l *googleUtility) columnFamilies() []Family { return l.families }

func (l *googleUtility) fault(code maperr.Code, item attr.Item, name, what, expected string) *maperr.Error {
	return &maperr.Error{Code: code, Table: l.table, Rule: mapfile.CompatGoogleUtility, Key: l.key.KeyOf(item), Attribute: name, What: what, Expected: expected}
}

// row returns the partition key as text. A binary is encoded in base64 twice.
func (l *googleUtility) row(key attr.Item) ([]byte, *maperr.Error) {
	if err := lens.CheckKey(attr.KeySchema{Hash: l.key.Hash}, l.table, key); err != nil {
		return nil, err
	}
	row, _, bad := l.text(key[l.key.Hash.Name])
	switch {
	case bad != "":
		return nil, l.fault(maperr.CodeDomain, key, l.key.Hash.Name, bad, "")
	case len(row) > lens.MaxRowKeyBytes:
		return nil, l.fault(maperr.CodeKeySize, key, l.key.Hash.Name, fmt.Sprintf("the row key has %d bytes", len(row)), fmt.Sprintf("at most %d", lens.MaxRowKeyBytes))
	}
	return row, nil
}

// text returns the cell value of an attribute that is not a map. raw reports that JSON
// contains it unquoted. bad is the reason for which the utility fails on it.
func (l *googleUtility) text(v attr.Value) (b []byte, raw bool, bad string) {
	switch v.Type {
	case attr.S:
		return []byte(v.Str), false, ""
	case attr.N:
		// Without a point the utility parses it as a long.
		if _, err := strconv.ParseInt(v.Str, 10, 64); err != nil && !strings.Contains(v.Str, ".") {
			return nil, false, fmt.Sprintf("the utility fails on %s, which is not a 64-bit integer", v.Str)
		}
		return []byte(v.Str), true, ""
	case attr.B:
		return []byte(twiceBase64(v.Str)), false, ""
	case attr.BOOL:
		return strconv.AppendBool(nil, v.Bool), true, ""
	case attr.NULL, attr.Absent:
		return nil, false, ""
	case attr.SS, attr.NS, attr.BS, attr.L:
		elements := codec.ElementsOf(v)
		b = append(b, '[')
		for i, e := range elements {
			if i > 0 {
				b = append(b, ',')
			}
			if b, bad = l.appendJSON(b, e); bad != "" {
				return nil, false, bad
			}
		}
		return append(b, ']'), true, ""
	case attr.M:
		b = append(b, '{')
		for i, k := range slices.Sorted(maps.Keys(v.Map)) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(codec.AppendPlainJSON(b, attr.String(k)), ':')
			if b, bad = l.appendJSON(b, v.Map[k]); bad != "" {
				return nil, false, bad
			}
		}
		return append(b, '}'), true, ""
	}
	return nil, false, ""
}

func (l *googleUtility) appendJSON(dst []byte, v attr.Value) ([]byte, string) {
	b, raw, bad := l.text(v)
	switch {
	case bad != "":
		return dst, bad
	case v.Type == attr.NULL:
		return append(dst, "null"...), ""
	case raw:
		return append(dst, b...), ""
	}
	return codec.AppendPlainJSON(dst, attr.String(string(b))), ""
}

// twiceBase64 returns the base64 of the value in DynamoDB's JSON, which is already base64.
func twiceBase64(raw string) string {
	return base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte(raw))))
}

func (l *googleUtility) place(at lens.Location, item attr.Item, _ int64) (lens.Placed, error) {
	placed := lens.Placed{Location: at}
	if bad := l.cells(&placed, item, "", item); bad != nil {
		return lens.Placed{}, bad
	}
	if len(placed.Cells) == 0 {
		return lens.Placed{}, l.fault(maperr.CodeDomain, item, "", "the item has no column, so it would have no row", "an attribute besides the partition key")
	}
	slices.SortFunc(placed.Cells, func(a, b Cell) int { return bytes.Compare(a.Qualifier, b.Qualifier) })
	for i := 1; i < len(placed.Cells); i++ {
		if q := placed.Cells[i].Qualifier; bytes.Equal(q, placed.Cells[i-1].Qualifier) {
			return lens.Placed{}, l.fault(maperr.CodeCollision, item, string(q), "two attributes share a column: the utility keeps only one of them", "names without dots")
		}
	}
	return placed, nil
}

func (l *googleUtility) cells(placed *lens.Placed, item attr.Item, prefix string, of map[string]attr.Value) *maperr.Error {
	for _, name := range slices.Sorted(maps.Keys(of)) {
		v, column := of[name], prefix+name
		switch {
		case prefix == "" && name == l.key.Hash.Name:
			continue
		case v.Type == attr.M:
			if err := l.cells(placed, item, column+".", v.Map); err != nil {
				return err
			}
			continue
		case len(column) > lens.MaxQualifierBytes:
			return l.fault(maperr.CodeLimit, item, column, fmt.Sprintf("the qualifier has %d bytes", len(column)), fmt.Sprintf("at most %d", lens.MaxQualifierBytes))
		}
		b, _, bad := l.text(v)
		if bad != "" {
			return l.fault(maperr.CodeDomain, item, column, bad, "")
		}
		placed.Cells = append(placed.Cells, Cell{Family: l.families[0].Name, Qualifier: []byte(column), Value: b})
	}
	return nil
}

func (l *googleUtility) locate(key attr.Item) (lens.Location, error) {
	row, bad := l.row(key)
	if bad != nil {
		return lens.Location{}, bad
	}
	return lens.Location{Rule: mapfile.CompatGoogleUtility, Row: row, Own: []lens.Extent{{Family: l.families[0].Name, Prefix: true}}}, nil
}

// items reads every column as an attribute of type S: the types are lost.
func (l *googleUtility) items(row Row) ([]attr.Item, error) {
	key := row.Key
	if l.key.Hash.Type == attr.B {
		for range 2 {
			raw, err := base64.StdEncoding.DecodeString(string(key))
			if err != nil {
				return nil, nil //nolint:nilerr // no row of the utility's
			}
			key = raw
		}
	}
	hash, err := codec.ParseScalar(l.key.Hash.Type, key)
	if err != nil {
		return nil, nil //nolint:nilerr // no row of the utility's
	}
	item := attr.Item{l.key.Hash.Name: hash}
	found := false
	err = lens.Columns(row.Cells, func(c lens.Column) error {
		if c.Family == l.families[0].Name {
			found = true
			item[string(c.Qualifier)] = attr.String(strings.ToValidUTF8(string(c.Versions[0].Value), "\ufffd"))
		}
		return nil
	})
	if v, ok := item[l.key.Range.Name]; ok && l.key.Range.Type == attr.N {
		if n, err := attr.Number(v.Str); err == nil {
			item[l.key.Range.Name] = n
		}
	}
	if err != nil || !found {
		return nil, err
	}
	return []attr.Item{item}, nil
}

// returned returns the item that the columns of placed give, whose attributes outside the
// partition key are mostly texts, and its differences from item as losses.
func (l *googleUtility) returned(item attr.Item, placed lens.Placed) (attr.Item, []Loss) {
	back, err := l.items(Row{Key: placed.Row, Cells: placed.Cells})
	if err != nil || len(back) == 0 {
		return item, nil
	}
	var losses []Loss
	for _, name := range slices.Sorted(maps.Keys(item)) {
		if was, is := item[name], back[0][name]; was.Type != is.Type || !attr.Equal(was, is) {
			losses = append(losses, Loss{name, cmp.Or(lossOf(was, is), mapfile.LossTypes)})
		}
	}
	return back[0], losses
}

func (l *googleUtility) itemOf(row Row, key attr.Item) (attr.Item, error) {
	want, bad := l.row(key)
	if bad != nil {
		return nil, bad
	}
	if !bytes.Equal(want, row.Key) {
		return nil, nil
	}
	items, err := l.items(row)
	if err != nil || len(items) == 0 {
		return nil, err
	}
	return items[0], nil
}

func (l *googleUtility) planQuery(c attr.KeyRange) (lens.Plan, error) {
	if err := lens.CheckRange(c, l.table, l.key); err != nil {
		return lens.Plan{}, err
	}
	row, bad := l.row(attr.Item{l.key.Hash.Name: c.Hash})
	if bad != nil {
		return lens.Plan{}, bad
	}
	return lens.Plan{Spans: []Span{{Start: row, End: append(bytes.Clone(row), 0)}}}, nil
}

func (l *googleUtility) planScan() lens.Plan { return lens.Plan{Spans: []Span{{}}} }

// fidelity describes the utility's losses by attribute.
func (l *googleUtility) fidelity() []Fidelity {
	const rule = mapfile.CompatGoogleUtility
	var all []Fidelity
	add := func(name, why string) {
		all = append(all, Fidelity{Rule: rule, Attribute: name, Class: Lossy, Why: "accepted: " + why})
	}
	for i, a := range l.key.Attrs() {
		switch {
		case i == 1:
			add(a.Name, "it is not part of the row key: items with the same partition key are merged")
		case a.Type == attr.S:
			all = append(all, Fidelity{Rule: rule, Attribute: a.Name})
		case a.Type == attr.N:
			add(a.Name, "the row key does not sort numbers by value; some fail")
		default:
			add(a.Name, "base64 of base64")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.schema)) {
		if !l.key.IsKey(name) {
			add(name, l.loss(l.schema[name].Type))
		}
	}
	all = append(all, Fidelity{Rule: rule, Attribute: "*", Class: Lossy, Why: "accepted: every timestamp is in 1970: garbage collection by age removes all cells"})
	return all
}

func (l *googleUtility) loss(t attr.Type) string {
	switch t {
	case attr.S:
		return "its type is not kept: text of any other type looks the same"
	case attr.N:
		return "its type is not kept; integers of 64 bits and more, and exponents, fail"
	case attr.B:
		return "its type is not kept; base64 of base64"
	case attr.BOOL:
		return "its type is not kept: the text true or false"
	case attr.NULL:
		return "it looks like an empty string"
	case attr.SS, attr.NS, attr.BS:
		return "a set looks like a list, in any order"
	case attr.L:
		return "the types of its elements are not kept"
	case attr.M:
		return "a dotted name looks like a nested one; an empty map is gone"
	case attr.Absent:
	}
	return "its type is not kept"
}
