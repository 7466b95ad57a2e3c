package lint

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/tabletop-emu/tabletop"

// root is the module's folder, seen from this package's.
const root = "../.."

// layers says what the packages at and below a folder may not import outside
// of their tests. The first row whose folder matches decides.
var layers = []struct {
	folder string
	denied []string
	why    string
}{
	{"engine", []string{
		module + "/emu", module + "/facade", module + "/fixtures", module + "/testkit",
		"google.golang.org/grpc", "google.golang.org/protobuf", "cloud.google.com/go",
	}, "the engine is the bottom layer: bytes in, bytes out"},
	{
		"emu",
		[]string{module + "/facade", module + "/fixtures", module + "/testkit", "github.com/cockroachdb/pebble"},
		"the emulator serves an engine and knows nothing above it",
	},
	{"facade/attr", []string{module + "/", "google.golang.org/grpc", "cloud.google.com/go"}, "values stand alone"},
	{"facade/expr", []string{
		module + "/engine", module + "/emu", module + "/facade/mapping", module + "/internal/layout", module + "/fixtures",
		"google.golang.org/grpc", "cloud.google.com/go",
	}, "expressions know values and nothing of storage"},
	{"internal/layout", []string{
		module + "/engine", module + "/emu", module + "/facade/expr", module + "/fixtures",
		"google.golang.org/grpc", "cloud.google.com/go",
	}, "a mapping is a pair of functions between items and rows"},
	{
		"facade",
		[]string{module + "/engine", module + "/emu", module + "/fixtures", module + "/testkit", module + "/internal/inproc", "github.com/cockroachdb/pebble"},
		"the facade acts through the Bigtable API of a connection",
	},
	{
		"fixtures",
		[]string{module + "/engine", module + "/emu", module + "/testkit", module + "/internal/inproc", "github.com/cockroachdb/pebble"},
		"fixtures take a connection",
	},
	{"cmd", []string{module + "/testkit", "github.com/cockroachdb/pebble"}, "a command links no test code"},
	{"internal/cells", []string{module + "/", "google.golang.org", "cloud.google.com/go"}, "who knows what rows mean links no gRPC"},
	{"internal", []string{module + "/facade", module + "/fixtures", module + "/testkit"}, "what is internal serves the layers, not the other way round"},
}

// onlyTestkit lists imports that no package but testkit has outside of tests.
var onlyTestkit = []string{
	"testing", "github.com/stretchr/testify", "github.com/aws/",
	"cloud.google.com/go/bigtable$", "cloud.google.com/go/bigtable/bttest",
}

func TestLayering(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, f := range productionFiles(t) {
		folder := path.Dir(f.path)
		for _, imported := range f.imports {
			for _, denied := range onlyTestkit {
				if !within(folder, "testkit") && matches(imported, denied) {
					t.Errorf("%s imports %s: only testkit does", f.path, imported)
				}
			}
			for _, l := range layers {
				if !within(folder, l.folder) {
					continue
				}
				seen[l.folder] = true
				for _, denied := range l.denied {
					if matches(imported, denied) && !within(strings.TrimPrefix(imported, module+"/"), l.folder) {
						t.Errorf("%s imports %s: %s", f.path, imported, l.why)
					}
				}
				break
			}
		}
	}
	for _, l := range layers {
		if !seen[l.folder] {
			t.Errorf("no package with imports at or below %s: the rule checks nothing", l.folder)
		}
	}
}

// within tells whether folder is parent or lies below it.
func within(folder, parent string) bool {
	return folder == parent || strings.HasPrefix(folder, parent+"/")
}

// matches tells whether an import path is denied: pattern is a prefix of it,
// or all of it if it ends in "$".
func matches(imported, pattern string) bool {
	if whole, ok := strings.CutSuffix(pattern, "$"); ok {
		return imported == whole
	}
	if pattern == "testing" {
		return imported == "testing" || strings.HasPrefix(imported, "testing/")
	}
	return strings.HasPrefix(imported, pattern)
}

type sourceFile struct {
	path    string // from the module's folder, with slashes
	imports []string
}

// productionFiles parses the imports of every Go file of the module that is
// not a test.
func productionFiles(t *testing.T) []sourceFile {
	t.Helper()
	var files []sourceFile
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			// Modules of their own, and what is not source.
			if rel != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || rel == "tools" || rel == "bin") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		f := sourceFile{path: rel}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			f.imports = append(f.imports, imported)
		}
		files = append(files, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("no source files below %s", root)
	}
	return files
}

// TestNoJunkDrawers keeps files named after what a reader looks up.
func TestNoJunkDrawers(t *testing.T) {
	t.Parallel()
	banned := map[string]bool{"utils": true, "util": true, "helpers": true, "helper": true, "common": true, "types": true, "misc": true}
	for _, f := range productionFiles(t) {
		stem := strings.TrimSuffix(path.Base(f.path), ".go")
		if banned[stem] || banned[path.Base(path.Dir(f.path))] {
			t.Errorf("%s: name it after what a reader looks up", f.path)
		}
	}
}

// readRepoFile returns a file of the module.
func readRepoFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
