package layout

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
	"github.com/tabletop-emu/tabletop/internal/nearest"
)

// Limits of a mapping file, and of any other YAML that users give, so that a
// hostile one cannot exhaust memory or stack.
const (
	maxYAMLBytes   = 4 << 20
	maxYAMLNesting = 200
)

// maxFamilies bounds the families of a table.
const maxFamilies = 1000

type position struct{ line, column int }

// Parse reads a mapping file strictly: unknown keys are errors. Errors are
// *SpecError.
func Parse(file string, src []byte) (*Spec, error) {
	r := &reader{file: file, spec: &Spec{file: file, pos: map[string]position{}}}
	body := r.document(src)
	if body != nil {
		r.root(body)
	}
	if r.err != nil {
		return nil, r.err
	}
	return r.spec, nil
}

// reader walks the tree of a mapping file. Its first error stays.
type reader struct {
	file string
	spec *Spec
	err  *SpecError
}

func (r *reader) fail(n ast.Node, path, what, expected string) {
	if r.err != nil {
		return
	}
	r.err = &SpecError{Code: CodeSyntax, File: r.file, Path: path, What: what, Expected: expected}
	if n != nil {
		if p := positionOf(n); p != nil {
			r.err.Line, r.err.Column = p.line, p.column
		}
	}
}

func positionOf(n ast.Node) *position {
	tok := n.GetToken()
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 && !m.IsFlowStyle {
		tok = m.Values[0].Key.GetToken()
	}
	if tok == nil || tok.Position == nil {
		return nil
	}
	return &position{tok.Position.Line, tok.Position.Column}
}

// document returns the one document of src, or nil after an error.
func (r *reader) document(src []byte) ast.Node {
	if what, expected := RefuseYAML(src); what != "" {
		r.fail(nil, "", what, expected)
		return nil
	}
	f, err := parseYAML(src)
	if err != nil {
		r.fail(nil, "", err.Error(), "")
		var at yaml.Error
		if errors.As(err, &at) {
			r.err.What = at.GetMessage()
			if tok := at.GetToken(); tok != nil && tok.Position != nil {
				r.err.Line, r.err.Column = tok.Position.Line, tok.Position.Column
			}
		}
		return nil
	}
	var body ast.Node
	for _, doc := range f.Docs {
		if doc.Body == nil {
			continue
		}
		if body != nil {
			r.fail(doc.Body, "", "a second document", "one mapping in a file")
			return nil
		}
		body = doc.Body
	}
	if body == nil {
		r.fail(nil, "", "the file is empty", "apiVersion: "+APIVersion)
	}
	return body
}

// RefuseYAML says, before it is parsed, what in a YAML text would take the parser
// more time and memory than its size suggests, and what is expected instead; "" for
// nothing.
func RefuseYAML(src []byte) (what, expected string) {
	if len(src) > maxYAMLBytes {
		return fmt.Sprintf("the file has %d bytes", len(src)), fmt.Sprintf("at most %d", maxYAMLBytes)
	}
	// The parser takes a time and space that grow with the square of the number
	// of documents.
	if n := bytes.Count(src, []byte("\n---")); n > 1 {
		return fmt.Sprintf("%d lines begin a document", n), "one mapping in a file"
	}
	depth := 0
	for _, c := range src {
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		if depth > maxYAMLNesting {
			return "brackets are nested too deeply", fmt.Sprintf("at most %d levels", maxYAMLNesting)
		}
	}
	return "", ""
}

// parseYAML keeps a panic of the YAML parser from ending the process.
func parseYAML(src []byte) (f *ast.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			f, err = nil, fmt.Errorf("no YAML: %v", p)
		}
	}()
	return parser.ParseBytes(src, 0)
}

// field reads the value of one key.
type field func(n ast.Node, path string)

// object reads a mapping with the given keys.
func (r *reader) object(n ast.Node, path string, fields map[string]field, required ...string) {
	seen := map[string]bool{}
	r.each(n, path, func(key string, k, v ast.Node, path string) {
		f, ok := fields[key]
		if !ok {
			known := slices.Sorted(maps.Keys(fields))
			what := "unknown key"
			if name := nearest.To(key, known); name != "" {
				what += ", nearest to " + name
			}
			r.fail(k, path, what, strings.Join(known, ", "))
			return
		}
		seen[key] = true
		f(v, path)
	})
	for _, key := range required {
		if !seen[key] {
			r.fail(n, path, fmt.Sprintf("%q is missing", key), "")
		}
	}
}

