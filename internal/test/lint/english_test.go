package lint

import (
	"path"
	"regexp"
	"testing"
)

// packageComment is the beginning of a package's comment: group 1 is the verb.
var packageComment = regexp.MustCompile(`^(?:Package|Command) [a-z0-9-]+ ([a-z]+)\b`)

// noVerb holds words that do not begin a description of the package's work.
var noVerb = map[string]bool{"is": true, "has": true, "was": true, "knows": true, "says": true, "tells": true, "stands": true, "does": true, "makes": true}

// TestPackageComments checks that each package has one comment, which begins with a verb:
// "Package watch wakes readers that wait for new keys in a range."
func TestPackageComments(t *testing.T) {
	t.Parallel()
	commented := map[string]string{}
	for _, f := range goFiles(t) {
		folder := path.Dir(f.path)
		if f.tree.Doc == nil {
			if _, ok := commented[folder]; !ok && !f.test {
				commented[folder] = ""
			}
			continue
		}
		if commented[folder] != "" {
			t.Errorf("%s and %s both have a package comment", commented[folder], f.path)
		}
		commented[folder] = f.path
		m := packageComment.FindStringSubmatch(f.tree.Doc.Text())
		if m == nil {
			t.Errorf("%s: a package comment begins with Package NAME and a verb: %.60q", f.path, f.tree.Doc.Text())
		} else if noVerb[m[1]] && folder != "." {
			t.Errorf("%s: name what the package does with an active verb instead of %q", f.path, m[1])
		}
	}
	for folder, file := range commented {
		if file == "" {
			t.Errorf("package %s has no comment", folder)
		}
	}
}
