package lint

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/tabletop-emu/tabletop"

// root is the module's folder, relative to this package's.
const root = "../../.."

// goFile is a Go file of the module.
type goFile struct {
	path      string // from the module's folder, with slashes
	test      bool
	generated bool
	lines     int
	imports   []string
	tree      *ast.File // without comments in a test
}

// goFiles returns the Go files of the module.
func goFiles(t *testing.T) []goFile {
	t.Helper()
	files, err := readModule()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("no source files below %s", root)
	}
	return files
}

// productionFiles returns the files that are not tests.
func productionFiles(t *testing.T) []goFile {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(goFiles(t)), func(f goFile) bool { return f.test })
}

var readModule = sync.OnceValues(func() (files []goFile, err error) {
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			// Nested modules, and folders without source.
			if rel != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules" || rel == "tools" || rel == "examples" || rel == "bin") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") {
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		f := goFile{path: rel, test: strings.HasSuffix(rel, "_test.go"), lines: bytes.Count(text, []byte("\n"))}
		mode := parser.SkipObjectResolution
		if !f.test {
			mode |= parser.ParseComments
		}
		if f.tree, err = parser.ParseFile(token.NewFileSet(), p, text, mode); err != nil {
			return err
		}
		f.generated = ast.IsGenerated(f.tree)
		for _, spec := range f.tree.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			f.imports = append(f.imports, imported)
		}
		files = append(files, f)
		return nil
	})
	return files, err
})

// readRepoFile returns a file of the module.
func readRepoFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
