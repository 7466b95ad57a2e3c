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
		"verify x":                        `unknown command verify, did you mean "tabletop migrate verify"?` + "\n" + `Run "tabletop --help" for the commands.`,
		"snapshot x":                      `unknown command snapshot, did you mean "tabletop ctl snapshot"?`,
		"nothing":                         "unknown command nothing\n",
		"migrate verfy":                   `migrate: unknown command verfy, did you mean "verify"?` + "\n" + `Run "tabletop migrate --help" for the commands.`,
		"migrate infer --write-mapping x": "migrate infer: unknown flag --write-mapping, did you mean --mapping?\n" + `Run "tabletop migrate infer --help" for the flags.`,
		"serve --bigtabel x":              `serve: unknown flag --bigtabel, did you mean "--bigtable"?`,
		"migrate verify x --target y":     "migrate verify: unknown flag --target, did you mean --against?",
		"migrate load x --against y":      "migrate load: unknown flag --against, did you mean --target?",
		"migrate reverse --against y":     "migrate reverse: unknown flag --against, did you mean --target?",
		"serve --against y":               "serve: unknown flag --against, did you mean --target?",
		"help migrate verfy":              `migrate: unknown command verfy, did you mean "verify"?`,
		"completion tcsh":                 `completion: <shell> must be one of "bash","zsh","fish" but got "tcsh"`,
		"man nothing":                     `man: "nothing" is not a command`,
		"help lint":                       `unknown command lint, did you mean "tabletop migrate lint"?`,
		"serve --help=x":                  `serve: --help: "x" must be all`,
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
