package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// wordy are phrases that a reader has to decode, with a plain alternative.
var wordy = []struct {
	phrase *regexp.Regexp
	plain  string
}{
	{regexp.MustCompile(`\bis none\b`), "name the case: not found, unset, empty"},
	{regexp.MustCompile(`\bis no \w+`), "is not a ..., or must be ..."},
	{regexp.MustCompile(`\bof which\b`), "whose, or two sentences"},
	{regexp.MustCompile(`\btold\b`), "reported, returned"},
	{regexp.MustCompile(`\bis to be\b`), "an active verb: retained, pending"},
	{regexp.MustCompile(`\bgoes on\b`), "continues"},
	{regexp.MustCompile(`\banew\b`), "again"},
	{regexp.MustCompile(`\bso many\b`), "n, at most n"},
}

// plainNo are sentences with "is no" that are plain English.
var plainNo = regexp.MustCompile(`(?i)\bthere is no\b|\bis no (longer|more)\b`)

// plainSoFar are the checked texts: documents, and folders with all files below them.
var plainSoFar = []string{
	"README.md", "CONTRIBUTING.md", "CHANGELOG.md",
	"docs/access.md", "docs/bigtable.md", "docs/console.md", "docs/control.md", "docs/dynamodb.md", "docs/guide.md",
	"docs/performance.md", "docs/reliability.md", "docs/scale.md", "docs/serve.md", "docs/testkit.md",
	"docs/notes",
	"doc.go", "fixtures", "internal", "migrate",
	"cmd", "conformance", "control", "emu", "engine", "facade", "testkit",
}

// quoted are files whose texts copy a service's, with the reason.
var quoted = map[string]string{
	"facade/awserr":        "the error texts of DynamoDB, byte for byte",
	"emu/internal/refusal": "the status texts of Bigtable, byte for byte",
}

// below reports whether a file is the folder or inside it.
func below(file, folder string) bool {
	return file == folder || strings.HasPrefix(file, folder+"/")
}

// TestWords checks that package comments, doc comments of exported names, strings and
// documents do not use wordy phrases.
func TestWords(t *testing.T) {
	t.Parallel()
	read := map[string]bool{}
	isPlain := func(file string) bool {
		for _, folder := range plainSoFar {
			if below(file, folder) {
				read[folder] = true
				return true
			}
		}
		return false
	}
	for _, f := range productionFiles(t) {
		if !isPlain(f.path) || f.generated {
			continue
		}
		for _, comment := range docComments(f.tree) {
			checkWords(t, f.path, comment)
		}
		copied := false
		for folder := range quoted {
			copied = copied || below(f.path, folder)
		}
		if !copied {
			for _, text := range stringLiterals(f.tree) {
				checkWords(t, f.path, text)
			}
		}
	}
	documents, err := filepath.Glob(filepath.Join(root, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		more, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, more...)
	}
	for _, name := range documents {
		rel, err := filepath.Rel(root, name)
		if err != nil {
			t.Fatal(err)
		}
		if rel = filepath.ToSlash(rel); isPlain(rel) {
			checkWords(t, rel, prose(readRepoFile(t, rel)))
		}
	}
	for _, folder := range plainSoFar {
		if !read[folder] {
			t.Errorf("plainSoFar has %s, which does not exist", folder)
		}
	}
	for folder := range quoted {
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(folder))); err != nil {
			t.Errorf("quoted has %s, which does not exist", folder)
		}
	}
}

// checkWords reports the wordy phrases of a text.
func checkWords(t *testing.T, file, text string) {
	t.Helper()
	for _, found := range wordyIn(text) {
		t.Errorf("%s: %s", file, found)
	}
}

// wordyIn returns each wordy phrase of a text in its context, with the plain alternative.
func wordyIn(text string) (found []string) {
	text = plainNo.ReplaceAllString(text, "")
	for _, w := range wordy {
		for _, at := range w.phrase.FindAllStringIndex(text, -1) {
			from, to := max(at[0]-40, 0), min(at[1]+40, len(text))
			found = append(found, fmt.Sprintf("%q in %q: write %s", text[at[0]:at[1]], text[from:to], w.plain))
		}
	}
	return found
}

// code matches the parts of a document that show code or output.
var code = regexp.MustCompile("(?ms)^```.*?^```|`[^`\n]*`|^    [^\n]*$")

// prose returns a document without code and output.
func prose(document string) string { return code.ReplaceAllString(document, "") }

// docComments returns the package comment and the doc comments of exported names, with
// those of their fields and methods.
func docComments(file *ast.File) []string {
	comments := []*ast.CommentGroup{file.Doc}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Name.IsExported() {
				comments = append(comments, decl.Doc)
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					if spec.Names[0].IsExported() {
						comments = append(comments, decl.Doc, spec.Doc, spec.Comment)
					}
				case *ast.TypeSpec:
					if !spec.Name.IsExported() {
						continue
					}
					comments = append(comments, decl.Doc, spec.Doc, spec.Comment)
					ast.Inspect(spec.Type, func(n ast.Node) bool {
						if field, ok := n.(*ast.Field); ok && (len(field.Names) == 0 || field.Names[0].IsExported()) {
							comments = append(comments, field.Doc, field.Comment)
						}
						return true
					})
				}
			}
		}
	}
	var texts []string
	for _, comment := range comments {
		if comment != nil {
			texts = append(texts, strings.ReplaceAll(comment.Text(), "\n", " "))
		}
	}
	return texts
}

// stringLiterals returns the strings of a file, except for the paths of its imports.
func stringLiterals(file *ast.File) []string {
	var texts []string
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				texts = append(texts, n.Value)
			}
		}
		return true
	})
	return texts
}

// TestWords_Finds checks that the lint finds a phrase, and accepts plain sentences.
func TestWords_Finds(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"0s is no time":                  true,
		"nil if there is none":           true,
		"a list of which it is the last": true,
		"There is no row.":               false,
		"It is no longer open.":          false,
		"untold":                         false,
	} {
		if found := wordyIn(text); len(found) > 0 != want {
			t.Errorf("%q: found %q, want some: %t", text, found, want)
		}
	}
	if got := prose("a `so many` b\n```\ntold\n```\n    anew\nc"); strings.Contains(got, "told") || strings.Contains(got, "anew") || strings.Contains(got, "so many") {
		t.Errorf("prose has code: %q", got)
	}
}
