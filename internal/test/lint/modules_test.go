package lint

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// notLooped holds modules without code of the project.
var notLooped = []string{".", "tools"}

// TestModules checks that the Makefile's loops over modules include each one: go test ./...
// and the linters do not leave their module.
func TestModules(t *testing.T) {
	t.Parallel()
	m := regexp.MustCompile(`(?m)^MODULES := (.*)$`).FindStringSubmatch(readRepoFile(t, "Makefile"))
	if m == nil {
		t.Fatal("the Makefile does not define MODULES")
	}
	looped := strings.Fields(m[1])
	var found []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules" || d.Name() == "bin"):
			return filepath.SkipDir
		case d.Name() != "go.mod":
			return nil
		}
		folder, err := filepath.Rel(root, filepath.Dir(p))
		found = append(found, filepath.ToSlash(folder))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := slices.DeleteFunc(found, func(folder string) bool { return slices.Contains(notLooped, folder) })
	slices.Sort(want)
	if slices.Sort(looped); !slices.Equal(looped, want) {
		t.Errorf("MODULES of the Makefile are %v, want %v", looped, want)
	}
}
