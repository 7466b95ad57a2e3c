package mapping

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// api holds the exported functions, types and methods of the package. Anything that users of
// the Go API do not need belongs to internal/layout.
var api = []string{
	"Cell", "Class", "Compile", "Default",
	"Family", "Fidelity", "Fidelity.String", "JSONSchema", "Load",
	"Mapping", "Mapping.Families", "Mapping.Fidelity", "Mapping.Item", "Mapping.Items", "Mapping.Locate",
	"Mapping.Place", "Mapping.SourceTable", "Mapping.Spec", "Mapping.TargetTable",
	"Parse", "Placed", "Row", "Spec", "Spec.YAML",
}

// TestAPI checks that list, and that it has at most 30 names.
func TestAPI(t *testing.T) {
	t.Parallel()
	got := exportedNames(t)
	if diff := cmp.Diff(api, got); diff != "" {
		t.Errorf("exported names (-promised +found):\n%s", diff)
	}
	if len(got) > 30 {
		t.Errorf("%d exported names; want at most 30", len(got))
	}
}

// exportedNames returns the exported functions, types and methods of the package, sorted,
// without methods of other packages' types.
func exportedNames(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			names = append(names, declared(d)...)
		}
	}
	slices.Sort(names)
	return names
}

// declared returns the exported functions, types and methods of a declaration.
func declared(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if !d.Name.IsExported() {
			return nil
		}
		if d.Recv == nil {
			return []string{d.Name.Name}
		}
		of := d.Recv.List[0].Type
		if star, ok := of.(*ast.StarExpr); ok {
			of = star.X
		}
		return []string{of.(*ast.Ident).Name + "." + d.Name.Name}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if of, ok := spec.(*ast.TypeSpec); ok && of.Name.IsExported() {
				names = append(names, of.Name.Name)
			}
		}
	}
	return names
}
