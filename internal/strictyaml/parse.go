package strictyaml

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// The limits of a file. The parser takes about 600 bytes for each mark of structure. For each
// key of a mapping in block style, it copies the keys before it.
const (
	maxBytes     = 4 << 20
	maxMarks     = 400_000 // of marks, and lines
	maxNesting   = 200
	maxAnchors   = 10_000 // anchors and tags
	maxBlockKeys = 5_000  // of one mapping in block style
	maxAliased   = 100_000
)

// marks are the characters with about one token each, except for quotes, which have one for two.
const marks = "\n,:-?[]{}&*!" + quotes

const quotes = "'\""

// Parse parses a file that contains one document. For an empty file, it returns the zero Value. Its
// error is an [Error].
func Parse(file string, text []byte) (root Value, err error) {
	root.file = file
	defer func() { // invalid YAML can make the parser panic
		if p := recover(); p != nil {
			err = root.fault(Position{}, fmt.Sprintf("the file is not YAML: %v", p), "")
		}
	}()
	if len(text) > maxBytes {
		return root, root.fault(Position{}, fmt.Sprintf("the file has %d bytes", len(text)), fmt.Sprintf("at most %d", maxBytes))
	}
	n := 0
	for _, mark := range []byte(marks) {
		n += bytes.Count(text, []byte{mark})
	}
	for _, quote := range []byte(quotes) {
		n -= bytes.Count(text, []byte{quote}) / 2
	}
	if n > maxMarks {
		return root, root.fault(Position{}, fmt.Sprintf("the file has %d lines and marks such as commas", n), fmt.Sprintf("at most %d", maxMarks))
	}
	body, err := root.body(text)
	if body == nil || err != nil {
		return root, err
	}
	t := &tree{root: root, anchors: map[string]*node{}}
	root.node = t.node(body, nil)
	return root, t.err
}

// body returns the only document of a text, or nil.
func (v Value) body(text []byte) (body ast.Node, err error) {
	tokens := lexer.Tokenize(string(text))
	if err := v.bound(tokens); err != nil {
		return nil, err
	}
	// tree finds repeated keys; its error has their path.
	f, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	var located yaml.Error
	switch {
	case errors.As(err, &located):
		return nil, v.fault(positionOf(located.GetToken()), located.GetMessage(), "")
	case err != nil:
		return nil, v.fault(Position{}, err.Error(), "")
	}
	for _, doc := range f.Docs {
		switch doc.Body.(type) {
		case nil, *ast.DirectiveNode, *ast.CommentGroupNode:
			continue
		}
		if body != nil {
			return nil, v.fault(begin(doc.Body), secondDocument, oneDocument)
		}
		body = doc.Body
	}
	return body, nil
}

const (
	secondDocument = "a second document"
	oneDocument    = "one mapping in a file"
)

// bound rejects, before parsing, tokens that would take the parser excessive time, memory or
// stack.
func (v Value) bound(tokens token.Tokens) error {
	type level struct{ column, keys int }
	var blocks []level // the open ones, in block style
	flow, headers, ends, anchors, work := 0, 0, 0, 0, 0
	// enter closes the blocks inside a column, and opens one there.
	enter := func(column int) *level {
		n := len(blocks)
		for n > 0 && blocks[n-1].column > column {
			n--
		}
		blocks = blocks[:n]
		if n == 0 || blocks[n-1].column < column {
			blocks = append(blocks, level{column: column})
		}
		return &blocks[len(blocks)-1]
	}
	for _, t := range tokens {
		switch t.Type { //nolint:exhaustive // the others open nothing
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow = max(0, flow-1)
		case token.SequenceEntryType, token.MappingKeyType:
			if flow == 0 {
				enter(t.Position.Column)
			}
		case token.MappingValueType:
			if flow == 0 && t.Prev != nil {
				block := enter(t.Prev.Position.Column)
				block.keys++
				work += block.keys
			}
		case token.AnchorType, token.TagType:
			anchors++
		case token.DocumentHeaderType:
			headers++
		case token.DocumentEndType:
			ends++
		}
		at := positionOf(t)
		switch {
		case flow+len(blocks) > maxNesting:
			return v.fault(at, "the values are nested too deeply", fmt.Sprintf("at most %d levels", maxNesting))
		case work > maxBlockKeys*maxBlockKeys/2:
			return v.fault(at, "the mappings in block style have too many keys", fmt.Sprintf("at most %d, or a mapping in braces ({key: value, …})", maxBlockKeys))
		case anchors > maxAnchors:
			return v.fault(at, "the file has too many anchors and tags", fmt.Sprintf("at most %d", maxAnchors))
		case headers > 2 || ends > 2: // the parser's time grows with the square
			return v.fault(at, secondDocument, oneDocument)
		}
	}
	return nil
}

func positionOf(t *token.Token) Position {
	if t == nil || t.Position == nil {
		return Position{}
	}
	return Position{t.Position.Line, t.Position.Column}
}

// begin returns the position of a node; for a mapping in block style, that of its first key.
func begin(n ast.Node) Position {
	switch n := n.(type) {
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return positionOf(n.Values[0].Key.GetToken())
		}
	case *ast.MappingValueNode:
		return positionOf(n.Key.GetToken())
	}
	return positionOf(n.GetToken())
}

// node is a value of a file, with resolved aliases.
type node struct {
	kind    Kind
	text    string // of a scalar: as written, or the content of quotes and block styles
	number  any    // of an Integer int64 or uint64, of a Float float64
	at      Position
	entries []entry
	items   []*node
	size    int // values in it, with itself
}

type entry struct {
	key   string
	at    Position
	value *node
}

