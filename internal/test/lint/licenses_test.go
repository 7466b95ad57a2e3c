package lint

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// licenses are the accepted licenses of linked modules, recognized by words in their texts.
var licenses = []struct {
	name string
	text *regexp.Regexp
}{
	{"Apache-2.0", regexp.MustCompile(`Apache License,?\s+Version 2\.0`)},
	{"MIT or ISC", regexp.MustCompile(`Permission (is hereby granted, free of charge|to use, copy, modify,)`)},
	{"BSD", regexp.MustCompile(`Redistribution and use in source and binary forms, with or without\s+modification, are permitted`)},
}

var licenseFile = regexp.MustCompile(`(?i)^(licen[sc]e|copying)(\.(txt|md))?$`)

// TestLicenses checks that every module linked into a program or into a user's tests has a
// license that allows distributing the project.
func TestLicenses(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}\t{{.Dir}}{{end}}")
	for _, f := range productionFiles(t) {
		// Internal packages count if another package links them; nested modules are not linked
		// into either.
		if folder := "./" + path.Dir(f.path); !strings.Contains(folder, "/internal/") && !within(f.path, "conformance") && !slices.Contains(cmd.Args, folder) {
			cmd.Args = append(cmd.Args, folder)
		}
	}
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", cmd, err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		name, dir, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if !ok || seen[name] {
			continue
		}
		seen[name] = true
		l := licenseOf(t, dir)
		if l == "" {
			t.Errorf("module %s: no file in %s holds the text of an accepted license", name, dir)
		}
		t.Logf("%s: %s", name, l)
	}
	if len(seen) < 10 {
		t.Errorf("%d modules are linked, which cannot be all", len(seen))
	}
}

// licenseOf names the license of the module in a folder, or returns "".
func licenseOf(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() || !licenseFile.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range licenses {
			if l.text.Match(text) {
				return l.name
			}
		}
	}
	return ""
}
