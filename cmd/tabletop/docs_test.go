package main

import (
	"os"
	"strings"
	"testing"
)

// TestServeDocs checks that docs/serve.md names every flag of serve.
func TestServeDocs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	app, err := (&program{}).parser(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	flags := 0
	for _, command := range app.Model.Children {
		if command.Name != "serve" {
			continue
		}
		for _, flag := range command.Flags {
			flags++
			if !strings.Contains(string(text), "`--"+flag.Name) {
				t.Errorf("docs/serve.md does not name --%s: %s", flag.Name, flag.Help)
			}
		}
	}
	if flags < 10 {
		t.Fatalf("serve has %d flags", flags)
	}
}
