package mapfile

import (
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/printer"
	"github.com/goccy/go-yaml/token"
)

// marshal writes YAML that parses to the same value. Attribute names can be any text, and
// package yaml leaves some unquoted that YAML parses differently: spaces at an end, line
// breaks.
func marshal(v any) ([]byte, error) {
	node, err := yaml.ValueToNode(v, yaml.IndentSequence(true))
	if err != nil {
		return nil, err
	}
	ast.Walk(quoter{}, node)
	var p printer.Printer
	return p.PrintNode(node), nil
}

// quoter quotes the texts that are unsafe without quotes.
type quoter struct{}

// Visit implements ast.Visitor.
func (q quoter) Visit(n ast.Node) ast.Visitor {
	// Package yaml quotes all texts that begin with a quote.
	if s, ok := n.(*ast.StringNode); ok && !strings.HasPrefix(s.Value, `"`) && unsafe(s.Value) {
		quoted := *s.Token
		quoted.Type = token.DoubleQuoteType
		s.Token = &quoted
	}
	return q
}

// unsafe reports whether YAML may parse the unquoted text differently.
func unsafe(s string) bool {
	control := func(r rune) bool {
		return r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff
	}
	return strings.ContainsFunc(s, control) || strings.TrimSpace(s) != s || strings.HasPrefix(s, "?") || strings.Contains(s, "<<")
}
