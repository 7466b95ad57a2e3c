package main

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

//go:embed packages/pypi.md
var pypiReadme string

// wheelTags are the platforms of wheels. The program is static, so one wheel serves both C
// libraries of Linux. macOS 12 is the oldest that Go supports.
var wheelTags = map[string]string{
	"linux/amd64":   "manylinux_2_17_x86_64.musllinux_1_1_x86_64",
	"linux/arm64":   "manylinux_2_17_aarch64.musllinux_1_1_aarch64",
	"darwin/amd64":  "macosx_12_0_x86_64",
	"darwin/arm64":  "macosx_12_0_arm64",
	"windows/amd64": "win_amd64",
	"windows/arm64": "win_arm64",
}

var (
	candidate = regexp.MustCompile(`^(\d+\.\d+\.\d+)-rc\.?(\d+)$`)
	untagged  = regexp.MustCompile(`^(\d+\.\d+\.\d+)-(?:0\.)?(\d{14})-([0-9a-f]{12})$`)
	tagged    = regexp.MustCompile(`^\d+\.\d+\.\d+$`)
)

// pythonVersion returns the form of a version in Python: 0.1.0, 0.1.0rc1, or that of a commit
// without a tag, 0.1.0.dev20261129123007+0123456789ab.
func pythonVersion(version string) (string, error) {
	if m := candidate.FindStringSubmatch(version); m != nil {
		return m[1] + "rc" + m[2], nil
	}
	if m := untagged.FindStringSubmatch(version); m != nil {
		return m[1] + ".dev" + m[2] + "+" + m[3], nil
	}
	if !tagged.MatchString(version) {
		return "", fmt.Errorf("the version %s has no form in Python: name the tag v1.2.3 or v1.2.3-rc.1", version)
	}
	return version, nil
}

// writeWheels writes a wheel for each platform: the client for Python with its plugin for pytest,
// and the program, which pip installs beside Python.
func writeWheels(_ context.Context, r *release) error {
	version, err := pythonVersion(r.version)
	if err != nil {
		return err
	}
	client, err := os.ReadFile(filepath.Join(r.folder, "clients", "python", "tabletop.py"))
	if err != nil {
		return err
	}
	name := "tabletop_emu-" + version
	for _, b := range r.builds {
		tag := "py3-none-" + wheelTags[b.String()]
		info := name + ".dist-info/"
		var about strings.Builder
		about.WriteString("Wheel-Version: 1.0\nGenerator: tabletop dist\nRoot-Is-Purelib: false\n")
		for each := range strings.SplitSeq(wheelTags[b.String()], ".") {
			about.WriteString("Tag: py3-none-" + each + "\n")
		}
		files := []file{
			{name: "tabletop/__init__.py", data: client},
			{name: "tabletop/py.typed"}, // only a folder can have it; with it, type checkers read the client
			{name: name + ".data/scripts/" + b.exe("tabletop"), data: b.programs["tabletop"], executable: true},
			{name: info + "METADATA", data: []byte("Metadata-Version: 2.1\nName: tabletop-emu\nVersion: " + version + "\nSummary: " + description +
				"\nHome-page: " + homepage + "\nLicense: Apache-2.0\nClassifier: Framework :: Pytest\nRequires-Python: >=3.8\nDescription-Content-Type: text/markdown\n\n" + pypiReadme)},
			{name: info + "WHEEL", data: []byte(about.String())},
			{name: info + "entry_points.txt", data: []byte("[pytest11]\ntabletop = tabletop\n")},
			{name: info + "LICENSE", data: r.license},
			{name: info + "NOTICE", data: b.notice},
		}
		var record strings.Builder
		for _, f := range files {
			hash := sha256.Sum256(f.data)
			_, _ = fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(hash[:]), len(f.data))
		}
		record.WriteString(info + "RECORD,,\n")
		wheel, err := zipped(append(files, file{name: info + "RECORD", data: []byte(record.String())}), r.time)
		if err != nil {
			return err
		}
		if err := r.write(wheel, "pypi", name+"-"+tag+".whl"); err != nil {
			return err
		}
	}
	return nil
}
