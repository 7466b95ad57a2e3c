package awserr

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"testing"
)

// Each text has one constant. Where two operations share a text, they share its constant.
func TestTexts_Once(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("texts_*.go")
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, path := range paths {
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	pkg, err := new(types.Config).Check("awserr", fset, files, nil)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for _, name := range pkg.Scope().Names() {
		text := constant.StringVal(pkg.Scope().Lookup(name).(*types.Const).Val())
		if other := names[text]; other != "" {
			t.Errorf("%s and %s are both %q", other, name, text)
		}
		names[text] = name
	}
	if len(names) == 0 {
		t.Error("the package has no text")
	}
}
