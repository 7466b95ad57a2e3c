package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// publish runs publish.sh, which prints its commands. env replaces variables.
func publish(t *testing.T, folder string, env ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "./publish.sh", folder)
	cmd.Env = append(os.Environ(), append([]string{"RUN=echo", "IMAGE=registry.example/tabletop", "MAVEN_UPLOAD=upload -v", "STEPS="}, env...)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestPublish checks the commands that publish a release, and the files that it refuses.
func TestPublish(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sha256sum"); err != nil {
		t.Skip("there is no sha256sum here")
	}
	o := tinyOptions(t, repository(t, nil), "archives")
	o.parts = []string{"archives", "image", "compat-image", "npm", "pypi"}
	if err := dist(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	out, err := publish(t, o.out, "STEPS=github image npm pypi")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"gh release create v0.1.0 --verify-tag --generate-notes tabletop_0.1.0_darwin_amd64.tar.gz ",
		" ./tabletop_0.1.0_compat-image_amd64.tar ./tabletop_0.1.0_compat-image_arm64.tar ./tabletop_0.1.0_image_amd64.tar ./tabletop_0.1.0_image_arm64.tar SHA256SUMS\n",
		"\ncrane push image registry.example/tabletop:0.1.0\ncrane push compat-image registry.example/tabletop:0.1.0-compat\n" +
			"crane tag registry.example/tabletop:0.1.0 latest\ncrane tag registry.example/tabletop:0.1.0-compat compat\n",
		"\nnpm publish --access public --tag latest ./npm/tabletop-emu-win32-x64-0.1.0.tgz\nnpm publish --access public --tag latest ./npm/tabletop-emu-0.1.0.tgz\n",
		"\ntwine upload pypi/tabletop_emu-0.1.0-py3-none-macosx_12_0_arm64.whl ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it prints\n%swithout\n%s", out, want)
		}
	}
	for _, tc := range []struct{ env, want string }{
		{"STEPS=github brew", "STEPS: brew must be github, "},
		{"IMAGE=", "name the image"},
		{"MAVEN_UPLOAD=", "name the command"},
	} {
		if out, err := publish(t, o.out, tc.env); err == nil || !strings.Contains(out, tc.want) || strings.Contains(out, "gh release") {
			t.Errorf("with %s: %v\n%s", tc.env, err, out)
		}
	}
	list := filepath.Join(o.out, "tabletop_0.1.0_linux_amd64.cdx.json")
	if err := os.WriteFile(list, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := publish(t, o.out); err == nil || !strings.Contains(out, "tabletop_0.1.0_linux_amd64.cdx.json: FAILED") {
		t.Errorf("with a changed file: %v\n%s", err, out)
	}
	if err := os.Remove(filepath.Join(o.out, "tabletop_0.1.0_windows_arm64.zip")); err != nil {
		t.Fatal(err)
	}
	if out, err := publish(t, o.out); err == nil || !strings.Contains(out, "has 5 archives, not those of six platforms") {
		t.Errorf("with five archives: %v\n%s", err, out)
	}
}
