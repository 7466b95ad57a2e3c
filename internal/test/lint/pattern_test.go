package lint

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
)

// pattern is a regular expression with literals: each match contains at least one of them. Most
// texts contain none, and a search for strings takes a small part of the time of the expression.
type pattern struct {
	*regexp.Regexp
	literals []string
}

// newPattern compiles an expression, which must be valid.
func newPattern(expr string) pattern {
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		panic(err)
	}
	return pattern{regexp.MustCompile(expr), requiredLiterals(tree)}
}

// mayMatch reports whether a text contains a literal of the pattern. Only then can it match.
func (p pattern) mayMatch(text string) bool {
	return slices.ContainsFunc(p.literals, func(literal string) bool { return strings.Contains(text, literal) })
}

// MatchString is like that of the expression.
func (p pattern) MatchString(text string) bool {
	return p.mayMatch(text) && p.Regexp.MatchString(text)
}

// FindAllStringSubmatch is like that of the expression.
func (p pattern) FindAllStringSubmatch(text string, n int) [][]string {
	if !p.mayMatch(text) {
		return nil
	}
	return p.Regexp.FindAllStringSubmatch(text, n)
}

// requiredLiterals returns strings such that each match contains at least one of them. The empty
// string is in each text.
func requiredLiterals(tree *syntax.Regexp) []string {
	best := []string{""}
	switch tree.Op { //nolint:exhaustive // the others may match without a literal
	case syntax.OpLiteral:
		if tree.Flags&syntax.FoldCase == 0 {
			return []string{string(tree.Rune)}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return requiredLiterals(tree.Sub[0])
	case syntax.OpAlternate:
		best = nil
		for _, part := range tree.Sub {
			best = append(best, requiredLiterals(part)...)
		}
	case syntax.OpConcat:
		for _, part := range tree.Sub {
			if found := requiredLiterals(part); shortest(found) > shortest(best) {
				best = found
			}
		}
	}
	return best
}

// shortest returns the length of the shortest of some strings.
func shortest(texts []string) int {
	return len(slices.MinFunc(texts, func(a, b string) int { return len(a) - len(b) }))
}

// TestPattern checks the literals of expressions.
func TestPattern(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string][]string{
		`\bso many\b`:              {"so many"},
		`\b(is|are) gone\b`:        {" gone"},
		`\b([nN]o|[sS]ome)body\b`:  {"body"},
		`a?b*(cd){0,2}`:            {""},
		`(?i)told`:                 {""},
		`x|y\.z`:                   {"x", "y.z"},
		`a(bc|d+e)f*`:              {"a"},
		`[x](?:say|tell)s?`:        {"say", "tell"},
		`(?:\b(\w+)\.)?\w*O\.(\w)`: {"O."},
	} {
		if got := newPattern(expr).literals; !slices.Equal(got, want) {
			t.Errorf("%s: literals %q, want %q", expr, got, want)
		}
	}
}
