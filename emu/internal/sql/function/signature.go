package function

import (
	"strings"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// signature is a list of argument patterns with a result.
type signature struct {
	params []pattern
	result pattern
	bind   func(c *Call) error // sets the evaluation of c
}

// pattern is a pattern of types.
type pattern struct {
	kind     value.Kind // KindNone for a template, a part; KindCallable for a lambda
	template int        // 1 for T1
	isPart   bool
	isAny    bool      // a type of its own
	args     []pattern // of ARRAY and MAP; parameters and result of a lambda; fields of a STRUCT
	names    []string  // of the fields
	optional bool
	repeated bool
}

// parseSignature parses a text such as "ARRAY<T1>, INT64... -> T1". It panics for a fault, which is
// one of this package, and which a test finds.
func parseSignature(text string) (params []pattern, result pattern) {
	before, after, ok := strings.Cut(text, "->")
	if !ok {
		panic("function: a signature without a result: " + text)
	}
	p := &patternParser{s: strings.TrimSpace(before)}
	for p.s != "" {
		params = append(params, p.param())
		p.skip(",")
	}
	p.s = strings.TrimSpace(after)
	return params, p.pattern()
}

type patternParser struct{ s string }

func (p *patternParser) skip(token string) bool {
	p.s = strings.TrimLeft(p.s, " ")
	var ok bool
	p.s, ok = strings.CutPrefix(p.s, token)
	p.s = strings.TrimLeft(p.s, " ")
	return ok
}

func (p *patternParser) param() pattern {
	if p.skip("[") {
		n := p.pattern()
		n.optional = true
		p.skip("]")
		return n
	}
	n := p.pattern()
	n.repeated = p.skip("...")
	return n
}

func (p *patternParser) word() string {
	i := strings.IndexFunc(p.s, func(r rune) bool {
		return r != '_' && (r < 'A' || r > 'z') && (r < '0' || r > '9') || r == '[' || r == ']'
	})
	if i < 0 {
		i = len(p.s)
	}
	word := p.s[:i]
	p.s = p.s[i:]
	return word
}

func (p *patternParser) pattern() pattern {
	word := p.word()
	switch word {
	case "T1":
		return pattern{template: 1}
	case "T2":
		return pattern{template: 2}
	case "ANY":
		return pattern{isAny: true}
	case "PART":
		return pattern{isPart: true}
	case "ARRAY", "MAP", "LAMBDA", "STRUCT":
		n := pattern{kind: map[string]value.Kind{"ARRAY": value.KindArray, "MAP": value.KindMap, "LAMBDA": value.KindCallable, "STRUCT": value.KindStruct}[word]}
		p.skip("<")
		for !p.skip(">") {
			if n.kind == value.KindStruct {
				n.names = append(n.names, p.word())
				p.skip("")
			}
			n.args = append(n.args, p.pattern())
			p.skip(",")
		}
		return n
	}
	t, ok := value.ScalarType(word)
	if !ok {
		panic("function: a signature with the unknown type " + word)
	}
	return pattern{kind: t.Kind()}
}

// String returns the pattern as in error texts.
func (n pattern) String() string {
	text := n.name()
	switch {
	case n.optional:
		return "[" + text + "]"
	case n.repeated:
		return "[" + text + ", ...]"
	}
	return text
}

func (n pattern) name() string {
	if n.isPart {
		return "DATE_TIME_PART"
	}
	if n.isAny {
		return "ANY"
	}
	if n.template > 0 {
		return "T" + string(rune('0'+n.template))
	}
	if len(n.args) == 0 {
		return n.kind.String()
	}
	var names []string
	for i, a := range n.args {
		name := a.name()
		if n.names != nil {
			name = n.names[i] + " " + name
		}
		names = append(names, name)
	}
	if n.kind == value.KindCallable {
		last := len(names) - 1
		params := strings.Join(names[:last], ", ")
		if last > 1 {
			params = "(" + params + ")"
		}
		return "LAMBDA(" + params + "->" + names[last] + ")"
	}
	return n.kind.String() + "<" + strings.Join(names, ", ") + ">"
}

// bindings are the types of the templates; index 0 is unused.
type bindings [3]value.Type

// fill returns the type of a pattern whose templates are bound.
func (n pattern) fill(b *bindings) value.Type {
	switch {
	case n.template > 0:
		return b[n.template]
	case n.kind == value.KindArray:
		return value.ArrayOf(n.args[0].fill(b))
	case n.kind == value.KindMap:
		return value.MapOf(n.args[0].fill(b), n.args[1].fill(b))
	case n.kind == value.KindStruct:
		fields := make([]value.Field, len(n.args))
		for i, a := range n.args {
			fields[i] = value.Field{Name: n.names[i], Type: a.fill(b)}
		}
		return value.StructOf(fields...)
	case n.isPart, n.isAny, n.kind == value.KindCallable:
		return value.Type{}
	}
	t, _ := value.ScalarType(n.kind.String())
	return t
}

// sig returns a signature of a function that returns NULL if an argument is NULL.
func sig(text string, eval Eval) signature {
	return bound(text, func(*Call) (Eval, error) { return eval, nil })
}

// bound is like sig, but bind returns the function, which may depend on the types, literals and
// parts among its arguments.
func bound(text string, bind func(c *Call) (Eval, error)) signature {
	s := open(text, bind)
	parts := make([]bool, len(s.params))
	for i, n := range s.params {
		parts[i] = n.isPart
	}
	s.bind = func(c *Call) error {
		eval, err := bind(c)
		if err != nil {
			return err
		}
		c.Eval = func(ctx *Context, args []value.Value) (value.Value, error) {
			for i := range args {
				if args[i].IsNull() && (i >= len(parts) || !parts[i]) {
					return value.Null, nil
				}
			}
			return eval(ctx, args)
		}
		return nil
	}
	return s
}

// open is like bound, but the function also handles NULL.
func open(text string, bind func(c *Call) (Eval, error)) signature {
	params, result := parseSignature(text)
	return signature{params, result, func(c *Call) (err error) {
		c.Eval, err = bind(c)
		return err
	}}
}

// nullable is like sig, but the function also handles NULL.
func nullable(text string, eval Eval) signature {
	return open(text, func(*Call) (Eval, error) { return eval, nil })
}

// lazy returns a signature of a function that may evaluate only some of its n arguments.
func lazy(text string, eval func(ctx *Context, n int, argument func(i int) (value.Value, error)) (value.Value, error)) signature {
	params, result := parseSignature(text)
	return signature{params, result, func(c *Call) error {
		n := len(c.Params)
		c.Lazy = func(ctx *Context, argument func(i int) (value.Value, error)) (value.Value, error) {
			return eval(ctx, n, argument)
		}
		c.Eval = func(ctx *Context, args []value.Value) (value.Value, error) {
			return eval(ctx, n, func(i int) (value.Value, error) { return args[i], nil })
		}
		return nil
	}}
}

// accumulates returns a signature of an aggregate function.
func accumulates(text string, start func(c *Call) (func() Accumulator, error)) signature {
	params, result := parseSignature(text)
	return signature{params, result, func(c *Call) (err error) {
		c.accumulator, err = start(c)
		return err
	}}
}

func fn(name string, signatures ...signature) *Function {
	return &Function{Name: name, signatures: signatures}
}

func operator(name string, signatures ...signature) *Function {
	return &Function{Name: name, IsOperator: true, signatures: signatures}
}

func aggregate(name string, signatures ...signature) *Function {
	return &Function{Name: name, Aggregate: true, Over: &Over{Frames: true}, signatures: signatures}
}