var plainKey = regexp.MustCompile(`^[-_a-zA-Z0-9]+$`)

// each calls f for the entries of a mapping, in order.
func (r *reader) each(n ast.Node, path string, f func(key string, k, v ast.Node, path string)) {
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		r.fail(n, path, "not a mapping", "key: value")
		return
	}
	r.note(n, path)
	seen := make(map[string]bool, len(values))
	for _, v := range values {
		if r.err != nil {
			return
		}
		key, ok := yamlKey(v.Key)
		sub := joinPath(path, key)
		switch {
		case !ok:
			r.fail(v.Key, path, "unsupported kind of key", "a plain or quoted name")
		case seen[key]:
			r.fail(v.Key, sub, "the key is given twice", "")
		default:
			seen[key] = true
			r.note(v.Key, sub)
			f(key, v.Key, v.Value, sub)
		}
	}
}

func joinPath(path, key string) string {
	switch {
	case !plainKey.MatchString(key):
		return path + "[" + strconv.Quote(key) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

func (r *reader) note(n ast.Node, path string) {
	if p := positionOf(n); p != nil {
		r.spec.pos[path] = *p
	}
}

func yamlKey(k ast.MapKeyNode) (string, bool) {
	switch n := k.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// list calls f for the elements of a sequence.
func (r *reader) list(n ast.Node, path string, f field) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		r.fail(n, path, "not a sequence", "[…]")
		return
	}
	for i, v := range seq.Values {
		if r.err != nil {
			return
		}
		sub := fmt.Sprintf("%s[%d]", path, i)
		r.note(v, sub)
		f(v, sub)
	}
}

// text reads a string; numbers, booleans and null keep the text they were
// written as when quoted only.
func (r *reader) text(n ast.Node, path, expected string) string {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return n.Value.Value
	}
	r.fail(n, path, "not a string", expected)
	return ""
}

// word reads a string out of a few.
func (r *reader) word(n ast.Node, path string, words ...string) string {
	s := r.text(n, path, strings.Join(words, ", "))
	if r.err == nil && !slices.Contains(words, s) {
		r.fail(n, path, strconv.Quote(s), strings.Join(words, ", "))
	}
	return s
}

func (r *reader) str(dst *string, expected string) field {
	return func(n ast.Node, path string) { *dst = r.text(n, path, expected) }
}

func (r *reader) boolean(dst *bool) field {
	return func(n ast.Node, path string) {
		b, ok := n.(*ast.BoolNode)
		if !ok {
			r.fail(n, path, "not a boolean", "true or false")
			return
		}
		*dst = b.Value
	}
}

func (r *reader) integer(dst *int, least, most int) field {
	return func(n ast.Node, path string) {
		i, ok := n.(*ast.IntegerNode)
		if ok {
			var err error
			*dst, err = strconv.Atoi(i.GetToken().Value)
			ok = err == nil && *dst >= least && *dst <= most
		}
		if !ok {
			r.fail(n, path, "not a number in range", fmt.Sprintf("an integer from %d to %d", least, most))
		}
	}
}

func (r *reader) texts(dst *[]string, expected string) field {
	return func(n ast.Node, path string) {
		r.list(n, path, func(n ast.Node, path string) { *dst = append(*dst, r.text(n, path, expected)) })
	}
}

func isNull(n ast.Node) bool { _, ok := n.(*ast.NullNode); return ok || n == nil }

