// Package packages installs the packages of a release from files into clean environments, and runs
// a test of a user with each.
package packages

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/internal/test/serveout"
)

// root is the repository.
const root = "../.."

// made is the release that all tests use.
var made struct {
	once   sync.Once
	folder string
	err    error
}

// TestMain removes the release.
func TestMain(m *testing.M) {
	code := m.Run()
	if made.folder != "" {
		_ = os.RemoveAll(made.folder)
	}
	os.Exit(code)
}

// release returns the folder of a release of the last commit, for this platform.
func release(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the image and the paths are of Linux")
	}
	made.once.Do(func() {
		if made.folder, made.err = os.MkdirTemp("", "tabletop-packages-"); made.err != nil { //nolint:usetesting // all tests use it
			return
		}
		parts := "image,npm,pypi"
		if haveMaven() {
			parts += ",maven"
		}
		// The context of this test would be canceled before the next one.
		out, err := exec.Command("make", "--no-print-directory", "-C", root, "dist", "OUT="+made.folder, "PLATFORMS=linux/"+runtime.GOARCH, "PARTS="+parts).CombinedOutput()
		if err != nil {
			made.err = fmt.Errorf("make dist: %w\n%s", err, out)
		}
	})
	if made.err != nil {
		t.Fatal(made.err)
	}
	return made.folder
}

func haveMaven() bool {
	_, noMaven := exec.LookPath("mvn")
	_, noJDK := exec.LookPath("javac")
	return noMaven == nil && noJDK == nil
}

// one returns the only file that matches a pattern.
func one(t *testing.T, elements ...string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(elements...))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v matches %v, %v", elements, found, err)
	}
	return found[0]
}

// read decodes a file of JSON.
func read[T any](t *testing.T, elements ...string) (out T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(elements...))
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

type descriptor struct{ Digest string }

// unpack returns the environment of the image, and unpacks its files into a folder.
func unpack(t *testing.T, layout, folder string) (env []string) {
	t.Helper()
	blob := func(d descriptor) string {
		return filepath.Join(layout, "blobs", strings.ReplaceAll(d.Digest, ":", "/"))
	}
	type index struct{ Manifests []descriptor }
	outer := read[index](t, layout, "index.json")
	inner := read[index](t, blob(outer.Manifests[0]))
	manifest := read[struct {
		Config descriptor
		Layers []descriptor
	}](t, blob(inner.Manifests[0]))
	config := read[struct {
		Config struct{ Env, Entrypoint, Cmd []string }
	}](t, blob(manifest.Config)).Config
	if !slices.Equal(config.Entrypoint, []string{"/tabletop"}) || !slices.Equal(config.Cmd, []string{"serve"}) {
		t.Errorf("a container runs %v %v", config.Entrypoint, config.Cmd)
	}
	for _, layer := range manifest.Layers {
		unpackLayer(t, blob(layer), folder)
	}
	return config.Env
}

func unpackLayer(t *testing.T, layer, folder string) {
	t.Helper()
	f, err := os.Open(layer)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(folder, h.Name)
		if h.Typeflag == tar.TypeDir {
			if err := os.MkdirAll(name, 0o777); err != nil {
				t.Fatal(err)
			}
		} else {
			data, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, data, 0o777); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(name, h.FileInfo().Mode()); err != nil {
			t.Fatal(err)
		}
		if os.Getuid() == 0 {
			if err := os.Chown(name, h.Uid, h.Gid); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestImage runs the commands of a container in the file system of the image: as its user in a
// chroot if this process may, or else by their path.
func TestImage(t *testing.T) {
	t.Parallel()
	long.Test(t)
	folder := t.TempDir()
	env := unpack(t, filepath.Join(release(t), "image"), folder)
	// Other containers on this machine may have the ports of the image.
	env = append(env, "TABLETOP_BIGTABLE=0.0.0.0:0", "TABLETOP_DYNAMODB=0.0.0.0:0")
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	ports := "/tmp/ports.json"
	command := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "/tabletop", args...)
		cmd.Env = env
		cmd.Dir = "/"
		if os.Getuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: folder, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
		} else {
			cmd.Path = filepath.Join(folder, "tabletop")
			cmd.Dir = folder
		}
		return cmd
	}
	data := "/data/store"
	if os.Getuid() != 0 {
		ports, data = filepath.Join(folder, ports), filepath.Join(folder, data)
	}
	server := command("serve", "--port-file", ports, "--data", data)
	var stderr strings.Builder
	server.Stderr = &stderr
	stdout, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := serveout.Read(stdout); err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	if out, err := command("healthcheck", "--port-file", ports).CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "healthy: Bigtable 127.0.0.1:") {
		t.Errorf("healthcheck: %v: %s", err, out)
	}
	if out, err := command("demo").CombinedOutput(); err != nil {
		t.Errorf("demo: %v: %s", err, out)
	}
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		t.Errorf("serve: %v: %s", err, &stderr)
	}
	if out, err := command("healthcheck", "--port-file", ports).CombinedOutput(); err == nil {
		t.Errorf("healthcheck without a server: %s", out)
	}
}
