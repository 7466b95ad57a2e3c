package packages

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/internal/test/long"
)

// in runs a program of PATH in a folder, without the settings of Tabletop, and returns its output.
func in(t *testing.T, folder, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = folder
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "TABLETOP_") {
			cmd.Env = append(cmd.Env, pair)
		}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	return string(out)
}

// project returns a folder with the files of a user.
func project(t *testing.T, name string) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(filepath.Join("testdata", name))); err != nil {
		t.Fatal(err)
	}
	return folder
}

func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("there is no %s here", program)
	}
}

// TestNPM installs the packages for Node without a network, and runs the test of a user and the
// command.
func TestNPM(t *testing.T) {
	t.Parallel()
	long.Test(t)
	need(t, "npm")
	from := filepath.Join(release(t), "npm")
	folder := project(t, "npm")
	cpu := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	in(t, folder, "npm", "install", "--offline", "--no-audit", "--no-fund", "--cache", t.TempDir(),
		one(t, from, "tabletop-emu-[0-9]*.tgz"), one(t, from, "tabletop-emu-linux-"+cpu+"-*.tgz"))
	in(t, folder, "node", "--test")
	if out := in(t, folder, "node_modules/.bin/tabletop", "version"); !strings.HasPrefix(out, "tabletop v") {
		t.Errorf("the command prints %q", out)
	}
}

// TestPyPI installs the wheel without a network, and runs the test of a user with the pytest of
// this machine, or with one that pip fetches.
func TestPyPI(t *testing.T) {
	t.Parallel()
	long.Test(t)
	need(t, "python3")
	wheel := one(t, release(t), "pypi", "*.whl")
	folder := project(t, "pypi")
	venv := filepath.Join(t.TempDir(), "venv")
	in(t, folder, "python3", "-m", "venv", venv)
	pip := filepath.Join(venv, "bin", "pip")
	in(t, folder, pip, "install", "--no-index", "--disable-pip-version-check", wheel)
	in(t, folder, filepath.Join(venv, "bin", "python"), "plain.py")
	const where = "import os, pytest; print(os.path.dirname(os.path.dirname(pytest.__file__)))"
	if site, err := exec.CommandContext(t.Context(), "python3", "-c", where).Output(); err == nil {
		path := filepath.Join(filepath.Dir(filepath.Dir(one(t, venv, "lib", "python*", "site-packages", "tabletop", "py.typed"))), "pytest.pth")
		if err := os.WriteFile(path, site, 0o644); err != nil {
			t.Fatal(err)
		}
	} else {
		in(t, folder, pip, "install", "--disable-pip-version-check", "pytest==9.0.0")
	}
	if out := in(t, folder, filepath.Join(venv, "bin", "python"), "-m", "pytest", "-p", "no:cacheprovider"); !strings.Contains(out, "1 passed") {
		t.Errorf("pytest prints\n%s", out)
	}
	if out := in(t, folder, filepath.Join(venv, "bin", "tabletop"), "version"); !strings.HasPrefix(out, "tabletop v") {
		t.Errorf("the command prints %q", out)
	}
}

// TestMaven runs the test of a user by JUnit 5. The project has one dependency on Tabletop, from
// a repository of files. Maven fetches only plugins that it has not fetched before.
func TestMaven(t *testing.T) {
	t.Parallel()
	long.Test(t)
	if !haveMaven() {
		t.Skip("there is no JDK or no Maven here")
	}
	repository, err := filepath.Abs(filepath.Join(release(t), "maven"))
	if err != nil {
		t.Fatal(err)
	}
	folder := project(t, "maven")
	version := filepath.Base(filepath.Dir(one(t, repository, "io/github/tabletop-emu/tabletop/*/*.pom")))
	out := in(t, folder, "mvn", "-q", "-B", "-Dtabletop.version="+version, "-Dtabletop.repository=file://"+repository, "-Dmaven.repo.local="+localRepository(t), "test")
	reports := one(t, folder, "target/surefire-reports/*.txt")
	if text, err := os.ReadFile(reports); err != nil || !strings.Contains(string(text), "Tests run: 1, Failures: 0, Errors: 0, Skipped: 0") {
		t.Errorf("JUnit reports %s, %v\n%s", text, err, out)
	}
}

// localRepository returns a repository for this test alone, with links to the files that Maven
// has already.
func localRepository(t *testing.T) string {
	t.Helper()
	to := t.TempDir()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	from := filepath.Join(home, ".m2", "repository")
	err = filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		return os.Symlink(name, filepath.Join(to, rel))
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return to
}
