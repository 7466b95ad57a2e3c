package lint

import "testing"

// maxFileLines is the length that a reader still scrolls through. Generated files do not
// count.
const maxFileLines = 700

// TestSizes checks that files of production code are short.
func TestSizes(t *testing.T) {
	t.Parallel()
	for _, f := range productionFiles(t) {
		if !f.generated && f.lines > maxFileLines {
			t.Errorf("%s has %d lines; want at most %d", f.path, f.lines, maxFileLines)
		}
	}
}
