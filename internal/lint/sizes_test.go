package lint

import (
	"go/ast"
	"path"
	"testing"
)

// The sizes that a reader can hold. Files that are generated do not count, nor
// do those that are embedded.
const (
	maxFileLines    = 700
	maxPackageLines = 7500
	maxMethods      = 60
)

// perRequest are the types that have a method for each RPC or operation.
var perRequest = map[string]bool{"emu.Server": true, "facade.Server": true}

// TestSizes keeps files, packages and types of production code small.
func TestSizes(t *testing.T) {
	t.Parallel()
	packages, methods := map[string]int{}, map[string]int{}
	for _, f := range productionFiles(t) {
		if f.generated {
			continue
		}
		folder := path.Dir(f.path)
		if f.lines > maxFileLines {
			t.Errorf("%s has %d lines; want at most %d", f.path, f.lines, maxFileLines)
		}
		packages[folder] += f.lines
		for _, d := range f.tree.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
				methods[folder+"."+receiverName(fn)]++
			}
		}
	}
	for folder, lines := range packages {
		if lines > maxPackageLines {
			t.Errorf("package %s has %d lines; want at most %d", folder, lines, maxPackageLines)
		}
	}
	for name, n := range methods {
		if n > maxMethods && !perRequest[name] {
			t.Errorf("type %s has %d methods; want at most %d", name, n, maxMethods)
		}
	}
	for name := range perRequest {
		if methods[name] == 0 {
			t.Errorf("there is no type %s with methods", name)
		}
	}
}