func (r *reader) root(n ast.Node) {
	s := r.spec
	r.object(n, "", map[string]field{
		"apiVersion": func(n ast.Node, path string) { r.word(n, path, APIVersion) },
		"compat":     func(n ast.Node, path string) { s.Compat = r.word(n, path, CompatGoogleUtility) },
		"source":     r.source,
		"target":     r.target,
		"fidelity": func(n ast.Node, path string) {
			s.Fidelity = r.word(n, path, FidelityTyped, FidelityIdiomatic, FidelityBlob)
		},
		"timestamps": func(n ast.Node, path string) {
			r.object(n, path, map[string]field{"default": func(n ast.Node, path string) {
				const expected = "export-time or an RFC 3339 time in whole milliseconds, from 1970 on"
				text := r.text(n, path, expected)
				if text == "export-time" || r.err != nil {
					return
				}
				t, err := time.Parse(time.RFC3339Nano, text)
				if err != nil || t.Nanosecond()%1e6 != 0 || t.UnixMilli() < 0 || t.IsZero() {
					r.fail(n, path, strconv.Quote(text), expected)
				}
				s.DefaultTime = t.UTC()
			}})
		},
		"on": func(n ast.Node, path string) {
			onlyError := func(n ast.Node, path string) { r.word(n, path, "error") }
			r.object(n, path, map[string]field{
				"collision": func(n ast.Node, path string) {
					s.Collision = r.word(n, path, CollisionError, CollisionQualifier)
				},
				"unmatched": onlyError, "limit": onlyError,
				"unknown-attribute": func(n ast.Node, path string) {
					s.UnknownAttribute = r.word(n, path, UnknownError, UnknownSidecar)
				},
			})
		},
		"accept_loss": func(n ast.Node, path string) {
			r.list(n, path, func(n ast.Node, path string) {
				var l AcceptedLoss
				r.object(n, path, map[string]field{
					"rule": r.str(&l.Rule, "a rule's name"), "why": r.str(&l.Why, "a reason"),
					"what": func(n ast.Node, path string) {
						// null is how YAML writes nothing, and the name of a loss.
						if null, ok := n.(*ast.NullNode); !ok {
							l.What = r.word(n, path, losses...)
						} else if l.What = LossNull; null.GetToken() == nil || !strings.EqualFold(null.GetToken().Value, LossNull) {
							r.fail(n, path, "no loss", strings.Join(losses, ", "))
						}
					},
				}, "what", "why")
				s.AcceptLoss = append(s.AcceptLoss, l)
			})
		},
		"rules":    func(n ast.Node, path string) { r.list(n, path, r.rule) },
		"patterns": r.texts(&s.Patterns, "a path"),
		"lint":     func(n ast.Node, _ string) { s.lint = n },
	}, "apiVersion", "source", "target")
}

func (r *reader) source(n ast.Node, path string) {
	s := &r.spec.Source
	r.object(n, path, map[string]field{
		"table": r.str(&s.Table, "a table name"),
		"key":   func(n ast.Node, path string) { s.Key = r.keySchema(n, path) },
		"schema": func(n ast.Node, path string) {
			s.Schema = map[string]Schema{}
			r.each(n, path, func(key string, _, v ast.Node, path string) { s.Schema[key] = r.schema(v, path) })
		},
		"ttl": func(n ast.Node, path string) {
			if isNull(n) {
				return
			}
			s.TTL = &TTL{}
			r.object(n, path, map[string]field{
				"attribute": r.str(&s.TTL.Attribute, "an attribute name"),
				"mode":      r.str(&s.TTL.Mode, ttlModes),
			}, "attribute")
		},
		"gsis": func(n ast.Node, path string) { r.list(n, path, r.gsi) },
	}, "key")
}

func (r *reader) keySchema(n ast.Node, path string) KeySchema {
	var k KeySchema
	r.object(n, path, map[string]field{
		"hash":  func(n ast.Node, path string) { k.Hash = r.keyAttr(n, path) },
		"range": func(n ast.Node, path string) { k.Range = r.keyAttr(n, path) },
	}, "hash")
	return k
}

// keyAttr reads {name, type}, or a name alone, whose type the schema gives.
func (r *reader) keyAttr(n ast.Node, path string) KeyAttr {
	var k KeyAttr
	if s, ok := n.(*ast.StringNode); ok && s.Value != "" {
		return KeyAttr{Name: s.Value}
	}
	r.object(n, path, map[string]field{
		"name": r.str(&k.Name, "an attribute name"),
		"type": func(n ast.Node, path string) { k.Type, _ = attr.ParseType(r.word(n, path, "S", "N", "B")) },
	}, "name", "type")
	if r.err == nil && k.Name == "" {
		r.fail(n, path, "the name is empty", "an attribute name")
	}
	return k
}

const expectedSchema = "S, N, B, BOOL, NULL, SS, NS, BS, L, M, {L: type}, {M: type} or {M: {key: type}, else: type}"

