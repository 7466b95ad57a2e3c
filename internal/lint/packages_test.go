package lint

import (
	"path"
	"regexp"
	"testing"
)

// TestPackages keeps the map in doc.go whole: it names every package, by its
// path from the module's folder.
func TestPackages(t *testing.T) {
	t.Parallel()
	text := readRepoFile(t, "doc.go")
	seen := map[string]bool{".": true}
	for _, f := range goFiles(t) {
		folder := path.Dir(f.path)
		if seen[folder] {
			continue
		}
		seen[folder] = true
		if !regexp.MustCompile(`[ (]` + regexp.QuoteMeta(folder) + `[ ,;:)\n]`).MatchString(text) {
			t.Errorf("doc.go does not name the package %s", folder)
		}
	}
	if len(seen) < 30 {
		t.Errorf("%d packages were found, which cannot be all", len(seen))
	}
}
