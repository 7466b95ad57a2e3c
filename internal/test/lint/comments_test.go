package lint

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/internal/test/race"
)

// inCamelCase returns the words of a text that can only be names in code, on the wire or in a file.
// A regular expression takes five times as long.
func inCamelCase(text string) (words []string) {
	lower := func(c rune) bool { return 'a' <= c && c <= 'z' }
	upper := func(c rune) bool { return 'A' <= c && c <= 'Z' }
	other := func(c rune) bool { return c != '_' && !lower(c) && !upper(c) && (c < '0' || c > '9') }
	for word := range strings.FieldsFuncSeq(text, other) {
		if lower(rune(word[0])) && strings.ContainsFunc(word, upper) && !strings.Contains(word, "_") {
			words = append(words, word)
		}
	}
	return words
}

// TestCommentsNameWhatExists rejects comments that name renamed or removed code: an unexported
// name in a comment must be a name, or a word of a text, of some production file.
func TestCommentsNameWhatExists(t *testing.T) {
	race.OneAfterTheOther(t)
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
					for _, word := range inCamelCase(n.Value) {
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
				for _, word := range inCamelCase(c.Text) {
					if !known[word] {
						t.Errorf("%s: a comment names %s, which does not exist: %s", f.path, word, c.Text)
					}
				}
			}
		}
	}
}

// docLink is a link of a doc comment: a name, perhaps of another package, with a method or
// field. Group 1 is the package, 2 the name, 3 the method or field.
var docLink = newPattern(`(?:^|[\s("'])\[\*?(?:([a-z][a-z0-9]*)\.)?([A-Z]\w*)(?:\.([A-Z]\w*))?\](?:$|[\s.,:;)'"])`)

// optionName is a field of options, with the name of their type; groups as in docLink.
var optionName = newPattern(`(?:\b([a-z][a-z0-9]*)\.)?\b(\w*Options)\.([A-Z]\w*)`)

// TestDocLinksResolve checks that doc links and the names of options exist in the package of
// the comment, or in the one that they name.
func TestDocLinksResolve(t *testing.T) {
	race.OneAfterTheOther(t)
	t.Parallel()
	files := productionFiles(t)
	declared := map[string]*declarations{} // by folder
	named := map[string][]string{}         // folders by the name of their package
	for _, f := range files {
		folder := path.Dir(f.path)
		if declared[folder] == nil {
			declared[folder] = newDeclarations()
			named[f.tree.Name.Name] = append(named[f.tree.Name.Name], folder)
		}
		declared[folder].read(f.tree)
	}
	found := 0
	for _, f := range files {
		folder := path.Dir(f.path)
		for _, group := range f.tree.Comments {
			for _, c := range group.List {
				for _, m := range slices.Concat(docLink.FindAllStringSubmatch(c.Text, -1), optionName.FindAllStringSubmatch(c.Text, -1)) {
					in := []string{folder}
					if m[1] != "" && m[1] != f.tree.Name.Name {
						if in = named[m[1]]; len(in) == 0 {
							continue // of another module
						}
					}
					found++
					if !slices.ContainsFunc(in, func(folder string) bool { return declared[folder].has(m[2], m[3]) }) {
						t.Errorf("%s: a comment names %s, which does not exist: %s", f.path, strings.Trim(m[0], " \t"), c.Text)
					}
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("%d names were found, which cannot be all", found)
	}
}

// declarations are the declarations of a package.
type declarations struct {
	names    map[string]bool
	members  map[string]map[string]bool // fields and methods by type
	embedded map[string][]string        // types of the package in others
	open     map[string]bool            // types of another package, or with an embedded type of one
}

func newDeclarations() *declarations {
	return &declarations{names: map[string]bool{}, members: map[string]map[string]bool{}, embedded: map[string][]string{}, open: map[string]bool{}}
}

// has reports whether a name is declared and, unless member is "", has that field or method.
func (d *declarations) has(name, member string) bool {
	if member == "" || !d.names[name] {
		return d.names[name]
	}
	return d.open[name] || d.members[name][member] || slices.ContainsFunc(d.embedded[name], func(in string) bool { return d.has(in, member) })
}

func (d *declarations) member(of, name string) {
	if d.members[of] == nil {
		d.members[of] = map[string]bool{}
	}
	d.members[of][name] = true
}

// read adds the declarations of a file.
func (d *declarations) read(tree *ast.File) {
	for _, decl := range tree.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil {
				d.names[decl.Name.Name] = true
				continue
			}
			if of := baseName(decl.Recv.List[0].Type); of != "" {
				d.member(of, decl.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						d.names[name.Name] = true
					}
				case *ast.TypeSpec:
					d.names[spec.Name.Name] = true
					d.readType(spec.Name.Name, spec.Type)
				}
			}
		}
	}
}

func (d *declarations) readType(name string, typ ast.Expr) {
	var fields []*ast.Field
	switch typ := typ.(type) {
	case *ast.StructType:
		fields = typ.Fields.List
	case *ast.InterfaceType:
		fields = typ.Methods.List
	case *ast.Ident:
		d.embedded[name] = append(d.embedded[name], typ.Name)
	default:
		d.open[name] = true
	}
	for _, field := range fields {
		for _, n := range field.Names {
			d.member(name, n.Name)
		}
		if len(field.Names) > 0 {
			continue
		}
		if in := baseName(field.Type); in != "" {
			d.member(name, in)
			d.embedded[name] = append(d.embedded[name], in)
		} else {
			d.open[name] = true
		}
	}
}

// baseName returns the name of a type of the same package, "" for another.
func baseName(typ ast.Expr) string {
	switch typ := typ.(type) {
	case *ast.Ident:
		return typ.Name
	case *ast.StarExpr:
		return baseName(typ.X)
	case *ast.IndexExpr:
		return baseName(typ.X)
	case *ast.IndexListExpr:
		return baseName(typ.X)
	}
	return ""
}
