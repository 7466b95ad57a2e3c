package lint

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPackages checks that the maps are complete: doc.go, or the doc.go of a folder above it,
// names every package, by its path from the module's folder or from the folder's internal.
func TestPackages(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{".": true}
	for _, f := range goFiles(t) {
		folder := path.Dir(f.path)
		if seen[folder] {
			continue
		}
		seen[folder] = true
		named := false
		for above := path.Dir(folder); !named; above = path.Dir(above) {
			if text, err := os.ReadFile(filepath.Join(root, above, "doc.go")); err == nil {
				named = mapNames(string(text), folder) || mapNames(string(text), strings.TrimPrefix(folder, above+"/internal/")) ||
					mapNames(string(text), strings.TrimPrefix(folder, above+"/"))
			}
			if above == "." {
				break
			}
		}
		if !named {
			t.Errorf("neither doc.go nor the doc.go of a folder above %s names it", folder)
		}
	}
	if len(seen) < 30 {
		t.Errorf("%d packages were found, which cannot be all", len(seen))
	}
}

// mapNames reports whether a map names a folder.
func mapNames(text, folder string) bool {
	return regexp.MustCompile(`[ (/]` + regexp.QuoteMeta(folder) + `[ ,;:)\n]`).MatchString(text)
}

// repoPath is a path from the module's folder in a text: group 1 is the path, 2 the text after
// it. Patterns of paths do not count.
var repoPath = regexp.MustCompile(`(?m)(?:^|[\s("'\x60\[])((?:cmd|clients|conformance|control|docs|emu|engine|facade|fixtures|internal|migrate|testkit)/[A-Za-z0-9_./-]+)([<*{$]?)`)

// link is a link of a document to a file: group 1 is the path from the document's folder.
var link = regexp.MustCompile(`\]\(([^():#\s]+)(?:#[^)\s]*)?\)`)

// elsewhere has texts that look like paths of the module but are not, by file and beginning.
var elsewhere = map[string]string{
	"docs/guide.md":                         "fixtures/s2-video", // in the reader's folder
	"docs/control.md":                       "migrate/",          // below /api/v1
	"docs/performance.md":                   "migrate/",          // names of measurements
	"conformance/bigtable-client/README.md": "internal/option/",  // of the Go client
}

// TestPathsExist checks that the files and folders named in documents and package comments
// exist.
func TestPathsExist(t *testing.T) {
	t.Parallel()
	found := 0
	check := func(file, named string) {
		found++
		_, err := os.Stat(filepath.Join(root, filepath.FromSlash(named)))
		if _, below := os.Stat(filepath.Join(root, path.Dir(file), filepath.FromSlash(named))); err != nil && below != nil {
			t.Errorf("%s names %s, which does not exist", file, named)
		}
	}
	walk := func(file string, text string) {
		for _, m := range repoPath.FindAllStringSubmatch(text, -1) {
			if prefix, ok := elsewhere[file]; m[2] == "" && (!ok || !strings.HasPrefix(m[1], prefix)) {
				check(file, strings.TrimRight(m[1], ".-/"))
			}
		}
	}
	for _, f := range goFiles(t) {
		if path.Base(f.path) == "doc.go" {
			walk(f.path, readRepoFile(t, f.path))
		}
	}
	err := fs.WalkDir(os.DirFS(root), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || d.Name() == "testdata" || p == "bin") {
			return fs.SkipDir
		}
		if path.Ext(p) == ".md" && p != "CHANGELOG.md" {
			text := readRepoFile(t, p)
			walk(p, text)
			for _, m := range link.FindAllStringSubmatch(text, -1) {
				check(p, path.Join(path.Dir(p), m[1]))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 100 {
		t.Errorf("%d paths were found, which cannot be all", found)
	}
}