func (r *reader) schema(n ast.Node, path string) Schema {
	var s Schema
	switch n := n.(type) {
	case *ast.NullNode:
		// NULL is how YAML writes null, and the name of a type.
		if n.GetToken() == nil || n.GetToken().Value != "NULL" {
			r.fail(n, path, "no type", expectedSchema)
		}
		return Schema{Type: attr.NULL}
	case *ast.StringNode:
		var ok bool
		if s.Type, ok = attr.ParseType(n.Value); !ok {
			r.fail(n, path, strconv.Quote(n.Value), expectedSchema)
		}
		return s
	case *ast.MappingNode, *ast.MappingValueNode:
	default:
		r.fail(n, path, "no type", expectedSchema)
		return s
	}
	r.object(n, path, map[string]field{
		"L": func(n ast.Node, path string) {
			e := r.schema(n, path)
			s.Type, s.Elem = attr.L, &e
		},
		"M": func(v ast.Node, path string) {
			if s.Type == attr.L {
				r.fail(v, path, "both L and M", expectedSchema)
			}
			s.Type = attr.M
			switch v.(type) {
			case *ast.MappingNode, *ast.MappingValueNode:
				s.Keys = map[string]Schema{}
				r.each(v, path, func(key string, _, v ast.Node, path string) { s.Keys[key] = r.schema(v, path) })
			default:
				e := r.schema(v, path)
				s.Elem = &e
			}
		},
		"else": func(v ast.Node, path string) {
			if s.Type != attr.M || s.Elem != nil {
				r.fail(v, path, "else without keys", expectedSchema)
			}
			e := r.schema(v, path)
			s.Elem = &e
		},
	})
	if r.err == nil && s.Type == attr.Absent {
		r.fail(n, path, "no type", expectedSchema)
	}
	return s
}

func (r *reader) gsi(n ast.Node, path string) {
	g := GSI{Projection: ProjectAll, As: IndexAsTable}
	r.object(n, path, map[string]field{
		"name":   r.str(&g.Name, "an index name"),
		"hash":   func(n ast.Node, path string) { g.Key.Hash = r.keyAttr(n, path) },
		"range":  func(n ast.Node, path string) { g.Key.Range = r.keyAttr(n, path) },
		"as":     func(n ast.Node, path string) { g.As = r.word(n, path, IndexAsTable, IndexAsView, IndexAsNone) },
		"row":    r.texts(&g.Row, "an attribute name"),
		"joiner": r.str(&g.Joiner, "plain('#'), escaped('#') or oc"),
		"lag": func(n ast.Node, path string) {
			const expected = "a duration from 0s on, such as 500ms"
			text := r.text(n, path, expected)
			d, err := time.ParseDuration(text)
			if r.err == nil && (err != nil || d < 0 || d%time.Millisecond != 0) {
				r.fail(n, path, strconv.Quote(text), expected)
			}
			g.Lag = d
		},
		"shard": func(n ast.Node, path string) {
			g.Shard = &Shard{}
			r.object(n, path, map[string]field{
				"n":  r.integer(&g.Shard.N, 1, rowkey.MaxShards),
				"by": r.str(&g.Shard.By, "a hash of an attribute, fnv1a32(name), or the attribute that is the shard"),
			}, "n", "by")
		},
		"projection": func(n ast.Node, path string) {
			if _, ok := n.(*ast.SequenceNode); ok {
				g.Projection = ""
				r.texts(&g.Include, "an attribute name")(n, path)
				if len(g.Include) == 0 {
					r.fail(n, path, "no attributes", ProjectKeysOnly)
				}
				return
			}
			g.Projection = r.word(n, path, ProjectAll, ProjectKeysOnly)
		},
	}, "name", "hash")
	r.spec.Source.GSIs = append(r.spec.Source.GSIs, g)
}

