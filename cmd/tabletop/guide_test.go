package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// guide runs the blocks of a document such as docs/guide.md. Blocks marked sh are commands, one per
// line; blocks marked text are part of the last command's output; blocks marked yaml are files, named
// by their first line.
type guide struct {
	t       *testing.T
	dir     string
	assigns []string  // assignments of variables and functions for later commands
	jobs    []*server // in the background: job %1 is the first; nil if it has ended
	command string    // the last one
	printed string    // its output
	counts  map[string]int

	// ports has the addresses of the servers by those of the document, which may be in use.
	ports map[string]string
}

// newGuide returns a guide that runs in an empty folder.
func newGuide(t *testing.T) *guide {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skipf("the commands are those of a shell: %v", err)
	}
	return &guide{t: t, dir: t.TempDir(), counts: map[string]int{}, ports: map[string]string{}}
}

// page reads a document.
func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// notRun holds commands whose results the test already has: the program, whose build needs the
// module's sources, and an empty folder.
var notRun = []string{"CGO_ENABLED=0 go build -pgo=cmd/tabletop/serve.pgo -o bin/tabletop ./cmd/tabletop", "export PATH=$PWD/bin:$PATH", "cd $(mktemp -d)"}

// serveAddresses are the flags of serve with an address, the defaults, and the variables in which
// serve prints the address.
var serveAddresses = []struct{ flag, address, variable string }{
	{"--bigtable", "127.0.0.1:8086", "BIGTABLE_EMULATOR_HOST"},
	{"--dynamodb", "127.0.0.1:8000", "AWS_ENDPOINT_URL_DYNAMODB"},
	{"--console", "off", "TABLETOP_CONSOLE_URL"},
}

var (
	fenced     = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$")
	ended      = regexp.MustCompile(`^kill %([0-9]+)(?: && wait %[0-9]+)?$`)
	assignment = regexp.MustCompile(`^([A-Z]+=|[a-z]+\(\) \{)`)
)

// TestGuide runs every command of the guide in order, in an empty folder, and compares its
// output with the guide.
func TestGuide(t *testing.T) {
	t.Parallel()
	g := newGuide(t)
	// The AWS CLI needs an account; the fixture has its output.
	writeFile(t, g.dir, "aws", `#!/bin/sh
case "$2" in
describe-time-to-live) echo '{"TimeToLiveDescription":{"TimeToLiveStatus":"DISABLED"}}' ;;
*) exec cat fixtures/s2-video/source/table.json ;;
esac
`)
	if err := os.Chmod(filepath.Join(g.dir, "aws"), 0o700); err != nil {
		t.Fatal(err)
	}
	g.follow(page(t, "guide.md"), "sh", "text", "yaml")
}

// TestControlDocs does the same with docs/control.md.
func TestControlDocs(t *testing.T) {
	t.Parallel()
	newGuide(t).follow(page(t, "control.md"), "sh", "text")
}

// TestLiveDocs does the same with docs/live.md up to section 7.
func TestLiveDocs(t *testing.T) {
	t.Parallel()
	stream, _ := livePage(t)
	newGuide(t).follow(stream, "sh", "text")
}

// TestLiveDocs_OtherSources does the same with section 7. It begins with new servers, so it runs beside the
// others: a follower of a newly loaded table first waits until all endpoints know of it.
func TestLiveDocs_OtherSources(t *testing.T) {
	t.Parallel()
	stream, others := livePage(t)
	g := newGuide(t)
	for line := range strings.Lines(stream) {
		if assignment.MatchString(line) {
			g.run(strings.TrimSuffix(line, "\n"))
		}
	}
	g.follow(others, "sh", "text")
}

// livePage returns docs/live.md up to section 7, and the rest.
func livePage(t *testing.T) (stream, others string) {
	t.Helper()
	text := page(t, "live.md")
	at := strings.Index(text, "\n## 7. ")
	if at < 0 {
		t.Fatal("live.md has no section 7")
	}
	return text[:at], text[at:]
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
	g.stopAll()
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
	background, isJob := strings.CutSuffix(line, " &")
	switch {
	case assignment.MatchString(line):
		g.assigns = append(g.assigns, line)
		return
	case line == "kill $(jobs -p)":
		g.stopAll()
		return
	case ended.MatchString(line):
		n, err := strconv.Atoi(ended.FindStringSubmatch(line)[1])
		if err != nil || n < 1 || n > len(g.jobs) || g.jobs[n-1] == nil {
			g.t.Fatalf("%s: no such job runs", line)
		}
		g.stop(n - 1)
		return
	case isJob:
		g.start(background)
		return
	}
	out, code := g.shell(g.ported(line))
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

// ported returns a line with the addresses of the servers in place of those of the document.
func (g *guide) ported(line string) string {
	for shown, actual := range g.ports {
		line = strings.ReplaceAll(line, shown, actual)
	}
	return line
}

// start starts a command in the background; a server on free ports.
func (g *guide) start(line string) {
	g.t.Helper()
	words, _ := g.shell("printf '%s\\n' " + line) // expands its variables
	args := strings.Fields(words)
	if len(args) < 2 || args[0] != "tabletop" {
		g.t.Fatalf("%s: want a command of tabletop", line)
	}
	shown, own := map[string]string{}, []string(nil) // addresses by the variables that serve prints; its flags
	if args[1] == "serve" {
		for _, a := range serveAddresses {
			at := slices.IndexFunc(args, func(arg string) bool { return arg == a.flag || strings.HasPrefix(arg, a.flag+"=") })
			if at >= 0 {
				if _, value, ok := strings.Cut(args[at], "="); ok {
					args = slices.Insert(args, at+1, value)
				}
				a.address = args[at+1]
				args = slices.Delete(args, at, at+2)
			}
			if shown[a.variable] = a.address; a.address != "off" {
				a.address = anyPort
			}
			if at >= 0 || a.address != "off" {
				own = append(own, a.flag, a.address)
			}
		}
	}
	for i, arg := range args {
		args[i] = g.ported(arg)
	}
	s := &server{stderr: &strings.Builder{}}
	args = append(args, own...)
	s.cmd = exec.CommandContext(g.t.Context(), "tabletop", args[1:]...)
	s.cmd.Dir, s.cmd.Stderr = g.dir, s.stderr
	g.jobs = append(g.jobs, s)
	if len(shown) == 0 {
		s.launch(g.t)
		return
	}
	s.begin(g.t)
	for variable, address := range shown {
		if actual := s.env[variable]; actual != "" && address != anyPort {
			g.ports[address] = strings.TrimPrefix(actual, "http://")
		}
	}
}

// stop ends a job, if it runs. Its messages are the output of the command that ends it.
func (g *guide) stop(i int) {
	g.t.Helper()
	s := g.jobs[i]
	if s == nil {
		return
	}
	if code := s.end(g.t, syscall.SIGTERM); code != exitEqual || s.ready != "" && !s.quiet() {
		g.t.Errorf("%s\nends with exit code %d:\n%s", s.cmd, code, s.stderr)
	}
	g.printed = s.stderr.String()
	g.jobs[i] = nil
	for len(g.jobs) > 0 && g.jobs[len(g.jobs)-1] == nil { // as in a shell, its number is free again
		g.jobs = g.jobs[:len(g.jobs)-1]
	}
}

// stopAll ends all jobs.
func (g *guide) stopAll() {
	g.t.Helper()
	for len(g.jobs) > 0 {
		g.stop(len(g.jobs) - 1)
	}
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
