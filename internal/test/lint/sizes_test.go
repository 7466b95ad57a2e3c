package lint

import "testing"

// maxFileLines is what a reader scrolls through. Generated files do not count.
const maxFileLines = 700

// TestSizes keeps files of production code short.
func TestSizes(t *testing.T) {
	t.Parallel()
	for _, f := range productionFiles(t) {
		if !f.generated && f.lines > maxFileLines {
			t.Errorf("%s has %d lines; want at most %d", f.path, f.lines, maxFileLines)
		}
	}
}