func (r *reader) target(n ast.Node, path string) {
	t := &r.spec.Target
	prefix := func(dst *string) field {
		return func(n ast.Node, path string) {
			if *dst = r.text(n, path, "the start of a family name"); *dst == "" {
				*dst = NoPrefix
			}
		}
	}
	r.object(n, path, map[string]field{
		"table":  r.str(&t.Table, "a table id"),
		"joiner": r.str(&t.Joiner, "plain('#'), escaped('#'), oc, fixed or auto"),
		"families": func(n ast.Node, path string) {
			r.each(n, path, func(key string, _, v ast.Node, path string) {
				t.Families = append(t.Families, Family{Name: key, GC: r.gc(v, path)})
			})
		},
		"shared":       r.str(&t.Shared, "a family name"),
		"max_families": r.integer(&t.MaxFamilies, 1, maxFamilies),
		"names": func(n ast.Node, path string) {
			t.Names = map[string]string{}
			r.each(n, path, func(key string, _, v ast.Node, path string) {
				t.Names[key] = r.text(v, path, "a family name")
			})
		},
		"prefixes": func(n ast.Node, path string) {
			r.object(n, path, map[string]field{"set": prefix(&t.SetPrefix), "map": prefix(&t.MapPrefix)})
		},
	}, "table", "families")
}

func (r *reader) gc(n ast.Node, path string) GC {
	var g GC
	if isNull(n) {
		return g
	}
	r.object(n, path, map[string]field{"gc": func(n ast.Node, path string) {
		if isNull(n) {
			return
		}
		r.object(n, path, map[string]field{
			"versions": r.integer(&g.Versions, 1, math.MaxInt32),
			"maxAge": func(n ast.Node, path string) {
				const expected = "a duration of at least 1ms, such as 720h"
				text := r.text(n, path, expected)
				d, err := time.ParseDuration(text)
				if r.err == nil && (err != nil || d < time.Millisecond) {
					r.fail(n, path, strconv.Quote(text), expected)
				}
				g.MaxAge = d
			},
		})
	}})
	return g
}

func (r *reader) rule(n ast.Node, path string) {
	var rule Rule
	r.object(n, path, map[string]field{
		"name": r.str(&rule.Name, "a rule name"),
		"when": func(n ast.Node, path string) {
			r.each(n, path, func(key string, _, v ast.Node, path string) {
				// A list tells the equality of key attributes from the
				// template of a key attribute that is called same.
				if _, list := v.(*ast.SequenceNode); list && key == "same" {
					r.texts(&rule.Same, "a key attribute")(v, path)
					return
				}
				if rule.When == nil {
					rule.When = map[string]string{}
				}
				rule.When[key] = r.text(v, path, "a template")
			})
		},
		"row": r.texts(&rule.Row, "a segment template"),
		"put": func(n ast.Node, path string) {
			r.list(n, path, func(n ast.Node, path string) { rule.Put = append(rule.Put, r.put(n, path)) })
		},
		"tag":    r.boolean(&rule.Tag),
		"latest": r.str(&rule.Latest, "the start of the sort keys of the copies, such as v0"),
	}, "name", "row", "put")
	r.spec.Rules = append(r.spec.Rules, rule)
}

func (r *reader) put(n ast.Node, path string) Put {
	var p Put
	r.object(n, path, map[string]field{
		"attr": func(n ast.Node, path string) {
			if isNull(n) {
				return
			}
			if p.Attr = r.text(n, path, `an attribute name, "*" or null`); p.Attr == "" {
				r.fail(n, path, "the name is empty", `an attribute name, "*" or null`)
			}
		},
		"cell":  r.str(&p.Cell, "family:qualifier"),
		"codec": r.str(&p.Codec, codec.List),
		"order": func(n ast.Node, path string) { p.Order = r.word(n, path, OrderAppend, OrderNewestFirst) },
		"ts": func(n ast.Node, path string) {
			if s, ok := n.(*ast.StringNode); ok {
				name, ok := strings.CutPrefix(s.Value, "{")
				name, ok2 := strings.CutSuffix(name, "}")
				if !ok || !ok2 || !rowkey.CaptureName.MatchString(name) {
					r.fail(n, path, strconv.Quote(s.Value), `"{capture}" or {attr: name, as: iso(s)}`)
				}
				p.Time.Capture = name
				return
			}
			r.object(n, path, map[string]field{
				"attr": r.str(&p.Time.Attr, "an attribute name"),
				"as": func(n ast.Node, path string) {
					p.Time.As = r.word(n, path, slices.Sorted(maps.Keys(codec.TimeFormats))...)
				},
			}, "attr", "as")
		},
	}, "attr", "cell")
	return p
}

