// Command dist builds the files of a release: archives of both programs for each platform, with
// checksums and lists of their modules; container images; packages for npm, pip and Maven.
//
//	go run . -root ../.. -out ../../dist -platforms linux/amd64 -parts archives,image -- -trimpath '-ldflags=-s -w'
//
// The arguments are flags of go build. It builds a clone of a commit, so that uncommitted changes
// have no effect and the programs know their version. The same commit, Go release and flags
// yield the same bytes on every machine. It needs git; the Maven packages also need a JDK and Maven.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// allPlatforms are the platforms of a release.
const allPlatforms = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

// parts writes each part of a release, in this order.
var parts = []struct {
	name  string
	write func(ctx context.Context, r *release) error
}{
	{"archives", writeArchives},
	{"image", writeImages},
	{"compat-image", writeCompatImages},
	{"npm", writeNPM},
	{"pypi", writeWheels},
	{"maven", writeMaven},
}

// checksums is the file with the checksums of all others.
const checksums = "SHA256SUMS"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

// options are the flags of the command.
type options struct {
	root, out, commit string
	platforms         []platform
	parts             []string
	prepare           string
	goFlags           []string
	javaClasspath     string
	log               io.Writer
	// build runs go build in a folder, for a platform.
	build func(ctx context.Context, folder string, p platform, args ...string) error
}

func run(ctx context.Context, args []string, stderr io.Writer) error {
	o := options{log: stderr, build: goBuild}
	var platforms, chosen string
	flags := flag.NewFlagSet("dist", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.root, "root", ".", "the repository")
	flags.StringVar(&o.out, "out", "dist", "the folder for the files; the files of an earlier release are removed")
	flags.StringVar(&o.commit, "commit", "HEAD", "the commit to build")
	flags.StringVar(&platforms, "platforms", allPlatforms, "the platforms, as GOOS/GOARCH, separated by commas")
	flags.StringVar(&chosen, "parts", strings.Join(partNames(), ","), "the parts, separated by commas")
	flags.StringVar(&o.javaClasspath, "classpath", "", "the classpath with the API of JUnit 5, for the Maven packages")
	flags.StringVar(&o.prepare, "prepare", "", "a command of go to run before the build, such as generate")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	o.goFlags = flags.Args()
	for _, text := range list(platforms) {
		p, err := parsePlatform(text)
		if err != nil {
			return err
		}
		o.platforms = append(o.platforms, p)
	}
	o.parts = list(chosen)
	for _, name := range o.parts {
		if !slices.Contains(partNames(), name) {
			return fmt.Errorf("-parts: %q must be one of %s", name, strings.Join(partNames(), ", "))
		}
	}
	return dist(ctx, o)
}

func partNames() (names []string) {
	for _, p := range parts {
		names = append(names, p.name)
	}
	return names
}

// list splits a text at commas and spaces.
func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// dist writes the files of a release.
func dist(ctx context.Context, o options) (err error) {
	if err := checkOut(o.out); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "tabletop-dist-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	r, err := compile(ctx, o, work)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(o.out); err != nil {
		return err
	}
	for _, p := range parts {
		if !slices.Contains(o.parts, p.name) {
			continue
		}
		_, _ = fmt.Fprintf(o.log, "writing %s\n", p.name)
		if err := p.write(ctx, r); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return sum(o.out)
}

// checkOut rejects a folder with files that are not from an earlier release, which dist removes.
func checkOut(out string) error {
	entries, err := os.ReadDir(out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(entries) > 0 && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == checksums }) {
		return fmt.Errorf("-out: %s has files, and no %s: it is not the folder of a release", out, checksums)
	}
	return nil
}

// sum writes the checksums of all files, in the format of sha256sum.
func sum(out string) error {
	var text strings.Builder
	err := filepath.WalkDir(out, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(out, name)
		hash := sha256.Sum256(data)
		_, _ = fmt.Fprintf(&text, "%s  %s\n", hex.EncodeToString(hash[:]), filepath.ToSlash(rel))
		return err
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, checksums), []byte(text.String()), 0o644)
}

// source is a clone of the repository at a commit.
type source struct {
	folder string
	time   time.Time // of the commit
	commit string
}

// clone clones the repository, which go build needs for the version: it finds no commit in a
// linked work tree.
func clone(ctx context.Context, o options, folder string) (source, error) {
	at, err := output(ctx, "", "git", "-C", o.root, "rev-parse", "--verify", o.commit+"^{commit}")
	if err != nil {
		return source{}, err
	}
	if changed, err := output(ctx, "", "git", "-C", o.root, "status", "--porcelain"); err != nil {
		return source{}, err
	} else if changed != "" {
		_, _ = fmt.Fprintf(o.log, "uncommitted changes are left out:\n%s\n", changed)
	}
	if _, err := output(ctx, "", "git", "clone", "--quiet", "--shared", "--no-checkout", "--config", "core.autocrlf=false", o.root, folder); err != nil {
		return source{}, err
	}
	if _, err := output(ctx, folder, "git", "-c", "advice.detachedHead=false", "checkout", "--quiet", "--detach", at); err != nil {
		return source{}, err
	}
	if o.prepare != "" {
		if _, err := output(ctx, folder, "go", strings.Fields(o.prepare)...); err != nil {
			return source{}, err
		}
	}
	seconds, err := output(ctx, folder, "git", "show", "--no-patch", "--format=%ct", at)
	if err != nil {
		return source{}, err
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	return source{folder, time.Unix(n, 0).UTC(), at}, err
}

// output runs a command in a folder, and returns its output without spaces around it.
func output(ctx context.Context, folder, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = folder
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s%s", strings.Join(cmd.Args, " "), err, &stderr, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// host is the platform of this process.
var host = platform{runtime.GOOS, runtime.GOARCH}
