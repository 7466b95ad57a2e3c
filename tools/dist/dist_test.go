package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// committed is the time of the commit of the tiny repository.
var committed = time.Date(2026, 11, 29, 12, 30, 7, 0, time.UTC)

// repository returns a repository with two tiny programs, at the tag v0.1.0. changes replaces
// files of it.
func repository(t *testing.T, changes map[string]string) string {
	t.Helper()
	root := t.TempDir()
	files := os.DirFS("testdata/repository")
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		to := filepath.Join(root, strings.TrimSuffix(name, ".txt")) // go.mod.txt: else the go command takes it for a module of its own
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		return os.WriteFile(to, text, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range changes {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"init", "--quiet"},
		{"add", "."},
		{"-c", "user.name=tabletop", "-c", "user.email=tabletop@example.com", "-c", "commit.gpgsign=false", "commit", "--quiet", "--message=x"},
		{"tag", "v0.1.0"},
	} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_COMMITTER_DATE="+committed.Format(time.RFC3339), "GIT_AUTHOR_DATE="+committed.Format(time.RFC3339))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", cmd, err, out)
		}
	}
	return root
}

// hostOnly builds the programs once, for this platform, whichever is asked for: the standard
// library for six platforms takes minutes to compile.
func hostOnly(ctx context.Context, folder string, p platform, args ...string) error {
	at := slices.Index(args, "-o") + 1
	out := args[at]
	once := filepath.Join(filepath.Dir(filepath.Clean(out)), "once") + string(filepath.Separator)
	if _, err := os.Stat(once); err != nil {
		args = slices.Clone(args)
		args[at] = once
		if err := goBuild(ctx, folder, host, args...); err != nil {
			return err
		}
	}
	if err := os.Mkdir(out, 0o755); err != nil {
		return err
	}
	for _, program := range programs {
		if err := os.Link(filepath.Join(once, host.exe(program)), filepath.Join(out, p.exe(program))); err != nil {
			return err
		}
	}
	return nil
}

// tinyOptions returns options for a tiny repository.
func tinyOptions(t *testing.T, root string, part string) options {
	t.Helper()
	o := options{root: root, out: filepath.Join(t.TempDir(), "dist"), commit: "HEAD", parts: []string{part}, goFlags: []string{"-trimpath", "-ldflags=-s -w"}, log: t.Output(), build: hostOnly}
	for _, text := range list(allPlatforms) {
		p, err := parsePlatform(text)
		if err != nil {
			t.Fatal(err)
		}
		o.platforms = append(o.platforms, p)
	}
	return o
}

// contents returns the files below a folder, without the checksums, which it compares with them.
func contents(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	var sums strings.Builder
	err := filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == checksums {
			return err
		}
		rel, err := filepath.Rel(folder, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		found[rel], err = os.ReadFile(name)
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(found[rel]), rel)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(folder, checksums)); err != nil || string(got) != sums.String() {
		t.Errorf("%s is\n%s(%v), want\n%s", checksums, got, err, &sums)
	}
	return found
}

// member is a file of an archive.
type member struct {
	mode fs.FileMode
	data []byte
}

// members returns the files of an archive, all of which have the time of the commit.
func members(t *testing.T, name string, data []byte) map[string]member {
	t.Helper()
	found := map[string]member{}
	add := func(name string, info fs.FileInfo, r io.Reader) {
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if !info.ModTime().Equal(committed) {
			t.Errorf("%s has the time %v, want %v", name, info.ModTime(), committed)
		}
		found[name] = member{info.Mode().Perm(), data}
	}
	if !strings.HasSuffix(name, "gz") {
		r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.File {
			each, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			add(f.Name, f.FileInfo(), each)
		}
		return found
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" {
			t.Errorf("%s has the owner %d %q, %d %q", h.Name, h.Uid, h.Uname, h.Gid, h.Gname)
		}
		add(h.Name, h.FileInfo(), r)
	}
}

