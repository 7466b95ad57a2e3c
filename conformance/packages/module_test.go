package packages

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/tabletop-emu/tabletop/internal/test/long"
)

// TestModule publishes the last commit as a version of the module in a folder, as a tag would. Then a
// new module of a user fetches it: its tests resolve, and the programs can be installed. Other modules
// come from those of this machine. It compiles nothing, since the other tests of this repository do.
func TestModule(t *testing.T) {
	t.Parallel()
	long.Test(t)
	need(t, "git")
	need(t, "tar")
	tag := module.Version{Path: "github.com/tabletop-emu/tabletop", Version: "v0.1.0"}
	proxy, cache := publish(t, tag), t.TempDir()
	have := strings.TrimSpace(in(t, ".", "go", "env", "GOMODCACHE"))
	fallback := strings.TrimSpace(in(t, ".", "go", "env", "GOPROXY"))
	folder := t.TempDir()
	user := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = folder
		cmd.Env = append(os.Environ(), "GOMODCACHE="+cache, "GOFLAGS=-modcacherw", "GOSUMDB=off", "GOWORK=off",
			fmt.Sprintf("GOPROXY=file://%s,file://%s,%s", proxy, filepath.Join(have, "cache", "download"), fallback))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", cmd, err, out)
		}
		return string(out)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "tasks", "go.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(page), "```go\n")
	code, _, found := strings.Cut(code, "```\n")
	if !found {
		t.Fatal("docs/tasks/go.md has no test")
	}
	if err := os.WriteFile(filepath.Join(folder, "orders_test.go"), []byte(code), 0o644); err != nil {
		t.Fatal(err)
	}
	user("mod", "init", "example.com/orders")
	user("get", tag.Path+"/testkit@"+tag.Version)
	user("mod", "tidy")
	if out := user("list", "-deps", "-test", "-f", "{{with .Module}}{{.Path}} {{.Version}}{{end}}", "."); !strings.Contains(out, tag.Path+" "+tag.Version) {
		t.Errorf("the test does not need the version:\n%s", out)
	}
	for _, program := range []string{"tabletop", "cbtemulator"} {
		user("install", "-n", tag.Path+"/cmd/"+program+"@"+tag.Version)
	}
}

// publish returns a folder that is a proxy of one version, the last commit.
func publish(t *testing.T, tag module.Version) (proxy string) {
	t.Helper()
	proxy = t.TempDir()
	folder := filepath.Join(proxy, tag.Path, "@v")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"list":                tag.Version + "\n",
		tag.Version + ".info": fmt.Sprintf(`{"Version":%q,"Time":"2026-01-02T15:04:05Z"}`, tag.Version),
		tag.Version + ".mod":  in(t, root, "git", "show", "HEAD:go.mod"),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Create(filepath.Join(folder, tag.Version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	files, archive := t.TempDir(), filepath.Join(t.TempDir(), "commit.tar")
	in(t, root, "git", "archive", "--output", archive, "HEAD")
	in(t, files, "tar", "-xf", archive)
	if err := zip.CreateFromDir(f, tag, files); err != nil {
		t.Fatalf("the commit cannot be a version of the module: %v", err)
	}
	return proxy
}