// YAML returns the mapping file of s; Parse reads it back to the same Spec.
func (s *Spec) YAML() ([]byte, error) {
	entry := func(k string, v any) yaml.MapItem { return yaml.MapItem{Key: k, Value: v} }
	key := func(k KeyAttr) any {
		if k.Type == attr.Absent {
			return k.Name
		}
		return yaml.MapSlice{entry("name", k.Name), entry("type", k.Type.String())}
	}
	keyed := func(k KeySchema) yaml.MapSlice {
		m := yaml.MapSlice{entry("hash", key(k.Hash))}
		if k.Range.Name != "" {
			m = append(m, entry("range", key(k.Range)))
		}
		return m
	}
	source := yaml.MapSlice{}
	if s.Source.Table != "" {
		source = append(source, entry("table", s.Source.Table))
	}
	source = append(source, entry("key", keyed(s.Source.Key)))
	if len(s.Source.Schema) > 0 {
		source = append(source, entry("schema", schemasYAML(s.Source.Schema)))
	}
	if s.Source.TTL != nil {
		ttl := yaml.MapSlice{entry("attribute", s.Source.TTL.Attribute)}
		if s.Source.TTL.Mode != "" {
			ttl = append(ttl, entry("mode", s.Source.TTL.Mode))
		}
		source = append(source, entry("ttl", ttl))
	}
	if len(s.Source.GSIs) > 0 {
		var gsis []yaml.MapSlice
		for _, g := range s.Source.GSIs {
			m := append(yaml.MapSlice{entry("name", g.Name)}, keyed(g.Key)...)
			if g.Projection == "" {
				m = append(m, entry("projection", g.Include))
			} else {
				m = append(m, entry("projection", g.Projection))
			}
			m = append(m, entry("as", g.As))
			if g.Shard != nil {
				m = append(m, entry("shard", yaml.MapSlice{entry("n", g.Shard.N), entry("by", g.Shard.By)}))
			}
			if len(g.Row) > 0 {
				m = append(m, entry("row", g.Row))
			}
			if g.Joiner != "" {
				m = append(m, entry("joiner", g.Joiner))
			}
			if g.Lag != 0 {
				m = append(m, entry("lag", g.Lag.String()))
			}
			gsis = append(gsis, m)
		}
		source = append(source, entry("gsis", gsis))
	}

	families := yaml.MapSlice{}
	for _, f := range s.Target.Families {
		gc := yaml.MapSlice{}
		if f.GC.Versions > 0 {
			gc = append(gc, entry("versions", f.GC.Versions))
		}
		if f.GC.MaxAge > 0 {
			gc = append(gc, entry("maxAge", f.GC.MaxAge.String()))
		}
		body := yaml.MapSlice{}
		if len(gc) > 0 {
			body = append(body, entry("gc", gc))
		}
		families = append(families, entry(f.Name, body))
	}
	target := yaml.MapSlice{entry("table", s.Target.Table), entry("families", families)}
	if s.Target.Joiner != "" {
		target = append(target, entry("joiner", s.Target.Joiner))
	}
	if s.Target.Shared != "" {
		target = append(target, entry("shared", s.Target.Shared))
	}
	if s.Target.MaxFamilies != 0 {
		target = append(target, entry("max_families", s.Target.MaxFamilies))
	}
	if len(s.Target.Names) > 0 {
		names := yaml.MapSlice{}
		for _, k := range slices.Sorted(maps.Keys(s.Target.Names)) {
			names = append(names, entry(k, s.Target.Names[k]))
		}
		target = append(target, entry("names", names))
	}
	prefixes := yaml.MapSlice{}
	for _, p := range []struct{ name, text string }{{"set", s.Target.SetPrefix}, {"map", s.Target.MapPrefix}} {
		switch p.text {
		case "":
		case NoPrefix:
			prefixes = append(prefixes, entry(p.name, ""))
		default:
			prefixes = append(prefixes, entry(p.name, p.text))
		}
	}
	if len(prefixes) > 0 {
		target = append(target, entry("prefixes", prefixes))
	}

	doc := yaml.MapSlice{entry("apiVersion", APIVersion)}
	if s.Compat != "" {
		doc = append(doc, entry("compat", s.Compat))
	}
	doc = append(doc, entry("source", source), entry("target", target))
	if s.Fidelity != "" {
		doc = append(doc, entry("fidelity", s.Fidelity))
	}
	if !s.DefaultTime.IsZero() {
		doc = append(doc, entry("timestamps", yaml.MapSlice{entry("default", s.DefaultTime.UTC().Format(time.RFC3339Nano))}))
	}
	on := yaml.MapSlice{}
	if s.Collision != "" {
		on = append(on, entry("collision", s.Collision))
	}
	if s.UnknownAttribute != "" {
		on = append(on, entry("unknown-attribute", s.UnknownAttribute))
	}
	if len(on) > 0 {
		doc = append(doc, entry("on", on))
	}
	if len(s.AcceptLoss) > 0 {
		var losses []yaml.MapSlice
		for _, l := range s.AcceptLoss {
			m := yaml.MapSlice{}
			if l.Rule != "" {
				m = append(m, entry("rule", l.Rule))
			}
			losses = append(losses, append(m, entry("what", l.What), entry("why", l.Why)))
		}
		doc = append(doc, entry("accept_loss", losses))
	}
	rules := []yaml.MapSlice{}
	for _, rule := range s.Rules {
		rules = append(rules, rule.yaml())
	}
	if len(rules) > 0 {
		doc = append(doc, entry("rules", rules))
	}
	if len(s.Patterns) > 0 {
		doc = append(doc, entry("patterns", s.Patterns))
	}
	return yaml.MarshalWithOptions(doc, yaml.IndentSequence(true))
}

