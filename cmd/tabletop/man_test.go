package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMan: each command has a page with all its flags, which groff accepts.
func TestMan(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	helpOf(t, 0, "man", "--dir", dir)
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := nodes(t)
	if len(files) != len(all) {
		t.Errorf("there are %d pages of %d commands", len(files), len(all))
	}
	groff := exec.CommandContext(t.Context(), "groff", "-man", "-ww", "-z") // reports the file of a fault
	for _, n := range all {
		file := filepath.Join(dir, manName(n)+".1")
		page, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := helpOf(t, 0, append([]string{"man"}, strings.Fields(n.Path())...)...); got != string(page) {
			t.Errorf("man %s differs from its file", n.Path())
		}
		for _, g := range flagGroups(n) {
			for _, f := range g.flags {
				if !strings.Contains(string(page), ".B \""+roffEscapes.Replace(flagSyntax(f))) {
					t.Errorf("the page of %q lacks --%s", n.Path(), f.Name)
				}
			}
		}
		groff.Args = append(groff.Args, file)
	}
	if out, err := groff.CombinedOutput(); !errors.Is(err, exec.ErrNotFound) && (err != nil || len(out) > 0) {
		t.Errorf("groff: %v\n%s", err, out)
	}
}

// TestRoff: text that roff would interpret is printed as it is.
func TestRoff(t *testing.T) {
	t.Parallel()
	r := &roff{}
	r.text(`.x --a 'b' \c`)
	r.text("'d")
	r.macro("B", `"e" -f`)
	if got, want := r.String(), `\&.x \-\-a \(aqb\(aq \(rsc`+"\n"+`\(aqd`+"\n"+`.B """e"" \-f"`+"\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
