package main

import (
	"cmp"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// platform is a pair of GOOS and GOARCH.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// exe returns the file name of a program.
func (p platform) exe(program string) string {
	if p.os == "windows" {
		return program + ".exe"
	}
	return program
}

func parsePlatform(text string) (platform, error) {
	system, arch, ok := strings.Cut(text, "/")
	p := platform{system, arch}
	if !ok || !slices.Contains(list(allPlatforms), text) {
		return p, fmt.Errorf("-platforms: %q must be one of %s", text, strings.ReplaceAll(allPlatforms, ",", ", "))
	}
	return p, nil
}

// programs are the packages of the programs, below cmd.
var programs = []string{"tabletop", "cbtemulator"}

// release holds the data that all parts share.
type release struct {
	options
	source
	version string // without its v
	builds  []build
	manual  []file // completion scripts and man pages, as the program prints them
	license []byte
}

// build has the programs of a platform.
type build struct {
	platform
	programs map[string][]byte
	modules  []module // linked into one of them
	notice   []byte
}

// module is a module that is linked into a program.
type module struct{ path, version string }

// goBuild runs go build in a folder, for a platform.
func goBuild(ctx context.Context, folder string, p platform, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"build"}, args...)...)
	cmd.Dir = folder
	// The minimal processors of each architecture, and no settings of this machine.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOOS="+p.os, "GOARCH="+p.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOFIPS140=off")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return nil
}

// compile builds the programs for all platforms, and for this one, whose program prints the manual.
func compile(ctx context.Context, o options, work string) (*release, error) {
	src, err := clone(ctx, o, filepath.Join(work, "source"))
	if err != nil {
		return nil, err
	}
	r := &release{options: o, source: src}
	if r.license, err = os.ReadFile(filepath.Join(src.folder, "LICENSE")); err != nil {
		return nil, err
	}
	for _, p := range o.platforms {
		b, err := r.compile(ctx, p, filepath.Join(work, p.os+"-"+p.arch))
		if err != nil {
			return nil, err
		}
		r.builds = append(r.builds, b)
	}
	licenses, err := newLicenses(ctx, src.folder) // the builds have downloaded the modules
	if err != nil {
		return nil, err
	}
	for i, b := range r.builds {
		if r.builds[i].notice, err = licenses.notice(b.modules); err != nil {
			return nil, err
		}
	}
	own := filepath.Join(work, host.os+"-"+host.arch)
	if !slices.Contains(o.platforms, host) {
		if _, err := r.compile(ctx, host, own); err != nil {
			return nil, err
		}
	}
	r.manual, err = manual(ctx, filepath.Join(own, host.exe("tabletop")), filepath.Join(work, "man"))
	return r, err
}

// compile builds the programs for a platform into a folder, and sets r.version.
func (r *release) compile(ctx context.Context, p platform, folder string) (build, error) {
	_, _ = fmt.Fprintf(r.log, "building %v\n", p)
	args := append(slices.Clone(r.goFlags), "-buildvcs=true", "-o", folder+string(filepath.Separator))
	for _, program := range programs {
		args = append(args, "./cmd/"+program)
	}
	b := build{platform: p, programs: map[string][]byte{}}
	if err := r.build(ctx, r.folder, p, args...); err != nil {
		return b, err
	}
	for _, program := range programs {
		name := filepath.Join(folder, p.exe(program))
		info, err := buildinfo.ReadFile(name)
		if err != nil {
			return b, err
		}
		r.version = strings.TrimPrefix(info.Main.Version, "v")
		if r.version == "" || r.version == "(devel)" {
			return b, errors.New("go build did not find a version in the repository")
		}
		b.modules = append(b.modules, module{"stdlib", strings.TrimPrefix(info.GoVersion, "go")})
		for _, m := range info.Deps {
			b.modules = append(b.modules, module{m.Path, m.Version})
		}
		if b.programs[program], err = os.ReadFile(name); err != nil {
			return b, err
		}
	}
	slices.SortFunc(b.modules, func(a, b module) int {
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.version, b.version))
	})
	b.modules = slices.Compact(b.modules)
	return b, nil
}

// manual returns the completion scripts and man pages that a program prints.
func manual(ctx context.Context, program, folder string) (files []file, err error) {
	for _, shell := range []struct{ name, file string }{
		{"bash", "completions/tabletop.bash"},
		{"zsh", "completions/_tabletop"},
		{"fish", "completions/tabletop.fish"},
	} {
		script, err := exec.CommandContext(ctx, program, "completion", shell.name).Output()
		if err != nil {
			return nil, fmt.Errorf("completion %s: %w", shell.name, err)
		}
		files = append(files, file{name: shell.file, data: script})
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		return nil, err
	}
	if _, err := output(ctx, "", program, "man", "--dir", folder); err != nil {
		return nil, err
	}
	pages, err := os.ReadDir(folder)
	if err == nil && len(pages) == 0 {
		err = errors.New("man --dir wrote no page")
	}
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join(folder, page.Name()))
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: "man/" + page.Name(), data: text})
	}
	return files, err
}
