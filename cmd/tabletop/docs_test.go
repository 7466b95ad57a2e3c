package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestServeDocs checks that docs/serve.md has a table for each group of flags of serve, in the
// order of the help, with all its flags.
func TestServeDocs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	app, err := newParser("serve")
	if err != nil {
		t.Fatal(err)
	}
	rest := string(text)
	flags := 0
	for _, g := range flagGroups(app.Model.Leaves(true)[0]) {
		if g.title == commonGroup {
			continue
		}
		_, after, ok := strings.Cut(rest, "\n| "+g.title+" |")
		if !ok {
			t.Fatalf("docs/serve.md has no table %s after\n%s", g.title, rest)
		}
		table, _, _ := strings.Cut(after, "\n\n")
		for _, flag := range g.flags {
			flags++
			if !regexp.MustCompile("`--" + flag.Name + "[ `]").MatchString(table) {
				t.Errorf("docs/serve.md does not name --%s in the table %s: %s", flag.Name, g.title, flag.Help)
			}
		}
		rest = after
	}
	if flags < 10 {
		t.Fatalf("serve has %d flags", flags)
	}
}
