// Package packages installs the packages of a release from files into clean environments, and runs
// a test of a user with each.
package packages

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
		parts := "archives,image,compat-image,npm,pypi"
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

// container is the configuration of an image.
type container struct{ Env, Entrypoint, Cmd []string }

// unpack returns the configuration of an image, and unpacks its files into a folder.
func unpack(t *testing.T, layout, folder string) container {
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
	for _, layer := range manifest.Layers {
		unpackLayer(t, blob(layer), folder)
	}
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	return read[struct{ Config container }](t, blob(manifest.Config)).Config
}

// inside returns a command in the file system of an image: as its user in a chroot if this process may, or
// else by its path.
func inside(t *testing.T, folder, workdir string, env []string, words ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
	cmd.Env = env
	cmd.Dir = workdir
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: folder, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	} else {
		cmd.Path = filepath.Join(folder, words[0])
		cmd.Dir = filepath.Join(folder, workdir)
	}
	return cmd
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
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		switch h.Typeflag {
		case tar.TypeDir:
			if err := os.MkdirAll(name, 0o777); err != nil {
				t.Fatal(err)
			}
		case tar.TypeSymlink:
			if err := os.Symlink(h.Linkname, name); err != nil {
				t.Fatal(err)
			}
			continue
		default:
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

// TestImage runs the commands of a container in the file system of the image.
func TestImage(t *testing.T) {
	t.Parallel()
	long.Test(t)
	folder := t.TempDir()
	config := unpack(t, filepath.Join(release(t), "image"), folder)
	if !slices.Equal(config.Entrypoint, []string{"/tabletop"}) || !slices.Equal(config.Cmd, []string{"serve"}) {
		t.Errorf("a container runs %v %v", config.Entrypoint, config.Cmd)
	}
	// Other containers on this machine may have the ports of the image.
	env := append(config.Env, "TABLETOP_BIGTABLE=0.0.0.0:0", "TABLETOP_DYNAMODB=0.0.0.0:0")
	ports := "/tmp/ports.json"
	command := func(args ...string) *exec.Cmd {
		return inside(t, folder, "/", env, append([]string{"/tabletop"}, args...)...)
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

// TestCompatImage runs the commands of modules of Testcontainers, and awaits what the modules await: a
// line, a port that their own check finds open, an answer 400.
func TestCompatImage(t *testing.T) {
	t.Parallel()
	long.Test(t)
	folder := t.TempDir()
	config := unpack(t, filepath.Join(release(t), "compat-image"), folder)
	if want := []string{"-jar", "DynamoDBLocal.jar", "-inMemory"}; !slices.Equal(config.Cmd, want) {
		t.Errorf("a container runs %v", config.Cmd)
	}
	const home = "/home/dynamodblocal"
	for _, tc := range []struct {
		name       string
		entrypoint []string // nil: that of the image
		command    []string
		line       *regexp.Regexp // on either output, with the port
		get        int            // the status of GET /; 0 for Bigtable
	}{
		{
			"Bigtable in Go and Java", nil,
			[]string{"/bin/sh", "-c", "gcloud beta emulators bigtable start --host-port 0.0.0.0:0 --project=test-project"},
			regexp.MustCompile(`^\[bigtable\] Cloud Bigtable emulator running on \[::\]:(\d+)$`), 0,
		},
		{
			"Bigtable in .NET",
			[]string{"/usr/bin/gcloud"},
			[]string{"beta", "emulators", "bigtable", "start", "--host-port", "0.0.0.0:0"},
			regexp.MustCompile(`running on .*:(\d+)$`), 0,
		},
		{
			"DynamoDB in Go",
			[]string{"/usr/bin/java", "-Djava.library.path=./DynamoDBLocal_lib"},
			[]string{"-jar", "DynamoDBLocal.jar", "-sharedDb", "-inMemory", "-port", "0"},
			regexp.MustCompile(`^Port:\t(\d+)$`), http.StatusBadRequest,
		},
		{
			"DynamoDB on a volume", nil,
			[]string{"-jar", "DynamoDBLocal.jar", "-sharedDb", "-dbPath", "./data", "-port", "0"},
			regexp.MustCompile(`^Port:\t(\d+)$`), http.StatusBadRequest,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			entrypoint := tc.entrypoint
			if entrypoint == nil {
				entrypoint = config.Entrypoint
			}
			server := inside(t, folder, home, config.Env, slices.Concat(entrypoint, tc.command)...)
			out, err := server.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			server.Stderr = server.Stdout
			if err := server.Start(); err != nil {
				t.Fatal(err)
			}
			var port, printed string
			for lines := bufio.NewScanner(out); port == "" && lines.Scan(); {
				printed += lines.Text() + "\n"
				if m := tc.line.FindStringSubmatch(lines.Text()); m != nil {
					port = m[1]
				}
			}
			if port == "" {
				t.Fatalf("it prints %s", printed)
			}
			check := "true && (cat /proc/net/tcp* | awk '{print $2}' | grep -i ':0*1' || nc -vz -w 1 localhost " + port + " || /bin/bash -c '</dev/tcp/localhost/" + port + "')"
			if text, err := inside(t, folder, home, config.Env, "/bin/sh", "-c", check).CombinedOutput(); err != nil {
				t.Errorf("the check of the port: %v: %s", err, text)
			}
			if tc.get > 0 {
				resp, err := http.Get("http://127.0.0.1:" + port + "/") //nolint:noctx // the server has no other caller
				if err != nil {
					t.Fatal(err)
				}
				if err := resp.Body.Close(); err != nil || resp.StatusCode != tc.get {
					t.Errorf("GET / answers %d, %v", resp.StatusCode, err)
				}
			}
			if err := server.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, out); err != nil {
				t.Error(err)
			}
			if err := server.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
	if err := inside(t, folder, home, config.Env, "/bin/sh", "-c", "ls").Run(); err == nil || !strings.HasSuffix(err.Error(), "127") {
		t.Errorf("an unknown command ends with %v", err)
	}
}
