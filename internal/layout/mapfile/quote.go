package mapfile

import (
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/printer"
	"github.com/goccy/go-yaml/token"
)

// marshal writes YAML that is read back as it was. An attribute's name can be any text,
// of which package yaml leaves some unquoted that YAML reads otherwise: spaces at an
// end, line breaks.
func marshal(v any) ([]byte, error) {
	node, err := yaml.ValueToNode(v, yaml.IndentSequence(true))
	if err != nil {
		return nil, err
	}
	ast.Walk(quoter{}, node)
	var p printer.Printer
	return p.PrintNode(node), nil
}

// quoter puts texts that are not safe without them into quotes.
type quoter struct{}

// Visit implements ast.Visitor.
func (q quoter) Visit(n ast.Node) ast.Visitor {
	// What begins with a quote is in quotes: package yaml puts all such texts there.
	if s, ok := n.(*ast.StringNode); ok && !strings.HasPrefix(s.Value, `"`) && unsafe(s.Value) {
		quoted := *s.Token
		quoted.Type = token.DoubleQuoteType
		s.Token = &quoted
	}
	return q
}

// unsafe reports whether YAML may read a text otherwise where it is not in quotes.
func unsafe(s string) bool {
	control := func(r rune) bool {
		return r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff
	}
	return strings.ContainsFunc(s, control) || strings.TrimSpace(s) != s || strings.HasPrefix(s, "?") || strings.Contains(s, "<<")
}