// sameNames compares names with those expected, in any order.
func sameNames[V any](t *testing.T, what string, got map[string]V, want ...string) {
	t.Helper()
	slices.Sort(want)
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
		t.Errorf("%s: got\n%s\nwant\n%s", what, strings.Join(names, "\n"), strings.Join(want, "\n"))
	}
}

// TestArchives checks the names and contents of the archives of a tag.
func TestArchives(t *testing.T) {
	t.Parallel()
	o := tinyOptions(t, repository(t, nil), "archives")
	if err := dist(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	files := contents(t, o.out)
	var want []string
	for _, p := range o.platforms {
		folder := "tabletop_0.1.0_" + p.os + "_" + p.arch
		archive := folder + ".tar.gz"
		if p.os == "windows" {
			archive = folder + ".zip"
		}
		want = append(want, archive, folder+".cdx.json")
		found := members(t, archive, files[archive])
		tabletop, emulator := folder+"/"+p.exe("tabletop"), folder+"/"+p.exe("cbtemulator")
		sameNames(t, archive, found, tabletop, emulator, folder+"/README.md", folder+"/LICENSE", folder+"/NOTICE",
			folder+"/completions/tabletop.bash", folder+"/completions/_tabletop", folder+"/completions/tabletop.fish", folder+"/man/tabletop.1")
		for name, m := range found {
			mode := fs.FileMode(0o644)
			if name == tabletop || name == emulator {
				mode = 0o755
			}
			if m.mode != mode {
				t.Errorf("%s: %s has the mode %v, want %v", archive, name, m.mode, mode)
			}
		}
		if text := string(found[folder+"/completions/_tabletop"].data); text != "completion zsh\n" {
			t.Errorf("%s: the completion script of zsh is %q", archive, text)
		}
		notice := string(found[folder+"/NOTICE"].data)
		for _, text := range []string{
			"---- example.com/greeting v0.3.0, LICENSE\n\nThe license of a greeting.\n",
			"---- stdlib ",
			"\nCopyright 2009 The Go Authors.\n",
			"---- script.js, in the console\n\nThe license of a script.\n",
		} {
			if !strings.Contains(notice, text) {
				t.Errorf("%s: NOTICE lacks %q:\n%s", archive, text, notice)
			}
		}
		if strings.Contains(notice, "unused") {
			t.Errorf("%s: NOTICE has a module that is not linked", archive)
		}
		var bom struct {
			Metadata   struct{ Component component }
			Components []component
		}
		if err := json.Unmarshal(files[folder+".cdx.json"], &bom); err != nil {
			t.Fatal(err)
		}
		if got := bom.Metadata.Component.PURL; got != "pkg:golang/github.com/tabletop-emu/tabletop@v0.1.0" {
			t.Errorf("the list of modules is of %s", got)
		}
		if len(bom.Components) != 2 || bom.Components[0].PURL != "pkg:golang/example.com/greeting@v0.3.0" || bom.Components[1].Name != "stdlib" {
			t.Errorf("the components are %v", bom.Components)
		}
	}
	sameNames(t, "files", files, want...)

	// The program is that of the commit, and knows it.
	tabletop := filepath.Join(t.TempDir(), "tabletop")
	folder := "tabletop_0.1.0_linux_amd64"
	if err := os.WriteFile(tabletop, members(t, ".tar.gz", files[folder+".tar.gz"])[folder+"/tabletop"].data, 0o700); err != nil {
		t.Fatal(err)
	}
	commit, err := output(t.Context(), o.root, "git", "rev-parse", "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := output(t.Context(), "", tabletop, "version"); err != nil || got != "hello v0.1.0 "+commit {
		t.Errorf("the program prints %q, %v", got, err)
	}
}

// TestArchives_Download: the modules with the licenses may appear only with the build, which downloads them.
func TestArchives_Download(t *testing.T) {
	t.Parallel()
	root := repository(t, map[string]string{".gitignore": "/greeting\n"})
	o := tinyOptions(t, root, "archives")
	o.platforms = []platform{host}
	o.build = func(ctx context.Context, folder string, p platform, args ...string) error {
		if err := os.CopyFS(filepath.Join(folder, "greeting"), os.DirFS(filepath.Join(root, "greeting"))); err != nil {
			return err
		}
		return goBuild(ctx, folder, p, args...)
	}
	if err := dist(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	archive := "tabletop_0.1.0_" + host.os + "_" + host.arch
	suffix := ".tar.gz"
	if host.os == "windows" {
		suffix = ".zip"
	}
	found := members(t, archive+suffix, contents(t, o.out)[archive+suffix])
	if notice := string(found[archive+"/NOTICE"].data); !strings.Contains(notice, "The license of a greeting.") {
		t.Errorf("NOTICE lacks a module:\n%s", notice)
	}
}

// TestSame checks that two runs write the same bytes, wherever the repository is and whatever
// is not committed.
func TestSame(t *testing.T) {
	t.Parallel()
	for _, p := range parts {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			if p.name == "maven" {
				needJDK(t)
			}
			first := tinyOptions(t, repository(t, nil), p.name)
			second := tinyOptions(t, repository(t, nil), p.name)
			for name, text := range map[string]string{"README.md": "changed", "new.txt": "new"} {
				if err := os.WriteFile(filepath.Join(second.root, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.MkdirAll(second.out, 0o755); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"old", checksums} {
				if err := os.WriteFile(filepath.Join(second.out, name), nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for _, o := range []options{first, second} {
				if err := dist(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			one, other := contents(t, first.out), contents(t, second.out)
			sameNames(t, "files of the second run", other, slices.Collect(maps.Keys(one))...)
			for name := range one {
				if !bytes.Equal(one[name], other[name]) {
					t.Errorf("%s differs", name)
				}
			}
		})
	}
}

// TestRefused checks the errors.
func TestRefused(t *testing.T) {
	t.Parallel()
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "letter"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"-platforms", "linux/amd64,plan9/386"}, `-platforms: "plan9/386" must be one of linux/amd64, `},
		{[]string{"-platforms", "linux"}, `-platforms: "linux" must be one of `},
		{[]string{"-parts", "archives,rpm"}, `-parts: "rpm" must be one of archives, `},
		{[]string{"-root", repository(t, nil), "-commit", "none"}, "git -C "},
		{[]string{"-root", repository(t, map[string]string{"greeting/LICENSE": ""}), "-platforms", host.String(), "-out", filepath.Join(t.TempDir(), "dist")}, "the module example.com/greeting has no license"},
		{[]string{"-root", repository(t, nil), "-platforms", host.String(), "-out", other}, "-out: " + other + " has files"},
	} {
		err := run(t.Context(), tc.args, t.Output())
		if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%q: got %v, want %q", tc.args, err, tc.want)
		}
	}
}

// TestImages checks the layouts of the images with their readers, and the file systems of containers.
func TestImages(t *testing.T) {
	t.Parallel()
	for kind, check := range map[string]func(*testing.T, v1.Image, string){"image": checkImage, "compat-image": checkCompatImage} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			o := tinyOptions(t, repository(t, nil), kind)
			if err := dist(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			outer, err := layout.ImageIndexFromPath(filepath.Join(o.out, kind))
			if err != nil {
				t.Fatal(err)
			}
			if err := validate.Index(outer); err != nil {
				t.Fatal(err)
			}
			manifest, err := outer.IndexManifest()
			if err != nil || len(manifest.Manifests) != 1 {
				t.Fatalf("the layout has %v, %v", manifest, err)
			}
			index, err := outer.ImageIndex(manifest.Manifests[0].Digest)
			if err != nil {
				t.Fatal(err)
			}
			if manifest, err = index.IndexManifest(); err != nil {
				t.Fatal(err)
			}
			var platforms []string
			for _, m := range manifest.Manifests {
				platforms = append(platforms, m.Platform.String())
				image, err := index.Image(m.Digest)
				if err != nil {
					t.Fatal(err)
				}
				loaded, err := tarball.ImageFromPath(filepath.Join(o.out, "tabletop_0.1.0_"+kind+"_"+m.Platform.Architecture+".tar"), nil)
				if err != nil {
					t.Fatal(err)
				}
				if err := validate.Image(loaded); err != nil {
					t.Error(err)
				}
				for _, image := range []v1.Image{image, loaded} {
					check(t, image, m.Platform.Architecture)
				}
			}
			if want := []string{"linux/amd64", "linux/arm64"}; !slices.Equal(platforms, want) {
				t.Errorf("the image is for %v, want %v", platforms, want)
			}
			o.platforms = []platform{{"darwin", "arm64"}}
			if err := dist(t.Context(), o); err == nil || err.Error() != kind+": no platform is a Linux" {
				t.Errorf("without a Linux: %v", err)
			}
		})
	}
}

