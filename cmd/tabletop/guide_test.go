package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// guide runs the blocks of docs/guide.md. Blocks marked sh are commands, one per line; blocks
// marked text are part of the last command's output; blocks marked yaml are files, named by
// their first line.
type guide struct {
	t       *testing.T
	dir     string
	assigns []string // assignments of variables and functions for later commands
	server  *server  // in the background, or nil
	command string   // the last one
	printed string   // its output
	counts  map[string]int
}

// notRun are commands whose results the test already has: the program, whose build needs the
// module's sources, and an empty folder.
var notRun = []string{"CGO_ENABLED=0 go build -pgo=cmd/tabletop/serve.pgo -o bin/tabletop ./cmd/tabletop", "export PATH=$PWD/bin:$PATH", "cd $(mktemp -d)"}

// guideBigtable is the address in the guide: a server's default.
const guideBigtable = "127.0.0.1:8086"

var (
	fenced     = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$")
	assignment = regexp.MustCompile(`^([A-Z]+=|[a-z]+\(\) \{)`)
)

// TestGuide runs every command of the guide in order, in an empty folder, and compares its
// output with the guide.
func TestGuide(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skipf("the guide's commands are those of a shell: %v", err)
	}
	text, err := os.ReadFile("../../docs/guide.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// The AWS CLI needs an account; the fixture has its output.
	writeFile(t, dir, "aws", `#!/bin/sh
case "$2" in
describe-time-to-live) echo '{"TimeToLiveDescription":{"TimeToLiveStatus":"DISABLED"}}' ;;
*) exec cat fixtures/s2-video/source/table.json ;;
esac
`)
	if err := os.Chmod(filepath.Join(dir, "aws"), 0o700); err != nil {
		t.Fatal(err)
	}
	(&guide{t: t, dir: dir, counts: map[string]int{}}).follow(string(text), "sh", "text", "yaml")
}

// TestControlDocs does the same with docs/control.md.
func TestControlDocs(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skipf("the commands are those of a shell: %v", err)
	}
	text, err := os.ReadFile("../../docs/control.md")
	if err != nil {
		t.Fatal(err)
	}
	(&guide{t: t, dir: t.TempDir(), counts: map[string]int{}}).follow(string(text), "sh", "text")
}

// follow runs the blocks of a text, which must have blocks of the given kinds.
func (g *guide) follow(text string, kinds ...string) {
	g.t.Helper()
	for _, block := range fenced.FindAllStringSubmatch(text, -1) {
		g.counts[block[1]]++
		switch block[1] {
		case "sh":
			for line := range strings.Lines(block[2]) {
				g.run(strings.TrimSuffix(line, "\n"))
			}
		case "text":
			g.compare(block[2])
		case "yaml":
			g.write(block[2])
		case "go":
		default:
			g.t.Errorf("a block is marked %s, which must be sh, text, yaml or go", block[1])
		}
	}
	g.stop()
	for _, kind := range kinds {
		if g.counts[kind] == 0 {
			g.t.Errorf("the guide has no block marked %s", kind)
		}
	}
}

// run runs one command, which must exit with 0.
func (g *guide) run(line string) {
	g.t.Helper()
	g.command, g.printed = line, ""
	for _, command := range notRun {
		if line == command {
			return
		}
	}
	background, isServer := strings.CutSuffix(line, " &")
	switch {
	case assignment.MatchString(line):
		g.assigns = append(g.assigns, line)
		return
	case line == "kill %1":
		g.stop()
		return
	case isServer:
		g.serve(background)
		return
	}
	if g.server != nil {
		line = strings.ReplaceAll(line, guideBigtable, g.server.env["BIGTABLE_EMULATOR_HOST"])
	}
	out, code := g.shell(line)
	g.printed = out
	if code != "0" {
		g.t.Fatalf("%s\nexits %s:\n%s", g.command, code, out)
	}
}

// shell runs a line in the folder of the guide, after the assignments.
func (g *guide) shell(line string) (out, code string) {
	g.t.Helper()
	cmd := exec.CommandContext(g.t.Context(), "sh", "-c", strings.Join(append(g.assigns, line), "\n"))
	cmd.Dir = g.dir
	cmd.Env = append(os.Environ(), "PATH="+g.dir+string(os.PathListSeparator)+os.Getenv("PATH"), "CI=")
	text, err := cmd.CombinedOutput()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		g.t.Fatal(err)
	}
	return string(text), string(rune('0' + cmd.ProcessState.ExitCode()))
}

// serve starts a server as in the guide, on other ports, since those of the guide may be in
// use.
func (g *guide) serve(line string) {
	g.t.Helper()
	words, _ := g.shell("printf '%s\\n' " + line) // expands its variables
	args := strings.Fields(words)
	if g.server != nil || len(args) < 2 || args[0] != "tabletop" || args[1] != "serve" {
		g.t.Fatalf("%s: want tabletop serve, and no other server beside it", line)
	}
	for i, arg := range args {
		if file := filepath.Join(g.dir, arg); i > 1 && !strings.HasPrefix(arg, "-") {
			args[i] = file
		}
	}
	g.server = serve(g.t, append(args[2:], "--bigtable", "127.0.0.1:0", "--dynamodb", "127.0.0.1:0")...)
}

// stop stops the server in the background, if there is one.
func (g *guide) stop() {
	g.t.Helper()
	if g.server == nil {
		return
	}
	if code := g.server.end(g.t, syscall.SIGTERM); code != exitEqual || g.server.stderr.Len() > 0 {
		g.t.Errorf("the server ends with exit code %d:\n%s", code, g.server.stderr)
	}
	g.server = nil
}

// compare finds each shown line after the previous one. An ellipsis matches anything, including
// lines.
func (g *guide) compare(shown string) {
	g.t.Helper()
	rest := strings.Split(g.printed, "\n")
	for line := range strings.Lines(shown) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line == "…" {
			continue
		}
		want := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*") + "$")
		at := -1
		for i, printed := range rest {
			if want.MatchString(printed) {
				at = i
				break
			}
		}
		if at < 0 {
			g.t.Fatalf("%s\ndoes not print, or not here:\n%s\nbut:\n%s", g.command, line, g.printed)
		}
		rest = rest[at+1:]
	}
}

// write writes a shown file.
func (g *guide) write(shown string) {
	g.t.Helper()
	first, _, _ := strings.Cut(shown, "\n")
	name, ok := strings.CutPrefix(first, "# ")
	if !ok {
		g.t.Fatalf("the first line of a file is %q, want # and its name", first)
	}
	writeFile(g.t, g.dir, name, shown)
}
