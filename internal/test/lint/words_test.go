package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// phrase is a phrase that a reader has to decode, with a plain alternative.
type phrase struct {
	phrase pattern
	plain  string
}

// wordy holds the phrases that documents, strings and exported doc comments avoid.
var wordy = []phrase{
	{newPattern(`\bis none\b`), "name the case: not found, unset, empty"},
	{newPattern(`\bis no [\w%]+`), "is not a ..., or must be ..."},
	{newPattern(`\bof which\b`), "whose, or two sentences"},
	{newPattern(`\btold\b`), "reported, returned"},
	{newPattern(`\bis to be\b`), "an active verb: retained, pending"},
	{newPattern(`\bgoes on\b`), "continues"},
	{newPattern(`\banew\b`), "again"},
	{newPattern(`\bso many\b`), "n, at most n"},
}

// dialect holds further phrases to decode. All comments of the folders of plainComments avoid
// them, those of unexported names, fields and statements too.
var dialect = []phrase{
	{newPattern(`\bare none\b`), "without any, empty"},
	{newPattern(`\bare to be\b`), "an active verb: must, pending"},
	{newPattern(`\b(may|can) be had\b`), "is available"},
	{newPattern(`\bgo on\b`), "continue"},
	{newPattern(`\bby itself\b`), "alone, automatically"},
	{newPattern(`\bunder way\b`), "running"},
	{newPattern(`\b(is|are) gone\b`), "was deleted"},
	{newPattern(`\bcomes? to (be|its|their)\b`), "becomes, ends"},
	{newPattern(`\b(gives?|given) back\b`), "frees, returns"},
	{newPattern(`\bbut for\b`), "except for"},
	{newPattern(`\bthat there (is|are)\b`), "existing"},
	{newPattern(`\b(is|are) what\b`), "the verb of the thing: X does Z"},
	{newPattern(`\bwhat (is|was|becomes|became|comes|came|goes|went)\b`), "a noun: the result, retained data"},
	{newPattern(`\btells? (whether|that|of|if)\b`), "reports, notifies"},
	{newPattern(`\bsays (whether|what|which|why|who|when)\b`), "reports, selects, describes"},
	{newPattern(`^\w+ (says|tells)\b`), "reports, returns, notifies"},
	{newPattern(`^\w+ (is|are) (that|those) of\b`), "repeat the noun, or returns the ... of"},
	{newPattern(`\b[wW]ho (waits|asks|reads|writes|has)\b`), "the caller, the reader"},
	{newPattern(`\b([nN]o|[sS]ome)body\b`), "name the actor, or the passive"},
}

// plainNo matches sentences with the phrases that are plain English.
var plainNo = regexp.MustCompile(`(?i)\bthere is no\b|\bis no (longer|more)\b|\b(all|each|half|one|some) of which\b`)

// plainComments are folders in which all comments are checked.
var plainComments = []string{"cmd", "conformance", "control", "emu", "engine", "facade", "fixtures", "internal", "migrate", "testkit"}

// plainSoFar holds the checked texts: documents, and folders with all files below them.
var plainSoFar = []string{
	"README.md", "CONTRIBUTING.md", "CHANGELOG.md",
	"docs",
	"doc.go", "fixtures", "internal", "migrate",
	"cmd", "conformance", "control", "emu", "engine", "facade", "testkit",
}

// quoted holds files whose texts copy a service's, with the reason.
var quoted = map[string]string{
	"facade/awserr":        "the error texts of DynamoDB, byte for byte",
	"emu/internal/refusal": "the status texts of Bigtable, byte for byte",
}

// below reports whether a file is the folder or inside it.
func below(file, folder string) bool {
	return file == folder || strings.HasPrefix(file, folder+"/")
}

// TestWords checks that package comments, doc comments of exported names, strings, documents and
// scripts do not use wordy phrases, and no comment of plainComments uses the dialect.
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
		if slices.ContainsFunc(plainComments, func(folder string) bool { return below(f.path, folder) }) {
			for _, comment := range f.tree.Comments {
				text := strings.ReplaceAll(strings.TrimSpace(comment.Text()), "\n", " ")
				for _, found := range dialectIn(text) {
					t.Errorf("%s: %s", f.path, found)
				}
			}
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
	scripts, err := filepath.Glob(filepath.Join(root, "control/console/static/*.js"))
	if err != nil || len(scripts) == 0 {
		t.Errorf("the scripts of the console are missing: %v", err)
	}
	for _, name := range scripts {
		if rel := path.Join("control/console/static", filepath.Base(name)); path.Base(rel) != "codemirror.js" { // a bundle of others
			checkWords(t, rel, readRepoFile(t, rel))
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
func wordyIn(text string) []string { return phrasesIn(text, wordy) }

// dialectIn is like wordyIn, with the further phrases of dialect.
func dialectIn(text string) []string { return phrasesIn(text, wordyAndDialect) }

var wordyAndDialect = slices.Concat(wordy, dialect)

func phrasesIn(text string, phrases []phrase) (found []string) {
	if !slices.ContainsFunc(phrases, func(w phrase) bool { return w.phrase.MatchString(text) }) {
		return nil
	}
	text = plainNo.ReplaceAllString(text, "")
	for _, w := range phrases {
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
		"%q is no %s":                    true,
		"two rows, one of which is old":  false,
	} {
		if found := wordyIn(text); len(found) > 0 != want {
			t.Errorf("%q: found %q, want some: %t", text, found, want)
		}
	}
	for text, want := range map[string]bool{
		"next is what comes then":    true,
		"keys are those of the rows": true,
		"reads says when it reads":   true,
		"a row that nobody reads":    true,
		"keys returns the row keys":  false,
		"a mark to tell rows apart":  false,
		"It tells of rows.":          true,
		"0s is no time":              true,
	} {
		if found := dialectIn(text); len(found) > 0 != want {
			t.Errorf("%q: found %q in a comment, want some: %t", text, found, want)
		}
	}
	if got := prose("a `so many` b\n```\ntold\n```\n    anew\nc"); strings.Contains(got, "told") || strings.Contains(got, "anew") || strings.Contains(got, "so many") {
		t.Errorf("prose has code: %q", got)
	}
}
