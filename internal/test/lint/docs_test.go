package lint

import (
	"strings"
	"testing"
)

// TestSQLPage checks that the Go test of docs/sql.md is the one that the tests run.
func TestSQLPage(t *testing.T) {
	t.Parallel()
	_, shown, _ := strings.Cut(readRepoFile(t, "docs/sql.md"), "```go\npackage orders\n")
	shown, _, _ = strings.Cut(shown, "```")
	const file = "testkit/btkit/sql_page_test.go"
	if ran := strings.TrimPrefix(readRepoFile(t, file), "package btkit_test\n"); shown != ran {
		t.Errorf("the Go test of docs/sql.md is not that of %s, after the package:\n%s", file, shown)
	}
}
