package main

import (
	"strings"
	"testing"
)

// TestUsage: an error of the command line names the command, what may have been meant, and
// where its flags are listed.
func TestUsage(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"verify x":                        `unexpected argument verify, did you mean "tabletop migrate verify"?` + "\n" + `Run "tabletop --help" for the commands.`,
		"nothing":                         "unexpected argument nothing\n",
		"migrate verfy":                   `migrate: unexpected argument verfy, did you mean "verify"?` + "\n" + `Run "tabletop migrate --help" for the commands.`,
		"migrate infer --write-mapping x": "migrate infer: unknown flag --write-mapping, did you mean --mapping?\n" + `Run "tabletop migrate infer --help" for the flags.`,
		"serve --bigtabel x":              `serve: unknown flag --bigtabel, did you mean "--bigtable"?`,
		"serve --nothing":                 "serve: unknown flag --nothing\n",
		"serve --data":                    "serve: --data needs a value: --data DIR\n",
		"serve --bigtable":                "serve: --bigtable needs a value: --bigtable HOST:PORT\n",
		"serve --throttle partitions":     "serve: unexpected argument partitions; its value follows =, as in --throttle=partitions\n",
		"serve --namespaced yes":          "serve: unexpected argument yes\n",
		"serve --ca x":                    "serve: --ca needs --target",
	} {
		var stderr strings.Builder
		p := &program{stdin: strings.NewReader(""), stdout: &strings.Builder{}, stderr: &stderr}
		if code := p.run(t.Context(), strings.Fields(args)); code != exitBadInput || !strings.HasPrefix(stderr.String(), "tabletop: "+want) {
			t.Errorf("tabletop %s exits %d:\n%swant\ntabletop: %s", args, code, stderr.String(), want)
		}
	}
}

// TestServe_HelpGroups: the flags of serve are all shown in groups.
func TestServe_HelpGroups(t *testing.T) {
	t.Parallel()
	var stdout strings.Builder
	p := &program{stdin: strings.NewReader(""), stdout: &stdout, stderr: &strings.Builder{}}
	if code := p.run(t.Context(), []string{"serve", "--help"}); code != exitEqual {
		t.Fatalf("it exits %d", code)
	}
	_, text, _ := strings.Cut(stdout.String(), "\nFlags:\n")
	common, text, _ := strings.Cut(text, "\nListeners:\n")
	if strings.Count(common, "--") != 3 { // help, config and version
		t.Errorf("outside of groups there are\n%s", common)
	}
	for _, group := range []string{"Access", "Data", "Another Bigtable", "DynamoDB", "Limits and simulation", "Web pages", "Console and control API", "Process"} {
		before, after, ok := strings.Cut(text, "\n"+group+":\n")
		if text = after; !ok {
			t.Fatalf("group %s does not follow\n%s", group, before)
		}
	}
}
