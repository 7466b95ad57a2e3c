package main

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/docs"
)

var updateHelp = flag.Bool("update.help", false, "rewrite testdata/help")

// helpOf runs a command line and returns its output. It must succeed.
func helpOf(t *testing.T, width int, args ...string) string {
	t.Helper()
	var stdout, stderr strings.Builder
	p := &program{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr, helpWidth: width}
	if code := p.run(t.Context(), args); code != exitEqual {
		t.Fatalf("%q exits %d\n%s", args, code, stderr.String())
	}
	return stdout.String()
}

// nodes returns the program and all its commands.
func nodes(t *testing.T) (all []*kong.Node) {
	t.Helper()
	app, err := newParser("")
	if err != nil {
		t.Fatal(err)
	}
	err = kong.Visit(app.Model.Node, func(v kong.Visitable, next kong.Next) error {
		if n, ok := v.(*kong.Node); ok && !n.Hidden {
			all = append(all, n)
		}
		return next(nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestHelp compares the help of each command with testdata/help; -update.help rewrites it. Each
// help fits two screens, and describes or names each flag.
func TestHelp(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, n := range nodes(t) {
		args := append(strings.Fields(n.Path()), "--help")
		text := helpOf(t, mostHelpWidth, args...)
		for i, line := range strings.Split(text, "\n") {
			if len(line) > mostHelpWidth && !strings.HasPrefix(line, "  tabletop ") {
				t.Errorf("%q prints %d columns in line %d", args, len(line), i+1)
			}
		}
		if lines := strings.Count(text, "\n"); lines > 100 {
			t.Errorf("%q prints %d lines", args, lines)
		}
		name := strings.Join(append([]string{"tabletop"}, args[:len(args)-1]...), "-") + ".txt"
		names[name] = true
		file := filepath.Join("testdata", "help", name)
		if *updateHelp {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), text); diff != "" {
			t.Errorf("%q: -want +got\n%s", args, diff)
		}

		args[len(args)-1] = "--help=all"
		whole := helpOf(t, defaultHelpWidth, args...)
		for _, g := range flagGroups(n) {
			if g.title == "Flags" && n.Name != "help" || n.Group != nil && n.Group.Title == g.title+":" { // kong passes it on
				t.Errorf("flags of %q without a group of their own: %v", n.Path(), g.flags)
			}
			for _, f := range g.flags {
				if !strings.Contains(whole, flagSyntax(f)) || !strings.Contains(text, "--"+f.Name) {
					t.Errorf("the help of %q lacks --%s", n.Path(), f.Name)
				}
			}
		}
	}
	files, err := os.ReadDir(filepath.Join("testdata", "help"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !names[f.Name()] {
			t.Errorf("testdata/help/%s is the help of no command", f.Name())
		}
	}
}

// shellWords splits a command line as a shell does. A quoted word is in single quotes.
func shellWords(line string) (words []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}

// TestHelp_Examples: each command has examples, which are valid.
func TestHelp_Examples(t *testing.T) {
	t.Parallel()
	for _, n := range nodes(t) {
		list := examplesOf(n)
		if len(list) == 0 && n.Name != "version" {
			t.Errorf("%q has no examples", n.Path())
		}
		for _, e := range list {
			line, _, _ := strings.Cut(e.line, " > ") // a script of a shell
			args, ok := strings.CutPrefix(line, "tabletop ")
			if !ok {
				t.Errorf("%q is not a command line", e.line)
			}
			words := shellWords(args)
			app, err := newParser(commandOf(words))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := (&program{}).parse(app, arranged(words)); err != nil {
				t.Errorf("%s: %v", e.line, err)
			}
			if !strings.HasPrefix(args, n.Path()) {
				t.Errorf("%s is an example of %q", e.line, n.Path())
			}
		}
	}
}

// TestHelp_Command: the command help prints the help of another command.
func TestHelp_Command(t *testing.T) {
	t.Parallel()
	for args, same := range map[string]string{
		"help":                "--help",
		"help serve":          "serve --help",
		"help --all serve":    "serve --help=all",
		"help migrate verify": "migrate verify --help",
		"serve -h":            "serve --help",
		"help ctl rows":       "ctl help rows",
		"version":             "--version",
	} {
		got, want := helpOf(t, 0, strings.Fields(args)...), helpOf(t, 0, strings.Fields(same)...)
		if got != want || got == "" {
			t.Errorf("%q prints\n%s\n%q\n%s", args, got, same, want)
		}
	}
}

// TestHelp_Documents: help names some documents, and the document index all of them. Each name prints its
// document. The name of a command describes the command.
func TestHelp_Documents(t *testing.T) {
	t.Parallel()
	all := topics()
	for _, d := range firstDocuments {
		if !slices.Contains(all, d[0]) {
			t.Errorf("help names the missing document %s", d[0])
		}
	}
	index := helpOf(t, defaultHelpWidth, "help", "index")
	for _, name := range all {
		if name != "index" && !strings.Contains(index, "("+strings.TrimPrefix(name, "docs/")+".md") {
			t.Errorf("help index does not list %s", name)
		}
		want, _ := docs.Text(name)
		if got := helpOf(t, defaultHelpWidth, "help", name); got != want {
			t.Errorf("help %s prints %.60q, want %.60q", name, got, want)
		}
	}
	if got := helpOf(t, defaultHelpWidth, "help", "serve"); !strings.Contains(got, "Usage:\n  tabletop serve") || !strings.Contains(got, "tabletop help docs/serve") {
		t.Errorf("help serve prints %s", got)
	}
}

// TestHelp_Search: help with words that name neither a command nor a document lists the sections that contain
// all of them, those with a heading of these words first.
func TestHelp_Search(t *testing.T) {
	t.Parallel()
	got := helpOf(t, defaultHelpWidth, "help", "hot-key-range")
	if !strings.HasPrefix(got, "No command or document is named \"hot-key-range\". These sections contain it:\n\n  tabletop help docs/lint ") || !strings.Contains(got, "L26 hot-key-range\n") {
		t.Errorf("help hot-key-range prints %s", got)
	}
	if got := helpOf(t, defaultHelpWidth, "help", "HOT-KEY-RANGE", "l26"); !strings.Contains(got, "L26 hot-key-range\n") {
		t.Errorf("help HOT-KEY-RANGE l26 prints %s", got)
	}
}