// checkImage checks the configuration and the files of an image.
func checkImage(t *testing.T, image v1.Image, arch string) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c := config.Config
	if config.OS != "linux" || config.Architecture != arch || c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/tabletop"}) || !slices.Equal(c.Cmd, []string{"serve"}) {
		t.Errorf("the configuration is %+v", config)
	}
	if !config.Created.Equal(committed) || c.Labels["org.opencontainers.image.version"] != "0.1.0" || len(c.Labels["org.opencontainers.image.revision"]) != 40 {
		t.Errorf("created %v, labels %v", config.Created, c.Labels)
	}
	sameNames(t, "ports", c.ExposedPorts, "8000/tcp", "8086/tcp")
	files := filesOf(t, image)
	sameNames(t, "files of the image", files, "LICENSE", "NOTICE", "data", "tabletop", "tmp")
	for name, want := range map[string]struct {
		mode  int64
		owner int
	}{"tabletop": {0o755, 0}, "data": {0o755, imageUser}, "tmp": {0o1777, 0}} {
		if h := files[name]; h != nil && (h.Mode != want.mode || h.Uid != want.owner || h.Gid != want.owner) {
			t.Errorf("%s has the mode %o and the owner %d:%d, want %o and %d", name, h.Mode, h.Uid, h.Gid, want.mode, want.owner)
		}
	}
}

