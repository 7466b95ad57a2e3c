// Package shownby finds the tests that lists of what must be shown name.
package shownby

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Find returns an error unless there is what shows something, seen from a package whose
// way to the module's folder is root: a test or a fuzz target, as Name, Name/subtest or
// package/path:Name, where the subtest stands in the same file; or a file of cases below
// testdata, by its path.
func Find(root, what string) error {
	if strings.HasPrefix(what, "testdata/") {
		_, err := os.Stat(filepath.FromSlash(what))
		return err
	}
	dir, name := ".", what
	if pkg, rest, ok := strings.Cut(what, ":"); ok {
		dir, name = filepath.Join(root, filepath.FromSlash(pkg)), rest
	}
	test, sub, _ := strings.Cut(name, "/")
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if strings.Contains(string(text), "\nfunc "+test+"(") && strings.Contains(string(text), `"`+sub) {
			return nil
		}
	}
	return fmt.Errorf("there is no %s in %s", name, dir)
}
