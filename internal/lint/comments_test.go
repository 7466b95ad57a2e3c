package lint

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// inCamelCase is a word that can only be a name of code, or one of a wire or file.
var inCamelCase = regexp.MustCompile(`\b[a-z][a-z0-9]*[A-Z][A-Za-z0-9]*\b`)

// TestCommentsNameWhatExists keeps comments from naming what has been renamed or
// removed: an unexported name in one is a name, or a word of a text, of some
// production file.
func TestCommentsNameWhatExists(t *testing.T) {
	t.Parallel()
	files := productionFiles(t)
	known := map[string]bool{}
	for _, f := range files {
		ast.Inspect(f.tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				known[n.Name] = true
			case *ast.BasicLit:
				if n.Kind == token.STRING {
					for _, word := range inCamelCase.FindAllString(n.Value, -1) {
						known[word] = true
					}
				}
			}
			return true
		})
	}
	for _, f := range files {
		for _, group := range f.tree.Comments {
			for _, c := range group.List {
				if strings.HasPrefix(c.Text, "//go:") || strings.HasPrefix(c.Text, "//nolint") {
					continue
				}
				for _, word := range inCamelCase.FindAllString(c.Text, -1) {
					if !known[word] {
						t.Errorf("%s: a comment names %s, which does not exist: %s", f.path, word, c.Text)
					}
				}
			}
		}
	}
}