// tree converts the parser's result to nodes, and keeps the first error.
type tree struct {
	root    Value
	anchors map[string]*node // the closed ones: no anchor contains itself
	aliased int              // values of aliases
	err     error
}

// path is the path of a value, joined only for messages.
type path struct {
	up    *path
	key   string
	index int // of an element of a list; -1 for a key
}

// String returns the path as messages show it, such as "rules[0].row".
func (p *path) String() string {
	switch {
	case p == nil:
		return ""
	case p.index >= 0:
		return fmt.Sprintf("%s[%d]", p.up, p.index)
	}
	return Join(p.up.String(), p.key)
}

func (t *tree) fail(at Position, to *path, what, expected string) {
	if t.err == nil {
		v := t.root
		v.path = to.String()
		t.err = v.fault(at, what, expected)
	}
}

// node converts a value of the YAML library. It never returns nil; after an error, which it stores in
// t.err, its result has no meaning.
func (t *tree) node(from ast.Node, to *path) *node {
	n := &node{kind: Null, size: 1}
	if from == nil || t.err != nil {
		return n
	}
	n.at = begin(from)
	switch from := from.(type) {
	case *ast.NullNode:
		n.text = from.GetToken().Value
	case *ast.StringNode:
		n.kind, n.text = Text, from.Value
	case *ast.LiteralNode:
		n.kind, n.text = Text, from.Value.Value
	case *ast.BoolNode:
		n.kind, n.text = Bool, from.GetToken().Value
	case *ast.IntegerNode:
		n.kind, n.text, n.number = Integer, from.GetToken().Value, from.Value
	case *ast.FloatNode:
		n.kind, n.text, n.number = Float, from.GetToken().Value, from.Value
	case *ast.InfinityNode:
		n.kind, n.text, n.number = Float, from.GetToken().Value, from.Value
	case *ast.NanNode:
		n.kind, n.text, n.number = Float, from.GetToken().Value, from.GetValue()
	case *ast.SequenceNode:
		n.kind = List
		for i, value := range from.Values {
			item := t.node(value, &path{up: to, index: i})
			n.items = append(n.items, item)
			n.size += item.size
		}
	case *ast.MappingNode:
		t.mapping(n, from.Values, to)
	case *ast.MappingValueNode:
		t.mapping(n, []*ast.MappingValueNode{from}, to)
	case *ast.AnchorNode:
		n = t.node(from.Value, to)
		t.anchors[from.Name.GetToken().Value] = n
	case *ast.AliasNode:
		return t.alias(n, from.Value.GetToken().Value, to)
	case *ast.TagNode:
		return t.tagged(n, from, to)
	default:
		t.fail(n.at, to, "this is not a value", "a text, a number, a list or a mapping")
	}
	return n
}

func (t *tree) mapping(n *node, from []*ast.MappingValueNode, to *path) {
	n.kind = Mapping
	own := make(map[string]Position, len(from))
	var merged []*node
	for _, one := range from {
		at := positionOf(one.Key.GetToken())
		key, ok := keyOf(one.Key)
		below := &path{to, key, -1}
		first, twice := own[key]
		switch {
		case !ok:
			t.fail(at, to, "unsupported kind of key", "a plain or quoted name")
		case twice:
			t.fail(at, below, fmt.Sprintf("the key occurs twice, first at %d:%d", first.Line, first.Column), "")
		}
		own[key] = at
		value := t.node(one.Value, below)
		if one.Key.IsMergeKey() {
			merged = append(merged, value)
			continue
		}
		n.entries = append(n.entries, entry{key, at, value})
		n.size += value.size
	}
	for _, m := range merged {
		t.merge(n, m, own, to)
	}
}

// merge adds the missing keys of another mapping, or of each in a list of mappings.
func (t *tree) merge(n, from *node, own map[string]Position, to *path) {
	switch from.kind {
	case Mapping:
		for _, e := range from.entries {
			if _, ok := own[e.key]; !ok {
				own[e.key] = e.at
				n.entries = append(n.entries, e)
				n.size += e.value.size
			}
		}
	case List:
		for _, m := range from.items {
			t.merge(n, m, own, to)
		}
	case Null, Text, Bool, Integer, Float:
		t.fail(from.at, &path{to, "<<", -1}, "the merged value is not a mapping", "a mapping, or a list of mappings")
	}
}

func keyOf(k ast.MapKeyNode) (string, bool) {
	if explicit, ok := k.(*ast.MappingKeyNode); ok {
		if k, ok = explicit.Value.(ast.MapKeyNode); !ok {
			return "", false
		}
	}
	switch n := k.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.MergeKeyNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	}
	return "", false
}

func (t *tree) alias(n *node, name string, to *path) *node {
	target, ok := t.anchors[name]
	if !ok {
		t.fail(n.at, to, fmt.Sprintf("alias *%s has no anchor", name), fmt.Sprintf("an anchor &%s that ends before it", name))
		return n
	}
	if t.aliased += target.size; t.aliased > maxAliased {
		t.fail(n.at, to, "the aliases expand to too many values", fmt.Sprintf("at most %d", maxAliased))
		return n
	}
	return target
}

// tagged reads a value with a tag: !!str converts it to a text.
func (t *tree) tagged(n *node, from *ast.TagNode, to *path) *node {
	value := t.node(from.Value, to)
	if tag := from.GetToken().Value; tag != "!!str" || value.kind == Mapping || value.kind == List {
		t.fail(n.at, to, fmt.Sprintf("tag %s", tag), "no tag, or !!str before a text")
		return n
	}
	return &node{kind: Text, text: value.text, at: value.at, size: 1}
}
