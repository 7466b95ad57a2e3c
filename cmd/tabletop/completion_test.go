package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestComplete: the completions of the last word, each with its description after a tab.
func TestComplete(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"":                   "serve dynamodb-local ctl healthcheck demo sql migrate help completion version :none",
		"se":                 "serve :none",
		"migrate l":          "load lint :none",
		"migrate load ":      ":files",
		"nothing ":           "serve dynamodb-local ctl healthcheck demo sql migrate help completion version :none",
		"serve ":             ":none",
		"dynamodb-local --d": "--dbPath --delayTransientStatuses --disableTelemetry :none",
		"serve --g":          "--gc --gc-interval --grace :none",
		"serve --gc ":        "background eager manual :none",
		"serve --gc m":       "manual :none",
		"serve --gc=":        "--gc=background --gc=eager --gc=manual :none",
		"serve --like=":      "--like=dynamodb-local :none",
		"serve --throttle":   "--throttle :none",
		// A flag that may stand without a value takes it only after =.
		"serve --throttle ":   ":none",
		"serve --throttle=p":  "--throttle=partitions :none",
		"serve --data ":       ":folders",
		"serve --mapping=x":   ":files",
		"serve --dynamodb ":   ":none",
		"serve --nothing=":    ":none",
		"serve --data d --da": ":none",
		// A repeatable flag is offered again.
		"serve --mapping m --ma":       "--mapping :none",
		"serve --help=":                "--help=all :none",
		"migrate infer -o ":            ":files",
		"migrate infer --mapping m -o": ":none",
		"migrate load --mapping ":      "auto :files",
		"migrate lint --fail-on ":      "lint=error lint=warn lint=info :none",
		"migrate load --report ":       "text= json= junit= html= :none",
		"migrate load --report j":      "json= junit= :none",
		"migrate load --report json=":  ":files",
		"migrate load --report=json=x": ":files",
		"migrate plan --report=":       "--report=text= --report=json= :none",
		"migrate diff a ":              ":files",
		"migrate load a ":              ":none",
		"migrate load -- -":            ":files",
		"ctl snap":                     "snapshots snapshot :none",
		"ctl --port-file f restore":    "restore :none",
		"ctl rows ":                    ":none",
		"ctl help ro":                  "rows :none",
		"help migrate ver":             "verify :none",
		"help nothing ":                ":none",
		"completion ":                  "bash zsh fish :none",
	} {
		words := strings.Split(line, " ")
		var got []string
		for line := range strings.Lines(helpOf(t, 0, append([]string{completeArgument}, words...)...)) {
			name, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			got = append(got, name)
		}
		if diff := cmp.Diff(strings.Fields(want), got); diff != "" {
			t.Errorf("%q: -want +got\n%s", line, diff)
		}
	}
	if got, want := helpOf(t, 0, completeArgument, "serve", "--public"), "--public\tAllow listen addresses that other machines can reach, not only loopback addresses\n:none\n"; got != want {
		t.Errorf("--public is completed as %q, want %q", got, want)
	}
	// Every flag of every command is offered.
	for _, n := range nodes(t) {
		got := helpOf(t, 0, append(append([]string{completeArgument}, strings.Fields(n.Path())...), "--")...)
		for _, g := range flagGroups(n) {
			for _, f := range g.flags {
				if !strings.Contains("\n"+got, "\n--"+f.Name+"\t") {
					t.Errorf("%q is not completed to --%s", n.Path(), f.Name)
				}
			}
		}
	}
}

// shell runs a script in an empty folder with the files one.yaml and two words.yaml and the
// folder store.
func shell(t *testing.T, name string, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, dir, "one.yaml", "")
	writeFile(t, dir, "two words.yaml", "")
	if err := os.Mkdir(filepath.Join(dir, "store"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir) // shells write their history there
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}

// TestCompletion_Bash completes words in bash, which splits them at = and :.
func TestCompletion_Bash(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip(err)
	}
	const try = `eval "$(tabletop completion bash)"
complete -p tabletop
try() { COMP_WORDS=(tabletop "$@"); COMP_CWORD=$#; COMPREPLY=(); _tabletop tabletop; printf '%s:' "$*"; printf ' [%s]' "${COMPREPLY[@]}"; echo; }
try mig
try serve --gc e
try serve --gc =
try serve --gc = e
try serve --mapping = o
try serve --mapping t
try serve --data ''
try migrate load --report js
try migrate load --report json = o
try serve --bigtable 127.0.0.1 : 80 --dynamo
COMP_WORDBREAKS=${COMP_WORDBREAKS//=/}
try serve --gc=e
try serve --mapping=o
`
	want := `complete -F _tabletop tabletop
mig: [migrate]
serve --gc e: [eager]
serve --gc =: [background] [eager] [manual]
serve --gc = e: [eager]
serve --mapping = o: [one.yaml]
serve --mapping t: [two words.yaml]
serve --data : [store]
migrate load --report js: [json=]
migrate load --report json = o: [one.yaml]
serve --bigtable 127.0.0.1 : 80 --dynamo: [--dynamodb]
serve --gc=e: [--gc=eager]
serve --mapping=o: [--mapping=one.yaml]
`
	if diff := cmp.Diff(want, shell(t, "bash", "--norc", "-c", try)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestCompletion_Fish completes words in fish.
func TestCompletion_Fish(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("fish"); err != nil {
		t.Skip(err)
	}
	const try = `tabletop completion fish | source
for line in "mig" "serve --gc e" "serve --gc=e" "serve --mapping o" "serve --mapping=o" "serve --data s" "migrate load --report json=o"
    complete -C "tabletop $line"
end
`
	want := "migrate\tMove DynamoDB data to Bigtable and verify the result\neager\n--gc=eager\none.yaml\n--mapping=one.yaml\nstore/\njson=one.yaml\n"
	if diff := cmp.Diff(want, shell(t, "fish", "--no-config", "-c", try)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestCompletion_Zsh checks the syntax of the script, since zsh completes only on a terminal.
func TestCompletion_Zsh(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("zsh"); err != nil {
		t.Skip(err)
	}
	script := filepath.Join(t.TempDir(), "_tabletop")
	if err := exec.CommandContext(t.Context(), "sh", "-c", "tabletop completion zsh > "+script).Run(); err != nil {
		t.Fatal(err)
	}
	if got := shell(t, "zsh", "-n", script); got != "" {
		t.Error(got)
	}
}
