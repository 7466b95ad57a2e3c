package clients

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// renamed holds the commands of ctl whose method has another name, as in Python.
var renamed = map[string]string{"put": "put_items", "write": "put_rows", "delete": "delete_table", "diff": "changes_since", "unfault": "remove_faults", "refresh": "refresh_views"}

// further holds methods of the clients that are not commands of ctl.
var further = []string{"call", "bigtable_table", "now"}

// surface checks that every client has all commands of tabletop ctl, with comments, and the
// JavaScript client also their types.
func surface(t *testing.T, binary string) {
	t.Helper()
	help, err := exec.CommandContext(t.Context(), binary, "ctl", "help").Output()
	if err != nil {
		t.Fatal(err)
	}
	methods := append([]string{}, further...)
	for _, line := range regexp.MustCompile(`(?m)^  (\w+) `).FindAllStringSubmatch(string(help), -1) {
		name := line[1]
		if other, ok := renamed[name]; ok {
			name = other
		}
		methods = append(methods, name)
	}
	if len(methods) < 30 {
		t.Fatalf("ctl help has few verbs:\n%s", help)
	}
	for _, file := range []struct {
		path   string
		camel  bool
		method string // a pattern with NAME in place of the name
		bare   string // a pattern of a member without a comment before it
	}{
		{"python/tabletop.py", false, `(?m)^    def NAME\(self`, `(?m)^    def [a-z].*\n        [^"].*`},
		{"javascript/tabletop.mjs", true, `(?m)^\t(async )?NAME\(`, `[^/]\n\t(async |static )*(\w\w+)\(.*\{`},
		{"javascript/tabletop.d.mts", true, `(?m)^\tNAME\(.*\): (Promise|AsyncGenerator)`, `[^/]\n\t(static )?\w+\(.*\): `},
		{"java/Tabletop.java", true, `(?m)^\tpublic \S+ NAME\(`, `[^/]\n\t+public .*`},
	} {
		text, err := os.ReadFile(filepath.Join("../../clients", file.path))
		if err != nil {
			t.Fatal(err)
		}
		for _, member := range regexp.MustCompile(file.bare).FindAllString(string(text), -1) {
			if !strings.Contains(member, "constructor(") && !strings.Contains(member, "\theat(") { // one comment for both forms
				t.Errorf("%s has no comment for %s", file.path, strings.TrimSpace(member))
			}
		}
		for _, name := range methods {
			if file.camel {
				name = regexp.MustCompile(`_\w`).ReplaceAllStringFunc(name, func(s string) string { return strings.ToUpper(s[1:]) })
			}
			if !regexp.MustCompile(strings.ReplaceAll(file.method, "NAME", name)).Match(text) {
				t.Errorf("%s has no method %s", file.path, name)
			}
		}
	}
}