func (rule *Rule) yaml() yaml.MapSlice {
	entry := func(k string, v any) yaml.MapItem { return yaml.MapItem{Key: k, Value: v} }
	m := yaml.MapSlice{entry("name", rule.Name)}
	when := yaml.MapSlice{}
	for _, k := range slices.Sorted(maps.Keys(rule.When)) {
		when = append(when, entry(k, rule.When[k]))
	}
	if len(rule.Same) > 0 {
		when = append(when, entry("same", rule.Same))
	}
	if len(when) > 0 {
		m = append(m, entry("when", when))
	}
	m = append(m, entry("row", rule.Row))
	puts := []yaml.MapSlice{}
	for _, p := range rule.Put {
		put := yaml.MapSlice{}
		if p.Attr == Presence {
			put = append(put, entry("attr", nil))
		} else {
			put = append(put, entry("attr", p.Attr))
		}
		put = append(put, entry("cell", p.Cell))
		if p.Codec != "" {
			put = append(put, entry("codec", p.Codec))
		}
		if p.Order != "" {
			put = append(put, entry("order", p.Order))
		}
		switch {
		case p.Time.Capture != "":
			put = append(put, entry("ts", "{"+p.Time.Capture+"}"))
		case p.Time.Attr != "":
			put = append(put, entry("ts", yaml.MapSlice{entry("attr", p.Time.Attr), entry("as", p.Time.As)}))
		}
		puts = append(puts, put)
	}
	m = append(m, entry("put", puts))
	if rule.Latest != "" {
		m = append(m, entry("latest", rule.Latest))
	}
	if rule.Tag {
		m = append(m, entry("tag", true))
	}
	return m
}

func schemasYAML(schemas map[string]Schema) yaml.MapSlice {
	m := yaml.MapSlice{}
	for _, k := range slices.Sorted(maps.Keys(schemas)) {
		m = append(m, yaml.MapItem{Key: k, Value: schemaYAML(schemas[k])})
	}
	return m
}

func schemaYAML(s Schema) any {
	switch {
	case s.Type == attr.L && s.Elem != nil:
		return yaml.MapSlice{{Key: "L", Value: schemaYAML(*s.Elem)}}
	case s.Type == attr.M && s.Keys == nil && s.Elem != nil && s.Elem.Elem == nil && s.Elem.Keys == nil:
		return yaml.MapSlice{{Key: "M", Value: schemaYAML(*s.Elem)}}
	case s.Type == attr.M && (s.Keys != nil || s.Elem != nil):
		m := yaml.MapSlice{{Key: "M", Value: schemasYAML(s.Keys)}}
		if s.Elem != nil {
			m = append(m, yaml.MapItem{Key: "else", Value: schemaYAML(*s.Elem)})
		}
		return m
	}
	return s.Type.String()
}
