package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pages returns the documents for users, by name.
func pages(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/tasks/*.md", "docs/arrive/*.md"} {
		files, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("no document is named %s: %v", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			texts[filepath.Base(file)] = string(text)
		}
	}
	return texts
}

// shownCommand matches a command of a document: group 1 is its name, 2 its arguments.
var shownCommand = regexp.MustCompile(`\btabletop"?,? "?(serve|dynamodb-local|ctl|demo|migrate [a-z]+)\b([^\n` + "`" + `|;>]*)`)

// shownFlag matches a flag in arguments.
var shownFlag = regexp.MustCompile(`--[a-z][a-z-]*`)

// shownLocalFlag matches a flag of dynamodb-local.
var shownLocalFlag = regexp.MustCompile(` -[a-zA-Z]+`)

// TestPages_Commands checks that the commands of the pages have no flag that the program lacks.
func TestPages_Commands(t *testing.T) {
	t.Parallel()
	flags := 0
	refused := map[string]string{} // errors by command and flag; most flags are on many pages
	for page, text := range pages(t) {
		for _, shown := range shownCommand.FindAllStringSubmatch(text, -1) {
			given := shownFlag.FindAllString(shown[2], -1)
			if shown[1] == "dynamodb-local" {
				for _, flag := range shownLocalFlag.FindAllString(shown[2], -1) {
					given = append(given, "-"+strings.TrimSpace(flag)) // as in its errors
				}
			}
			for _, flag := range given {
				flags++
				line := shown[1] + " " + flag
				if _, known := refused[line]; !known {
					refused[line] = refusedFlag(t, shown[1], flag)
				}
				if refused[line] != "" {
					t.Errorf("%s: %s", page, refused[line])
				}
			}
		}
	}
	if flags < 50 {
		t.Errorf("%d flags were found, which cannot be all", flags)
	}
	if refusedFlag(t, "migrate plan", "--color") == "" || refusedFlag(t, "serve", "--data") != "" || refusedFlag(t, "dynamodb-local", "--sharedDB") == "" {
		t.Error("this test does not find unknown flags")
	}
}

// refusedFlag returns the error of a command for a flag that it does not know, or "". A second
// flag, which is unknown, keeps the command from running.
func refusedFlag(t *testing.T, command, flag string) string {
	t.Helper()
	var stderr strings.Builder
	p := &program{stdin: strings.NewReader(""), stdout: &strings.Builder{}, stderr: &stderr}
	p.run(t.Context(), append(strings.Fields(command), flag+"=x", "--unknown"))
	if strings.Contains(stderr.String(), "unknown flag "+flag) {
		return stderr.String()
	}
	return ""
}

// TestPages_Go checks that the complete Go files of the pages compile.
func TestPages_Go(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	shown := map[string]string{} // files of a virtual folder in the module, which no other package sees
	all := pages(t)
	for _, page := range slices.Sorted(maps.Keys(all)) { // the same names in each run, for the build cache
		for _, block := range fenced.FindAllStringSubmatch(all[page], -1) {
			if name := fmt.Sprintf("%s%d.go", strings.TrimSuffix(page, ".md"), len(shown)); block[1] == "go" && strings.HasPrefix(block[2], "package ") {
				writeFile(t, dir, name, block[2])
				shown[filepath.Join(root, "testkit", "testdata", "pages", name)] = filepath.Join(dir, name)
			}
		}
	}
	if len(shown) < 5 {
		t.Fatalf("%d files were found, which cannot be all", len(shown))
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": shown})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir, "overlay.json", string(overlay))
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "./testkit/testdata/pages")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestPages_Errors checks that the program or a client has the error texts of the page on
// troubleshooting, between their ellipses.
func TestPages_Errors(t *testing.T) {
	t.Parallel()
	var sources strings.Builder
	err := fs.WalkDir(os.DirFS("../.."), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "bin" || strings.HasPrefix(d.Name(), ".") && name != "."):
			return fs.SkipDir
		case !slices.Contains([]string{".go", ".java", ".mjs", ".py"}, path.Ext(name)) || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(filepath.Join("../..", name))
		sources.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	code, shown := sources.String(), 0
	for _, block := range fenced.FindAllStringSubmatch(pages(t)["troubleshooting.md"], -1) {
		for line := range strings.Lines(block[2]) {
			for piece := range strings.SplitSeq(strings.TrimSuffix(line, "\n"), "…") {
				if piece = strings.Trim(piece, " :"); piece != "" && !strings.Contains(code, piece) {
					t.Errorf("no error has the text %q", piece)
				}
				shown++
			}
		}
	}
	if shown < 30 {
		t.Errorf("%d texts were found, which cannot be all", shown)
	}
}

// TestPages_Index checks that docs/index.md links to every document.
func TestPages_Index(t *testing.T) {
	t.Parallel()
	all := pages(t)
	for page := range all {
		if page != "index.md" && page != "README.md" && !strings.Contains(all["index.md"], page+")") {
			t.Errorf("docs/index.md has no link to %s", page)
		}
	}
}
