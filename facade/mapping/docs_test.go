package mapping

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestDocsMappings checks that the mapping files in docs/mapping.md are valid.
func TestDocsMappings(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/mapping.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "```yaml\napiVersion:")[1:]
	if len(blocks) < 2 {
		t.Fatalf("docs/mapping.md shows %d mappings, want at least 2", len(blocks))
	}
	for i, block := range blocks {
		text, _, _ := strings.Cut("apiVersion:"+block, "```")
		if _, err := Load(fmt.Sprintf("docs/mapping.md, mapping %d", i+1), []byte(text)); err != nil {
			t.Error(err)
		}
	}
}