// filesOf returns the files of an image.
func filesOf(t *testing.T, image v1.Image) map[string]*tar.Header {
	t.Helper()
	files := map[string]*tar.Header{}
	all := mutate.Extract(image)
	defer func() { _ = all.Close() }()
	for r := tar.NewReader(all); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimSuffix(h.Name, "/")] = h
	}
}

// checkCompatImage checks the image that takes the place of others: a container without a command is a
// DynamoDB Local, and the links lead to the program.
func checkCompatImage(t *testing.T, image v1.Image, arch string) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c := config.Config
	if config.OS != "linux" || config.Architecture != arch || c.User != "65532:65532" || c.WorkingDir != "/home/dynamodblocal" || c.Healthcheck != nil ||
		!slices.Equal(c.Entrypoint, []string{"/stand-in"}) || !slices.Equal(c.Cmd, []string{"-jar", "DynamoDBLocal.jar", "-inMemory"}) || !slices.Equal(c.Env, []string{"PATH=/usr/bin:/bin:/"}) {
		t.Errorf("the configuration is %+v", config)
	}
	sameNames(t, "ports", c.ExposedPorts, "8000/tcp")
	files := filesOf(t, image)
	links := []string{"stand-in", "bin/sh", "bin/bash", "usr/bin/gcloud", "usr/bin/java"}
	sameNames(t, "files of the image", files, append(links, "LICENSE", "NOTICE", "data", "tabletop", "tmp", "home/dynamodblocal", "home/dynamodblocal/data")...)
	for _, name := range links {
		if h := files[name]; h != nil && (h.Typeflag != tar.TypeSymlink || path.Join(path.Dir(name), h.Linkname) != "tabletop") {
			t.Errorf("%s leads to %q", name, h.Linkname)
		}
	}
	if h := files["home/dynamodblocal/data"]; h != nil && (h.Uid != imageUser || h.Gid != imageUser) {
		t.Errorf("its folder belongs to %d:%d", h.Uid, h.Gid)
	}
}
